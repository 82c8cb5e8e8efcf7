"""Losses of linear models, written once: the weighted mean of loss(a_i . x, b_i), plus l2/2 |x|^2.

The same class runs on NumPy arrays, SciPy CSR matrices, JAX arrays and torch tensors. A new loss
is a subclass with three elementwise functions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np

from ode2opt.base.arrays import (
    Array,
    as_ridge,
    as_vector,
    as_weights,
    detached,
    is_sparse,
    library_of,
    measured_matrix,
    namespace,
)
from ode2opt.data.frames import (
    counted_labels,
    frame_rows,
    has_words,
    is_frame,
    taken_out,
)
from ode2opt.kernels.row_loss import PRODUCT
from ode2opt.problems import rounding
from ode2opt.problems.base import SEGMENT_NODES, Point
from ode2opt.problems.curvature import largest_eigenvalue
from ode2opt.problems.has_loss import HasLoss
from ode2opt.problems.row_model import RowModel
from ode2opt.problems.rows import Rows, evaluated, kernel_of
from ode2opt.problems.smoothness import absolute_gram_product

COMMON_OPTIONS = ("A", "b", "l2", "weights", "intercept", "offset")


class LinearModel(HasLoss, RowModel):
    """Mean loss of a linear model on the rows of ``A`` with targets ``b``.

        f(x) = 1/N sum_i w_i loss(a_i . x + offset_i, b_i) + l2/2 |x|^2

    A subclass gives the elementwise functions ``loss``, ``slope`` and ``curvature`` of the scores
    (``bend`` is an older name of the third).

    Args:
        A: N x n matrix, dense or sparse. A sparse matrix stays sparse. Words in a pandas DataFrame
            become columns of 0 and 1, after those of numbers. Of a Dask array or DataFrame
            ``ode2opt.integrations.dask.from_dask`` makes the problem, which is a
            :class:`ode2opt.Parts` then and no instance of this class.
        b: N targets, or the name of a DataFrame's column. Losses of classes take words.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.
        weights: of the rows in the mean, none negative, or the name of a DataFrame's column; one
            each by default.
        intercept: whether the last variable is added to every score; l2 leaves it alone, and no
            column is made for it.
        offset: what is added to each row's score, or the name of a DataFrame's column; nothing by
            default.

    Attributes:
        names: those of a DataFrame's columns, each word's included; else None.
        label_values: labels that were words, in the order of the numbers they have become.
        encoding: how the columns of a DataFrame became those of the matrix; else None.

    Raises:
        InputError: shapes do not fit, a number is not finite, or targets are not those of the loss.
    """

    names: Sequence[str] | None = None
    arrays: tuple[str, ...] = ("A", "b", "weights", "offset")
    makers: ClassVar[dict[str, Callable[..., RowModel]]] = {}
    """Functions that make the problem of rows which another library holds, by its name. They are
    called with the class and its arguments. ``ode2opt`` enters that of Dask."""
    _last_bend: tuple[np.ndarray, np.ndarray] | None = None

    def __new__(cls, A: Array = None, *args: Any, **options: Any) -> Any:
        """Return what the maker of the rows' library returns, where there is one."""
        maker = LinearModel.makers.get(library_of(A))
        return super().__new__(cls) if maker is None else maker(cls, A, *args, **options)

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
        offset: Array = None,
    ) -> None:
        if is_frame(A):
            header = tuple(map(str, A.columns))
            named = {"label": b, "weights": weights}
            named = {what: name for what, name in named.items() if isinstance(name, str)}
            A, (b, weights, offset) = taken_out(A, b=b, weights=weights, offset=offset)
            rows = frame_rows(A, header=header, **named).part("error").in_numbers()
            A, self.names, self.encoding = rows.A, tuple(rows.columns or ()), rows.encoding
        if has_words(b):
            b, self.label_values = counted_labels(b, type(self))
        A, squares = measured_matrix(A)
        self.l2, self.intercept = as_ridge(l2), bool(intercept)
        self.weights = None if weights is None else as_weights(weights, A)
        self.offset = None if offset is None else as_vector(offset, A, "offset", A.shape[0])
        self._set(A, as_vector(b, A, "b", A.shape[0]))
        self.data.sum_of_squares = squares
        self.check_targets()

    def _set(self, A: Array, b: Array) -> None:
        self.A, self.b = A, b
        self.N = self.rows = A.shape[0]
        self.n = self.width * (A.shape[1] + self.intercept)
        self.dtype, self.xp = b.dtype, namespace(b)
        self.data = Rows(A, self.intercept, self.xp, self.width)

    def _about(self) -> list[tuple[str, str]]:
        """Add the loss's own options, weights and offset."""
        own = [name for name in signature(type(self)).parameters if name not in COMMON_OPTIONS]
        options = [(name, getattr(self, name, None)) for name in own]
        rows = [(name, f"{v:g}") for name, v in options if isinstance(v, int | float)]
        rows += [(name, "yes") for name in ("weights", "offset") if getattr(self, name) is not None]
        if str(self.dtype).split(".")[-1] != "float64":
            rows.append(("numbers", str(self.dtype)))
        return super()._about() + rows

    @property
    def provides(self) -> frozenset[str]:
        host = {"host"} if isinstance(self.b, np.ndarray) else set[str]()
        return super().provides | {"matrix"} | host

    @cached_property
    def data(self) -> Rows:  # type: ignore[override]
        """The rows with what is known of them; made here where JAX traces the matrix."""
        return Rows(self.A, self.intercept, self.xp, self.width)

    @property
    def sparse(self) -> bool:
        return is_sparse(self.A)

    @property
    def has_kernel(self) -> bool:
        """Whether a compiled kernel evaluates the rows: there is one for the loss and matrix."""
        return kernel_of(self) is not None

    def scores(self, x: Array) -> Array:
        """Return what the losses are functions of: A x, with intercept and offset.

        Args:
            x: the point, n numbers.
        """
        z = self.data.dot(x)
        return z if self.offset is None else z + self.offset

    def _penalty(self, v: Array) -> Array:
        """Return the penalty's Hessian times v; at v = x it is its gradient."""
        own = self._penalised
        if not self.intercept:
            return self.l2 * v
        return self.xp.concat([self.l2 * v[:own], self.intercept_l2 * v[own:]])

    @property
    def _penalised(self) -> int:
        """How many variables have the penalty l2: all but the intercepts, which come last."""
        return self.n - self.width * self.intercept

    def _weighted(self, values: Array) -> Array:
        return values if self.weights is None else self.weights * values

    def value(self, x: Array) -> Array:
        return self._value(x, self._total(self.loss(self.scores(x))))

    def value_at_zero(self) -> float:
        z = 0 * self.b if self.offset is None else self.offset
        return float(self.xp.sum(self._weighted(self.loss(z)))) / self.N

    def gradient(self, x: Array) -> Array:
        if (done := evaluated(self, x)) is not None:
            return self._with_penalty(x, done[1])
        return self._gradient(x, self._slope_in_place(self.scores(x)))

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        if (done := evaluated(self, x)) is not None:
            return self._value(x, done[0]), self._with_penalty(x, done[1])
        total, slope = self._total_and_slope(self.scores(x))
        return self._value(x, total), self._gradient(x, slope)

    def _slope_in_place(self, z: Array) -> Array:
        """Return the slopes; may overwrite the scores, which the caller needs no more."""
        return self.slope(z)

    def _total_and_slope(self, z: Array) -> tuple[Array, Array]:
        """Return the weighted sum of losses, and the slopes; may overwrite the scores."""
        loss, slope = self.loss_and_slope(z)
        return self._total(loss), slope

    def _total(self, loss: Array) -> Array:
        return self.xp.sum(self._weighted(loss))

    def _value(self, x: Array, total: Array) -> Array:
        value, own = total / self.N, self._penalised
        if self.l2:
            value = value + 0.5 * self.l2 * (x[:own] @ x[:own])
        if self.intercept_l2:
            value = value + 0.5 * self.intercept_l2 * (x[own:] @ x[own:])
        return value

    def _gradient(self, x: Array, slope: Array) -> Array:
        slope = self._weighted(slope)
        slope /= self.N
        return self._with_penalty(x, self.data.tdot(slope))

    def _with_penalty(self, x: Array, g: Array) -> Array:
        """Return g with the penalty's gradient; g may be overwritten."""
        if self.l2 or self.intercept_l2:
            g += self._penalty(x)
        return g

    def hvp(self, x: Array, v: Array) -> Array:
        return self._curved(self._bend_shares(x), v)

    def _curved(self, shares: Array, v: Array) -> Array:
        """Return the Hessian times v, whose rows have these shares."""
        if (done := self.data.in_one_pass(PRODUCT, v, shares)) is not None:
            return done[1] + self._penalty(v)
        return self.data.tdot(self._bent(shares, self.data.dot(v))) + self._penalty(v)

    def _bent(self, shares: Array, s: Array) -> Array:
        """Return the second derivatives of rows, told by their shares, times changes of scores."""
        return shares * s

    def _bend_shares(self, x: Array) -> Array:
        """Return w_i bend_i / N at x.

        The last answer is kept: Hessian-vector products at one point follow each other. Those of a
        square are the same everywhere.
        """
        if self.quadratic:
            return self._as_shares(self.curvature(self.b))
        if not (isinstance(x, np.ndarray) and isinstance(self.b, np.ndarray)):
            return self._as_shares(self.curvature(self.scores(x)))
        known = self._last_bend
        if known is None or not np.array_equal(known[0], x):
            known = self._last_bend = (x.copy(), self._as_shares(self.curvature(self.scores(x))))
        return known[1]

    def _as_shares(self, bend: Array) -> Array:
        """Return the bends as shares in the mean, w_i bend_i / N."""
        return self._weighted(bend) / self.N

    def at(self, x: Array) -> Point:
        return Point(x, self.scores(x))

    def gradient_at(self, point: Point) -> Array:
        return self._gradient(point.x, self.slope(point.scores))

    def mean_hvp(self, here: Point, there: Point, v: Array) -> Array:
        scores = [(1 - tau) * here.scores + tau * there.scores for tau in SEGMENT_NODES]
        bend = 0.5 * (self.curvature(scores[0]) + self.curvature(scores[1]))
        return self._curved(self._as_shares(bend), v)

    def hessian(self, x: Array) -> Array:
        return self.hessian_of(self._bend_shares(x))

    def bends_at(self, point: Point) -> Array:
        """Return each row's share in the mean of second derivatives, w_i bend_i / N.

        Args:
            point: made by :meth:`at`.
        """
        return self._as_shares(self.curvature(point.scores))

    def hessian_of(self, bends: Array) -> Array:
        """Return the Hessian A^T diag(bends) A + l2 I, with the intercept's row and column.

        Rows whose bend is 0 are left out where these are many.

        Args:
            bends: N numbers, from :meth:`bends_at`.

        Raises:
            InputError: there are more than 5,000 variables.
        """
        self._check_hessian_size()
        return self._with_ridge(self.data.gram(bends))

    def _with_ridge(self, H: Array) -> Array:
        """Return a Hessian with that of the penalty, which may be written into it."""
        diagonal = self._penalty(self.xp.ones(self.n, dtype=H.dtype))
        if not isinstance(H, np.ndarray):
            return H + diagonal[:, None] * self.xp.eye(self.n, dtype=H.dtype)
        H.flat[:: self.n + 1] += diagonal
        return H

    def bends_bound(self) -> np.ndarray:
        """Return the largest part that each row can have in the mean of second derivatives.

        Raises:
            InputError: the loss has no ``slope_bound``.
        """
        share = self._check_slope_bound() / self.N
        if self.weights is None:
            return np.full(self.N, share)
        return share * np.asarray(detached(self.weights), dtype=np.float64)

    def hessian_bound(self) -> Array:
        return self.hessian_of(self.xp.asarray(self.bends_bound(), dtype=self.dtype))

    def gradient_rounding(self, x: Array, value: float | None = None) -> float:
        return rounding.of_linear_model(self, x, value)

    def absolute_product(self, v: np.ndarray) -> np.ndarray:
        several = v if self.width == 1 else v.reshape(-1, self.width)
        gram = absolute_gram_product(self.A, self.bends_bound(), several, self.intercept)
        return gram.reshape(-1) + self.penalties() * v

    def gradient_error(self, x: Array) -> float:
        slope = self._weighted(self.slope(self.scores(x)))
        squares = slope * slope if slope.ndim == 1 else self.xp.sum(slope * slope, axis=1)
        total = self.xp.sum(self.data.squares().T @ squares) + self.intercept * self.xp.sum(squares)
        return float(self.xp.sqrt(total)) / self.N

    def largest_bend(self, x: Array) -> float:
        return float(self.xp.max(self._bend_shares(x)))

    def _copied(self) -> Self:
        """Return a copy that shares the arrays and knows nothing of points."""
        other = copy.copy(self)
        other._last_bend = None
        vars(other).pop("_start", None)
        return other

    def subset(self, index: np.ndarray) -> LinearModel:
        chosen = self._copied()
        for name in self.arrays:
            values = getattr(self, name)
            if values is not None and values.shape[:1] == (self.N,):
                values = values[index]
                setattr(chosen, name, values if is_sparse(values) else np.asarray(values))
        chosen._set(chosen.A, chosen.b)
        return chosen

    def with_columns(self, index: np.ndarray) -> Self:
        """Return the problem of some of the columns; its intercept stays.

        Args:
            index: the columns, by number from 0.
        """
        chosen = self._copied()
        chosen._set(self.data.take_columns(index), self.b)
        return chosen

    def penalised(self, l2: float) -> Self:
        """Return the problem with another penalty; the arrays are shared.

        Args:
            l2: weight of l2/2 |x|^2, not negative.
        """
        other = self._copied()
        other.l2 = as_ridge(l2)
        return other

    def hessian_diagonal(self, x: Array) -> Array:
        return self.data.gram_diagonal(self._bend_shares(x)) + self._penalty(0 * x + 1)

    def curvature_operator(self, x: Array) -> tuple[Callable[[Array], Array], int]:
        """Work on the rows' side where rows are fewer than columns: same eigenvalue, less memory.

        With W = diag(bend)/N, A^T W A and W^1/2 A A^T W^1/2 share their non-zero eigenvalues.
        """
        if self.n <= self.N or self.intercept:
            return super().curvature_operator(x)
        root, rows = self.xp.sqrt(self._as_shares(self.curvature(self.scores(x)))), self.data
        return lambda v: root * rows.dot(rows.tdot(root * v)) + self.l2 * v, self.N

    def _gram_eigenvalue(self) -> tuple[float, int]:
        if self.weights is None and not self.intercept:
            return self.data.gram_eigenvalue()

        def on_host(v: np.ndarray) -> np.ndarray:
            return np.asarray(self.gram_product(v))

        return largest_eigenvalue(on_host, self.n, np.asarray(self.b[:1]).dtype)

    def gram_product(self, v: Array) -> Array:
        """Return A^T diag(weights) A / N times a vector, with the intercept's column of ones.

        Args:
            v: n numbers, on the problem's kind of arrays or on the host.
        """
        there = self.xp.asarray(v, dtype=self.dtype)
        return self.data.tdot(self._weighted(self.data.dot(there)) / self.N)
