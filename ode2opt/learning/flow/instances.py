"""Problems as training sees them: on JAX arrays, with start point and curvature scale."""

from __future__ import annotations

from ode2opt.learning.flow.options import FlowOptions
from ode2opt.learning.flow.smoothness import fit_l0l1
from ode2opt.learning.protocol import TEST, VALIDATION
from ode2opt.paper.curvature import Estimator, Global, PowerIteration
from ode2opt.paper.stopping_time import FlowInstance
from ode2opt.problems.base import Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.family import Family


class InstanceSampler:
    """Draws the problems of a family: the same for the same seed, stream and number."""

    def __init__(self, family: Family, options: FlowOptions) -> None:
        self.family, self.options = family, options
        self.family_scale: float | None = None
        if options.scale == "family":
            self.family_scale = max(self._curvatures())

    def problem(self, stream: int, i: int) -> Problem:
        """Return a problem of a stream; only the test stream sees test rows.

        With ``options.blocks`` every second problem is made of rows that follow each other.
        """
        seed = [self.options.seed, stream, i]
        if stream == TEST:
            return self.family.sample(seed, part="test")
        return self.family.sample(seed, block=self.options.blocks and i % 2 == 1)

    def instance(self, problem: Problem) -> FlowInstance:
        """Return a problem on JAX arrays, with its start and its curvature scale."""
        return FlowInstance.of(
            problem, problem.start().L if self.options.scale == "paper" else self.family_scale
        )

    def estimator(self) -> Estimator:
        """Return the curvature estimator that the options name, fitted where it has constants."""
        if self.options.estimator == "global":
            return Global(max(self._curvatures()))
        if self.options.estimator == "l0l1":
            return fit_l0l1(self.family, seed=self.options.seed)
        return PowerIteration(0, stir=0.02)

    def _curvatures(self) -> list[float]:
        """Return the curvatures at the starts of the held-out problems."""
        problems = (self.problem(VALIDATION, i) for i in range(self.options.validation))
        return [largest_curvature(problem, problem.start().x0)[0] for problem in problems]
