"""The guard: whatever a schedule does, the solve converges (SPEC.md section 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import as_count, as_number, as_positive
from ode2opt.solvers.eigac import Eigac
from ode2opt.solvers.fallback import nesterov_backtracking
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.result import Status
from ode2opt.solvers.run import Run, Stop

FALLBACKS = ("nesterov", "lbfgs", "metric-lbfgs")


@dataclass(frozen=True)
class Guard:
    """Watches the gradient norm and hands over to a method that needs no trust.

    Attributes:
        blowup: hand over when the norm exceeds this many times its starting value.
        patience: hand over when the norm has not fallen by a tenth for this many iterations.
        fallback: who takes over: nesterov, with backtracking and restart; lbfgs, or metric-lbfgs in
            the method's metric, and after a line search that finds nothing, nesterov.
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

    @property
    def successor(self) -> str:
        """Who takes over."""
        return self.fallback

    @property
    def words(self) -> str:
        """Who takes over, in words."""
        if self.fallback == "nesterov":
            return "Nesterov's method with backtracking"
        if self.fallback == "lbfgs":
            return "L-BFGS"
        return f"L-BFGS in {'the same metric' if self.power == 1 else 'a milder metric'}"

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

    def take_over(self, run: Run, eigac: Eigac) -> None:
        """Start the fallback at the best point so far; leaves by Stop."""
        if self.fallback != "nesterov":
            metric = eigac.metric if self.fallback == "metric-lbfgs" else None
            metric = metric and metric.milder(self.power)
            try:
                lbfgs(run, run.best_x, metric, eigac.scale, eigac.first)
            except Stop as stop:
                if stop.status is not Status.LINE_SEARCH:
                    raise
            run.hand_over("the line search found no further decrease", "nesterov")
        nesterov_backtracking(run, run.best_x)
