"""The paper's protocol: its values as the print has them, its L, its penalties with units."""

import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from ode2opt import Family, InputError, Quadratic, learn
from ode2opt.learning import make_options
from ode2opt.learning.begin import options_for
from ode2opt.learning.flow.paper import PROBLEMS_AN_EPOCH
from ode2opt.learning.flow.target import FlowTarget
from ode2opt.learning.registry import departures
from ode2opt.learning.stage import stopm_of
from ode2opt.paper import Default, Neural
from ode2opt.paper.conditions import largest_stable_C, stability_margin
from ode2opt.paper.default import DefaultCoefficients
from ode2opt.paper.stopping_time import Rules, stopping_time
from ode2opt.problems.jaxed import to_jax

pytestmark = pytest.mark.usefixtures("x64")

PRINT = r"""
We set $h=0.04$, $t_{0}=1$, and $L=\min\{\|A^\top A\|/N,4\upLambda(\mathbf{1}/n,f_{\mathscr{D}})\}$.
For each dataset, the stopping criterion is $\|\nabla f(x)\|=\varepsilon$ with
$\varepsilon=3\times 10^{-4}$, and the penalty coefficient $\rho$ of \eqref{eq:penalty-function} is
$0.1$. We adopt the \texttt{SGD} optimizer in \texttt{PyTorch} with the learning rate $0.001$ and
the momentum $0.9$. The number of epochs is $n_{\mathrm{epoch}}=60$. We initialize the coefficient
functions as $\alpha = 6$, $\beta(t) = (4 - 2\alpha h/t)/L$, and $\gamma(t) = \beta(t)/h$.
"""
PAPER = {"protocol": "paper"}
SHORT = PAPER | {"steps": 3, "validate_every": 1, "validation": 2, "horizon": 60, "tol": 2e-2}


def printed(pattern):
    return float(re.search(pattern, PRINT, re.DOTALL).group(1))


def small():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 4)) * [1, 0.8, 0.6, 0.4]
    b = (A @ np.arange(4) + rng.standard_normal(300) > 0).astype(float)
    return Family.from_arrays("logistic", A, b, size=100, l2=0.02)


def test_values_are_those_of_the_print():
    options = make_options(PAPER)
    assert options.h == printed(r"\$h=([\d.]+)\$")
    assert options.t0 == printed(r"t_\{0\}=([\d.]+)")
    assert options.tol == pytest.approx(printed(r"varepsilon=(\d)\\times") * 1e-4)
    assert options.penalty == printed(r"is\s\$([\d.]+)\$")
    assert options.lr == options.learning_rate == printed(r"learning rate \$([\d.]+)\$")
    assert options.momentum == printed(r"momentum \$([\d.]+)\$")
    assert options.steps == PROBLEMS_AN_EPOCH * printed(r"epoch\}\}=(\d+)")
    assert options.alpha == printed(r"alpha = (\d)")
    assert (options.optimizer, options.decay, options.clip) == ("sgd", "constant", None)
    assert (options.coefficients, options.activation) == ("neural", "softplus")
    assert (options.scale, options.units, options.learn_alpha) == ("paper", "printed", True)
    assert (options.penalty_growth, options.safety, options.keep) == (1.0, 1.0, "last")
    assert (options.batch, options.blocks) == (1, False)


def test_networks_are_those_of_the_print_and_start_at_its_curves():
    options = make_options(PAPER)
    start = options.first_coefficients()
    assert isinstance(start, Neural)
    for network in (start.beta_network, start.gamma_network):
        assert (network.W1.shape, network.W2.shape, network.unit) == ((50,), (50, 50), 1.0)
    t, C = np.linspace(1, 20, 50), options.C
    expected = (C - C / 2 * options.alpha * options.h / t) / options.h  # as printed, with C for 4
    np.testing.assert_allclose([float(start.beta(one)) for one in t], expected, rtol=1e-3)
    np.testing.assert_allclose([float(start.gamma(one)) for one in t], expected / 0.04, rtol=1e-3)


def test_training_starts_at_the_largest_stable_C_because_the_printed_one_is_past_the_edge():
    C = make_options(PAPER).C
    assert C == pytest.approx(largest_stable_C(), abs=1e-3)
    for candidate, stable in ((C, True), (4.0, False)):
        schedule = DefaultCoefficients(candidate).schedule(400)
        margins = stability_margin(schedule.a, schedule.c, schedule.d, np.ones(400))
        assert bool(margins.min() >= 0) is stable


