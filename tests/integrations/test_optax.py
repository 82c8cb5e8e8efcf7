"""EIGAC as a gradient transformation: the solver's iterates, on any tree, inside jit."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from integrations.learned import COLUMNS, HORIZON, NOT_LEARNED, logistic, method, metrics, table
from support import said_without, visited

from ode2opt import InputError, Schedule
from ode2opt.integrations.optax import eigac
from ode2opt.solvers.methods import by_name

START = np.linspace(-1, 1, COLUMNS)


def walked(optimizer, gradient, params, count):
    """The parameters after 0, ..., count updates."""

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(gradient(params), state, params)
        return optax.apply_updates(params, updates), state

    state, points = optimizer.init(params), [params]
    for _ in range(count):
        params, state = step(params, state)
        points.append(params)
    return points


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", metrics())
def test_the_parameters_are_the_solvers_iterates(kind):
    problem, chosen = logistic(), method(metrics()[kind])
    A, b = jnp.asarray(problem.A), jnp.asarray(problem.b)

    def loss(x):
        return jnp.mean(jnp.logaddexp(0, A @ x) - b * (A @ x)) + 0.025 * x @ x

    found = walked(eigac(chosen), jax.grad(loss), jnp.asarray(START), HORIZON)
    due = visited(problem, START, chosen, HORIZON)
    assert np.linalg.norm(due[-1] - START) > 0.5
    np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kind", metrics())
def test_a_tree_fares_as_the_vector_of_its_leaves(kind):
    problem, chosen = logistic(), method(metrics()[kind])

    def split(x):
        return {"a": x[0], "b": [x[1:5].reshape(2, 2), (x[5:],)]}

    def gradient(tree):
        return split(problem.gradient(np.asarray(jax.flatten_util.ravel_pytree(tree)[0])))

    optimizer = eigac(chosen)
    tree = split(jnp.asarray(START))
    state = optimizer.init(tree)
    for due in visited(problem, START, chosen, 8)[1:]:
        updates, state = optimizer.update(gradient(tree), state)
        tree = optax.apply_updates(tree, updates)
        np.testing.assert_allclose(jax.flatten_util.ravel_pytree(tree)[0], due, rtol=1e-10)


def test_beyond_its_end_the_tables_last_row_goes_on():
    short, whole = Schedule.heavy_ball(0.1, 0.5, 3), Schedule.heavy_ball(0.1, 0.5, 30)
    points = [walked(eigac(s), lambda x: 2 * x, jnp.ones(2), 30) for s in (short, whole)]
    np.testing.assert_array_equal(*points)
    assert abs(float(points[0][-1][0])) < 1e-2


def test_a_scale_divides_the_table():
    points = [
        walked(eigac(s, scale=scale), lambda x: 4.0 * x, jnp.ones(3), 10)
        for s, scale in ((table(), 8.0), (table().scaled(8.0), None))
    ]
    np.testing.assert_allclose(*points, rtol=1e-6)


def test_a_method_may_be_given_by_its_name_or_its_path(tmp_path):
    method().save(tmp_path / "mine.safetensors")
    pairs = (method(), tmp_path / "mine.safetensors"), (by_name("logistic-a5a"), "logistic-a5a")
    for pair, n in zip(pairs, (7, 123), strict=True):
        points = [walked(eigac(one), lambda x: 1e-3 * x, jnp.ones(n), 4) for one in pair]
        np.testing.assert_array_equal(*points)


def test_single_precision_stays_single_and_joins_a_chain():
    chain = optax.chain(optax.clip_by_global_norm(1.0), eigac(table(), scale=9.0))
    points = walked(chain, jax.grad(lambda p: jnp.sum(p["w"] ** 2)), {"w": jnp.ones((2, 3))}, 20)
    assert points[-1]["w"].dtype == jnp.float32
    assert float(jnp.max(jnp.abs(points[-1]["w"]))) < 0.5


@pytest.mark.usefixtures("x64")
def test_single_precision_stays_single_where_double_is_on():
    points = walked(eigac(table(), scale=9.0), lambda p: 2 * p, jnp.ones(3, jnp.float32), 2)
    assert points[-1].dtype == jnp.float32


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *((lambda given=given: eigac(given), said) for given, said in NOT_LEARNED.items()),
        (lambda: eigac(method(scale="product")), r"give scale=method.scale_of\(problem, x0\)"),
        (lambda: eigac(table(), scale=0), "scale is 0"),
        (lambda: eigac(method(metrics()["lowrank"])).init(jnp.ones(3)), "7 variables"),
    ],
)
def test_what_cannot_run_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        wrong()


def test_without_optax_it_says_what_to_install():
    said = said_without("optax", "import ode2opt.integrations.optax")
    assert "pip install 'ode2opt[learn]' (in a clone: pip install -e '.[learn]')" in said
