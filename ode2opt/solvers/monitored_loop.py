"""The loop of methods that check their own proof while they run, with steps longer than 1/L.

See docs/mathematics.md, section 15. :mod:`ode2opt.solvers.monitored` runs Nesterov's method in it,
:mod:`ode2opt.solvers.monitored_table` a learned table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.base.numbers import norm
from ode2opt.solvers.bound import CONVEXITY, Distance, LowerBound, euclidean
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.outcome import Outcome
from ode2opt.solvers.start_point import unfit_start

FREE_MOVES = 2
"""So many moves may miss an inequality: the first ones go along the steepest directions."""
NEGLIGIBLE = 1e-6
"""A multiplier r_k below this share of s_k is a solver's rounding: a miss there restarts nothing
(it is part of the bound all the same)."""


class RunProof(Protocol):
    """A proof whose inequalities between neighbours a run can check.

    With violations e_k, d_k >= 0 of the two inequalities at point k it says for points z

        f(y_k) - |g_k|^2/(2L') <= f(z) + (tau L' |y_0 - z|^2 + sum_j (s_j e_j + r_j d_j)) / A_k.

    Attributes:
        tau: the factor above.
        for_every_point: whether it holds for every z; else for z with f(z) below all values of
            the run.
        source: by what a bound is proved, in a word or two.
        without_values: what a user can do whose problem has no values.
    """

    tau: float
    for_every_point: bool
    source: str
    without_values: str

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """Yield the rows (m_k, p_k, q_k), without end."""

    def multipliers(self, k: int) -> tuple[float, float]:
        """Return s_k and r_k."""

    def weight(self, k: int) -> float | None:
        """Return A_k; None where nothing is proved of the point."""


class MonitoredPoint(NamedTuple):
    """A point with value, gradient and preconditioned gradient.

    Attributes:
        x: the point.
        value: f(x).
        g: the gradient.
        mg: M g; the gradient itself without a preconditioner.
    """

    x: np.ndarray
    value: float
    g: np.ndarray
    mg: np.ndarray

    def square(self) -> float:
        """Return |g|^2 in the preconditioner."""
        return float(self.g @ self.mg)


def violations(here: MonitoredPoint, new: MonitoredPoint, L: float) -> tuple[float, float]:
    """Return by how much neighbours miss the two inequalities of an L-smooth convex function.

    With D = |g_k - g_{k-1}|^2/(2L) in the preconditioner these are

        f_k + <g_k, y_{k-1} - y_k> + D - f_{k-1},    f_{k-1} + <g_{k-1}, y_k - y_{k-1}> + D - f_k.
    """
    move = new.x - here.x
    smooth = float((new.g - here.g) @ (new.mg - here.mg)) / (2 * L)
    rise = new.value - here.value
    return rise - float(new.g @ move) + smooth, float(here.g @ move) - rise + smooth


class MonitoredLoop:
    """Rows (m, p, q) at L', which start anew with 2 L' where their proof does not hold.

        y_{k+1} = y_k + m_k (y_k - y_{k-1}) - (p_k M g_k - q_k M g_{k-1}) / L'

    The inequalities of the proof between neighbours have computed numbers in them only: these are
    checked. How far they are missed is part of the bound. A miss after the second move ends the
    run; the next one starts at the point with the least value. What is proved is told to the
    oracle at every point, before the solve may end there.
    """

    def __init__(
        self,
        oracle: Oracle,
        proof: RunProof,
        x: Array,
        product: Callable[[np.ndarray], np.ndarray] | None = None,
        distance: Distance = euclidean,
    ) -> None:
        self.oracle, self.proof = oracle, proof
        self._x0 = np.asarray(x).astype(np.float64)
        self._product, self._distance = product, distance
        self._by_convexity: list[LowerBound] = []
        self._earlier: list[LowerBound] = []
        self._recent: list[LowerBound] = []
        self._best_norm = math.inf

    def run(self, L: float) -> Outcome:
        """Run until the watch ends it; a solve that is over raises Stop."""
        lowest = self._begin()
        outcome = self._observe(lowest)
        while outcome is None:
            lowest, outcome = self._until_missed(lowest, L)
            L *= 2
            if outcome is None:
                self.oracle.log(f"restarted with steps of 1/{L:.3g}")
        return outcome

    def _begin(self) -> MonitoredPoint:
        """Evaluate the start point."""
        oracle = self.oracle
        oracle.accept_non_finite = True
        start = self._evaluated(self._x0)
        if not math.isfinite(start.value):
            unfit = unfit_start(oracle.problem, oracle.to_problem(start.x), "function", start.value)
            raise InputError(f"{unfit} {self._needs_values()}")
        return start

    def _until_missed(
        self, start: MonitoredPoint, L: float
    ) -> tuple[MonitoredPoint, Outcome | None]:
        """Run from a point until an inequality is missed, or the watch ends it.

        Returns the point with the least value, and the outcome where the watch ended it.
        """
        here, before, lowest, paid = start, None, start, 0.0
        self._earlier += self._recent
        self._recent = self._proved(start, start, lowest, L, paid, 0)
        for k, (m, p, q) in enumerate(self.proof.rows(), 1):
            x = here.x - p / L * here.mg
            if before is not None:
                x = x + m * (here.x - before.x) + q / L * before.mg
            new = self._evaluated(x)
            missed, price = self._checked(here, new, L, k)
            paid += price
            is_finite = math.isfinite(new.value + new.square())
            if is_finite:
                lowest = min(lowest, new, key=lambda point: point.value)
                told = self._proved(start, new, lowest, L, paid, k)
                self._recent = [*self._recent[-1:], *told]
            outcome = self._observe(new)
            if outcome is not None or not is_finite or (k > FREE_MOVES and missed > 0):
                return lowest, outcome
            before, here = here, new
        raise AssertionError("the rows have no end")

    def _evaluated(self, x: np.ndarray) -> MonitoredPoint:
        """Evaluate a point; counted, but not yet an iterate of the solve."""
        oracle = self.oracle
        try:
            value, g = oracle.problem.value_and_gradient(oracle.to_problem(x))
        except NotImplementedError:
            raise InputError(
                f"{oracle.problem.kind} has no values. {self._needs_values()}"
            ) from None
        oracle.charge(1)
        g = oracle.to_numpy(g)
        return MonitoredPoint(x, float(value), g, g if self._product is None else self._product(g))

    def _needs_values(self) -> str:
        return f"The method checks its proof by values; without them, {self.proof.without_values}."

    def _checked(
        self, here: MonitoredPoint, new: MonitoredPoint, L: float, k: int
    ) -> tuple[float, float]:
        """Return by how much point k misses an inequality, and what that adds to the bound."""
        s, r = self.proof.multipliers(k)
        rounding = self.oracle.rounding * max(abs(here.value), abs(new.value))
        ahead, behind = violations(here, new, L)
        missed = max(ahead, behind) if r > NEGLIGIBLE * s else ahead
        return missed - rounding, s * max(ahead + rounding, 0.0) + r * max(behind + rounding, 0.0)

    def _proved(
        self,
        start: MonitoredPoint,
        new: MonitoredPoint,
        lowest: MonitoredPoint,
        L: float,
        paid: float,
        k: int,
    ) -> list[LowerBound]:
        """Return what the proof says of f after point k, if anything."""
        proof, weight = self.proof, self.proof.weight(k)
        if weight is None:
            return []
        return [
            LowerBound(
                level=new.value - new.square() / (2 * L) - paid / weight,
                factor=proof.tau * L / weight,
                center=start.x,
                start=self._x0,
                source=proof.source,
                least_seen=math.inf if proof.for_every_point else lowest.value,
                distance=self._distance,
            )
        ]

    def _observe(self, new: MonitoredPoint) -> Outcome | None:
        """Tell the solve of a point and of what is proved by now; may raise Stop."""
        oracle = self.oracle
        if not self.proof.for_every_point:
            self._keep_convexity(new)
        oracle.lower_bounds = [*self._by_convexity, *self._earlier, *self._recent]
        oracle.observe(oracle.to_problem(new.x), oracle.to_problem(new.g), new.value)
        return oracle.judge()

    def _keep_convexity(self, new: MonitoredPoint) -> None:
        """Keep f(z) >= f(x) + <g, z - x> of the point with the least gradient norm.

        A proof that is not for every point says nothing at the beginning; convexity does.
        """
        size = norm(new.g)
        if math.isfinite(new.value) and size < self._best_norm:
            self._best_norm = size
            slope = math.sqrt(max(new.square(), 0.0))
            self._by_convexity = [
                LowerBound(
                    new.value, 0.0, new.x, self._x0, CONVEXITY, slope, distance=self._distance
                )
            ]
