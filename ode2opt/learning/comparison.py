"""A method beside others: the same problems, the same start points, oracle calls and seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ode2opt.learning.validation import solve_one
from ode2opt.problems._arrays import Array
from ode2opt.problems.base import Problem
from ode2opt.solvers import Method, Result
from ode2opt.threads import one_thread

RIVALS: dict[str, str | Method] = {"lbfgs": "lbfgs", "auto": "auto"}
NAMES = {"lbfgs": "L-BFGS", "auto": "auto", "instant": "the instant method"}
ALIKE = 1.05  # a ratio up to which numbers count as the same


def solved(
    methods: Mapping[str, Sequence[str | Method]],
    problems: Sequence[Problem],
    starts: Sequence[Array],
    tol: float,
    times: int = 1,
) -> dict[str, list[Result]]:
    """Solve each problem by all methods in turn, on one thread, so that seconds can be compared.

    ``methods`` has for each name the one to take for each problem. Of several ``times`` the
    fastest is returned: the others were disturbed.
    """
    found: dict[str, list[Result]] = {name: [] for name in methods}
    with one_thread():
        for each in methods.values():  # what is loaded or made once is not timed
            solve_one(each[0], problems[0], starts[0], tol)
        for i, (problem, x0) in enumerate(zip(problems, starts, strict=True)):
            for name, each in methods.items():
                tries = [solve_one(each[i], problem, x0, tol) for _ in range(times)]
                found[name].append(min(tries, key=_seconds_of))
    return found


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
