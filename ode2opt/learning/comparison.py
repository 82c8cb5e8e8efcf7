"""A method beside others: the same problems, the same start points, oracle calls and seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ode2opt.learning.helpers import ALONE, Helpers
from ode2opt.learning.validation import solve_one
from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result
from ode2opt.threads import one_thread

RIVALS: dict[str, str | Method] = {"lbfgs": "lbfgs", "auto": "auto"}
NAMES = {"lbfgs": "L-BFGS", "auto": "auto", "instant": "the instant method"}
MOST_POINTS = 100  # of a course
ALIKE = 1.05  # a ratio up to which numbers count as the same


class ProblemSet(NamedTuple):
    """Problems with their start points, and how they are solved.

    Of several ``times`` the fastest is kept: the others were disturbed.
    """

    problems: Sequence[Problem]
    starts: Sequence[Array]
    tol: float
    times: int = 1

    def solve(self, method: str | Method, i: int) -> Result:
        """Solve problem i by a method."""
        given = (method, self.problems[i], self.starts[i], self.tol)
        return min((solve_one(*given) for _ in range(self.times)), key=_seconds_of)

    def solve_all(self, asked: tuple[Mapping[str, str | Method], int]) -> dict[str, Result]:
        """Solve a problem by methods in turn."""
        methods, i = asked
        return {name: self.solve(method, i) for name, method in methods.items()}


def solved(
    methods: Mapping[str, Sequence[str | Method]], subjects: ProblemSet, helpers: Helpers = ALONE
) -> dict[str, list[Result]]:
    """Solve each problem by all methods in turn, on one thread, so that seconds can be compared.

    ``methods`` has for each name the one to take for each problem.
    """
    asked = [
        ({name: each[i] for name, each in methods.items()}, i)
        for i in range(len(subjects.problems))
    ]
    with one_thread():
        subjects._replace(times=1).solve_all(asked[0])  # what is loaded or made once is not timed
        found = helpers.map(ProblemSet.solve_all, subjects, asked)
    return {name: [each[name] for each in found] for name in methods}


def summary(found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Return mean calls and median seconds to the tolerance, and how many got there."""
    return {
        "problems": len(next(iter(found.values()))),
        "reached": {name: sum(one.success for one in each) for name, each in found.items()},
        "calls": {name: float(np.mean([*map(calls_of, each)])) for name, each in found.items()},
        "seconds": {
            name: float(np.median([*map(_seconds_of, each)])) for name, each in found.items()
        },
    }


def courses(found: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Return how the gradient norm fell on the first problem, over oracle calls, by each method."""
    return {name: _course(each[0]) for name, each in found.items()}


def _course(result: Result) -> dict[str, list[float]]:
    """Return the finite gradient norms of a solve at few of its iterations, ends included."""
    assert result.history is not None
    seen = zip(result.history.oracle_calls, result.history.grad_norm, strict=True)
    finite = [pair for pair in seen if math.isfinite(pair[1])]
    kept = np.unique(np.linspace(0, len(finite) - 1, MOST_POINTS).round().astype(int))
    return {
        "calls": [float(f"{finite[i][0]:.6g}") for i in kept],
        "norms": [float(f"{finite[i][1]:.6g}") for i in kept],
    }


def calls_of(result: Result) -> float:
    """Return the oracle calls to the tolerance, or all where it was not met."""
    return result.reached.oracle_calls if result.reached else result.oracle_calls


def _seconds_of(result: Result) -> float:
    return result.reached.seconds if result.reached else result.seconds


def words(found: Mapping[str, Any]) -> str:
    """Say in one sentence what a method takes beside its rivals, from :func:`summary`."""
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
    if 1 / ALIKE <= ratio <= ALIKE:
        return "as many"
    return f"{ratio:.1f} times fewer" if ratio > 1 else f"{1 / ratio:.1f} times more"
