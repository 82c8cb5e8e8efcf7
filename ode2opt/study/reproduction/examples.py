"""What the figures show of single test problems: runs, curvatures, contraction factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from ode2opt.dynamics.coefficients import restored
from ode2opt.dynamics.conditions import contraction as contraction_of
from ode2opt.dynamics.default import DefaultCoefficients
from ode2opt.dynamics.schedule import Schedule
from ode2opt.learning import learn
from ode2opt.learning.flow.smoothness import scatter
from ode2opt.problems import Problem, Start
from ode2opt.problems.curvature import largest_curvature
from ode2opt.solvers import Method, Progress, Relay, Result, solve
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.session import Session
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.cells import Made, family_of, learned_method, six_digits
from ode2opt.study.reproduction.plan import EARLY, FOLLOWED, ITERATIONS, SEED, TOL, Effort, Item
from ode2opt.study.reproduction.rows import CLASSICS, LEARNED

EXACT = 1e-10  # the gradient norm behind the least value of an example


def _instance(item: Item) -> tuple[Problem, Start]:
    """Return the one test problem that figures show: the first of the benchmark's."""
    problem = family_of(item.problem, item.dataset).sample([SEED, 0], part="test")
    return problem, problem.start()


def example(store: Store, effort: Effort, item: Item) -> Made:
    """Follow every method on one test problem, well past the horizon, with function values."""
    problem, start = _instance(item)
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
    result = _followed(problem, start, method, handover, FOLLOWED, look)
    assert result.history is not None
    return {
        "grad_norm": six_digits(result.history.grad_norm),
        "value": values,
        "handovers": [one.iteration for one in result.handovers],
    }


def _followed(
    problem: Problem, start: Start, method: str | Method | Schedule, handover: str | Relay,
    iterations: int, look: Callable[[Progress], None],
) -> Result:  # fmt: skip
    """Run a method to the last iteration, whatever it does; ``look`` is called at every point."""
    return solve(
        problem, start, method=method, tol=TOL, max_iter=iterations, handover=handover,
        stop_at_tol=False, history=True, callback=look,
    )  # fmt: skip


def smoothness(store: Store, effort: Effort, item: Item) -> Made:
    """Return gradient norms and curvatures along four methods on one test problem."""
    problem, _ = _instance(item)
    found = scatter(problem, every=effort.scatter_every)
    return {"points": {method: points.tolist() for method, points in found.items()}}


def contraction(store: Store, effort: Effort, item: Item) -> Made:
    """Follow the default, an early and the last learned coefficients, and the relay.

    The learned coefficients go on unwatched past what they were trained for.
    """
    problem, start = _instance(item)
    family, last = family_of(item.problem, item.dataset), learned_method(store, item)
    early = learn(
        family, callback=lambda step: step.line["step"] + 1 >= EARLY, seed=SEED, **effort.training
    )
    schedules = {
        "default": DefaultCoefficients(4.0).schedule(ITERATIONS, start.L),
        "early": _extended(early, problem, start),
        "last": _extended(last, problem, start),
    }
    lines = {
        name: _unwatched(problem, start, schedule, effort.curvature_every)
        for name, schedule in schedules.items()
    }
    lines["relay"] = _relayed(problem, start, last, effort.curvature_every)
    return {"lines": lines}


def _extended(method: Method, problem: Problem, start: Start) -> Schedule:
    """Return a method's schedule for one problem, to the last iteration of the tables."""
    formula, scale = method.formula, method.scale_of(problem, start)
    assert formula is not None
    coefficients = restored(formula.kind, formula.settings, formula.parameters)
    return coefficients.schedule(formula.h, formula.t0, ITERATIONS, scale)


def _unwatched(problem: Problem, start: Start, schedule: Schedule, every: int) -> Made:
    points: list[np.ndarray] = []
    result = _followed(problem, start, schedule, "none", ITERATIONS, _keeping(points))
    return _traced(problem, points, result, schedule, every)


@dataclass(frozen=True)
class _NotedRelay(Relay):
    """A relay that remembers what it took over, and so what that went on with."""

    noted: list[EigacIteration] = field(default_factory=list)

    def take_over(self, session: Session, eigac: EigacIteration, outcome: Outcome) -> NoReturn:
        self.noted.append(eigac)
        super().take_over(session, eigac, outcome)


def _relayed(problem: Problem, start: Start, method: Method, every: int) -> Made:
    """As above for a method under the relay, with the three numbers that were used in fact."""
    points: list[np.ndarray] = []
    relay = _NotedRelay()
    result = _followed(problem, start, method, relay, ITERATIONS, _keeping(points))
    assert method.schedule is not None
    schedule = method.schedule.scaled(method.scale_of(problem, start))
    if result.handovers:
        latch, later = result.handovers[0].iteration, relay.noted[0].schedule
        pairs = ((getattr(schedule, name), getattr(later, name)) for name in "acd")
        schedule = Schedule(*(np.append(old[:latch], new[latch:]) for old, new in pairs))
    return _traced(problem, points, result, schedule, every)


def _keeping(points: list[np.ndarray]) -> Callable[[Progress], None]:
    return lambda progress: points.append(progress.x)


def _traced(
    problem: Problem, points: list[np.ndarray], result: Result, schedule: Schedule, every: int
) -> Made:
    """Return the gradient norms of a run and, for the top mode, rho, C and |1 - B| on the way."""
    k = np.arange(0, min(len(points), len(schedule)), every)
    with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge
        curvature = np.array([largest_curvature(problem, points[i])[0] for i in k])
        found = contraction_of(schedule.a[k], schedule.c[k], schedule.d[k], curvature)
    assert result.history is not None
    return {
        "grad_norm": six_digits(result.history.grad_norm),
        "handovers": [one.iteration for one in result.handovers],
        "k": k.tolist(),
        "rho": six_digits(found.rho),
        "C": six_digits(found.C),
        "B": six_digits(np.abs(1 - found.B)),
    }
