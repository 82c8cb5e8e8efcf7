"""Proofs in exact arithmetic: multipliers of a chain as fractions, and what they are worth.

The numbers of :mod:`ode2opt.proofs.chain` are rounded to fractions; ``check_proof`` finds
in exact arithmetic which bound these prove (docs/mathematics.md, section 15). Any multipliers that
are not negative prove some bound, so rounding costs a little and nothing can go wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.proofs import check_proof
from ode2opt.proofs.chain import WorstCase, worst_case
from ode2opt.proofs.program import Goal
from ode2opt.proofs.table import ExactRow
from ode2opt.proofs.theorem import (
    classical_rows,
    monitored_rows,
    theorem_multipliers,
    weights_for_every_point,
)

MARGINS = (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""How far inside the matrix inequalities multipliers are looked for, one after another."""


@dataclass(frozen=True, eq=False)
class ProvedBound:
    """A bound that was proved in exact arithmetic.

    Attributes:
        document: the proof, as it is written to a JSON file.
        tau: the bound, exactly: see :class:`ode2opt.proofs.chain.WorstCase`.
    """

    document: Mapping[str, Any]
    tau: Fraction

    @property
    def proof(self) -> check_proof.ExactProof:
        """The proof's numbers."""
        return check_proof.ExactProof(dict(self.document))

    @property
    def ratio(self) -> Fraction:
        """The bound divided by Nesterov's own at the last point."""
        return check_proof.ratio(self.proof, self.tau)

    @property
    def value(self) -> Fraction:
        """The bound at the last point in units of L |x0 - x*|^2."""
        return self.tau / self.proof.weight

    @property
    def says_something(self) -> bool:
        """Whether it is below 1/2, which f(x0) - f* is at most: less is no news."""
        return self.value < Fraction(1, 2)

    @property
    def words(self) -> str:
        """The theorem in words."""
        return check_proof.statement(self.proof, self.tau)


def check(document: Any) -> ProvedBound:
    """Check a proof in exact arithmetic."""
    try:
        proof = check_proof.ExactProof(document)
        return ProvedBound(document, check_proof.bound(proof))
    except check_proof.Refused as refused:
        raise InputError(f"This is no proof: {refused}") from None


def exact_proof(
    rows: Sequence[ExactRow],
    *,
    tail: str | None = None,
    star: str = "smooth",
    theta: Fraction | None = None,
) -> ProvedBound:
    """Find multipliers for rows of fractions and prove the bound in exact arithmetic.

    Args:
        rows: the steps (m, p, q) for L = 1, at most 200; m and q of the first are 0.
        tail: None, "ogm" or "nag"; see :func:`ode2opt.proofs.chain.worst_case`.
        star: "smooth" or "convex".
        theta: where the tail stands at the last point; by default (R + 1)/2 for R rows.

    Returns:
        The proof and its bound, which exceeds that of the chain by 1e-6 of it where multipliers
        that good are found, and by as little as possible otherwise.

    Raises:
        InputError: a row or an option is wrong.
        Ode2OptError: no multipliers were found that prove anything.

    Example:
        >>> descent = exact_proof([(Fraction(0), Fraction(1), Fraction(0))] * 2)
        >>> round(float(descent.tau), 6)
        0.1
    """
    floats = np.array(rows, dtype=np.float64)
    best: ProvedBound | None = None
    why: Ode2OptError | None = None
    for margin in MARGINS:
        try:
            found = worst_case(floats, tail=tail, star=star, theta=theta, margin=margin)
            proved = check(document_of(rows, found.goal, rounded(found)))
        except InputError as error:
            if margin == MARGINS[0] and not str(error).startswith("This is no proof"):
                raise  # the table or an option is wrong
            why = error
            continue
        except Ode2OptError as error:
            why = error
            continue
        if best is not None and proved.tau >= best.tau:
            return best
        best = proved
        if proved.tau <= Fraction(found.tau) * Fraction(1 + 1e-6):
            return best
    if best is None:
        raise Ode2OptError(f"No exact proof was found: {why}")
    return best


def classical_proof(name: str, count: int) -> ProvedBound:
    """Return the theorem's own proof for "nag" or "ogm" with t_k = (k + 2)/2; no solver is needed.

    Example:
        >>> classical_proof("ogm", 40).ratio
        Fraction(1, 2)
    """
    rows = classical_rows(name, count)
    t = [Fraction(k + 2, 2) for k in range(count)]
    multipliers = theorem_multipliers([Fraction(check_proof.ETA[name])] * count, t)
    return check(document_of(rows, Goal(name, "smooth", t[-1]), multipliers))


def monitored_proof(count: int) -> ProvedBound:
    """Return the theorem's own proof for ``nag-monitored``, which needs no minimiser.

    Example:
        >>> monitored_proof(2).tau
        Fraction(1, 9)
    """
    count = as_count(count, "count")
    w = [weights_for_every_point(Fraction(k))[0] for k in range(count + 1)]
    multipliers = [one / sum(w) for one in w]
    nothing = [Fraction(0)] * (count + 1)
    goal = Goal(None, "convex", None)
    return check(document_of(monitored_rows(count), goal, (multipliers, nothing, nothing)))


def rounded(
    found: WorstCase, grid: int = 1 << 48
) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Return w, v, r of a worst case as multiples of 1/grid for which f cancels exactly.

    s and the last w follow from the others: s_k = n_k + r_k, w_M = A - n_M + v_M. Where one of them
    would be negative, r_k or v_M is raised.
    """
    w, v, _, r = ([Fraction(round(x * grid), grid) for x in row] for row in found.multipliers)
    w[-1] = r[0] = n = Fraction(0)
    for k in range(len(w)):
        r[k] = max(r[k], -n)
        if k == found.last:
            w[k] = found.goal.weight - n + v[k]
            v[k] += max(-w[k], Fraction(0))
            w[k] = max(w[k], Fraction(0))
        n += w[k] - v[k]
    return w, v, r


def document_of(
    rows: Iterable[Sequence[Fraction]],
    goal: Goal,
    multipliers: tuple[Sequence[Fraction], Sequence[Fraction], Sequence[Fraction]],
) -> dict[str, Any]:
    """Return the fields of a proof file, all numbers as strings such as "3/4"."""
    w, v, r = ([str(x) for x in row] for row in multipliers)
    return {
        "objective": "horizon" if goal.tail is None else "tail",
        "tail": goal.tail,
        "star": goal.star,
        "theta": None if goal.theta is None else str(goal.theta),
        "rows": [[str(x) for x in row] for row in rows],
        "w": w,
        "v": v,
        "r": r,
    }
