"""What is minimised: a smooth convex function of n variables."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, Namespace, usable
from ode2opt.base.display import Displayed, Listing, one_line
from ode2opt.base.errors import InputError, many
from ode2opt.problems.curvature import largest_curvature
from ode2opt.problems.smoothness import Preconditioner, no_bound, smoothness_bound

LARGEST_DENSE_HESSIAN = 5_000
SEGMENT_NODES = (0.5 - 0.5 / math.sqrt(3), 0.5 + 0.5 / math.sqrt(3))
"""The Gauss-Legendre nodes on [0, 1] of the two-point rule; both weights are 1/2."""


class Point(NamedTuple):
    """A point, with what several evaluations there have in common.

    Attributes:
        x: the point.
        scores: its image under the linear part of the function; x itself where there is none.
    """

    x: Array
    scores: Array


@dataclass(frozen=True)
class Scale:
    """The step constant of an instance, with what it cost to find.

    Attributes:
        L: the constant, positive.
        oracle_calls: how many gradients, or products as dear as one, it took.
        seconds: how long it took.
    """

    L: float
    oracle_calls: int
    seconds: float


@dataclass(frozen=True)
class Start:
    """The paper's start point and step constant; unpacks as ``x0, L``.

    See docs/mathematics.md, section 9.

    Attributes:
        x0: the point.
        scale: the step constant, with its cost.
    """

    x0: Array
    scale: Scale

    @property
    def L(self) -> float:
        """The step constant."""
        return self.scale.L

    def __iter__(self) -> Iterator[Array]:
        return iter((self.x0, self.L))


class Problem(Displayed, ABC):
    """A smooth convex function f on R^n.

    A gradient, like every array that these methods return, is new: the caller may overwrite it.
    Subclasses give ``value`` and ``gradient``; ``hvp`` where second derivatives are known.

    Attributes:
        n: the number of variables.
        dtype: the floating-point type of all arrays.
        xp: the array library, by the array API standard.
        has_hvp: whether ``hvp`` is there.
    """

    n: int
    dtype: object
    xp: Namespace
    has_hvp: bool = True
    cheap_diagonal: bool = False
    """Whether the Hessian's diagonal costs about as much as a gradient."""
    rows: int | None = None
    """Of how many rows the function is a mean; None where it is no such thing."""
    arrays: tuple[str, ...] = ()
    """The attributes that hold arrays; the others say what kind of problem it is."""

    @property
    def provides(self) -> frozenset[str]:
        """What a solver may ask of this problem beyond value and gradient, by name.

        hvp: ``hvp`` is known; diagonal: ``hessian_diagonal`` costs about a gradient; hessian:
        ``hessian`` is formed from data, not by n products; quadratic: the Hessian is the same
        everywhere; smoothness: ``smoothness()`` has a bound; rows: the mean of a loss over rows
        (``RowModel``); classes: rows have several scores; kinked: rows may have no curvature;
        matrix: the rows are one matrix ``A`` with targets ``b`` (``LinearModel``); host: that
        matrix is NumPy's or SciPy's; Q: the matrix ``Q`` of a quadratic is there.
        """
        known = {"hvp": self.has_hvp, "diagonal": self.cheap_diagonal}
        return frozenset(name for name, is_known in known.items() if is_known)

    @property
    def kind(self) -> str:
        """What kind of problem it is, in a word."""
        return type(self).__name__

    def __repr__(self) -> str:
        return one_line(self.kind, self._about()) if hasattr(self, "n") else object.__repr__(self)

    def _listing(self) -> Listing:
        return Listing(self.kind, self._about())

    def _about(self) -> list[tuple[str, str]]:
        """Return the problem's facts for display: its size first, then what is not usual."""
        return [("size", many(self.n, "variable"))]

    @abstractmethod
    def value(self, x: Array) -> Array:
        """Return f(x).

        Args:
            x: the point, n numbers.
        """

    @abstractmethod
    def gradient(self, x: Array) -> Array:
        """Return the gradient g(x), n numbers.

        Args:
            x: the point, n numbers.
        """

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """Return f(x) and g(x); one oracle call, cheaper than two where they share work.

        Args:
            x: the point, n numbers.
        """
        return self.value(x), self.gradient(x)

    def hvp(self, x: Array, v: Array) -> Array:
        """Return the Hessian times a vector, H(x) v.

        Args:
            x: the point, n numbers.
            v: the vector, n numbers.

        Raises:
            InputError: this problem has no Hessian-vector product (``has_hvp`` is False).
        """
        raise InputError(
            f"{type(self).__name__} has no Hessian-vector product: give it a method hvp, or use "
            f"what needs gradients only (the method lbfgs, the estimator l0l1)."
        )

    def at(self, x: Array) -> Point:
        """Return a point with what several evaluations there have in common.

        Args:
            x: the point, n numbers.
        """
        return Point(x, x)

    def gradient_at(self, point: Point) -> Array:
        """Return the gradient at a point.

        Args:
            point: made by :meth:`at`.
        """
        return self.gradient(point.x)

    def mean_hvp(self, here: Point, there: Point, v: Array) -> Array:
        """Return the Hessian averaged over the segment between two points, times a vector.

        By two Gauss-Legendre nodes: exact where the Hessian is a cubic along the segment.

        Args:
            here: one end, made by :meth:`at`.
            there: the other end.
            v: the vector, n numbers.
        """
        nodes = [(1 - tau) * here.x + tau * there.x for tau in SEGMENT_NODES]
        return 0.5 * (self.hvp(nodes[0], v) + self.hvp(nodes[1], v))

    def hessian(self, x: Array) -> Array:
        """Return the dense n x n Hessian.

        Args:
            x: the point, n numbers.

        Raises:
            InputError: n is above 5,000.
        """
        self._check_hessian_size()
        identity = self.xp.eye(self.n, dtype=self.dtype)
        return self.xp.stack([self.hvp(x, identity[i, :]) for i in range(self.n)])

    def hessian_diagonal(self, x: Array) -> Array:
        """Return the diagonal of the Hessian, n numbers.

        Args:
            x: the point, n numbers.
        """
        return self.xp.linalg.diagonal(self.hessian(x))

    def curvature_operator(self, x: Array) -> tuple[Callable[[Array], Array], int]:
        """Return a symmetric operator with the same largest eigenvalue as the Hessian.

        Args:
            x: the point, n numbers.

        Returns:
            The operator as a function of a vector, and the length of such vectors.
        """
        return lambda v: self.hvp(x, v), self.n

    def smoothness(self, metric: Preconditioner | None = None) -> float:
        """Return a smoothness constant L: no Hessian has a larger eigenvalue, at any point.

        With a preconditioner M = S S^T it is one of y -> f(S y): lambda_max(S^T H(x) S) <= L
        (docs/mathematics.md, section 13). It is a bound, not an estimate: rounding goes upwards.

        Args:
            metric: the preconditioner, an ``ode2opt.solvers.metric.Metric``; None (the default)
                is none.

        Returns:
            L. For a quadratic it is the largest eigenvalue itself. Up to 2,000 variables it costs
            about as much as a Hessian and its eigenvalues; beyond it may be larger than necessary.

        Raises:
            InputError: the curvature of this kind of problem has no known limit (``Lpp``,
                ``Poisson``, a plain function), or the preconditioner is for other variables.

        Examples:
            >>> L = Logistic(A, b, l2=1e-3).smoothness()
        """
        return smoothness_bound(self, metric)

    def strong_convexity(self) -> float:
        """Return mu >= 0 such that f(x) - mu/2 |x|^2 is convex, where it is known without work.

        Returns:
            mu; 0.0, the default, where none is known. A linear model's is l2, if every variable is
            penalised: an intercept that l2 leaves alone has none.

        Examples:
            >>> Logistic(A, b, l2=0.1).strong_convexity()
            0.1
        """
        return 0.0

    def gradient_rounding(self, x: Array, value: float | None = None) -> float:
        """Return how far the computed gradient at ``x`` can be from the exact one.

        Args:
            x: n numbers.
            value: f(x), where it is known (None by default): it saves work.

        Returns:
            A bound of the Euclidean norm of the difference; infinity where none is known.
        """
        return math.inf

    def hessian_bound(self) -> Array:
        """Return a dense n x n matrix B such that B - H(x) is positive semidefinite for every x.

        Raises:
            InputError: none is known.
        """
        raise no_bound(self)

    def absolute_product(self, v: np.ndarray) -> np.ndarray:
        """Return |B| v for v >= 0, or more, with B as ``hessian_bound`` has it, on the host.

        Args:
            v: n numbers, none of them negative.

        Raises:
            InputError: no B is known.
        """
        raise no_bound(self)

    def scale(self, x: Array) -> Scale:
        """Return the paper's step constant L (docs/mathematics.md, section 9).

        It is the smaller of a bound that holds everywhere, where there is one, and four times the
        largest curvature at ``x``.

        Args:
            x: the point from which the curvature is seen, n numbers.

        Raises:
            InputError: the curvature at ``x`` is not finite.
        """
        began = time.perf_counter()
        everywhere, calls = self._paper_bound()
        local, more = largest_curvature(self, x)
        L = min(everywhere, 4 * local)
        if not math.isfinite(L):  # slightly below 0 it is the 0 of a line, rounded
            raise InputError(
                f"The curvature at the start point is {L}: gradients there are no numbers, or too "
                f"large. Start elsewhere, or scale the problem."
            )
        return Scale(usable(L), calls + more, time.perf_counter() - began)

    def start(self) -> Start:
        """Return the paper's start: x0 = 1/n - g(1/n)/L, and L as seen from 1/n."""
        if not hasattr(self, "_start"):
            uniform = self.xp.full((self.n,), 1.0 / self.n, dtype=self.dtype)
            scale = self.scale(uniform)
            self._start = Start(uniform - self.gradient(uniform) / scale.L, scale)
        return self._start

    def gradient_flops(self) -> int:
        """Return about how many operations a gradient takes; for a dense quadratic by default."""
        return 2 * self.n**2

    def hessian_flops(self) -> int:
        """Return about how many operations ``hessian`` takes; n products by default."""
        return self.n * self.gradient_flops()

    def _paper_bound(self) -> tuple[float, int]:
        """Return the global part of the paper's L and the oracle calls it took."""
        return math.inf, 0

    def _check_hessian_size(self) -> None:
        if self.n > LARGEST_DENSE_HESSIAN:
            raise InputError(
                f"A dense Hessian of {self.n:,} variables would not be reasonable "
                f"(at most {LARGEST_DENSE_HESSIAN:,}): use hvp."
            )

    @staticmethod
    def from_function(
        fun: Callable[[Array], float],
        grad: Callable[[Array], Array] | None = None,
        *,
        n: int,
        hvp: Callable[[Array, Array], Array] | None = None,
    ) -> Problem:
        """Make a problem of a callable; see :class:`ode2opt.problems.FunctionProblem`.

        Args:
            fun: x -> f(x).
            grad: x -> g(x); by JAX's automatic differentiation when not given.
            n: the number of variables.
            hvp: (x, v) -> H(x) v, optional.

        Examples:
            >>> problem = Problem.from_function(lambda x: (x**2).sum(), lambda x: 2 * x, n=3)
        """
        from ode2opt.problems.function import FunctionProblem

        return FunctionProblem(fun, grad, n=n, hvp=hvp)
