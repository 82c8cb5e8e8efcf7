"""Multinomial logistic regression: a linear model with a score for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, Namespace, as_count, namespace
from ode2opt.base.errors import InputError
from ode2opt.kernels.row_loss import Loss
from ode2opt.problems.base import SEGMENT_NODES, Point
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.predicting import MANY_CLASSES


def _largest(xp: Namespace, z: Array) -> Array:
    """Return the largest entry of each row; NumPy is several times as quick along columns."""
    return np.max(z.T.copy(), axis=0) if isinstance(z, np.ndarray) else xp.max(z, axis=1)


def _over_classes(values: Array) -> Array:
    """Return the sum of each row; a product is several times quicker than a sum of few."""
    return values @ namespace(values).ones(values.shape[1], dtype=values.dtype)


def _normalised(z: Array) -> tuple[Array, Array]:
    """Return probabilities, and the logarithm of the sum of exponentials, row by row."""
    xp = namespace(z)
    top = _largest(xp, z)
    e = xp.exp(z - top[:, None])
    total = _over_classes(e)
    e /= total[:, None]
    return e, xp.log(total) + top


def _loss_and_slope(z: Array, chosen: Array) -> tuple[Array, Array]:
    p, total = _normalised(z)
    p -= chosen
    return total - _over_classes(chosen * z), p


SOFTMAX = Loss(
    lambda z, chosen: _normalised(z)[1] - _over_classes(chosen * z),
    lambda z, chosen: _normalised(z)[0] - chosen,
    lambda z, chosen: _normalised(z)[0],
    _loss_and_slope,
    curvature_bound=0.5,  # of diag(p) - p pᵀ
    lower_bound=0.0,
    compiled="softmax",
)
"""log(sum_k exp(z_k)) - z_b, of which ``chosen`` has 1 for b; its curvature is told by the
probabilities p, as diag(p) - p pᵀ."""


class Softmax(LinearModel):
    """Multinomial logistic regression: loss = log(sum_k exp(z_k)) - z_b for a class b of 0 ... K-1.

    The variables are the coefficients of the columns one after the other, K numbers each, then K
    intercepts; every class has its own, so that adding the same to all of them changes nothing
    but the penalty. With p the probabilities of a row, the Hessian of its loss by the scores is
    diag(p) - p pᵀ.

    Args:
        A: as in :class:`LinearModel`.
        b: N classes, counted from 0, or words.
        classes: how many there are, at least 2; as many as b has by default.
        l2: weight of l2/2 |x|^2, not negative; 0 by default.
        weights: of the rows, none negative; one each by default.
        intercept: whether each class has an intercept, which l2 leaves alone.

    Raises:
        InputError: a label is no whole number from 0 to K - 1, or as for :class:`LinearModel`.

    Examples:
        >>> problem = Softmax(A, b, l2=1e-3, intercept=True)
        >>> coefficients = solve(problem).x.reshape(-1, problem.classes)
    """

    counted = True
    prediction = MANY_CLASSES
    row_loss = SOFTMAX
    _one_hot: Array = None

    def __init__(
        self,
        A: Array,
        b: Array,
        *,
        classes: int | None = None,
        l2: float = 0.0,
        weights: Array = None,
        intercept: bool = False,
    ) -> None:
        self.classes = 0 if classes is None else as_count(classes, "classes", least=2)
        super().__init__(A, b, l2=l2, weights=weights, intercept=intercept)

    def _set(self, A: Array, b: Array) -> None:
        self.classes = self.width = self.classes or max(2, int(namespace(b).max(b)) + 1)
        super()._set(A, b)
        self._one_hot = None
        self._one_hot = self.targets

    @property
    def targets(self) -> Array:
        """The labels as N x K numbers, 1 for a row's class; made once unless JAX traces b."""
        if self._one_hot is not None:
            return self._one_hot
        kinds = self.xp.arange(self.classes, dtype=self.b.dtype)
        return self.xp.astype(self.b[:, None] == kinds[None, :], self.b.dtype)

    @classmethod
    def agreed(cls, options: dict[str, Any], top: float) -> dict[str, Any]:
        """Return the options with the number of classes in all parts, where none was given."""
        return options | {"classes": options.get("classes") or max(2, int(top) + 1)}

    def check_targets(self) -> None:
        xp = self.xp
        if bool(xp.any((self.b != xp.round(self.b)) | (self.b < 0) | (self.b >= self.classes))):
            raise InputError(
                f"Softmax labels must be whole numbers from 0 to {self.classes - 1}, one for each "
                f"class."
            )

    def _weighted(self, values: Array) -> Array:
        if self.weights is None:
            return values
        return (self.weights if values.ndim == 1 else self.weights[:, None]) * values

    def value_at_zero(self) -> float:
        return float(np.log(self.classes))

    def _as_shares(self, bend: Array) -> Array:
        return bend  # quadratic in them: weights come with the product

    def _bent(self, p: Array, s: Array) -> Array:
        """Return w_i (diag(p_i) - p_i p_iᵀ) s_i / N for each row i."""
        inner = _over_classes(p * s)
        return self._weighted(p * (s - inner[:, None])) / self.N

    def mean_hvp(self, here: Point, there: Point, v: Array) -> Array:
        s = self.data.dot(v)
        scores = [(1 - tau) * here.scores + tau * there.scores for tau in SEGMENT_NODES]
        products = [self._bent(self.curvature(z), s) for z in scores]
        return self.data.tdot(0.5 * (products[0] + products[1])) + self._penalty(v)

    def hessian(self, x: Array) -> Array:
        """Return the Hessian, formed by pairs of classes."""
        self._check_hessian_size()
        p, K = self._bend_shares(x), self.classes
        blocks: list[list[Array]] = [[None] * K for _ in range(K)]
        for k in range(K):
            for j in range(k + 1):
                bent = p[:, k] * (1 - p[:, k] if k == j else p[:, j])  # the quick way for A^T W A
                block = self.data.gram(self._weighted(bent) / self.N)  # needs W >= 0
                blocks[k][j] = blocks[j][k] = block if k == j else -block
        whole = self.xp.stack([self.xp.stack(row) for row in blocks])  # K, K, columns, columns
        H = self.xp.reshape(self.xp.permute_dims(whole, (2, 0, 3, 1)), (self.n, self.n))
        return self._with_ridge(H)

    def hessian_bound(self) -> Array:
        """Return the bound of Boehning (1992): diag(p) - p pᵀ <= (I - 1 1ᵀ / K) / 2."""
        self._check_hessian_size()
        columns = self.data.gram(self.xp.asarray(self.bends_bound(), dtype=self.dtype))
        classes = self.xp.eye(self.classes, dtype=self.dtype) - 1 / self.classes
        pairs = columns[:, None, :, None] * classes[None, :, None, :]
        return self._with_ridge(self.xp.reshape(pairs, (self.n, self.n)))

    def class_hessians(self, x: Array, each: bool = True) -> Array:
        p = self._bend_shares(x)
        own = p * (1 - p)
        columns = own.T if each else self.xp.mean(own, axis=1)[None, :]
        blocks = [self.data.gram(self._weighted(bent) / self.N) for bent in columns]
        penalty = self._penalty(0 * x + 1)[:: self.classes]
        return self.xp.stack(blocks) + penalty[:, None] * self.xp.eye(len(penalty), dtype=x.dtype)

    def hessian_diagonal(self, x: Array) -> Array:
        p = self._bend_shares(x)
        shares = self._weighted(p * (1 - p)) / self.N
        return self.data.gram_diagonal(shares) + self._penalty(0 * x + 1)

    def largest_bend(self, x: Array) -> float:
        p = self._bend_shares(x)
        return float(self.xp.max(self._weighted(p * (1 - p)))) / self.N

    def curvature_operator(self, x: Array) -> tuple[Callable[[Array], Array], int]:
        return lambda v: self.hvp(x, v), self.n
