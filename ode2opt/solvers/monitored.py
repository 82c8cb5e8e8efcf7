"""Tables that check their own proof while they run, with steps longer than 1/L.

See docs/mathematics.md, section 15: Nesterov's method, and proved tables that were learned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np

from ode2opt.base.arrays import Array, as_positive, norm
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError
from ode2opt.base.schedule import Schedule
from ode2opt.proofs.check_proof import ExactProof
from ode2opt.proofs.table import TableRow, two_step_rows
from ode2opt.proofs.theorem import rows_after, rows_for_every_point, weights_for_every_point
from ode2opt.solvers.bound import CONVEXITY, MONITORED, Distance, LowerBound, euclidean
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.oracle import Oracle, Outcome
from ode2opt.solvers.stages.lbfgs import Product
from ode2opt.solvers.start_point import unfit_start
from ode2opt.solvers.table import Check, TablePoint, evaluated, follow, itself

MISSED = Outcome(Ended.MISSED)


@dataclass(frozen=True)
class MonitoredSettings:
    """How a proved table runs with longer steps.

    Attributes:
        rho: the run begins with L' = rho L; above 0, at most 1.
        tau: the bound that the table's proof gives, rounded up: f(y_k) - |g_k|^2/(2L') - f* <=
            tau L' |x0 - x*|^2 / theta_k^2 where the checked inequalities hold.
    """

    rho: float
    tau: float

    def __post_init__(self) -> None:
        if not as_positive(self.rho, "rho") <= 1:
            raise InputError(f"rho is {self.rho}: it must be above 0 and at most 1.")
        as_positive(self.tau, "tau")


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


class NesterovProof:
    """The proof of ``nag-monitored``: s_k = n_k, r_k = 0, A_k = n_{k+1}, for every point z."""

    tau, for_every_point, source = 0.5, True, MONITORED
    without_values = "use method='nag'"

    def rows(self) -> Iterator[tuple[float, float, float]]:
        return rows_for_every_point(float)

    def multipliers(self, k: int) -> tuple[float, float]:
        return weights_for_every_point(float(k))[1], 0.0

    def weight(self, k: int) -> float:
        return weights_for_every_point(float(k + 1))[1]


class MonitoredProof:
    """A proof of a table by plain convexity, with Nesterov's method as its tail."""

    def __init__(self, proof: Mapping[str, Any]) -> None:
        exact = ExactProof(dict(proof))  # which bounds what its numbers may cost
        w, v, r = ([float(x) for x in row] for row in (exact.w, exact.v, exact.r))
        before = np.concatenate([[0.0], np.cumsum(np.array(w) - np.array(v))[:-1]])
        self.s, self.r = (before + r).tolist(), r
        self.last, self.theta = len(w) - 1, float(exact.theta)

    def multipliers(self, k: int) -> tuple[float, float]:
        """Return s_k and r_k; beyond the table those of Nesterov's method."""
        if k <= self.last:
            return self.s[k], self.r[k]
        theta = self.theta_at(k)
        return theta**2 - theta, 0.0

    def weight(self, k: int) -> float | None:
        """Return A_k = theta_k^2; None before the table's last point."""
        return None if k < self.last else self.theta_at(k) ** 2

    def theta_at(self, k: int) -> float:
        """Return where the tail stands at a point: half more at each."""
        return self.theta + (k - self.last) / 2


class TableProof(MonitoredProof):
    """The same with the table's rows and its bound; it takes f(z) <= f(y_k)."""

    for_every_point, source = False, "the proof that the run has checked"
    without_values = "run the table with method.replace(monitored=None)"

    def __init__(self, proof: Mapping[str, Any], schedule: Schedule, tau: float) -> None:
        super().__init__(proof)
        self.tau, self._rows = tau, two_step_rows(schedule).tolist()

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """Yield the table's rows, then those of Nesterov's method, without end."""
        return chain(self._rows, rows_after("nag", self.theta_at(len(self._rows) - 1)))


def violations(here: TablePoint, new: TablePoint, L: float) -> tuple[float, float]:
    """Return by how much neighbours miss the two inequalities of an L-smooth convex function.

    With D = |g_k - g_{k-1}|^2/(2L) in the preconditioner these are

        f_k + <g_k, y_{k-1} - y_k> + D - f_{k-1},    f_{k-1} + <g_{k-1}, y_k - y_{k-1}> + D - f_k.
    """
    move = new.x - here.x
    smooth = float((new.g - here.g) @ (new.slope - here.slope)) / (2 * L)
    rise = _value(new) - _value(here)
    return rise - float(new.g @ move) + smooth, float(here.g @ move) - rise + smooth


