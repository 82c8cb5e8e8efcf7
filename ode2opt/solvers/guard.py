"""The guard: whatever a schedule does, the solve converges (docs/mathematics.md, section 11)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import as_count, as_number, as_positive
from ode2opt.solvers.eigac import Eigac
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.run import Here, Run
from ode2opt.solvers.supervisor import LAST, PLAIN, Patience, Stage, supervise

FALLBACKS = ("nesterov", "lbfgs", "metric-lbfgs")
METRIC_PATIENCE = 60  # evaluations without progress after which a metric is given up


@dataclass(frozen=True)
class Guard:
    """Watches the gradient norm and hands over to a method that needs no trust.

    Attributes:
        blowup: hand over when the norm exceeds this many times its starting value.
        patience: hand over when the norm has not fallen by a tenth for this many iterations.
        fallback: who takes over: nesterov, with backtracking and restart; lbfgs; or metric-lbfgs in
            the method's metric, and where that makes no progress lbfgs. After these, nesterov.
        power: metric-lbfgs takes the metric's lengths to this power: below 1 it is a milder one.
        envelope: hand over when the norm at iteration k, in norms of the start, exceeds the k-th
            number: what no held-out problem came near.
    """

    blowup: float = 5.0
    patience: int = 100
    fallback: str = "nesterov"
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
            return
        if self.fallback == "metric-lbfgs" and metric is not None:
            words = self.words(in_metric=True)
            go = partial(_in_metric, words, metric.milder(self.power), scale)
            yield Stage("metric-lbfgs", go, Patience(METRIC_PATIENCE))
        yield PLAIN

    def take_over(self, run: Run, eigac: Eigac, reason: str) -> None:
        """Go on from the lower of start and best point; leaves by Stop."""
        stages = list(self.stages(eigac.metric, eigac.scale))
        run.hand_over(reason, (stages or [LAST])[0].name)
        supervise(run, _lower(run, eigac), stages)


def _in_metric(words: str, metric: Operator, scale: float, run: Run, here: Here) -> None:
    run.tell(words)
    lbfgs(run, here, run.hosted(metric), 1 / scale)


def _lower(run: Run, eigac: Eigac) -> Here:
    """Return the best point, or the start where its value is lower.

    A gradient may be small far out, where nothing moves any more; a value there is not.
    """
    best = run.look(run.best_x)
    if run.best_norm == run.first_norm:  # it is the start
        return best
    start = run.look(eigac.start)
    return best if best.value <= start.value else start
