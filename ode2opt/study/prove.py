"""Proofs about methods by name: what their tables do to every L-smooth convex function."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import InputError, Ode2OptError, many
from ode2opt.base.schedule import Schedule
from ode2opt.proofs.check_proof import ETA
from ode2opt.proofs.exact import (
    ProvedBound,
    check,
    classical_proof,
    exact_proof,
    monitored_proof,
)
from ode2opt.proofs.table import ExactRow, exact_rows
from ode2opt.proofs.theorem import tail_rows
from ode2opt.solvers import Method
from ode2opt.solvers.methods import METHODS, BuiltIn, method_of

STEPS, MOST = 40, 160
"""Steps of a built-in method that are looked at by default, and of any table at most."""


@dataclass(frozen=True, eq=False)
class MethodProof:
    """What was proved of a method, or why nothing was.

    Attributes:
        method: the method's name.
        found: the bound that was proved in exact arithmetic; None if no multipliers were found.
        kind: "theorem" (the corrected Theorem 2) or "lmi" (multipliers of matrix inequalities).
        why: why there is no proof; empty where there is one.
        notes: what else is to be known, in sentences.
        seconds: how long the proof took to find and check.
    """

    method: str
    found: ProvedBound | None
    kind: str
    why: str
    notes: tuple[str, ...]
    seconds: float

    @property
    def proved(self) -> bool:
        """Whether there is a bound below f(x0) - f* <= L |x0 - x*|^2 / 2, which needs no method."""
        return self.found is not None and self.found.says_something

    def words(self) -> list[str]:
        """Return the theorem in words, or why there is none."""
        if self.found is None:
            return [f"Not proved: {self.why}", *self.notes]
        checked = f"Proved in exact arithmetic, {self.seconds:.1f} s."
        if not self.proved:
            checked += (
                " But it is no better than the start, where f(x0) - f* <= L |x0 - x*|^2 / 2: some "
                "function may drive the method away."
            )
        return [self.found.words, checked, *self.notes]

    def summary(self) -> dict[str, Any]:
        """Return the fields of ``ode2opt prove --json``; decimals are rounded up."""
        found = self.found
        return {
            "method": self.method,
            "K": None if found is None else len(found.proof.w),
            "tail": None if found is None else found.proof.tail,
            "tau": None if found is None else _up(found.tau),
            "ratio_to_nesterov": None if found is None else _up(found.ratio),
            "seconds": self.seconds,
        }


def prove(method: str | Path | Method | Schedule, *, steps: int | None = None) -> MethodProof:
    """Prove in exact arithmetic what a method does to every L-smooth convex function.

    The proof that a learned method's file carries is checked. Where it carries none, or ``steps``
    are named, multipliers are computed (docs/mathematics.md, section 15).

    Args:
        method: a name, a learned method, the ``Path`` of its file, or a schedule for curvature 1.
        steps: how many steps of the table to look at, 1 to 160; by default 40 of a built-in method
            and all of a table, at most 160.

    Returns:
        The bound and its proof, or why there is none.

    Raises:
        InputError: the method has no table, the steps are too many, or the proof in the file is
            damaged or belongs to another table.

    Example:
        >>> prove("ogm").found.ratio
        Fraction(1, 2)
    """
    started = time.perf_counter()
    if steps is not None and as_count(steps, "steps") > MOST:
        raise InputError(f"steps is {steps}: proofs are made for 1 to {MOST} steps.")
    name, subject = _named(method)
    notes = _notes(subject)
    try:
        found, kind = _proof(name, subject, steps)
    except InputError:
        raise
    except Ode2OptError as error:
        return MethodProof(name, None, "", str(error), notes, time.perf_counter() - started)
    return MethodProof(name, found, kind, "", notes, time.perf_counter() - started)


def _named(method: str | Path | Method | Schedule) -> tuple[str, BuiltIn | Method | Schedule]:
    subject = method_of(method)
    if isinstance(method, str | Path):
        return str(method), subject
    return f"the {type(method).__name__.lower()}", subject


def _proof(
    name: str, subject: BuiltIn | Method | Schedule, steps: int | None
) -> tuple[ProvedBound, str]:
    if isinstance(subject, Method) and subject.proof is not None and steps is None:
        found = check(dict(subject.proof))
        check_belongs(found, subject.table())
        _check_monitored(found, subject)
        return found, "lmi"
    if name in ETA and isinstance(subject, BuiltIn):
        return classical_proof(name, steps or STEPS), "theorem"
    if name == "nag-monitored":
        return monitored_proof(steps or STEPS), "theorem"
    return exact_proof(_rows(name, subject, steps)), "lmi"


def _check_monitored(found: ProvedBound, method: Method) -> None:
    """Refuse a method that tells its solves of a smaller bound than its proof gives."""
    if method.monitored is not None and Fraction(method.monitored.tau) < found.tau:
        raise InputError(
            f"Its solves take the bound tau = {method.monitored.tau:g}, its proof gives "
            f"{float(found.tau):g}: the file is damaged."
        )


def _rows(name: str, subject: BuiltIn | Method | Schedule, steps: int | None) -> list[ExactRow]:
    """Return the rows to look at."""
    if isinstance(subject, BuiltIn):
        if subject.schedule is None:
            able = ", ".join(one for one, entry in METHODS.items() if entry.schedule is not None)
            raise InputError(f"{name} has no table of steps to prove; these have: {able}.")
        return exact_rows(subject.schedule((steps or STEPS) + 1))
    rows = exact_rows(subject if isinstance(subject, Schedule) else subject.table())
    if steps is not None and steps > len(rows):
        raise InputError(f"steps is {steps}: the table of {name} has {many(len(rows), 'step')}.")
    return rows[: min(len(rows), MOST) if steps is None else steps]


def _notes(subject: BuiltIn | Method | Schedule) -> tuple[str, ...]:
    if not isinstance(subject, Method):
        return ()
    by = {
        "family": f"{subject.family_scale:.6g}" if subject.family_scale else "",
        "instance": "the largest curvature at the start point",
        "product": "the curvature along the first gradient",
        "paper": "the paper's step constant",
    }
    where = "" if subject.metric is None else " in its preconditioner"
    scale = f"A solve divides the table by {by[subject.scale]}: the bound holds where that is at "
    note = f"{scale}least L, the curvature's bound{where}."
    if subject.monitored is None:
        return (note,)
    return (
        note,
        f"A solve begins with {subject.monitored.rho:g} of that and checks the inequalities.",
    )


def check_belongs(found: ProvedBound, table: Schedule, rounding: float = 1e-12) -> None:
    """Refuse a proof that is about another table; rows of its tail may differ by ``rounding``."""
    rows, due = exact_rows(table), found.proof.rows
    if len(due) > len(rows):
        raise InputError(
            f"The proof is about {many(len(due), 'step')}, the table has {len(rows)}: it is for "
            f"another table."
        )
    for k, (row, own) in enumerate(zip(due, rows, strict=False)):
        if tuple(row) != own:
            raise InputError(f"The proof is for another table: they differ at step {k}.")
    if found.proof.tail is None or len(due) == len(rows):
        return
    after = tail_rows(found.proof.tail, found.proof.theta, len(rows) - len(due))
    apart = np.abs(np.array(rows[len(due) :]) - np.array(after)).max(axis=1).astype(np.float64)
    if np.any(apart > rounding):
        k = len(due) + int(np.flatnonzero(apart > rounding)[0])
        raise InputError(f"The table does not go on as its proof says: they differ at step {k}.")


def _up(x: Fraction) -> float:
    """Return a fraction as a float that is not below it."""
    near = float(x)
    return near if Fraction(near) >= x else float(np.nextafter(near, np.inf))
