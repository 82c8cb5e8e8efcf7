"""Nesterov's method that checks its own proof while it runs, with steps longer than 1/L.

See docs/mathematics.md, section 15.
"""

from __future__ import annotations

from collections.abc import Iterator

from ode2opt.base.arrays import Array
from ode2opt.proofs.theorem import rows_for_every_point, weights_for_every_point
from ode2opt.solvers.bound import MONITORED
from ode2opt.solvers.monitored_loop import MonitoredLoop
from ode2opt.solvers.oracle import Oracle

RHO = 1 / 16
"""The run begins with L' = RHO L. Powers of 2 up to 1 differ by one restart each; not tuned."""


class NesterovProof:
    """The proof of ``nag-monitored``: s_k = n_k, r_k = 0, A_k = n_{k+1}, for every point z.

    Attributes:
        tau: 1/2.
        for_every_point: True.
        source: by what a bound is proved, in a word or two.
        without_values: what a user can do whose problem has no values.
    """

    tau, for_every_point, source = 0.5, True, MONITORED
    without_values = "use method='nag'"

    def rows(self) -> Iterator[tuple[float, float, float]]:
        """Yield the rows (m_k, p_k, q_k), without end."""
        return rows_for_every_point(float)

    def multipliers(self, k: int) -> tuple[float, float]:
        """Return s_k = n_k and r_k = 0."""
        return weights_for_every_point(float(k))[1], 0.0

    def weight(self, k: int) -> float:
        """Return A_k = n_{k+1}."""
        return weights_for_every_point(float(k + 1))[1]


def nag_monitored(oracle: Oracle, x: Array, L: float) -> None:
    """Nesterov's method at L' = rho L, which starts anew with 2 L' where its proof does not hold.

    With w_k = (k + 2)/2, n_k = k (k + 3)/4 and t_k = 1 + n_k/w_k, from z = y_0:

        z <- z - w_k g_k/L',   y+ = y_k - g_k/L',   y_{k+1} = y+ + (z - y+)/t_{k+1},

    which the loop runs as rows (m, p, q). The proof uses convexity and, between neighbours,
    f_{k-1} >= f_k + <g_k, y_{k-1} - y_k> + |g_k - g_{k-1}|^2/(2L') only; the latter has computed
    numbers in it and is checked. Violations e_k >= 0 are part of the bound, which holds for every
    point z:

        f(y_k) - |g_k|^2/(2L') <= f(z) + (L' |y_0 - z|^2/2 + sum_j n_j e_j) / n_{k+1}.
    """
    MonitoredLoop(oracle, NesterovProof(), x).run(RHO * L)
