"""The three numbers of an EIGAC iteration (docs/mathematics.md, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ode2opt.errors import InputError, many
from ode2opt.problems._arrays import Array, as_count, as_positive, refuse_complex

CHUNK = 1024  # rows turned into plain numbers at a time
TimeFunction = Callable[[Array], Array]
"""A coefficient as a function of time: an array of times gives an array of values."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """Tables a_k, c_k, d_k for k = 0..K-1 of

        e = u - a g;   x <- x + e;   u <- u - d e - c g,   u_0 = a_0 g(x_0).

    K is the horizon: the number of iterations the schedule is made for. ``a`` and ``c`` have the
    dimension of a step; a schedule learned for curvature 1 is divided by the instance's scale
    with :meth:`scaled`.
    """

    a: np.ndarray
    c: np.ndarray
    d: np.ndarray

    def __post_init__(self) -> None:
        for name in "acd":
            refuse_complex(getattr(self, name), f"The schedule's {name}")
            try:
                values = np.array(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InputError(f"The schedule's {name} must be numbers: {error}.") from None
            if values.ndim != 1 or not len(values):
                raise InputError(f"The schedule's {name} has shape {values.shape}; one row is due.")
            if not np.all(np.isfinite(values)):
                k = int(np.flatnonzero(~np.isfinite(values))[0])
                raise InputError(f"The schedule's {name} is {values[k]} at iteration {k}.")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if not len(self.a) == len(self.c) == len(self.d):
            lengths = f"{len(self.a)}, {len(self.c)} and {len(self.d)}"
            raise InputError(f"The schedule's a, c and d must be of one length, not {lengths}.")

    def __len__(self) -> int:
        return len(self.a)

    def __repr__(self) -> str:
        spans = (f"{name} {_span(getattr(self, name))}" for name in "acd")
        return f"Schedule({many(len(self), 'iteration')}, {', '.join(spans)})"

    def rows(self, first: int = 0) -> Iterator[tuple[float, float, float]]:
        """Yield (a_k, c_k, d_k) from k = ``first`` on, as plain numbers."""
        for low in range(first, len(self), CHUNK):
            part = slice(low, low + CHUNK)
            yield from zip(
                self.a[part].tolist(), self.c[part].tolist(), self.d[part].tolist(), strict=True
            )

    def scaled(self, L: float) -> Schedule:
        """Return the schedule for problems whose curvature is ``L`` times larger."""
        L = as_positive(L, "The scale")
        return Schedule(self.a / L, self.c / L, self.d)

    def first(self, K: int) -> Schedule:
        """Return the first K iterations, or all where there are fewer."""
        return Schedule(*(row[: _horizon(K)] for row in (self.a, self.c, self.d)))

    @classmethod
    def from_coefficients(
        cls,
        alpha: float,
        beta: TimeFunction,
        gamma: TimeFunction,
        dbeta: TimeFunction,
        *,
        h: float,
        t0: float,
        K: int,
    ) -> Schedule:
        """Discretise coefficients: a = h beta, c = h^2 (gamma - beta'), d = alpha h / t."""
        if not t0 > alpha * h > 0:
            raise InputError(
                f"t0 = {t0} must exceed alpha h = {alpha * h:g}, and both be positive."
            )
        t = t0 + h * np.arange(_horizon(K))
        return cls(h * beta(t), h**2 * (gamma(t) - dbeta(t)), alpha * h / t)

    @classmethod
    def gradient_descent(cls, s: float, K: int) -> Schedule:
        """Gradient descent with step ``s``: d = 1, a = c = s. Its first iteration is idle."""
        ones = np.ones(_horizon(K))
        return cls(s * ones, s * ones, ones)

    @classmethod
    def heavy_ball(cls, s: float, mu: float, K: int) -> Schedule:
        """Heavy ball with step ``s`` and momentum ``mu``: c = a, d = 1 - mu."""
        ones = np.ones(_horizon(K))
        return cls(s * ones, s * ones, (1 - mu) * ones)

    @classmethod
    def nesterov(cls, s: float, mu: np.ndarray) -> Schedule:
        """Nesterov with step ``s`` and momenta mu_0..mu_K; iterates are the extrapolated points.

        a_k = s (1 + mu_k), c_k = s (1 + mu_k - mu_{k+1}), d_k = 1 - mu_{k+1}. The first iteration
        is idle and the second a plain gradient step: no iterate depends on mu_0 and mu_1.
        """
        mu = np.asarray(mu, dtype=np.float64)
        if mu.ndim != 1 or len(mu) < 2:
            raise InputError(f"Nesterov's schedule of K steps needs K + 1 momenta, not {mu.shape}.")
        return cls(s * (1 + mu[:-1]), s * (1 + mu[:-1] - mu[1:]), 1 - mu[1:])


def _horizon(K: int) -> int:
    return as_count(K, "K")


def _span(values: np.ndarray) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"
