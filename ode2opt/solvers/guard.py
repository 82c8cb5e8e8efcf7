"""The guard: whatever a schedule does, the solve converges (docs/mathematics.md, section 11)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import as_count, as_number, as_positive
from ode2opt.solvers.eigac import Eigac
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.run import Here, Run, Watch
from ode2opt.solvers.supervisor import LAST, PLAIN, supervise
from ode2opt.solvers.watches import Pace, Stage

FALLBACKS = ("nesterov", "lbfgs", "metric-lbfgs")
# By how many calls of the solve each must promise to arrive, and after how many steps it is judged.
SCHEDULE_PACE, TRUSTED_PACE = (800, 500), (900, 60)


@dataclass(frozen=True)
class Guard:
    """Watches the gradient norm and hands over to a method that needs no trust.

    It also hands over when, at its late rate, a schedule will take too long to arrive.

    Attributes:
        blowup: hand over when the norm exceeds this many times its starting value.
        patience: hand over when the norm has not fallen by a tenth for this many iterations.
        fallback: who takes over: lbfgs; metric-lbfgs, in the method's metric; or nesterov, with
            backtracking and restart. Where the latter two are slow, lbfgs goes on. After all of
            these come turns of nesterov, which always arrives, Newton's method and lbfgs.
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
        """Who takes over from a method with or without a metric, in words."""
        if self.fallback == "nesterov":
            return "Nesterov's method with backtracking"
        if self.fallback == "lbfgs" or not in_metric:
            return "L-BFGS"
        return f"L-BFGS in {'its metric' if self.power == 1 else 'a milder metric'}"

    def watch(self) -> Watch:
        """Return what watches one run of a schedule."""
        pace = Pace(*SCHEDULE_PACE)
        return lambda run: self.reason(run) or pace(run)

    def reason(self, run: Run) -> str | None:
        """Say why to hand over now, or None."""
        if not math.isfinite(run.norm):
            return "the gradient is not finite"
        if run.norm > self.blowup * run.first_norm:
            return f"the gradient norm exceeds {self.blowup:g} times its starting value"
        if run.k < len(self.envelope) and run.norm > self.envelope[run.k] * run.first_norm:
            return "the gradient norm is far above that of all held-out problems"
        if run.k - run.progress_k >= self.patience:
            return f"no progress for {self.patience} iterations"
        return None

    def stages(self, metric: Operator | None, scale: float = 1.0) -> Iterator[Stage]:
        """Who goes on after a schedule, in a method's metric with its curvature ``scale``."""
        if self.fallback == "nesterov":
            yield Stage(LAST.name, LAST.go, Pace(*TRUSTED_PACE))
        if self.fallback == "metric-lbfgs" and metric is not None:
            words = self.words(in_metric=True)
            go = partial(_in_metric, words, metric.milder(self.power), scale)
            yield Stage("metric-lbfgs", go, Pace(*TRUSTED_PACE))
        yield PLAIN

    def take_over(self, run: Run, eigac: Eigac, reason: str) -> None:
        """Go on from the lower of start and best point; leaves by Stop."""
        stages = list(self.stages(eigac.metric, eigac.scale))
        run.hand_over(reason, stages[0].name)
        supervise(run, _lower(run, eigac), stages)


def _in_metric(words: str, metric: Operator, scale: float, run: Run, here: Here) -> None:
    run.tell(words)
    lbfgs(run, here, run.hosted(metric), 1 / scale)


def _lower(run: Run, eigac: Eigac) -> Here:
    """Return the best point, or the start where its value is lower.

    A gradient may be small far out, where nothing moves any more; a value there is not. Where the
    gradient at the best point says that a convex function is not lower at the start, nobody asks.
    """
    best = run.look(run.best_x)
    start = np.asarray(eigac.start).astype(np.float64)
    if not run.undefined(best.value) and float(best.g @ (start - best.x)) >= 0:
        return best
    other = run.look(eigac.start)
    return best if best.value <= other.value else other
