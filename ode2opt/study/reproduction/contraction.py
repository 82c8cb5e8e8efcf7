"""Figure 4: what the contraction factor says of learned coefficients, and what they do.

Both protocols are followed on one test problem, unwatched and past what they were trained for:
default coefficients, those of an early and of the last step, and the last ones under the relay.
G_k is the Hessian averaged over the segment from the flow x(t_k) to the iterate x_k
(docs/mathematics.md, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ode2opt.base.schedule import Schedule
from ode2opt.coefficients import Coefficients, Default, restored
from ode2opt.learning import learn
from ode2opt.learning.flow.paper import PROBLEMS_AN_EPOCH, STABLE_C
from ode2opt.paper.check_flow import flow
from ode2opt.paper.conditions import contraction as contraction_of
from ode2opt.paper.default import T0, H
from ode2opt.problems import Problem, Start
from ode2opt.problems.curvature import largest_eigenvalue
from ode2opt.solvers import Method, Progress, Relay, Result
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.oracle import Oracle, Outcome
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.cells import (
    Made,
    family_of,
    followed,
    instance_of,
    learned_method,
    six_digits,
)
from ode2opt.study.reproduction.plan import EARLY, ITERATIONS, SEED, Effort, Item


class Subject(NamedTuple):
    """Coefficients to follow."""

    coefficients: Coefficients
    scale: float
    h: float = H
    t0: float = T0

    def schedule(self) -> Schedule:
        """Return the three numbers of each iteration to the last one of the tables."""
        return self.coefficients.schedule(self.h, self.t0, ITERATIONS, self.scale)

    def flow(self, problem: Problem, start: Start) -> np.ndarray:
        """Return the flow's points at the times of all iterations; infinite where it was lost."""
        times = self.t0 + self.h * np.arange(ITERATIONS + 1)
        x0 = np.asarray(start.x0)
        ends = {"t0": times[0], "t1": times[-1]}
        found = flow(self.coefficients, problem, x0, ts=times, scale=self.scale, **ends)
        return np.asarray(found.x)


def contraction(store: Store, effort: Effort, item: Item) -> Made:
    """Follow the coefficients of both protocols on one test problem."""
    problem, start = instance_of(item)
    asked = {
        "paper": ("protocol", effort.paper_options(item), EARLY * PROBLEMS_AN_EPOCH),
        "ours": ("training", {"seed": SEED} | dict(effort.training), EARLY),
    }
    found = {}
    for name, (kind, options, early) in asked.items():
        last = learned_method(store, item, kind)
        subjects = {
            "default": Subject(Default(STABLE_C), start.L),
            "early": _learned(_stopped(item, options, early), problem, start),
            "last": _learned(last, problem, start),
        }
        lines = {
            line: _unwatched(problem, start, subject, effort.curvature_every)
            for line, subject in subjects.items()
        }
        lines["relay"] = _relayed(problem, start, last, effort.curvature_every)
        found[name] = lines
    return {"protocols": found}


def _stopped(item: Item, options: dict[str, Any], steps: int) -> Method:
    """Return what a training has learned after some steps."""
    family = family_of(item.problem, item.dataset)
    return learn(family, callback=lambda step: step.done >= steps, **options)


def _learned(method: Method, problem: Problem, start: Start) -> Subject:
    formula = method.formula
    assert formula is not None
    coefficients = restored(formula.kind, formula.settings, formula.parameters)
    return Subject(coefficients, method.scale_of(problem, start), formula.h, formula.t0)


def _unwatched(problem: Problem, start: Start, subject: Subject, every: int) -> Made:
    points: list[np.ndarray] = []
    schedule = subject.schedule()
    result = followed(problem, start, schedule, "none", ITERATIONS, _keeping(points))
    return _traced(problem, points, subject.flow(problem, start), result, schedule, every)


@dataclass(frozen=True)
class _NotedRelay(Relay):
    """A relay that remembers what it took over, and so what that went on with."""

    noted: list[EigacIteration] = field(default_factory=list)

    def take_over(self, oracle: Oracle, table: EigacIteration, outcome: Outcome) -> NoReturn:
        self.noted.append(table)
        super().take_over(oracle, table, outcome)


def _relayed(problem: Problem, start: Start, method: Method, every: int) -> Made:
    """As above for a method under the relay, with the three numbers that were used in fact.

    The relay belongs to no flow: G_k is the Hessian at the iterate.
    """
    points: list[np.ndarray] = []
    relay = _NotedRelay()
    result = followed(problem, start, method, relay, ITERATIONS, _keeping(points))
    assert method.schedule is not None
    schedule = method.schedule.scaled(method.scale_of(problem, start))
    if result.handovers:
        latch, later = result.handovers[0].iteration, relay.noted[0].schedule
        pairs = ((getattr(schedule, name), getattr(later, name)) for name in "acd")
        schedule = Schedule(*(np.append(old[:latch], new[latch:]) for old, new in pairs))
    return _traced(problem, points, np.array(points), result, schedule, every)


def _keeping(points: list[np.ndarray]) -> Callable[[Progress], None]:
    return lambda progress: points.append(progress.x)


def _traced(
    problem: Problem,
    points: list[np.ndarray],
    flowing: np.ndarray,
    result: Result,
    schedule: Schedule,
    every: int,
) -> Made:
    """Return the gradient norms of a run, and rho, C and |1 - B| of the top mode on the way."""
    assert result.history is not None
    norms = np.asarray(result.history.grad_norm)
    k = np.arange(0, min(len(points), len(schedule)), every)
    with np.errstate(all="ignore"):  # a run may diverge
        curvature = np.array([mean_curvature(problem, flowing[i], points[i]) for i in k])
        found = contraction_of(schedule.a[k], schedule.c[k], schedule.d[k], curvature)
    return {
        "grad_norm": six_digits(norms),
        "handovers": [one.iteration for one in result.handovers],
        "k": k.tolist(),
        "rho": six_digits(found.rho),
        "C": six_digits(found.C),
        "B": six_digits(np.abs(1 - found.B)),
        "extremes": extremes(norms, k, found.rho, found.C),
    }


def mean_curvature(problem: Problem, here: np.ndarray, there: np.ndarray) -> float:
    """Return the largest eigenvalue of the Hessian averaged over a segment; NaN if it is lost."""
    if not (np.all(np.isfinite(here)) and np.all(np.isfinite(there))):
        return float("nan")
    ends = problem.at(here), problem.at(there)
    return largest_eigenvalue(lambda v: problem.mean_hvp(*ends, v), problem.n, here.dtype)[0]


def extremes(
    norms: np.ndarray, k: np.ndarray, rho: np.ndarray, C: np.ndarray, gone_ratio: float = 5.0
) -> Made:
    """Return the largest rho and C of a run before it left, where they were, and whether it left.

    A run has left when its gradient norm is above ``gone_ratio`` times the first one: what follows
    says how large numbers get, not why.
    """
    gone = np.flatnonzero(~(norms <= gone_ratio * norms[0]))
    end = int(gone[0]) if len(gone) else len(norms)
    seen = (k < end) & np.isfinite(rho)
    found: Made = {"left": end if len(gone) else None, "least_norm": float(norms[:end].min())}
    for name, values, edge in (("rho", rho, 1.0), ("C", C, 0.0)):
        above = k[seen][values[seen] > edge]
        top = int(np.argmax(values[seen]))
        found[name] = {
            "largest": float(values[seen][top]),
            "at": int(k[seen][top]),
            "above": len(above),
            "first": int(above[0]) if len(above) else None,
        }
    return found
