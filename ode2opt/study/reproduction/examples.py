"""What the figures show of single test problems: runs and curvatures."""

from __future__ import annotations

from collections.abc import Callable

from ode2opt.learning.flow.smoothness import scatter
from ode2opt.paper.schedule import Schedule
from ode2opt.problems import Problem, Start
from ode2opt.solvers import Method, Progress, Relay, Result, solve
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.cells import Made, family_of, learned_method, six_digits
from ode2opt.study.reproduction.plan import FOLLOWED, SEED, TOL, Effort, Item
from ode2opt.study.reproduction.rows import CLASSICS, LEARNED

EXACT = 1e-10  # the gradient norm behind the least value of an example


def instance_of(item: Item) -> tuple[Problem, Start]:
    """Return the one test problem that figures show, the first of the benchmark's, and its
    start.
    """
    problem = family_of(item.problem, item.dataset).sample([SEED, 0], part="test")
    return problem, problem.start()


def example(store: Store, effort: Effort, item: Item) -> Made:
    """Follow every method on one test problem, well past the horizon, with function values."""
    problem, start = instance_of(item)
    methods: dict[str, str | Method] = {row.key: row.key for row in CLASSICS}
    methods[LEARNED.key] = learned_method(store, item)
    lines = {key: _with_values(problem, start, method) for key, method in methods.items()}
    exact = solve(problem, start, method="lbfgs", tol=EXACT, max_iter=20_000).fun
    return {"lines": lines, "least_value": exact}


def _with_values(problem: Problem, start: Start, method: str | Method) -> Made:
    values: list[float] = []

    def look(progress: Progress) -> None:
        values.append(float(problem.value(progress.x)))

    handover = "none" if isinstance(method, str) else "relay"
    result = followed(problem, start, method, handover, FOLLOWED, look)
    assert result.history is not None
    return {
        "grad_norm": six_digits(result.history.grad_norm),
        "value": values,
        "handovers": [one.iteration for one in result.handovers],
    }


def followed(
    problem: Problem, start: Start, method: str | Method | Schedule, handover: str | Relay,
    iterations: int, look: Callable[[Progress], None],
) -> Result:  # fmt: skip
    """Run a method to the last iteration, whatever it does."""
    return solve(
        problem, start, method=method, tol=TOL, max_iter=iterations, handover=handover,
        stop_at_tol=False, history=True, callback=look,
    )  # fmt: skip


def smoothness(store: Store, effort: Effort, item: Item) -> Made:
    """Return gradient norms and curvatures along four methods on one test problem."""
    problem, _ = instance_of(item)
    found = scatter(problem, every=effort.scatter_every)
    return {"points": {method: points.tolist() for method, points in found.items()}}
