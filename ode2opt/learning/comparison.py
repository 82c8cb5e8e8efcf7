"""A method compared with baselines: the same problems and starts, oracle calls and seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.threads import one_thread
from ode2opt.executor import THIS_PROCESS, Executor
from ode2opt.learning.validation import solve_one
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.proofs.confidence import expectation
from ode2opt.solvers import Method, Result

BASELINES: dict[str, str | Method] = {"lbfgs": "lbfgs", "auto": "auto"}
NAMES = {
    "lbfgs": "L-BFGS",
    "auto": "auto",
    "instant": "the instant method",
    "fista": "FISTA with restart",
}
MOST_POINTS = 100  # of a curve
CURVES = "courses"  # the field of a method's statistics with its gradient curves
SAME_RATIO = 1.05  # a ratio up to which numbers count as the same


class ProblemSet(NamedTuple):
    """Problems with their start points, and how they are solved.

    Attributes:
        problems: the problems.
        starts: the start point of each.
        tol: the gradient norm to reach.
        times: how often each solve is repeated; the fastest counts, because the others were
            disturbed. 1 by default.
        penalty: what is added to each problem; None by default.
    """

    problems: Sequence[Problem]
    starts: Sequence[Array]
    tol: float
    times: int = 1
    penalty: Penalty | None = None

    def solve(self, method: str | Method, i: int) -> Result:
        """Solve one problem by one method."""
        given = (method, self.problems[i], self.starts[i], self.tol, self.penalty)
        return min((solve_one(*given) for _ in range(self.times)), key=_seconds_of)

    def solve_all(self, asked: tuple[Mapping[str, str | Method], int]) -> dict[str, Result]:
        """Solve one problem by several methods in turn; a task for one worker."""
        methods, i = asked
        return {name: self.solve(method, i) for name, method in methods.items()}


def solve_all_by(
    methods: Mapping[str, Sequence[str | Method]],
    subjects: ProblemSet,
    executor: Executor = THIS_PROCESS,
) -> dict[str, list[Result]]:
    """Solve each problem by all methods in turn, on one thread, so that seconds can be compared."""
    asked = [
        ({name: each[i] for name, each in methods.items()}, i)
        for i in range(len(subjects.problems))
    ]
    with one_thread():
        subjects._replace(times=1).solve_all(asked[0])  # what is loaded or made once is not timed
        found = list(executor.map(ProblemSet.solve_all, subjects, asked))
    return {name: [each[name] for each in found] for name in methods}


def summary(found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Return what each method needed, as the method file and ``train --json`` store it."""
    return {
        "problems": len(next(iter(found.values()))),
        "reached": {name: sum(one.success for one in each) for name, each in found.items()},
        "calls": {name: float(np.mean([*map(calls_of, each)])) for name, each in found.items()},
        "seconds": {
            name: float(np.median([*map(_seconds_of, each)])) for name, each in found.items()
        },
    }


def expected(found: Sequence[Result], tol: float) -> dict[str, Any]:
    """Return what further problems of the family need, from fresh ones that were solved."""
    calls = [calls_of(one) if one.success else math.inf for one in found]
    return expectation(calls, tol=tol).summary()


def gradient_curves(found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Return how the gradient norm fell on the first problem, over oracle calls, by each method."""
    return {name: _curve(each[0]) for name, each in found.items()}


def without_curves(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's statistics without its gradient curves, which are too long to print."""
    return {name: value for name, value in statistics.items() if name != CURVES}


def _curve(result: Result) -> dict[str, list[float]]:
    """Return the finite gradient norms of a solve at few of its iterations, both ends included."""
    assert result.history is not None
    seen = zip(result.history.oracle_calls, result.history.grad_norm, strict=True)
    finite = [pair for pair in seen if math.isfinite(pair[1])]
    kept = np.unique(np.linspace(0, len(finite) - 1, MOST_POINTS).round().astype(int))
    return {
        "calls": [float(f"{finite[i][0]:.6g}") for i in kept],
        "norms": [float(f"{finite[i][1]:.6g}") for i in kept],
    }


def calls_of(result: Result) -> float:
    """Return the oracle calls of a solve until its tolerance, or all where it was not reached."""
    return result.reached.oracle_calls if result.reached else result.oracle_calls


def _seconds_of(result: Result) -> float:
    return result.reached.seconds if result.reached else result.seconds


def comparison_sentence(found: Mapping[str, Any]) -> str:
    """Say in one sentence what a method needs compared with its baselines."""
    total, reached = found["problems"], found["reached"]
    if reached["method"] < total:
        return f"It reached the tolerance on {reached['method']} of {total} fresh test problems."
    said: list[str] = []
    for name in (name for name in NAMES if name in reached):
        calls, seconds = (
            _times(found[key][name] / found[key]["method"]) for key in ("calls", "seconds")
        )
        nouns = ("", "") if said else (" gradients", " seconds")
        missed = "" if reached[name] == total else f" (which reached {reached[name]} only)"
        said.append(f"beside {NAMES[name]}{missed}, {calls}{nouns[0]} and {seconds}{nouns[1]}")
    return f"On {total} fresh test problems it takes, {'; '.join(said)}."


def _times(ratio: float) -> str:
    if 1 / SAME_RATIO <= ratio <= SAME_RATIO:
        return "as many"
    return f"{ratio:.1f} times fewer" if ratio > 1 else f"{1 / ratio:.1f} times more"
