"""Certified tables as methods: with a proof, and with steps that a run checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ode2opt.base.errors import Ode2OptError
from ode2opt.base.schedule import Schedule
from ode2opt.learning.sequence.certified.rows import LearnedRows
from ode2opt.learning.sequence.handing_over import mean_calls
from ode2opt.learning.sequence.held_out import Folded, HeldOut
from ode2opt.learning.sequence.target import GUARD
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.exact import ProvedBound, check, document_of, exact_proof, rounded
from ode2opt.proofs.program import Goal
from ode2opt.proofs.table import exact_rows
from ode2opt.proofs.theorem import classical_rows
from ode2opt.solvers import Method, Result
from ode2opt.solvers.metric import Metric
from ode2opt.solvers.monitored import MonitoredSettings

RHOS = tuple(2.0**-k for k in range(11))
"""The shares of L that a run may begin with; each is one restart from the next."""
NESTEROV_ROWS = 2
"""So many rows of Nesterov's method are floating-point numbers exactly. With them as the table, and
all others as its tail, his bound itself is proved in fractions."""


@dataclass(frozen=True)
class CandidateMaker:
    """Makes methods of learned rows, one for each fold and last for all rows of the data.

    Attributes:
        rows: which rows are learned.
        family: the problems, in words.
        tol: the gradient norm to reach.
        L: the smoothness constant of the family's problems in the preconditioner.
        horizon: how many iterations a table has.
        metrics: the preconditioner for each fold, and last for all rows; None for none.
        starts: where solves start for each, as a :class:`Method` has it; None (the default) is 0.
    """

    rows: LearnedRows
    family: str
    tol: float
    L: float
    horizon: int
    metrics: Sequence[Metric | None]
    starts: Sequence[np.ndarray | str] | None = None

    def schedule(self, learned: np.ndarray) -> Schedule:
        """Return the table of learned rows."""
        return self.rows.schedule(learned, self.horizon)

    def unchecked(self, learned: np.ndarray, rho: float) -> Folded:
        """Return methods to try: with multipliers in floating point, which nobody has checked."""
        rows, exact = self.rows, self._exact(learned)
        found = worst_case(
            np.array(exact, dtype=np.float64), tail=rows.tail, star=rows.star, theta=rows.theta
        )
        document = document_of(exact, found.goal, rounded(found))
        return self._methods(learned, document, max(found.tau, 1e-9), rho)

    def proved(self, learned: np.ndarray, cap: float) -> ProvedBound:
        """Return the exact proof of learned rows."""
        rows = self.rows
        found = _nesterovs_own(rows, learned) or exact_proof(
            self._exact(learned), tail=rows.tail, star=rows.star, theta=rows.theta
        )
        if found.ratio > Fraction(cap):
            raise Ode2OptError(
                f"The table was learned below the cap {cap:g} in floating point, but in exact "
                f"arithmetic only {float(found.ratio):.6g} is proved: raise the cap or the "
                f"tolerance."
            )
        return found

    def with_proof(self, learned: np.ndarray, proof: ProvedBound, rho: float) -> Folded:
        """Return methods that carry their exact proof."""
        return self._methods(learned, dict(proof.document), _above(proof.tau), rho)

    def _exact(self, learned: np.ndarray) -> list[tuple[Fraction, Fraction, Fraction]]:
        """Return the learned rows as the table's own numbers give them."""
        return exact_rows(self.schedule(learned))[: self.rows.count]

    def _methods(
        self, learned: np.ndarray, document: dict[str, Any], tau: float, rho: float
    ) -> list[Method]:
        schedule = self.schedule(learned)
        monitored = MonitoredSettings(rho, tau) if self.rows.star == "convex" else None
        return [
            Method(
                schedule=schedule,
                family=self.family,
                tol=self.tol,
                scale="family",
                family_scale=self.L,
                metric=metric,
                start=None if self.starts is None else self.starts[fold],
                guard=GUARD,
                proof=document,
                monitored=monitored,
            )
            for fold, metric in enumerate(self.metrics)
        ]


def _nesterovs_own(rows: LearnedRows, learned: np.ndarray) -> ProvedBound | None:
    """Return the proof by hand of Nesterov's bound for the first rows of his method, else None.

    A solver's multipliers miss the ratio 1 by their rounding, and no table with his tail has less.
    """
    if rows.tail != "nag" or rows.count != NESTEROV_ROWS or np.any(learned != rows.first()):
        return None
    zero, goal = Fraction(0), Goal(rows.tail, rows.star, rows.theta)
    multipliers = ([Fraction(1), Fraction(3, 2)], [zero, Fraction(1, 4)], [zero, zero])
    return check(document_of(classical_rows(rows.tail, rows.count), goal, multipliers))


def with_rho(methods: Folded, rho: float) -> Folded:
    """Return monitored methods that begin with another share of L; others as they are."""
    return [
        one
        if one.monitored is None
        else one.replace(monitored=MonitoredSettings(rho, one.monitored.tau))
        for one in methods
    ]


def best_rho(
    methods: Folded, held_out: HeldOut, tried: Sequence[float] = RHOS
) -> tuple[float, list[Result]]:
    """Return the share of L with which problems cost least, and their solves.

    Restarts and the guard are part of the solves. From the largest on, the search ends at the
    third share in a row that is no better.
    """
    if methods[-1].monitored is None:
        return 1.0, held_out.solved(methods)
    best: tuple[float, float, list[Result]] | None = None
    worse = 0
    for rho in tried:
        results = held_out.solved(with_rho(methods, rho))
        calls = mean_calls(results)
        if best is None or calls < best[0]:
            best, worse = (calls, rho, results), 0
        else:
            worse += 1
        if worse == 3:
            break
    assert best is not None
    return best[1], best[2]


def _above(x: Fraction) -> float:
    """Return a fraction as a float that is not below it."""
    near = float(x)
    return near if Fraction(near) >= x else float(np.nextafter(near, np.inf))
