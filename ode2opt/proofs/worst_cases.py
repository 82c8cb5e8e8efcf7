"""What the first iterations of a table can do at worst, over all L-smooth convex functions."""

from __future__ import annotations

from dataclasses import dataclass

from ode2opt.base.arrays import as_count, as_positive
from ode2opt.base.errors import InputError, needing
from ode2opt.base.schedule import Schedule
from ode2opt.proofs import chain

AT_START = 0.5  # f(x0) - f* is at most L |x0 - x*|^2 / 2
LONGEST = chain.LONGEST + 1  # the first iteration is idle


@dataclass(frozen=True)
class IterationsBound:
    """A bound on a schedule's first ``N`` iterations (the first is idle and counts).

    Attributes:
        N: iterations.
        value: (f(x_N) - f*) / (L |x0 - x*|^2) is at most this, for every L-smooth convex function
            with a minimiser x* (or as smooth as was asked for).
        start: the same of the start: 0.5, and ``share``/2 for functions of ``share`` L.
    """

    N: int
    value: float
    start: float = AT_START

    @property
    def driven_away(self) -> bool:
        """Whether the bound is above every start, so that some function may be driven upwards."""
        return self.value > self.start

    @property
    def ratio(self) -> float:
        """The bound divided by that of Nesterov's method, 1/(2 t^2) with t = (N + 1)/2."""
        return self.value * (self.N + 1) ** 2 / 2


def worst_case(schedule: Schedule, L: float, N: int, *, share: float = 1.0) -> IterationsBound:
    """Bound the worst that ``N`` iterations can do, over all L-smooth convex functions.

    A chain of small matrix inequalities is solved (docs/mathematics.md, section 15). The bound is
    the exact worst case for gradient descent, Nesterov's method and OGM, and up to about 1.4 times
    that for others. It is computed in floating point; ``ode2opt prove`` proves it in fractions.

    Args:
        schedule: the three numbers for curvature ``L``; at least ``N`` rows of it.
        L: the smoothness constant.
        N: iterations, 1 to 201. The first does not move.
        share: bound functions with curvatures up to ``share`` L; 1 by default.

    Returns:
        The bound.

    Raises:
        InputError: N or L is wrong, or the schedule is too short.
        Ode2OptError: the bound grows by orders of magnitude, beyond the solver's precision.

    Example:
        >>> round(worst_case(Schedule.gradient_descent(1.0, 11), 1.0, 11).value, 6)  # 1/42
        0.02381
    """
    N = check_worst_case(N, len(schedule))
    share = as_positive(share, "share")
    unit = schedule.scaled(1 / (as_positive(L, "L") * share))
    if N == 1:
        return IterationsBound(1, AT_START * share, AT_START * share)
    return IterationsBound(N, chain.worst_case(unit.first(N)).tau * share, AT_START * share)


def check_worst_case(N: int, K: int) -> int:
    """Refuse, before any work, what ``K`` iterations or the installation cannot do."""
    N = as_count(N, "N")
    if N > LONGEST:
        raise InputError(f"N is {N}: the worst case is computed for 1 to {LONGEST} iterations.")
    if N > K:
        raise InputError(f"The schedule has {K} iterations, fewer than N = {N}.")
    with needing("proofs"):
        import clarabel  # noqa: F401
    return N
