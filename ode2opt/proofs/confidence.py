"""What further problems of a family will need, told from solved ones with a given confidence.

Nothing is assumed of the distribution, except that all problems are drawn from the same one,
independently of each other. Two classical facts are enough:

- Of n problems k succeed. The share that succeeds in the family is at least the p at which k or
  more successes have probability 1 - confidence (Clopper and Pearson 1934).
- The r-th smallest of n numbers is at least the q-quantile of their distribution with the
  probability that fewer than r of n numbers are below it (order statistics; Wilks 1941).

Each statement holds with the given confidence by itself, not all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ode2opt.base.errors import InputError, many, shown

CONFIDENCE = 0.95
SHARES = (0.5, 0.9, 0.99)
"""The shares of the family for which a number of calls is told, where there are enough problems."""
BEYOND = 100  # one problem in so many may be an exception


@dataclass(frozen=True)
class Expectation:
    """What problems of a family need, from solved ones; each number holds with ``confidence``.

    Attributes:
        confidence: the probability with which each statement is true, over the draw of problems.
        problems: how many were solved.
        solved_share: at least this share of the family reaches the tolerance.
        share: at least this share of the family is solved within ``calls``. It depends on the
            number of problems and the confidence only.
        calls: oracle calls; None where too many problems did not reach the tolerance.
        quantiles: calls within which the shares 0.5, 0.9 and 0.99 of the family are solved, by
            their names; None where there are too few problems to tell.
        tol: the gradient norm at which a problem counts as solved, where it is told.

    Examples:
        >>> print(expectation([12.0, 14.0, 11.0] * 20).words())
        at least 95.1% are solved within 14 calls, with confidence 95% (60 fresh problems)
    """

    confidence: float
    problems: int
    solved_share: float
    share: float
    calls: float | None
    quantiles: dict[str, float | None]
    tol: float | None = None

    def summary(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)

    def words(self, limit: str = "the iteration limit") -> str:
        """Return the main statement, to follow on "of this family".

        Args:
            limit: what ended the solves that did not reach the tolerance.
        """
        solved = "solved" if self.tol is None else f"solved to {self.tol:g}"
        seen = many(self.problems, "fresh problem")
        if not self.solved_share:
            return f"0 of {seen} were {solved} within {limit}"
        told = f"with confidence {percent_down(self.confidence)}% ({seen})"
        if self.calls is None:
            share, most = self.solved_share, limit
        else:
            share, most = self.share, f"{_calls(self.calls)} calls"
        return f"at least {percent_down(share)}% are {solved} within {most}, {told}"

    def __post_init__(self) -> None:
        _check(self.problems, self.confidence)
        shares = (self.solved_share, self.share)
        numbers = [self.tol, self.calls, *self.quantiles.values()]
        known = [number for number in numbers if number is not None]
        if not all(0 <= share <= 1 for share in shares) or not all(
            0 <= n < math.inf for n in known
        ):
            raise InputError("it holds a share, a tolerance or a number of calls that cannot be.")


def expectation(
    calls: Iterable[float], confidence: float = CONFIDENCE, tol: float | None = None
) -> Expectation:
    """Return what problems of the family need, from the calls that some of them took.

    Args:
        calls: oracle calls of each problem, drawn independently; infinity for one that did not
            reach the tolerance.
        confidence: the probability with which each statement is to be true, between 0 and 1; 0.95
            by default.
        tol: the gradient norm that was reached; None by default, then nothing is said of it.

    Returns:
        The statements. One in 100 of the problems may be an exception to ``calls``.

    Raises:
        InputError: there are no problems, a number of calls is not known, or the confidence is not
            between 0 and 1.

    Examples:
        >>> expectation([10.0] * 59).share >= 0.95
        True
    """
    found = sorted(_known(calls))
    total = len(found)
    _check(total, confidence)
    solved = sum(math.isfinite(each) for each in found)
    rank = total - total // BEYOND
    return Expectation(
        confidence=float(confidence),
        problems=total,
        solved_share=binomial_lower_bound(solved, total, confidence),
        share=binomial_lower_bound(rank, total, confidence),
        calls=_finite(found[rank - 1]),
        quantiles={f"{share:g}": quantile_bound(found, share, confidence) for share in SHARES},
        tol=tol,
    )


def binomial_lower_bound(successes: int, total: int, confidence: float = CONFIDENCE) -> float:
    """Return a lower bound of a probability, of which ``successes`` in ``total`` trials are known.

    The exact one-sided bound of Clopper and Pearson: the p for which P(X >= k) = 1 - confidence, X
    binomial with n trials. It is the quantile of a beta distribution.

    Args:
        successes: how many trials succeeded, 0 to ``total``.
        total: how many trials there were, 1 or more.
        confidence: the probability with which the bound is to hold, between 0 and 1.

    Returns:
        The bound, 0 where nothing succeeded.

    Raises:
        InputError: a number is out of its range.

    Examples:
        >>> round(binomial_lower_bound(200, 200), 4)
        0.9851
    """
    from scipy.special import betaincinv

    _check(total, confidence)
    if not 0 <= successes <= total:
        raise InputError(f"{successes} of {total} problems cannot have succeeded.")
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, total - successes + 1, 1 - confidence))


def quantile_rank(total: int, share: float, confidence: float = CONFIDENCE) -> int | None:
    """Return the least r such that the r-th smallest of n numbers bounds a quantile from above.

    P(X_(r) >= q) >= P(Binomial(n, share) < r), q being the ``share``-quantile.

    Examples:
        >>> quantile_rank(59, 0.95), quantile_rank(58, 0.95)
        (59, None)
    """
    import numpy as np
    from scipy.special import bdtr

    _check(total, confidence)
    if not 0 < share < 1:
        raise InputError(f"share is {shown(share)}: it must be between 0 and 1.")
    below = bdtr(np.arange(total, dtype=float), total, share)  # P(Binomial(n, share) <= 0, 1, ...)
    rank = int(np.searchsorted(below, confidence)) + 1
    return rank if rank <= total else None


def quantile_bound(
    values: Sequence[float], share: float, confidence: float = CONFIDENCE
) -> float | None:
    """Return a number that at least ``share`` of the distribution does not exceed.

    Args:
        values: numbers drawn independently from it; infinity for what has no limit.
        share: of the distribution, between 0 and 1.
        confidence: the probability with which the bound is to hold, between 0 and 1.

    Returns:
        One of the numbers; None where these are too few, or too many of them infinite.

    Raises:
        InputError: there are no numbers, or one is out of its range.
    """
    found = sorted(_known(values))
    rank = quantile_rank(len(found), share, confidence)
    return None if rank is None else _finite(found[rank - 1])


def check_confidence(confidence: Any) -> None:
    """Refuse a confidence that is no number between 0 and 1."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        raise InputError(f"confidence is {shown(confidence)}: it must be a number between 0 and 1.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence:g}: it must be between 0 and 1, such as 0.95.")


def _check(total: int, confidence: float) -> None:
    if total < 1:
        raise InputError("Nothing is known of a family from 0 problems: solve at least one.")
    check_confidence(confidence)


def _known(values: Iterable[float]) -> list[float]:
    found = [float(value) for value in values]
    if any(map(math.isnan, found)):
        raise InputError("A number of calls is not known: infinity says that there was no end.")
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def percent_down(share: float) -> str:
    """Return a share in per cent with a digit after the point, not above it.

    Examples:
        >>> percent_down(0.9689)
        '96.8'
    """
    return f"{math.floor(1000 * share + 1e-9) / 10:g}"


def _calls(calls: float) -> str:
    """Return calls with a digit after the point, not below them."""
    return f"{math.ceil(10 * calls - 1e-9) / 10:,.10g}"
