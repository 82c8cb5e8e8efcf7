"""The metric of a method: EIGAC on y -> f(S y), written in x (docs/mathematics.md, section 13).

With M = S S^T the iteration needs one product M g more and nothing else: u and e live in x, the
gradient norm that is watched stays the Euclidean one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError, many, unknown_name
from ode2opt.problems.base import Problem

LONGEST = 1e70  # of scale and stretch: M and what is made of it stay finite
METRIC_KINDS = ("diagonal", "spectral", "lowrank")
ROUNDING = 1e-14  # of the largest eigenvalue: below it there is nothing to know
DENSE = 0.5  # from this share of n directions on, M as a matrix costs less than its factors


@dataclass(frozen=True, eq=False)
class Metric:
    """M = S S^T with S = diag(scale) (I + V diag(stretch) V^T), V with orthonormal columns.

    Attributes:
        kind: diagonal (no V), spectral (a whole basis) or lowrank.
        scale: n positive numbers.
        V: n x r directions.
        stretch: above -1, by how much each direction is stretched.
    """

    kind: str
    scale: np.ndarray
    V: np.ndarray | None = None
    stretch: np.ndarray | None = None
    _dense: ClassVar[tuple[np.ndarray, np.ndarray] | None] = None
    _milder: dict[float, Metric] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in METRIC_KINDS:
            raise unknown_name("metric", self.kind, METRIC_KINDS)
        _check("scale", self.scale, (len(np.atleast_1d(self.scale)),), above=0.0)
        if self.kind == "diagonal":
            if self.V is not None or self.stretch is not None:
                raise InputError("a diagonal metric has no directions.")
            return
        if self.V is None or self.stretch is None:
            raise InputError(f"a {self.kind} metric needs directions and their stretches.")
        _check("stretch", self.stretch, (np.size(self.stretch),), above=-1.0)
        if len(self.stretch) > self.n:
            raise InputError(f"it has {len(self.stretch)} directions in {self.n} variables.")
        _check("V", self.V, (self.n, len(self.stretch)))
        if not _orthonormal(self.V):
            raise InputError("its directions are not orthonormal.")
        if self.V.shape[1] >= DENSE * self.n:  # once, not in every solve
            root = self.matrix()
            object.__setattr__(self, "_dense", (root, root @ root.T))

    def __repr__(self) -> str:
        words = [self.kind, many(self.n, "variable")]
        if self.V is not None:
            words.append(many(self.V.shape[1], "direction"))
        lengths = self.lengths()
        return f"Metric({', '.join(words)}, lengths {lengths[0]:.3g} to {lengths[-1]:.3g})"

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.scale)

    @property
    def flops(self) -> int:
        """What one product M g costs."""
        return 2 * self.n if self.V is None else 2 * min(self.n**2, 2 * self.V.size)

    @classmethod
    def inverse_of(cls, H: np.ndarray) -> Metric:
        """Return M = H^-1 for a symmetric positive definite matrix, by its eigenvectors.

        Args:
            H: the matrix; eigenvalues below rounding are raised to it.
        """
        w, V = np.linalg.eigh(H)
        w = np.maximum(w, ROUNDING * w[-1])
        return cls("spectral", np.ones(len(w)), np.ascontiguousarray(V), w**-0.5 - 1)

    def on(self, problem: Problem) -> Operator:
        """Return the metric on a problem's kind of arrays.

        Args:
            problem: the problem, of as many variables.
        """
        if problem.n != self.n:
            raise InputError(f"The method is for {self.n} variables; this problem has {problem.n}.")

        def there(part: np.ndarray | None) -> Array:
            return None if part is None else problem.xp.asarray(part, dtype=problem.dtype)

        def milder(power: float) -> Operator:
            return self.milder(power).on(problem)

        if self._dense is not None:
            return _Dense(milder, *map(there, self._dense))
        return _Factored(milder, there(self.scale), there(self.V), there(self.stretch))

    def parts(self) -> tuple[np.ndarray | None, ...]:
        """Return what :func:`product` makes M g of, for loops outside of this package's solvers."""
        if self._dense is not None:
            return self._dense[1:]
        return self.scale, self.V, self.stretch

    def milder(self, power: float) -> Metric:
        """Return the metric with its lengths to a power: 1 leaves them, 0 makes them one.

        Args:
            power: from 0 to 1.
        """
        if power == 1:
            return self
        if power not in self._milder:  # made once, not in every solve
            stretch = None if self.stretch is None else (1 + self.stretch) ** power - 1
            self._milder[power] = Metric(self.kind, self.scale**power, self.V, stretch)
        return self._milder[power]

    def distance(self, x: np.ndarray, y: np.ndarray) -> float:
        """Return |S^-1 (x - y)|, how far two points are apart in the preconditioner.

        (I + V D V^T)^-1 = I - V (I + D V^T V)^-1 D V^T holds whether or not V is orthonormal to
        the last digit.

        Args:
            x: a point.
            y: another one.
        """
        apart = (x - y) / self.scale
        if self.V is not None and self.stretch is not None:
            inner = np.eye(len(self.stretch)) + self.stretch[:, None] * (self.V.T @ self.V)
            apart -= self.V @ np.linalg.solve(inner, self.stretch * (self.V.T @ apart))
        return float(np.linalg.norm(apart))

    def lengths(self) -> np.ndarray:
        """Return the lengths of the scale, each direction stretched, in order."""
        if self.V is None or self.stretch is None:
            return np.sort(self.scale)
        return np.sort((1 + self.stretch) * np.sqrt((self.V**2).T @ self.scale**2))

    def matrix(self) -> np.ndarray:
        """Return S as a matrix."""
        if self.V is None or self.stretch is None:
            return np.diag(self.scale)
        root = (self.V * self.stretch) @ self.V.T  # n x n once: it may be large
        root[np.diag_indices(self.n)] += 1.0
        root *= self.scale[:, None]
        return root


