"""The paper's relay: when learned coefficients fail, default ones go on.

See docs/mathematics.md, section 11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

from ode2opt.base.arrays import usable
from ode2opt.base.ended import Ended
from ode2opt.paper.default import DefaultCoefficients
from ode2opt.problems.curvature import largest_curvature
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.oracle import Oracle, Outcome, Watch
from ode2opt.solvers.table import run_watched


@dataclass(frozen=True)
class Relay:
    """Latches at the first rise of a gradient norm that was below the tolerance.

    From there on beta = (C/h - C alpha/(2t))/Lam and gamma = beta/h; the velocity is kept. Lam is
    the curvature at the latch, or where that velocity would coast to if it is larger there: where
    the curvature falls fast, the iterates overshoot into a region that a Lam of the latch alone
    is too small for. C = 3.7 leaves room below the edge of stability; alpha = 8 damps what the
    learned coefficients leave behind better than 6 does.

    Args:
        coefficients: those that go on.
    """

    coefficients: DefaultCoefficients = field(
        default_factory=lambda: DefaultCoefficients(3.7, alpha=8.0)
    )

    def watch(self) -> Watch:
        """Return what watches a schedule."""
        return self.reason

    def reason(self, oracle: Oracle) -> Outcome | None:
        """Say whether to latch now, after an iteration of the schedule."""
        if oracle.norm > oracle.previous_norm and oracle.previous_norm < oracle.tol:
            return Outcome(Ended.ROSE)
        return None

    def take_over(self, oracle: Oracle, table: EigacIteration, outcome: Outcome) -> NoReturn:
        """Go on with the default coefficients from where EIGAC is; leaves by Stop."""
        oracle.hand_over(outcome, "relay")
        k, old = table.done, table.schedule
        a, d = (float(row[min(k, len(old) - 1)]) for row in (old.a, old.d))
        move = table.u - a * table.direction()
        curvature = 0.0
        for x in (table.x, table.x + move / d):
            found, calls = largest_curvature(oracle.problem, x)
            oracle.calls += calls
            curvature = max(curvature, found if math.isfinite(found) else 0.0)
        horizon = k + min(max(1, oracle.max_iter - k), DefaultCoefficients.longest)
        schedule = self.coefficients.schedule(horizon, usable(curvature))
        # The next move e = u - a g stays what it would have been; the default needs no metric.
        table.u = move + float(schedule.a[k]) * table.g
        table.schedule, table.metric = schedule, None
        run_watched(table, None)
