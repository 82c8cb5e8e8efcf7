"""Methods whose constants are chosen on problems of the family they are to solve.

EIGAC's default form with (C, alpha), and Nesterov's method with the step C/L. L at the start point
is up to 50 times the curvature where iterates go, and C makes up for it (docs/mathematics.md,
section 9). The problems are training problems: none of the test problems is looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from ode2opt.base.errors import many
from ode2opt.paper.default import DefaultCoefficients
from ode2opt.problems import Family, Problem
from ode2opt.solvers import Status, solve
from ode2opt.solvers.classics import nesterov
from ode2opt.solvers.methods import METHODS, BuiltIn, built_in, default_eigac


class Candidates(NamedTuple):
    """A method for each of several choices of its constants."""

    make: Callable[..., BuiltIn]
    choices: Sequence[dict[str, float]]


def _eigac(C: float, alpha: float) -> BuiltIn:
    return default_eigac(DefaultCoefficients(C, alpha))


def _nesterov(C: float) -> BuiltIn:
    return replace(
        METHODS["nag"],
        summary=f"Nesterov, step {C:g}/L",
        minimise=lambda oracle, x, L, policy: nesterov(oracle, x, L / C),
        schedule=None,
    )


TUNED = {
    "eigac-tuned": Candidates(
        _eigac,
        [
            {"C": C, "alpha": alpha}
            for C, alpha in product((2.0, 5.0, 10.0, 20.0, 32.0, 50.0), (3.0, 6.0, 12.0))
        ],
    ),
    "nag-tuned": Candidates(_nesterov, [{"C": 2.0**power} for power in range(7)]),
}
"""The choices of each method.

On logistic regressions of mushrooms, a5a, w3a, phishing and separable, and on lpp of a5a, all by
the paper's split, C from 5 to 50, each of the three alphas, and steps from 2/L to 64/L were best.
"""


def entry(name: str) -> BuiltIn:
    """Return a method by its name; one whose constants are to be chosen with the first choice."""
    return TUNED[name].make(**TUNED[name].choices[0]) if name in TUNED else built_in(name)


@dataclass(frozen=True)
class Tuning:
    """The constants that were chosen for a method.

    Attributes:
        name: the method, of :data:`TUNED`.
        constants: those chosen.
        complexity: iterations to the tolerance with them, mean over the training problems.
        problems: training problems that it was chosen on.
        reached: how many of them reached the tolerance.
        seconds: how long choosing took.
    """

    name: str
    constants: dict[str, float]
    complexity: float
    problems: int
    reached: int
    seconds: float

    @property
    def method(self) -> BuiltIn:
        """The method with these constants."""
        return TUNED[self.name].make(**self.constants)

    def words(self) -> str:
        """Say what was chosen."""
        found = " and ".join(f"{name} = {value:g}" for name, value in self.constants.items())
        problems, choices = many(self.problems, "training problem"), len(TUNED[self.name].choices)
        return (
            f"{self.name}: {found}, the best of {choices} choices on {problems} "
            f"({self.complexity:g} iterations, {self.seconds:.1f} s)."
        )

    def summary(self) -> dict[str, Any]:
        """Return what ``bench --json`` tells of it."""
        return {
            **self.constants,
            "choices": len(TUNED[self.name].choices),
            "training_problems": self.problems,
            "complexity_mean": self.complexity,
            "reached": self.reached,
            "seconds": self.seconds,
        }


def tune(
    name: str, family: Family, *, tol: float, max_iter: int, seed: int = 0, problems: int = 2
) -> Tuning:
    """Choose the constants with which training problems need fewest iterations, run unwatched.

    A problem that does not reach ``tol`` counts ``max_iter``. Of equal counts the smaller product
    of last gradient norms decides, then the order of the choices, in which steps grow.
    """
    started = time.perf_counter()
    drawn = [family.sample([seed, i], part="train") for i in range(problems)]
    make, choices = TUNED[name]
    costs = [_cost(make(**constants), drawn, tol, max_iter) for constants in choices]
    best = min(range(len(choices)), key=costs.__getitem__)
    count, _, reached = costs[best]
    spent = time.perf_counter() - started
    return Tuning(name, choices[best], count / problems, problems, reached, spent)


def _cost(
    method: BuiltIn, problems: Sequence[Problem], tol: float, max_iter: int
) -> tuple[int, float, int]:
    """Return the iterations to ``tol``, the logarithm of last gradient norms, and who got there."""
    count, norms, reached = 0, 0.0, 0
    for problem in problems:
        found = solve(
            problem, problem.start(), method=method, tol=tol, max_iter=max_iter, handover="none"
        )
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        count += max_iter if found.reached is None else found.reached.iteration
        reached += found.reached is not None
        norms += math.log(max(found.grad_norm, 1e-300))
    return count, norms, reached
