"""Whether a table is proved, and whether the proof covers the instances at hand.

The *share* of a set of instances is the largest of their smoothness constants, in units of the
curvature L that the method divides its steps by. A proof for every L-smooth function covers them
if it is at most 1. Matrix inequalities are solved for the share itself: functions that are no more
curved than the instances.
"""

from __future__ import annotations

from collections.abc import Sequence

from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.schedule import Schedule
from ode2opt.problems.base import Problem
from ode2opt.problems.minimiser import MinimiserCheck
from ode2opt.proofs.certificate import Proof
from ode2opt.proofs.theorems import Theorem, theorem_of
from ode2opt.proofs.worst_cases import AT_START, LONGEST, IterationsBound, worst_case

FIRST = (80, 40, 20, 10, 5)  # iterations that a worst case is computed of, the first that works
ROUNDED = 1e-6  # eigenvalues by iteration are good to this


def curvature_share(problems: Sequence[Problem], scales: Sequence[float]) -> float | None:
    """Return the largest smoothness constant of the instances, in units of the method's L.

    Example:
        >>> curvature_share([problem], [4 * problem.smoothness()])
        0.25
    """
    shares = []
    for problem, L in zip(problems, scales, strict=True):
        try:
            shares.append(problem.smoothness() / L)
        except InputError:
            return None
    share = max(shares)
    return 1.0 if abs(share - 1) <= ROUNDED else share


def sequence_proof(
    schedule: Schedule, share: float | None, minimisers: Sequence[MinimiserCheck]
) -> Proof | None:
    """Return what is proved of a table, and why it says nothing of the instances if so."""
    theorem = theorem_of(schedule)
    if theorem is not None and (share is None or share <= 1):
        return covered_proof("theorem", theorem.words, share, minimisers, theorem)
    words = _by_inequalities(schedule, 1.0 if share is None else share)
    if words is not None:
        return covered_proof("lmi", words, None if share is None else 1.0, minimisers)
    if theorem is not None:
        return covered_proof("theorem", theorem.words, share, minimisers, theorem)
    return None


def covered_proof(
    kind: str,
    words: str,
    share: float | None,
    minimisers: Sequence[MinimiserCheck],
    theorem: Theorem | None = None,
) -> Proof:
    """Return a proof with the reason why it does not cover the instances, if there is one."""
    uncovered = ""
    if share is None:
        uncovered = "their curvature has no known limit."
    elif share > 1:
        uncovered = f"they may have curvatures up to {share:.4g} times the method's L."
    lacking = next((i for i, one in enumerate(minimisers) if not one.exists), None)
    if lacking is not None:
        without = None if theorem is None else theorem.words_without_minimiser
        words = without or words
        if without is None and not uncovered:
            uncovered = f"instance {lacking} has no known minimiser: {minimisers[lacking].reason}."
    return Proof(kind, words, uncovered)


def _by_inequalities(schedule: Schedule, share: float) -> str | None:
    """Return the bound on the whole table in a sentence; None where it is no promise."""
    if not 2 <= len(schedule) <= LONGEST:
        return None
    try:
        found = worst_case(schedule, 1.0, len(schedule), share=share)
    except Ode2OptError:
        return None
    if not found.value < AT_START * share:
        return None
    functions = "L-smooth convex function"
    if share != 1:
        functions = f"convex function with curvatures up to {share:.4g} L"
    return (
        f"For every {functions} with a minimiser x*, f(x) - f* after {found.N - 1} steps is at "
        f"most {found.value:.4g} L |x0 - x*|^2, {found.ratio:.3g} times the bound of Nesterov's "
        f"method with L (a chain of matrix inequalities, in floating point)."
    )


def first_iterations(
    schedule: Schedule, N: int | None
) -> tuple[IterationsBound | None, tuple[str, ...]]:
    """Return the worst case of a table's first iterations, or notes on why there is none."""
    counts = (N,) if N is not None else sorted({min(n, len(schedule)) for n in FIRST}, reverse=True)
    notes: tuple[str, ...] = ()
    for count in counts:
        try:
            return worst_case(schedule, 1.0, count), ()
        except InputError:
            raise
        except Ode2OptError as error:  # what is certified already stays
            notes = notes or (str(error),)
    return None, notes


def deciding_case(schedule: Schedule, share: float | None) -> IterationsBound | None:
    """Return the bound that decides whether the instances may be driven away.

    It is that of the first 80 iterations, or of all where there are fewer, over convex functions
    that are no more curved than the instances.
    """
    if share is None:
        return None
    try:
        return worst_case(schedule, 1.0, min(FIRST[0], len(schedule)), share=share)
    except InputError:
        raise
    except Ode2OptError:
        return None
