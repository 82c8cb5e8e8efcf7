"""The corrected Theorem 2: tables given by inequalities, with the rate 1/k^2.

Let 0 < eta_k <= 2, t_0 = 1, t_k >= 1 and eta_{k+1} (t_{k+1}^2 - t_{k+1}) <= eta_k t_k^2. Then

    m_k = q_k = (t_k - 1)/t_{k+1},    p_k = 1 + (eta_k t_k - 1)/t_{k+1}

gives f(y_k - g_k/L) - f* <= L R^2 / (2 eta_k t_k^2) for every L-smooth convex f with a minimiser
(docs/mathematics.md, section 15). Nesterov's method is eta = 1, OGM is eta = 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ode2opt.dynamics.proofs.goals import TAILS
from ode2opt.dynamics.proofs.two_step import ExactRow
from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import as_count

ROUNDING = 1e-12
"""By how much, relatively, the inequalities may be missed in floating point."""


@dataclass(frozen=True, eq=False)
class Member:
    """A table of the theorem: eta_0..eta_R and t_0..t_R, checked against the inequalities.

    Attributes:
        eta: above 0, at most 2.
        t: t_0 = 1, then at least 1.
        without_minimiser: whether eta_k <= 2 - 1/t_k and the recursion holds with equality, so
            that the bound is f(y_k) - |g_k|^2/(2L) <= f(z) + L |x0 - z|^2 / (2 eta_k t_k^2) for
            every point z, and f needs no minimiser.

    Example:
        >>> nesterov = Member([1, 1, 1], [1, 1.5, 2])
        >>> nesterov.rows().tolist()[0]
        [0.0, 1.0, 0.0]
    """

    eta: np.ndarray
    t: np.ndarray
    without_minimiser: bool = False

    def __post_init__(self) -> None:
        for name in ("eta", "t"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values)):
                raise InputError(f"{name} must be a row of 2 or more finite numbers.")
            object.__setattr__(self, name, values)
        if len(self.eta) != len(self.t):
            raise InputError(f"There are {len(self.eta)} eta but {len(self.t)} t.")
        self._check()

    def _check(self) -> None:
        eta, t, near = self.eta, self.t, 1 + ROUNDING
        ceiling = 2 - 1 / t if self.without_minimiser else np.full_like(t, 2.0)
        if np.any(eta <= 0) or np.any(eta > ceiling * near):
            k = int(np.flatnonzero((eta <= 0) | (eta > ceiling * near))[0])
            raise InputError(f"eta_{k} is {eta[k]:g}: it must be in (0, {ceiling[k]:.4g}].")
        if abs(t[0] - 1) > ROUNDING or np.any(t < 1 - ROUNDING):
            raise InputError(f"t_0 must be 1 and every t_k at least 1; the least is {t.min():g}.")
        before, after = eta[:-1] * t[:-1] ** 2, eta[1:] * (t[1:] ** 2 - t[1:])
        missed = after > before * near
        if self.without_minimiser:
            missed |= after < before * (1 - ROUNDING)
        if np.any(missed):
            k = int(np.flatnonzero(missed)[0])
            sign = "=" if self.without_minimiser else "<="
            raise InputError(
                f"eta_{k + 1} (t_{k + 1}^2 - t_{k + 1}) {sign} eta_{k} t_{k}^2 does not hold: "
                f"{after[k]:.6g} and {before[k]:.6g}."
            )

    def rows(self) -> np.ndarray:
        """Return the rows (m_k, p_k, q_k), k = 0..R-1, shape (R, 3)."""
        momentum = (self.t[:-1] - 1) / self.t[1:]
        p = 1 + (self.eta[:-1] * self.t[:-1] - 1) / self.t[1:]
        return np.column_stack([momentum, p, momentum])

    def bounds(self) -> np.ndarray:
        """Return 1/(2 eta_k t_k^2), k = 0..R, in units of L R^2."""
        return 1 / (2 * self.eta * self.t**2)


def member_of(levels: Sequence[float] | np.ndarray, shares: Sequence[float] | np.ndarray) -> Member:
    """Return the member of the theorem for any numbers: the inequalities hold by construction.

    eta_k = 2 / (1 + exp(-level_k)); t_{k+1} is 1 plus the share 1 / (1 + exp(-share_k)) of the way
    from 1 to the largest t that the recursion allows.

    Args:
        levels: R + 1 numbers, one for each eta_k.
        shares: R numbers, one for each t_{k+1}.

    Returns:
        The member.

    Raises:
        InputError: the lengths do not fit or a number is not finite.

    Example:
        >>> member = member_of([0.0, 0.0, 0.0], [40.0, 40.0])  # Nesterov's longest steps
    """
    levels, shares = (np.asarray(x, dtype=np.float64) for x in (levels, shares))
    if levels.ndim != 1 or shares.shape != (len(levels) - 1,):
        raise InputError(f"R + 1 levels and R shares are due, not {levels.shape}, {shares.shape}.")
    eta, way = 2 * _sigmoid(levels), _sigmoid(shares)
    t = [1.0]
    for k, share in enumerate(way):
        largest = (1 + np.sqrt(1 + 4 * eta[k] * t[k] ** 2 / eta[k + 1])) / 2
        t.append(1 + share * (largest - 1))
    return Member(eta, np.array(t))


def member_without_minimiser(extras: Sequence[float] | np.ndarray, eta_0: float = 1.0) -> Member:
    """Return the member whose bound needs no minimiser, for any numbers.

    t_{k+1} is exp(extra_k) above its least value (3 + sqrt(1 + 8 eta_k t_k^2))/4, and eta_{k+1}
    follows from equality in the recursion.

    Args:
        extras: R numbers.
        eta_0: the first eta, above 0 and at most 1.

    Returns:
        The member, with ``without_minimiser`` set.

    Raises:
        InputError: eta_0 is out of range or a number is not finite.
    """
    if not 0 < eta_0 <= 1:
        raise InputError(f"eta_0 is {eta_0:g}: it must be above 0 and at most 1.")
    eta, t = [float(eta_0)], [1.0]
    for extra in np.exp(np.asarray(extras, dtype=np.float64)):
        square = eta[-1] * t[-1] ** 2
        t.append((3 + np.sqrt(1 + 8 * square)) / 4 + extra)
        eta.append(square / (t[-1] ** 2 - t[-1]))
    return Member(np.array(eta), np.array(t), without_minimiser=True)


def tail_rows(tail: str, theta: Fraction | float, count: int) -> list[ExactRow]:
    """Return the rows that follow a table whose last point stands at ``theta``.

    They are the theorem's with eta = 2 ("ogm") or 1 ("nag") and t = theta + 1/2, theta + 1, ...

    Args:
        tail: "ogm" or "nag".
        theta: where the tail stands at the table's last point, at least 1.
        count: how many rows, at least 1.

    Returns:
        The rows (m, p, q) as fractions.

    Raises:
        InputError: the tail is unknown, or a number is out of range.

    Example:
        >>> [str(x) for x in tail_rows("nag", 1, 1)[0]]
        ['1/4', '5/4', '1/4']
    """
    if tail not in TAILS:
        raise unknown_name("tail", tail, TAILS)
    if not theta >= 1:
        raise InputError(f"theta is {theta}: it must be at least 1.")
    eta, half = TAILS[tail], Fraction(1, 2)
    t = Fraction(theta) + half
    rows = []
    for _ in range(as_count(count, "count")):
        momentum = (t - 1) / (t + half)
        rows.append((momentum, 1 + (eta * t - 1) / (t + half), momentum))
        t += half
    return rows


def classical_rows(name: str, count: int) -> list[ExactRow]:
    """Return the first rows of "nag" or "ogm" with t_k = (k + 2)/2, as fractions.

    Args:
        name: "nag" or "ogm".
        count: how many rows, at least 1.

    Returns:
        The rows (m, p, q); ``tail_rows(name, (count + 1)/2, ...)`` go on with them.

    Raises:
        InputError: the name is unknown or the count is no positive integer.
    """
    if name not in TAILS:
        raise unknown_name("method", name, TAILS)
    start = (Fraction(0), 1 + Fraction(2 * (TAILS[name] - 1), 3), Fraction(0))
    return [start, *(tail_rows(name, Fraction(1), as_count(count, "count"))[: count - 1])]


def monitored_weights(count: int) -> tuple[list[Fraction], list[Fraction]]:
    """Return w_k = (k + 2)/2 and n_k = w_0 + ... + w_{k-1} = k (k + 3)/4 of ``nag-monitored``.

    Args:
        count: how many, at least 1.

    Returns:
        w_0..w_{count-1} and n_0..n_{count-1}.
    """
    ks = range(as_count(count, "count"))
    return [Fraction(k + 2, 2) for k in ks], [Fraction(k * (k + 3), 4) for k in ks]


def monitored_rows(count: int) -> list[ExactRow]:
    """Return rows of the theorem whose bound needs no minimiser, as ``nag-monitored`` runs them.

    eta_k t_k = w_k = (k + 2)/2 and t_k = 1 + n_k/w_k, so that the recursion holds with equality.

    Args:
        count: how many rows, at least 1.

    Returns:
        The rows (m, p, q); f(y_k) - |g_k|^2/(2L) <= f(z) + L |x0 - z|^2 / (2 n_{k+1}) for every z.
    """
    w, n = monitored_weights(as_count(count, "count") + 1)
    t = [1 + below / one for one, below in zip(w, n, strict=True)]
    momenta = [(t[k] - 1) / t[k + 1] for k in range(count)]
    return [(m, 1 + (w[k] - 1) / t[k + 1], m) for k, m in enumerate(momenta)]


def theorem_multipliers(
    eta: Sequence[Fraction], t: Sequence[Fraction]
) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Return the multipliers w, v, r with which the proof of the theorem bounds the point M.

    w_k = eta_k t_k, v_k = eta_k t_k^2 - eta_{k+1} (t_{k+1}^2 - t_{k+1}), v_M = 0, r_k = 0.

    Args:
        eta: eta_0..eta_M.
        t: t_0..t_M.

    Returns:
        Three lists of M + 1 numbers; all are at least 0 inside the theorem.
    """
    w = [e * x for e, x in zip(eta, t, strict=True)]
    needed = [e * (x * x - x) for e, x in zip(eta, t, strict=True)]
    v = [one * x - after for one, x, after in zip(w, t, needed[1:], strict=False)]
    return w, [*v, 0 * w[-1]], [0 * one for one in w]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -x))