class Operator(ABC):
    """Products with S, its transpose, and M = S S^T, on a problem's kind of arrays."""

    def __init__(self, milder: Callable[[float], Operator]) -> None:
        self.milder = milder

    @abstractmethod
    def root(self, y: Array) -> Array:
        """Return S y."""

    @abstractmethod
    def root_transposed(self, g: Array) -> Array:
        """Return S^T g."""

    def __call__(self, g: Array) -> Array:
        """Return M g, as a new array."""
        return self.root(self.root_transposed(g))


class _Dense(Operator):
    def __init__(self, milder: Callable[[float], Operator], root: Array, square: Array) -> None:
        super().__init__(milder)
        self._root, self._square = root, square

    def root(self, y: Array) -> Array:
        return self._root @ y

    def root_transposed(self, g: Array) -> Array:
        return self._root.T @ g

    def __call__(self, g: Array) -> Array:
        return self._square @ g


class _Factored(Operator):
    def __init__(
        self, milder: Callable[[float], Operator], scale: Array, V: Array, stretch: Array
    ) -> None:
        super().__init__(milder)
        self._scale, self._V, self._stretch = scale, V, stretch

    def root(self, y: Array) -> Array:
        return self._scale * _stretched(y, self._V, self._stretch)

    def root_transposed(self, g: Array) -> Array:
        return _stretched(self._scale * g, self._V, self._stretch)


def product(parts: Sequence[Array], g: Array) -> Array:
    """Return M g from a metric's parts, in any array library: M itself, or scale, V, stretch."""
    if len(parts) == 1:
        return parts[0] @ g
    scale, V, stretch = parts
    return scale * _stretched(_stretched(scale * g, V, stretch), V, stretch)


def _stretched(y: Array, V: Array, stretch: Array) -> Array:
    return y if V is None else y + V @ (stretch * (V.T @ y))


def _orthonormal(V: np.ndarray) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        gram = V.T @ V
    gram[np.diag_indices(len(gram))] -= 1.0
    return bool(np.max(np.abs(gram, out=gram), initial=0.0) <= 1e-6)


def _check(name: str, values: Any, shape: tuple[int, ...], above: float = -math.inf) -> None:
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.shape != shape:
        raise InputError(f"its {name} is no float64 array of the shape {shape}.")
    if not np.all(np.isfinite(values)) or not np.all(values > above):
        raise InputError(f"its {name} holds numbers that are not finite or not above {above:g}.")
    if np.max(values, initial=0.0) > LONGEST:
        raise InputError(f"its {name} holds numbers above {LONGEST:g}.")
