"""Pictures of results and methods, drawn without a screen."""

import sys

import matplotlib as mpl
import numpy as np
import pytest

from ode2opt import InputError, Logistic, Memory, Method, Quadratic, Schedule, solve
from ode2opt.base.errors import MissingDependencyError
from ode2opt.paper import Default
from ode2opt.solvers.method_file import Formula

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 4))
B = (A @ np.ones(4) + RNG.standard_normal(60) > 0).astype(float)
PROBLEM = Logistic(A, B, l2=0.1)


@pytest.fixture(autouse=True)
def no_screen():
    mpl.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def lines(ax):
    """The curves of a panel by their labels: x and y as arrays."""
    return {line.get_label(): np.array(line.get_data()) for line in ax.get_lines()}


def learned(family="logistic", K=30):
    coefficients = Default(2.0)
    formula = Formula("default", coefficients.settings, coefficients.parameters(), 0.04, 1.0)
    return Method(coefficients.schedule(0.04, 1.0, K), family, 1e-6, formula=formula)


def test_a_result_draws_the_gradient_norm_over_its_calls():
    result = solve(PROBLEM, method="nag", tol=1e-6, history=True)
    ax = result.plot()
    drawn = lines(ax)
    assert np.array_equal(drawn["gradient norm"][0], result.history.oracle_calls)
    assert np.array_equal(drawn["gradient norm"][1], result.history.grad_norm)
    assert set(drawn["tolerance 1e-06"][1]) == {1e-6}
    assert ax.get_yscale() == "log"
    assert "oracle calls" in ax.get_xlabel()
    assert ax.get_legend() is not None
    ax.figure.canvas.draw()


def test_handovers_are_marked_where_they_happened():
    schedule = Schedule.gradient_descent(500.0, 50)
    result = solve(PROBLEM, method=schedule, tol=1e-6, history=True)
    (handover,) = result.handovers
    drawn = lines(result.plot())
    at = drawn[f"handover to {handover.to}, iteration {handover.iteration}"][0]
    assert set(at) == {result.history.oracle_calls[handover.iteration]}


def test_axes_of_the_caller_are_drawn_in():
    from matplotlib.figure import Figure

    given = Figure().subplots(1, 3)
    assert solve(PROBLEM, history=True).plot(ax=given[0]) is given[0]
    assert list(learned().plot(ax=given[1:])) == list(given[1:])
    alone = learned().plot(ax=given[2])
    assert list(alone) == [given[2]]


def test_a_result_without_history_says_how_to_get_one():
    with pytest.raises(InputError, match=r"^This result has no history .*history=True\.$"):
        solve(PROBLEM).plot()


@pytest.mark.parametrize("wrong", ["here", 3, [], [None, None]])
def test_what_is_no_axes_is_refused(wrong):
    with pytest.raises(InputError, match="ax must be matplotlib axes"):
        solve(PROBLEM, history=True).plot(ax=wrong)


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (Quadratic(np.eye(2), np.array([1.0, 1.0])), {"method": "newton"}),  # ends at exactly 0
        (Quadratic(np.eye(2), np.zeros(2)), {}),  # begins there
        (PROBLEM, {"max_iter": 0}),
        (PROBLEM, {"method": Schedule.gradient_descent(1e300, 50), "handover": "none"}),
    ],
)
def test_odd_histories_are_drawn(problem, options):
    """Of one point, ending at zero or at infinity."""
    solve(problem, history=True, **options).plot().figure.canvas.draw()


def test_a_method_draws_its_coefficients_and_its_schedule():
    method = learned(r"logistic $\bad{$ & <b>")
    left, right = method.plot()
    t = 1 + 0.04 * np.arange(31)
    curves = list(lines(left).values())
    assert np.allclose(curves[0], [t, 50 - 6 / t])  # beta = C/h - C alpha/(2t)
    assert np.allclose(curves[1], [t, (50 - 6 / t) / 0.04])
    for drawn, numbers in zip(lines(right).values(), "acd", strict=True):
        assert np.array_equal(drawn[1], getattr(method.schedule, numbers))
    assert method.family in right.get_title()
    right.figure.canvas.draw()


def test_a_method_that_is_a_table_draws_it_alone():
    (ax,) = Method(Schedule([0.5, -0.1], [0.5, 0.0], [1, 1]), "mine", 1e-6).plot()
    assert ax.get_yscale() == "linear"


def test_axes_of_the_caller_may_be_logarithmic():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    ax.set_xscale("log")
    learned().plot(ax=ax)
    ax.figure.canvas.draw()


def test_a_method_without_a_schedule_says_so():
    memory = Memory()
    solve(PROBLEM, memory=memory)
    with pytest.raises(InputError, match="has no table"):
        memory.method().plot()


def test_a_table_has_no_coefficients():
    with pytest.raises(InputError, match="has no coefficients"):
        Method(Schedule([0.5], [0.5], [1]), "mine", 1e-6).coefficients()
    assert float(learned().coefficients().C) == 2.0


def test_without_matplotlib_the_error_is_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'ode2opt\[study\]'"):
        solve(PROBLEM, history=True).plot()
