"""EIGAC in place, for smooth functions: a faster copy of ``solvers.table.follow``.

See docs/mathematics.md, section 2. ``tests/solvers/test_table_copies.py`` crosses them.
"""

from __future__ import annotations

from collections.abc import Callable

from ode2opt.base.arrays import Array, plus, plus_multiple
from ode2opt.base.ended import Ended
from ode2opt.base.schedule import Schedule
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.oracle import Oracle, Outcome


class EigacIteration:
    """The iteration e = u - a g; x <- x + e; u <- u - d e - c g, in place.

    u <- u - a g (= e); x <- x + u; u <- (1 - d) u + (a - c) g: four passes. The solve keeps the
    best point by reference: the next one is written into another vector, so that nothing is copied.
    ``done`` counts the table's rows used, so that a relay can take over in the middle. In a metric
    M g takes the place of g. Where the scale is found at the start point, ``scale_at`` takes its
    gradient and returns the ``scale`` that the schedule is to be divided by.
    """

    def __init__(
        self,
        oracle: Oracle,
        schedule: Schedule,
        x: Array,
        metric: Operator | None = None,
        scale_at: Callable[[Array], float] | None = None,
    ) -> None:
        self.oracle, self.x, self.metric, self.scale_at = oracle, x, metric, scale_at
        self.start = x
        self._other: Array = None
        self.schedule, self.scale = schedule, 1.0
        self.done = 0
        self.u: Array = None
        self.g: Array = None

    def run(self) -> Outcome:
        """Run the whole schedule, or until the watch ends it; a solve that is over raises Stop."""
        oracle = self.oracle
        outcome = self._idle_step() if self.u is None else None
        for a, c, d in self.schedule.rows(self.done):
            if outcome is not None:
                return outcome
            g = self.direction()
            self.u = plus_multiple(self.u, -a, g)
            self._move()
            self.u *= 1.0 - d
            self.u = plus_multiple(self.u, a - c, g)
            self.done += 1
            self.g = oracle.gradient(self.x)
            oracle.observe(self.x, self.g)
            outcome = oracle.judge()
        return outcome or Outcome(Ended.HORIZON)

    def _idle_step(self) -> Outcome | None:
        """Iteration 0: u_0 = a_0 g gives e = 0, so x_1 = x_0 and the gradient is used again."""
        self.g = self.oracle.at(self.x)
        if self.scale_at is not None:
            self.divide_by(self.scale_at(self.g))
        a, c, _ = next(self.schedule.rows())
        self.u = (a - c) * self.direction()
        self.done = 1
        self.oracle.observe(self.x, self.g)
        return self.oracle.judge()

    def _move(self) -> None:
        """x <- x + u, in another vector where x is the start or the best point so far."""
        into = self.x
        if self.x is self.start or self.x is self.oracle.best_x:
            into, self._other = self._other, None if self.x is self.start else self.x
        self.x = plus(self.x, self.u, into)

    def divide_by(self, scale: float) -> None:
        """Divide a schedule for curvature 1 by the curvature."""
        self.schedule, self.scale = self.schedule.scaled(scale), scale

    def direction(self) -> Array:
        """Return the gradient in the metric: M g, or g itself."""
        return self.g if self.metric is None else self.metric(self.g)