class MonitoredTable(Check):
    """A table at L' = rho L with a check, at work; see ``table.UnderWay``.

        y_{k+1} = y_k + m_k (y_k - y_{k-1}) - (p_k M g_k - q_k M g_{k-1}) / L'

    The inequalities of the proof between neighbours have computed numbers in them only: these are
    checked. How far they are missed is part of the bound. A miss ends the table; it starts anew
    with 2 L' at the point with the least value. What is proved is told to the oracle at every
    point, before the solve may end there.

    ``free_moves`` may miss an inequality: the first ones go along the steepest directions. A
    multiplier r_k that is a ``negligible`` share of s_k is a solver's rounding: a miss there
    restarts nothing (it is part of the bound all the same).
    """

    free_moves = 2
    negligible = 1e-6

    def __init__(
        self,
        oracle: Oracle,
        proof: RunProof,
        x: Array,
        rho: float,
        L: float,
        metric: Operator | None = None,
        distance: Distance = euclidean,
    ) -> None:
        self.oracle, self.proof, self.start, self.scale, self.metric = oracle, proof, x, L, metric
        self._L, self._distance = rho * L, distance
        self._x0 = np.asarray(x).astype(np.float64)
        self._product: Product = itself if metric is None else oracle.objective.on_numpy(metric)
        self._by_convexity: list[LowerBound] = []
        self._earlier: list[LowerBound] = []
        self._recent: list[LowerBound] = []
        self._best_norm = math.inf

    def run(self) -> Outcome:
        """Run until the watch ends it; a solve that is over raises Stop."""
        oracle, first = self.oracle, self._first()
        self._tell(first)
        oracle.observe(oracle.to_problem(first.x), oracle.to_problem(first.g), first.value)
        self._begin_at(first)
        outcome = oracle.judge()
        while outcome is None:
            L = self._L
            rows = (TableRow(m, p / L, q / L, 0.0) for m, p, q in self.proof.rows())
            outcome = follow(oracle, rows, self._center, product=self._product, check=self)
            if outcome is MISSED:
                outcome, self._L = None, 2 * L
                self._begin_at(self._lowest)
                oracle.log(f"restarted with steps of 1/{self._L:.3g}")
        return outcome

    def _first(self) -> TablePoint:
        """Evaluate the start point."""
        oracle, problem = self.oracle, self.oracle.problem
        oracle.accept_non_finite = True
        words = f"The method checks its proof by values; without them, {self.proof.without_values}."
        try:
            start = evaluated(oracle, self._x0, True, self._product)
        except NotImplementedError:
            raise InputError(f"{problem.kind} has no values. {words}") from None
        if not math.isfinite(_value(start)):
            x = oracle.to_problem(start.x)
            raise InputError(f"{unfit_start(problem, x, 'function', start.value)} {words}")
        return start

    def _begin_at(self, point: TablePoint) -> None:
        self._center = self._lowest = point
        self._paid = 0.0
        self._earlier += self._recent
        self._recent = self._proved(point, 0)

    def wants_value(self, k: int) -> bool:
        return True

    def __call__(self, k: int, here: TablePoint, new: TablePoint) -> Outcome | None:
        """Check point k against the one before, and tell the oracle what is proved."""
        s, r = self.proof.multipliers(k)
        rounding = self.oracle.rounding * max(abs(_value(here)), abs(_value(new)))
        ahead, behind = violations(here, new, self._L)
        missed = max(ahead, behind) if r > self.negligible * s else ahead
        self._paid += s * max(ahead + rounding, 0.0) + r * max(behind + rounding, 0.0)
        is_finite = math.isfinite(_value(new) + float(new.g @ new.slope))
        if is_finite:
            self._lowest = min(self._lowest, new, key=_value)
            self._recent = [*self._recent[-1:], *self._proved(new, k)]
        self._tell(new)
        return MISSED if not is_finite or (k > self.free_moves and missed > rounding) else None

    def _proved(self, new: TablePoint, k: int) -> list[LowerBound]:
        """Return what the proof says of f after point k, if anything."""
        proof, weight = self.proof, self.proof.weight(k)
        if weight is None:
            return []
        return [
            LowerBound(
                level=_value(new) - float(new.g @ new.slope) / (2 * self._L) - self._paid / weight,
                factor=proof.tau * self._L / weight,
                center=self._center.x,
                start=self._x0,
                source=proof.source,
                least_seen=math.inf if proof.for_every_point else _value(self._lowest),
                distance=self._distance,
            )
        ]

    def _tell(self, new: TablePoint) -> None:
        """Tell the solve what is proved by now.

        A proof that is not for every point says nothing at the beginning; convexity does:
        f(z) >= f(x) + <g, z - x> of the point with the least gradient norm.
        """
        size, value = norm(new.g), _value(new)
        if not self.proof.for_every_point and math.isfinite(value) and size < self._best_norm:
            self._best_norm = size
            slope = math.sqrt(max(float(new.g @ new.slope), 0.0))
            self._by_convexity = [
                LowerBound(value, 0.0, new.x, self._x0, CONVEXITY, slope, distance=self._distance)
            ]
        self.oracle.lower_bounds = [*self._by_convexity, *self._earlier, *self._recent]


def _value(point: TablePoint) -> float:
    assert point.value is not None
    return point.value


def nag_monitored(oracle: Oracle, x: Array, L: float, rho: float = 1 / 16) -> None:
    """Nesterov's method at L' = rho L, which starts anew with 2 L' where its proof does not hold.

    With w_k = (k + 2)/2, n_k = k (k + 3)/4 and t_k = 1 + n_k/w_k, from z = y_0:

        z <- z - w_k g_k/L',   y+ = y_k - g_k/L',   y_{k+1} = y+ + (z - y+)/t_{k+1},

    which is run as rows (m, p, q). The proof uses convexity and, between neighbours,
    f_{k-1} >= f_k + <g_k, y_{k-1} - y_k> + |g_k - g_{k-1}|^2/(2L') only; the latter has computed
    numbers in it and is checked. Violations e_k >= 0 are part of the bound, which holds for every
    point z:

        f(y_k) - |g_k|^2/(2L') <= f(z) + (L' |y_0 - z|^2/2 + sum_j n_j e_j) / n_{k+1}.

    Powers of 2 up to 1 as ``rho`` differ by one restart each; it is not tuned.
    """
    MonitoredTable(oracle, NesterovProof(), x, rho, L).run()
