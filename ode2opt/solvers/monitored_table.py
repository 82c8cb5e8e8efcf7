"""A proved table that runs with steps longer than 1/L and checks its own proof meanwhile.

See docs/mathematics.md, section 15, and :mod:`ode2opt.solvers.monitored` for Nesterov's method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ode2opt.dynamics.proofs.two_step import two_step_rows
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array, as_positive
from ode2opt.problems._numbers import norm
from ode2opt.solvers.bound import FURTHER, Bound
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.monitored import FREE_MOVES
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.session import Session, Stop

NEGLIGIBLE = 1e-6
"""A multiplier r_k below this share of s_k is the solver's rounding: a miss there restarts nothing
(it is part of the bound all the same)."""


@dataclass(frozen=True)
class MonitoredSettings:
    """How a proved table runs with longer steps.

    Attributes:
        rho: the run begins with L' = rho L; above 0, at most 1.
        tau: the bound that the table's proof gives, rounded up: f(y_k) - |g_k|^2/(2L') - f* <=
            tau L' |x0 - x*|^2 / theta_k^2 where the checked inequalities hold.

    Raises:
        InputError: a number is out of range.
    """

    rho: float
    tau: float

    def __post_init__(self) -> None:
        if not as_positive(self.rho, "rho") <= 1:
            raise InputError(f"rho is {self.rho}: it must be above 0 and at most 1.")
        as_positive(self.tau, "tau")


class MonitoredProof:
    """s_k and r_k, what the inequalities between neighbours are weighed with in the proof.

    Args:
        proof: the fields of the proof: "convex", with the tail "nag".
    """

    def __init__(self, proof: Mapping[str, Any]) -> None:
        w, v, r = ([float(Fraction(x)) for x in proof[name]] for name in "wvr")
        before = np.concatenate([[0.0], np.cumsum(np.array(w) - np.array(v))[:-1]])
        self.s, self.r = (before + r).tolist(), r
        self.last, self.theta = len(w) - 1, float(Fraction(proof["theta"]))

    def at(self, k: int) -> tuple[float, float]:
        """Return s_k and r_k; beyond the table those of Nesterov's method."""
        if k <= self.last:
            return self.s[k], self.r[k]
        theta = self.theta + (k - self.last) / 2
        return theta**2 - theta, 0.0

    def weight(self, k: int) -> float:
        """Return theta_k^2, from the table's last point on."""
        return (self.theta + (k - self.last) / 2) ** 2


class _Point(NamedTuple):
    """A point x = x0 + M h with value, gradient g and M g."""

    x: np.ndarray
    h: np.ndarray
    value: float
    g: np.ndarray
    mg: np.ndarray

    def square(self) -> float:
        """Return |g|^2 in the preconditioner."""
        return float(self.g @ self.mg)


