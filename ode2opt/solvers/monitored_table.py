"""A proved table that runs with steps longer than 1/L and checks its own proof meanwhile.

See docs/mathematics.md, section 15, and :mod:`ode2opt.solvers.monitored` for Nesterov's method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, as_positive
from ode2opt.base.errors import InputError
from ode2opt.paper.schedule import Schedule
from ode2opt.proofs.check_proof import ExactProof
from ode2opt.proofs.table import two_step_rows
from ode2opt.proofs.theorem import rows_after
from ode2opt.solvers.bound import Distance, euclidean
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.monitored_loop import MonitoredLoop
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.outcome import Outcome


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
    """The same with the table's rows and its bound: what the loop runs.

    Attributes:
        for_every_point: False: the proof takes f(z) <= f(y_k).
        source: by what a bound is proved, in a word or two.
        without_values: what a user can do whose problem has no values.
    """

    for_every_point, source = False, "the proof that the run has checked"
    without_values = "run the table with method.replace(monitored=None)"

    def __init__(self, proof: Mapping[str, Any], schedule: Schedule, tau: float) -> None:
        super().__init__(proof)
        self.tau, self._rows = tau, two_step_rows(schedule).tolist()

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """Yield the table's rows, then those of Nesterov's method, without end."""
        return chain(self._rows, rows_after("nag", self.theta_at(len(self._rows) - 1)))


class MonitoredTable(EigacIteration):
    """A table at L' = rho L that checks its proof; see :class:`MonitoredLoop`."""

    def __init__(
        self,
        oracle: Oracle,
        schedule: Schedule,
        x: Array,
        settings: MonitoredSettings,
        proof: Mapping[str, Any],
        metric: Operator | None = None,
        distance: Distance = euclidean,
    ) -> None:
        super().__init__(oracle, schedule, x, metric)
        self.rho = settings.rho
        product = None if metric is None else oracle.on_numpy(metric)
        proved = TableProof(proof, schedule, settings.tau)
        self._loop = MonitoredLoop(oracle, proved, x, product, distance)

    def divide_by(self, scale: float) -> None:
        """Take the curvature L that the table is divided by."""
        self.scale = scale

    def run(self) -> Outcome:
        """Run until the watch ends it; a solve that is over raises Stop."""
        return self._loop.run(self.rho * self.scale)
