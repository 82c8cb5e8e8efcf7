"""The guard: whatever a schedule does, the solve converges (docs/mathematics.md, section 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from ode2opt.base.arrays import Array, as_count, as_number, as_positive
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Outcome, Watch
from ode2opt.solvers.stages.lbfgs import Lbfgs, PreconditionedLbfgs
from ode2opt.solvers.stages.nesterov import Fista, Nesterov
from ode2opt.solvers.stages.stage import Stage, for_ever, within
from ode2opt.solvers.supervisor import supervise
from ode2opt.solvers.table import UnderWay

FALLBACKS = ("nesterov", "lbfgs", "metric-lbfgs", "fista")


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

    value_every: ClassVar[int] = 10
    """Iterations of a table with a prox between two looks at the value, which a gradient brings."""
    table_budget: ClassVar[tuple[float, int]] = (800, 501)
    """Within how many calls a table must promise to arrive; after how many steps it is judged."""
    fallback_budget: ClassVar[tuple[float, int]] = (900, 61)
    """The same for a fallback that L-BFGS follows."""

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
        """Who takes over from a method with or without a metric, in words."""
        if self.fallback == "fista":
            return "FISTA with backtracking and restart"
        if self.fallback == "nesterov":
            return "Nesterov's method with backtracking"
        if self.fallback == "lbfgs" or not in_metric:
            return "L-BFGS"
        return f"L-BFGS in {'its metric' if self.power == 1 else 'a milder metric'}"

    def watch(self) -> Watch:
        """Return what watches one run of a table."""
        if self.fallback == Fista.name:
            return self.check
        budget = within(*self.table_budget)
        return lambda oracle: self.check(oracle) or budget(oracle)

    def check(self, oracle: Oracle) -> Outcome | None:
        """Say why another method should go on now, after an iteration of a table; or None."""
        norm, first, k = oracle.norm, oracle.first_norm, oracle.k
        if not math.isfinite(norm):
            return self.outcome(Ended.NON_FINITE)
        if norm > self.blowup * first:
            return self.outcome(Ended.BLOWUP)
        if k < len(self.envelope) and norm > self.envelope[k] * first:
            return self.outcome(Ended.ENVELOPE)
        if k - oracle.progress_k >= self.patience:
            return self.outcome(Ended.PATIENCE)
        return None

    def outcome(self, reason: Ended) -> Outcome:
        """Return the end of a table, with the setting that its sentence names."""
        numbers = {Ended.BLOWUP: self.blowup, Ended.PATIENCE: self.patience}
        return Outcome(reason, number=numbers.get(reason, 0.0))

    def stages(self, oracle: Oracle, metric: Operator | None, scale: float = 1.0) -> list[Stage]:
        """Return who goes on after a table for problems of curvature ``scale`` in a metric."""
        if self.fallback == Fista.name:
            return [Fista(for_ever, scale)]
        if self.fallback == "nesterov":
            return [Nesterov(within(*self.fallback_budget)), Lbfgs()]
        if self.fallback == "metric-lbfgs" and metric is not None:
            product = oracle.objective.on_numpy(metric.milder(self.power))
            watch = within(*self.fallback_budget)
            words = self.words(in_metric=True)
            return [PreconditionedLbfgs(words, product, watch, 1 / scale), Lbfgs()]
        return [Lbfgs()]

    def take_over(self, oracle: Oracle, table: UnderWay, outcome: Outcome) -> NoReturn:
        """Go on from the lower of start and best point; leaves by Stop."""
        stages = self.stages(oracle, table.metric, table.scale)
        oracle.hand_over(outcome, stages[0].name)
        lower = _lower(oracle, table.start)
        supervise(oracle, lower, stages)


def _lower(oracle: Oracle, start: Array | Evaluated) -> Evaluated:
    """Return the best point, or the start where its value is lower.

    A gradient may be small far out, where nothing moves any more; a value there is not. Where the
    gradient at the best point says that a convex function is not lower at the start, nobody asks.
    """
    best = oracle.evaluate(oracle.best_x, iterate=False)
    if isinstance(start, Evaluated):
        return best if best.value <= start.value else start
    first = np.asarray(start).astype(np.float64)
    if not oracle.undefined(best.value) and float(best.g @ (first - best.x)) >= 0:
        return best
    other = oracle.evaluate(start, iterate=False)
    return best if best.value <= other.value else other
