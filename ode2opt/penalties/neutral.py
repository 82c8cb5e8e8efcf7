"""No penalty: on any variable, or on the last ones, which are intercepts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ode2opt.base.arrays import Array, namespace
from ode2opt.penalties.base import Face, Penalty, SeparableTerms


class Zero(Penalty):
    """The penalty that is 0 everywhere, the neutral element: with it the residual is g.

    Examples:
        >>> from ode2opt.penalties import *
        >>> ZERO + L1(0.5)
        L1(l1 = 0.5)
    """

    separable = True
    neutral = True

    def __add__(self, other: Penalty) -> Penalty:
        return other if isinstance(other, Penalty) else NotImplemented

    def __reduce__(self) -> str:
        return "ZERO"  # one in every process: `penalty is ZERO` holds after pickling

    def value(self, x: Array) -> Array:
        return 0.0

    def prox(self, x: Array, step: Any) -> Array:
        """Return x itself, no copy."""
        return x

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        return g

    def project(self, x: Array) -> Array:
        return x

    def pieces(self) -> SeparableTerms:
        return SeparableTerms()

    def curvature_set(self, x: np.ndarray) -> Face:
        nothing = np.zeros(len(x))
        return Face(np.ones(len(x), dtype=bool), nothing, nothing)

    def support(self, x: np.ndarray) -> np.ndarray:
        return np.arange(len(x))

    def conjugate(self, v: np.ndarray) -> float:
        return np.inf if np.any(v) else 0.0

    def dual_scale(self, v: np.ndarray) -> float:
        return 0.0 if np.any(v) else 1.0

    def scaled(self, factor: float) -> Self:
        return self

    def only(self, kept: np.ndarray) -> Self:
        return self

    def sized(self, n: int, free: int = 0, width: int = 1) -> Self:
        return self

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()
"""The neutral penalty: what a solve without one is given."""


class LeavingLast(Penalty):
    """A penalty that leaves the last variables alone; :meth:`Penalty.on` makes it."""

    def __init__(self, inner: Penalty, n: int, free: int) -> None:
        self.inner, self.n, self.free = inner, n, free

    def value(self, x: Array) -> Array:
        return self.inner.value(x[: -self.free])

    def prox(self, x: Array, step: Any) -> Array:
        own = self.inner.prox(x[: -self.free], step)
        return namespace(x).concat([own, x[-self.free :]])

    def residual(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        own = self.inner.residual(x[: -self.free], g[: -self.free])
        return np.append(own, g[-self.free :])

    def project(self, x: Array) -> Array:
        return namespace(x).concat([self.inner.project(x[: -self.free]), x[-self.free :]])

    def curvature_set(self, x: np.ndarray) -> Face | None:
        face = self.inner.curvature_set(x[: -self.free])
        if face is None:
            return None
        zeros = np.zeros(self.free)
        longer = [None if one is None else np.append(one, zeros) for one in face]
        longer[0] = np.append(face.free, np.ones(self.free, dtype=bool))
        if face.labels is not None:  # groups of their own, for which outer is 0
            last = face.labels.max() + 1
            longer[4] = np.append(face.labels, np.full(self.free, last))
        return Face(*longer)  # type: ignore[arg-type]

    def support(self, x: np.ndarray) -> np.ndarray:
        last = np.arange(len(x) - self.free, len(x))
        return np.append(self.inner.support(x[: -self.free]), last)

    def conjugate(self, v: np.ndarray) -> float:
        return np.inf if np.any(v[-self.free :]) else self.inner.conjugate(v[: -self.free])

    def dual_scale(self, v: np.ndarray) -> float:
        return 0.0 if np.any(v[-self.free :]) else self.inner.dual_scale(v[: -self.free])

    def critical_scale(self, g: np.ndarray) -> float | None:
        return self.inner.critical_scale(g[: -self.free])

    def only(self, kept: np.ndarray) -> LeavingLast | None:
        inner = self.inner.only(kept[: -self.free])
        free = int(np.count_nonzero(kept[-self.free :]))
        if inner is None or not free:
            return None
        return type(self)(inner, int(np.count_nonzero(kept)), free)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.inner.scaled(factor), int(self.n or 0), self.free)

    def _about(self) -> list[tuple[str, str]]:
        return [("penalty", repr(self.inner)), ("left alone", f"{self.free}")]
