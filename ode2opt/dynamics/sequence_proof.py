"""Whether a table is proved, and whether the proof covers the instances at hand."""

from __future__ import annotations

from collections.abc import Sequence

from ode2opt.dynamics.certificate import Proof
from ode2opt.dynamics.schedule import Schedule
from ode2opt.dynamics.theorems import theorem_of
from ode2opt.dynamics.worst_cases import LONGEST, IterationsBound, worst_case
from ode2opt.errors import InputError, Ode2OptError
from ode2opt.problems.base import Problem
from ode2opt.problems.minimiser import MinimiserCheck

FIRST = 20  # iterations that a worst case is computed of, unless another number is asked for
CAP = 10.0  # a bound by matrix inequalities counts up to this many times Nesterov's own
ROUNDED = 1e-6  # eigenvalues by iteration are good to this


def sequence_proof(
    schedule: Schedule,
    problems: Sequence[Problem],
    scales: Sequence[float],
    minimisers: Sequence[MinimiserCheck],
) -> Proof | None:
    """Return what is proved of a table, and of which instances it says nothing.

    Args:
        schedule: the table for curvature 1, of the length that is to be proved.
        problems: the instances.
        scales: the curvature L that the table is divided by on each instance.
        minimisers: whether each instance has a minimiser.

    Returns:
        The proof: a theorem, or matrix inequalities whose bound after the last iteration is at
        most 10 times Nesterov's. None where there is neither.
    """
    found = theorem_of(schedule)
    kind, words = ("theorem", found.words) if found else ("lmi", _by_inequalities(schedule))
    if words is None:
        return None
    uncovered = _too_curved(problems, scales)
    lacking = next((i for i, one in enumerate(minimisers) if not one.exists), None)
    if lacking is not None:
        without = found.words_without_minimiser if found else None
        words = without or words
        if without is None and not uncovered:
            uncovered = f"instance {lacking} has no known minimiser: {minimisers[lacking].reason}."
    return Proof(kind, words, uncovered)


def _by_inequalities(schedule: Schedule) -> str | None:
    """Return the bound on the whole table in a sentence; None where it is no promise."""
    if not 2 <= len(schedule) <= LONGEST:
        return None
    try:
        found = worst_case(schedule, 1.0, len(schedule))
    except Ode2OptError:
        return None
    if not found.ratio <= CAP:
        return None
    return (
        f"For every L-smooth convex function with a minimiser x*, f(x) - f* after {found.N - 1} "
        f"steps is at most {found.value:.4g} L |x0 - x*|^2, {found.ratio:.3g} times Nesterov's "
        f"bound (a chain of matrix inequalities, in floating point)."
    )


def _too_curved(problems: Sequence[Problem], scales: Sequence[float]) -> str:
    """Say why an instance is not L-smooth with the method's L; "" where all are."""
    for i, (problem, L) in enumerate(zip(problems, scales, strict=True)):
        try:
            smoothness = problem.smoothness()
        except InputError:
            return f"the curvature of {problem.kind} has no known limit."
        if smoothness > (1 + ROUNDED) * L:
            return f"instance {i} may have curvatures up to {smoothness:.4g}, above L = {L:.4g}."
    return ""


def first_iterations(
    schedule: Schedule, N: int | None
) -> tuple[IterationsBound | None, tuple[str, ...]]:
    """Return the worst case of a table's first iterations, or notes on why there is none.

    Args:
        schedule: the table for curvature 1.
        N: iterations; None is 20, or as many as there are.

    Returns:
        The bound and no notes, or None and a sentence.

    Raises:
        InputError: N was asked for and cannot be computed.
    """
    try:
        return worst_case(schedule, 1.0, N or min(FIRST, len(schedule))), ()
    except InputError:
        raise
    except Ode2OptError as error:  # what is certified already stays
        return None, (str(error),)
