"""Validation: held-out problems of the training split, run as the discrete guarded sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ode2opt.dynamics.coefficients import Coefficients
from ode2opt.learning.instances import Instance
from ode2opt.learning.options import Options
from ode2opt.learning.stopm import State, StoPM
from ode2opt.learning.stopping_time import StoppingTime
from ode2opt.problems.base import Problem
from ode2opt.solvers import Result, solve

FEASIBLE = 1e-3
"""The largest P and Q, dimensionless, that count as none."""


@dataclass(frozen=True)
class Validation:
    """What the sequence needed, and what the flow violated.

    Attributes:
        complexity, worst: mean and largest number of iterations to the tolerance.
        reached, handovers: how many problems got there, how often the guard had to step in.
        flows: how many flows got there.
        P, Q: the largest violations.
        total: how many problems there are.
    """

    complexity: float
    worst: int
    reached: int
    handovers: int
    flows: int
    P: float
    Q: float
    total: int

    @property
    def feasible(self) -> bool:
        """Whether the conditions hold and the sequence does without the guard."""
        whole = self.reached == self.total and not self.handovers
        return whole and max(self.P, self.Q) <= FEASIBLE

    def statistics(self) -> dict[str, Any]:
        """Return what a method file tells of the sequence."""
        names = ("complexity", "worst", "reached", "handovers", "total", "feasible")
        return {name: getattr(self, name) for name in names}


class Validator:
    """The held-out problems, each with its instance for the flow.

    ``safety`` is the factor by which P takes the curvature to be larger than it is.
    """

    def __init__(
        self, problems: Sequence[Problem], instances: Sequence[Instance], safety: float = 1.0
    ) -> None:
        self.problems, self.instances, self.safety = list(problems), list(instances), safety

    def __call__(self, stopm: StoPM, state: State) -> Validation:
        coefficients = stopm.coefficients(state)
        results = self._solve(coefficients, stopm.options)
        flows = [stopm.measure(state, one, self.safety) for one in self.instances]
        counts = [result.iterations for result in results]
        return Validation(
            complexity=float(np.mean(counts)),
            worst=max(counts),
            reached=sum(result.success for result in results),
            handovers=sum(len(result.handovers) for result in results),
            flows=sum(bool(flow.reached) for flow in flows),
            P=_largest(flows, "P"),
            Q=_largest(flows, "Q"),
            total=len(results),
        )

    def _solve(self, coefficients: Coefficients, options: Options) -> list[Result]:
        """Solve every problem by the guarded sequence."""
        schedule = coefficients.schedule(options.h, options.t0, options.horizon)
        return [
            solve(
                problem, np.asarray(one.x0), method=schedule.scaled(float(one.scale)),
                tol=options.tol, max_iter=options.horizon,
            )
            for problem, one in zip(self.problems, self.instances, strict=True)
        ]  # fmt: skip


def _largest(flows: Sequence[StoppingTime], name: str) -> float:
    values: list[Any] = [float(getattr(flow, name)) for flow in flows]
    return max((value if np.isfinite(value) else np.inf for value in values), default=0.0)
