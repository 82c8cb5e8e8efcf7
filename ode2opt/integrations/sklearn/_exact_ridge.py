"""Ridge regression by one factorisation: dense rows that are fewer than columns, or no penalty.

With centred rows X and targets y, each times the root of its weight, the coefficients are
X^T (X X^T + alpha I)^-1 y; as alpha goes to 0 they go to the solution of smallest norm, which
singular values give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class FactorisedSizes:
    """Up to which size a ridge regression is solved by one factorisation.

    Attributes:
        entries: of a matrix that is copied.
        gram_rows: of a Gram matrix that is factorised.
        singular_side: rows or columns, whichever are fewer, of a matrix with singular values.
        least_alpha: by the mean of the squared singular values: below this they are needed.
    """

    entries: int = 20_000_000
    gram_rows: int = 3_000
    singular_side: int = 1_000
    least_alpha: float = 1e-9


SIZES = FactorisedSizes()


class ExactRidge:
    """Dense rows, ready to be solved for several targets and penalties."""

    def __init__(self, X: np.ndarray, weights: np.ndarray | None, intercept: bool) -> None:
        self.intercept = intercept
        self.weights = np.ones(len(X)) if weights is None else np.asarray(weights, np.float64)
        self.middle = self._mean(X) if intercept else np.zeros(X.shape[1])
        self.rows = np.sqrt(self.weights)[:, None] * (X - self.middle)

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return np.average(np.asarray(values, np.float64), axis=0, weights=self.weights)

    @cached_property
    def _gram(self) -> np.ndarray:
        return self.rows @ self.rows.T

    @cached_property
    def _singular(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        from scipy.linalg import svd

        return svd(self.rows, full_matrices=False)

    def variables(self, y: np.ndarray, alpha: float) -> np.ndarray | None:
        """Return coefficients, then an intercept if there is one; None where that is too
        expensive.
        """
        middle = self._mean(y) if self.intercept else 0.0
        coef = self._coefficients(np.sqrt(self.weights) * (y - middle), alpha)
        if coef is None or not self.intercept:
            return coef
        return np.append(coef, middle - self.middle @ coef)

    def _coefficients(self, y: np.ndarray, alpha: float) -> np.ndarray | None:
        N, n = self.rows.shape
        small = alpha <= SIZES.least_alpha * float(np.vdot(self.rows, self.rows)) / min(N, n)
        if small:
            return self._by_singular_values(y, alpha) if min(N, n) <= SIZES.singular_side else None
        if n < N or N > SIZES.gram_rows:
            return None
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        try:
            factor = cho_factor(self._gram + alpha * np.eye(N), check_finite=False)
        except LinAlgError:
            return None
        return self.rows.T @ cho_solve(factor, y, check_finite=False)

    def _by_singular_values(self, y: np.ndarray, alpha: float) -> np.ndarray:
        U, s, V = self._singular
        least = max(self.rows.shape) * np.finfo(np.float64).eps * s.max(initial=0.0)
        seen = s > least
        return V[seen].T @ (s[seen] / (s[seen] ** 2 + alpha) * (U[:, seen].T @ y))


def exact_ridge(X: object, weights: np.ndarray | None, intercept: bool) -> ExactRidge | None:
    """Prepare rows for a solution by factorisation; None where they are sparse or too many."""
    if not isinstance(X, np.ndarray) or X.size > SIZES.entries:
        return None
    return ExactRidge(X, weights, intercept)