class MonitoredTable(EigacIteration):
    """Rows (m, p, q) at L' = rho L, which start anew with 2 L' where their proof does not hold.

        y_{k+1} = y_k + m_k (y_k - y_{k-1}) - (p_k M g_k - q_k M g_{k-1}) / L'

    The proof takes convexity, and two inequalities between neighbours with computed numbers in
    them only: these are checked. How far they are missed is part of the bound. A miss after the
    second move ends the run; the next one starts at the point with the least value. After the
    table come the rows of Nesterov's method, without end.

    Args:
        session: the solve.
        schedule: the table for curvature 1; its rows after the proof's are the tail's.
        x: the start point.
        metric: the preconditioner; None for none.
        settings: rho and tau.
        proof: the fields of the proof, with plain convexity and the tail "nag".
    """

    def __init__(
        self,
        session: Session,
        schedule: Schedule,
        x: Array,
        metric: Operator | None,
        settings: MonitoredSettings,
        proof: Mapping[str, Any],
    ) -> None:
        super().__init__(session, schedule, x, metric)
        self.settings, self.multipliers = settings, MonitoredProof(proof)
        self.rows = two_step_rows(schedule).tolist()
        self._product = None if metric is None else session.on_numpy(metric)
        self._x0 = np.asarray(x).astype(np.float64)
        self._best_norm = math.inf
        self._best: _Point | None = None
        self._lowest: _Point | None = None
        self._proved: tuple[int, _Point] | None = None
        self._L, self._paid, self._missed, self._lowest_here = 1.0, 0.0, 0.0, math.inf
        self._run_start: _Point

    def divide_by(self, scale: float) -> None:
        """Take the curvature L that the table is divided by."""
        self.scale = scale

    def run(self) -> Outcome:
        """Run until the watch ends it; a solve that is over raises Stop."""
        L = self.settings.rho * self.scale
        start: _Point | None = None
        outcome: Outcome | None = None
        while outcome is None:
            self._L, self._paid, self._proved = L, 0.0, None
            start = self._lowest if start is not None else self._begin()
            assert start is not None
            self._run_start, self._lowest_here = start, start.value
            outcome = self._until_missed(start, L)
            if outcome is None:
                L *= 2
                self.session.log(f"restarted with steps of 1/{L:.3g}")
        return outcome

    def _begin(self) -> _Point:
        """Evaluate the start point."""
        self.session.accept_non_finite = True
        found, _ = self._evaluated(self._x0, np.zeros_like(self._x0))
        if not math.isfinite(found.value):
            raise InputError(
                f"The value at the start point is {found.value}: a monitored table checks its "
                f"proof by values. Give a problem with values, or run the table with "
                f"method.replace(monitored=None)."
            )
        return found

    def _until_missed(self, start: _Point, L: float) -> Outcome | None:
        """Run the table from a point until an inequality is missed, or the watch ends it."""
        here, before = start, None
        for k, (m, p, q) in enumerate(self._all_rows()):
            x, h = here.x - p / L * here.mg, here.h - p / L * here.g
            if before is not None:
                x = x + m * (here.x - before.x) + q / L * before.mg
                h = h + m * (here.h - before.h) + q / L * before.g
            new, outcome = self._evaluated(x, h, here, k + 1)
            if outcome is not None:
                return outcome
            if not math.isfinite(new.value + new.square()):
                return None
            if k >= FREE_MOVES and self._missed > 0:
                return None
            before, here = here, new
        raise AssertionError("the rows have no end")

    def _all_rows(self) -> Iterator[tuple[float, float, float]]:
        """Yield the table's rows, then those of Nesterov's method."""
        for m, p, q in self.rows:
            yield m, p, q
        t = self.multipliers.theta + (len(self.rows) - self.multipliers.last) / 2
        while True:
            m = (t - 1) / (t + 0.5)
            yield m, 1 + m, m
            t += 0.5

    def _evaluated(
        self, x: np.ndarray, h: np.ndarray, here: _Point | None = None, k: int = 0
    ) -> tuple[_Point, Outcome | None]:
        """Evaluate a point, check it against the one before, and tell the solve of it."""
        session = self.session
        point = session.to_problem(x)
        try:
            value, g = session.problem.value_and_gradient(point)
        except NotImplementedError:
            raise InputError(
                f"{session.problem.kind} has no values: a monitored table checks its proof by "
                f"values. Run the table with method.replace(monitored=None)."
            ) from None
        session.charge(1)
        g = session.to_numpy(g)
        new = _Point(x, h, float(value), g, g if self._product is None else self._product(g))
        if here is not None:
            self._check(here, new, k)
        self._keep(new)
        try:
            session.observe(point, session.to_problem(g), new.value)
        except Stop:
            session.bound = self._bound()
            raise
        return new, session.judge()

    def _check(self, here: _Point, new: _Point, k: int) -> None:
        """Add how far point k misses its inequalities, in multiples of the proof."""
        s, r = self.multipliers.at(k)
        rounding = self.session.rounding * max(abs(here.value), abs(new.value))
        change, move = new.g - here.g, new.x - here.x
        smooth = float(change @ (new.mg - here.mg)) / (2 * self._L)
        ahead = new.value - here.value - float(new.g @ move) + smooth
        behind = here.value - new.value + float(here.g @ move) + smooth
        self._missed = max(ahead, behind if r > NEGLIGIBLE * s else -math.inf) - rounding
        self._paid += s * max(ahead + rounding, 0.0) + r * max(behind + rounding, 0.0)
        if k >= self.multipliers.last:
            self._proved = (k, new)

    def _keep(self, new: _Point) -> None:
        """Keep the points with the least value and the least gradient norm."""
        if not math.isfinite(new.value):
            return
        if self._lowest is None or new.value < self._lowest.value:
            self._lowest = new
        self._lowest_here = min(self._lowest_here, new.value)
        size = norm(new.g)
        if size < self._best_norm:
            self._best_norm, self._best = size, new

    def _distance(self, point: _Point) -> float:
        """Return how far a point is from the start, in the preconditioner's distances."""
        return math.sqrt(max(float(point.h @ (point.x - self._x0)), 0.0))

    def _bound(self) -> Bound | None:
        """Return what is known of f(x) - f(z) for all z around the start.

        By convexity it is at most |g| |x - z|. The proof bounds it by (tau L' |y_0 - z|^2 + what
        was missed) / theta_k^2 as well; the smaller number is told.
        """
        best = self._best
        if best is None or self.session.best_value != best.value:
            return None
        away = self._distance(best)
        radius = FURTHER * away
        where = "" if self.metric is None else ", distances being those of the preconditioner"
        found = Bound(
            math.sqrt(max(best.square(), 0.0)) * (away + radius), f"convexity{where}", radius
        )
        proved = self._bound_by_proof(best, radius)
        if proved < found.value:
            found = Bound(proved, f"the proof that the run has checked{where}", radius)
        least = self.session.rounding * abs(best.value)
        return Bound(max(found.value, least), found.source, radius)

    def _bound_by_proof(self, best: _Point, radius: float) -> float:
        """Return the proof's bound of f(x) - f(z); infinity before the table's last point.

        Where f(z) is above some value that was seen, f(x) - f(z) is below the difference to that.
        """
        if self._proved is None:
            return math.inf
        k, last = self._proved
        reach = self.settings.tau * self._L * (radius + self._distance(self._run_start)) ** 2
        above = (reach + self._paid) / self.multipliers.weight(k) + last.square() / (2 * self._L)
        return max(best.value - self._lowest_here, best.value - last.value + above)