@pytest.mark.parametrize("kind", ["logistic", "lpp"])
def test_the_scale_is_the_papers_L(kind):
    family = Family.from_dataset(kind, "breast_cancer", split="paper")
    target = FlowTarget(family, make_options(PAPER))
    problem = target.problem(0, 0)
    A, N, n = np.asarray(problem.A.toarray() if problem.sparse else problem.A), problem.N, problem.n
    gram = np.linalg.eigvalsh(A.T @ A)[-1] / N
    there = np.linalg.eigvalsh(problem.hessian(np.full(n, 1 / n)))[-1]
    L = min(gram, 4 * there)
    assert float(target.instance(problem, 0, 0).scale) == pytest.approx(L, rel=1e-6)
    x0 = np.full(n, 1 / n) - problem.gradient(np.full(n, 1 / n)) / L
    np.testing.assert_allclose(target.instance(problem, 0, 0).x0, x0, rtol=1e-6)


def test_penalties_have_the_units_of_the_print():
    """On f = Lam/2 |x|^2, with p and q integrated as printed from beta/L and gamma/L."""
    Lam, L, h, alpha = 9.0, 4.0, 0.04, 6.0
    problem = Quadratic(Lam * np.eye(2), np.zeros(2))
    coefficients = Default(3.0)
    rules = Rules(jnp.asarray(1e-3), printed=True)
    found = stopping_time(coefficients, to_jax(problem), jnp.ones(2), jnp.asarray(L), rules)

    def p(t):
        beta = float(coefficients.beta(t)) / L
        s = (float(coefficients.gamma(t)) - float(coefficients.dbeta(t))) / L
        return max(beta * np.sqrt(Lam) - np.sqrt(s) - np.sqrt(s - alpha * beta / t), 0.0)

    P = scipy.integrate.quad(p, 1.0, float(found.T), limit=200)[0]
    assert P > 1
    assert float(found.penalty) == pytest.approx(P, rel=1e-3)
    assert float(found.P) == pytest.approx(h * np.sqrt(L) * P, rel=1e-3)
    assert float(found.Q) == 0


def test_the_convergence_penalty_has_its_units_too():
    L = 4.0
    problem, coefficients = Quadratic(np.eye(2), np.zeros(2)), Default(1.0, corrected=True)
    rules = Rules(jnp.asarray(1e-2), printed=True, h=0.08)  # 1/h is halved: s > beta/h
    found = stopping_time(coefficients, to_jax(problem), jnp.ones(2), jnp.asarray(L), rules)

    def q(t):
        beta = float(coefficients.beta(t)) / L
        s = (float(coefficients.gamma(t)) - float(coefficients.dbeta(t))) / L
        return max(s - beta / 0.08, 0.0)

    Q = scipy.integrate.quad(q, 1.0, float(found.T), limit=200)[0]
    assert Q > 1
    assert float(found.penalty) == pytest.approx(Q, rel=1e-3)


def test_options_given_beside_the_protocol_win_and_are_told():
    options = make_options(PAPER | {"steps": 7, "C": 1.0})
    assert (options.steps, options.C, options.lr) == (7, 1.0, 1e-3)
    assert departures(options.as_dict()) == {"steps": 7, "C": 1.0}
    assert departures(make_options(PAPER).as_dict()) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": "sequence"}, "protocol paper is for --target flow; a sequence has"),
        ({"protocol": "papers"}, "Unknown protocol 'papers': did you mean 'paper'"),
    ],
)
def test_what_the_protocol_is_not_for_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        make_options(PAPER | options)


def test_no_limit_is_none_or_infinity():
    assert make_options({"clip": float("inf")}).clip is None
    assert make_options({"clip": None}).clip is None
    with pytest.raises(InputError, match="clip is -1"):
        make_options({"clip": -1.0})


def test_the_last_point_is_kept_after_steps_of_plain_sgd(tmp_path):
    family, options = small(), make_options(SHORT)
    out = tmp_path / "run"  # broken off at the end: without certificate and comparison
    method = learn(family, out=out, callback=lambda step: step.done == 3, **SHORT)
    target = FlowTarget(family, options)
    stopm = stopm_of(target, options)
    state = stopm.start
    for k in range(3):
        state, _ = stopm.step(state, [target.instance(target.problem(0, k), 0, k)])
    last = stopm.learned(state).parameters()
    assert set(last) == set(method.formula.parameters)
    for name, values in last.items():
        np.testing.assert_array_equal(method.formula.parameters[name], values)
    assert float(last["alpha"]) != 6.0  # it is learned
    problem = family.sample(0, part="test")
    assert method.scale_of(problem, problem.start()) == problem.start().L
    resumed = options_for(PAPER, resume_from=out)
    assert resumed.as_dict() == options.as_dict()


def test_a_last_point_against_the_theory_gets_a_certificate_that_says_so():
    target = FlowTarget(small(), make_options(SHORT))
    where = lambda learned: learned.beta_network.b3  # noqa: E731
    learned = eqx.tree_at(where, target.start, jnp.asarray(-1e4))
    method, problem = target.method(learned, 10), target.problem(1, 0)
    found = target.certificate(learned, method, [problem], [target.instance(problem, 1, 0)])
    assert any("beta is negative" in sentence for sentence in found["verdict"])
    assert [level for level, held in found["levels"].items() if held] == ["guarded"]
