"""The guard: whatever a schedule does, the solve converges (docs/mathematics.md, section 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ode2opt.base.arrays import as_count, as_number, as_positive
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.oracle import Oracle, Watch
from ode2opt.solvers.outcome import Evaluated, Outcome
from ode2opt.solvers.stages.lbfgs import Lbfgs, PreconditionedLbfgs
from ode2opt.solvers.stages.nesterov import Nesterov
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.supervisor import supervise
from ode2opt.solvers.watches import within

FALLBACKS = ("nesterov", "lbfgs", "metric-lbfgs", "fista")
# Within how many calls each must promise to arrive, and after how many steps it is judged.
TABLE_BUDGET, FALLBACK_BUDGET = (800, 501), (900, 61)


@dataclass(frozen=True)
class Guard:
    """Watches the gradient norm and hands over to a method that needs no trust.

    It also hands over when, at its late rate, a schedule will take too long to arrive.

    Attributes:
        blowup: hand over when the norm exceeds this many times its starting value.
        patience: hand over when the norm has not fallen by a tenth for this many iterations.
        fallback: who takes over: lbfgs; metric-lbfgs, in the method's metric if it has one; or
            nesterov, with backtracking and restart. Where the latter two are slow, lbfgs goes on.
            After all of these come turns of nesterov, which always arrives, Newton's method and
            lbfgs. A table with a prox has fista.
        power: metric-lbfgs takes the metric's lengths to this power: below 1 it is a milder one.
        envelope: hand over when the norm at iteration k, in norms of the start, exceeds the k-th
            number: what no held-out problem came near.
    """

    blowup: float = 5.0
    patience: int = 100
    fallback: str = "lbfgs"
    power: float = 1.0
    envelope: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not as_number(self.blowup, "blowup") > 1:
            raise InputError(f"blowup is {self.blowup}: it must be above 1.")
        as_count(self.patience, "patience")
        if self.fallback not in FALLBACKS:
            raise unknown_name("fallback", str(self.fallback), FALLBACKS)
        if not 0 < as_number(self.power, "power") <= 1:
            raise InputError(f"power is {self.power}: it must be above 0 and at most 1.")
        object.__setattr__(
            self, "envelope", tuple(as_positive(v, "envelope") for v in self.envelope)
        )

    def words(self, in_metric: bool) -> str:
        """Who takes over from a method with or without a metric, in words.

        Args:
            in_metric: whether the method has a preconditioner.
        """
        if self.fallback == "fista":
            return "FISTA with backtracking and restart"
        if self.fallback == "nesterov":
            return "Nesterov's method with backtracking"
        if self.fallback == "lbfgs" or not in_metric:
            return "L-BFGS"
        return f"L-BFGS in {'its metric' if self.power == 1 else 'a milder metric'}"

    def watch(self) -> Watch:
        """Return what watches one run of a schedule."""
        budget = within(*TABLE_BUDGET)
        return lambda oracle: self.check(oracle) or budget(oracle)

    def check(self, oracle: Oracle) -> Outcome | None:
        """Say why another method should go on now, or None.

        Args:
            oracle: the solve, after an iteration of the schedule.
        """
        norm, first, k = oracle.norm, oracle.first_norm, oracle.k
        if not math.isfinite(norm):
            return Outcome(Ended.NON_FINITE)
        if norm > self.blowup * first:
            return Outcome(Ended.BLOWUP, number=self.blowup)
        if k < len(self.envelope) and norm > self.envelope[k] * first:
            return Outcome(Ended.ENVELOPE)
        if k - oracle.progress_k >= self.patience:
            return Outcome(Ended.PATIENCE, number=self.patience)
        return None

    def stages(self, oracle: Oracle, metric: Operator | None, scale: float = 1.0) -> list[Stage]:
        """Return who goes on after a schedule.

        Args:
            oracle: the solve.
            metric: the method's preconditioner, if it has one.
            scale: the curvature of problems in it.
        """
        if self.fallback == "nesterov":
            return [Nesterov(within(*FALLBACK_BUDGET)), Lbfgs()]
        if self.fallback == "metric-lbfgs" and metric is not None:
            product = oracle.on_numpy(metric.milder(self.power))
            watch = within(*FALLBACK_BUDGET)
            return [
                PreconditionedLbfgs(self.words(in_metric=True), product, watch, 1 / scale),
                Lbfgs(),
            ]
        return [Lbfgs()]

    def take_over(self, oracle: Oracle, eigac: EigacIteration, outcome: Outcome) -> NoReturn:
        """Go on from the lower of start and best point; leaves by Stop.

        Args:
            oracle: the solve.
            eigac: the iteration that ended.
            outcome: how it ended.
        """
        stages = self.stages(oracle, eigac.metric, eigac.scale)
        oracle.hand_over(outcome, stages[0].name)
        supervise(oracle, _lower(oracle, eigac), stages)


def _lower(oracle: Oracle, eigac: EigacIteration) -> Evaluated:
    """Return the best point, or the start where its value is lower.

    A gradient may be small far out, where nothing moves any more; a value there is not. Where the
    gradient at the best point says that a convex function is not lower at the start, nobody asks.
    """
    best = oracle.evaluate(oracle.best_x, iterate=False)
    start = np.asarray(eigac.start).astype(np.float64)
    if not oracle.undefined(best.value) and float(best.g @ (start - best.x)) >= 0:
        return best
    other = oracle.evaluate(eigac.start, iterate=False)
    return best if best.value <= other.value else other
