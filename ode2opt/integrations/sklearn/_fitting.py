"""What the estimators have in common: the solver, the memory, what is warned of and refused."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight

from ode2opt.errors import InputError, unknown_name
from ode2opt.integrations.sklearn._in_parts import lazily
from ode2opt.problems._arrays import Array, epsilon, is_dask
from ode2opt.problems.base import Problem
from ode2opt.solvers import METHODS, Memory, Method, Result, solve
from ode2opt.solvers.library import learned_names

THEIRS = ("liblinear", "newton-cg", "newton-cholesky", "sag", "saga")
"""Solvers of scikit-learn's that are not here."""
FLOATS = (np.float64, np.float32)


class Fitting:
    """Mixin of all estimators: ``solver``, ``memory`` and one way to minimise."""

    solver: str | os.PathLike[str] | Method
    memory: Memory | None
    _dask_lacks: ClassVar[str | None] = None  # why Dask's arrays are refused, where they are
    _own_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [str, os.PathLike, Method],
        "memory": [Memory, None],
    }

    def __sklearn_clone__(self) -> Any:
        """Clones share the memory: it is there to be learned from by several fits."""
        cloned = super().__sklearn_clone__()  # type: ignore[misc]
        cloned.memory = self.memory
        return cloned

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False  # rows are NumPy's or SciPy's
        return tags

    def predict(self, X: Array) -> Array:
        """Predict for rows ``X``; for those of a Dask array or frame when it is computed."""
        return self._for_rows("predict", super().predict, X)  # type: ignore[misc]

    def _for_rows(self, name: str, method: Callable[[Array], Array], X: Array) -> Array:
        return lazily(self, name, X) if is_dask(X) else method(X)

    def set_callbacks(self, *callbacks: Any) -> None:
        """Refuse scikit-learn's callbacks: no fit of ours would call them."""
        raise InputError(
            f"{type(self).__name__} of ode2opt does not call scikit-learn's callbacks."
        )

    def _minimise(
        self, problem: Problem, x0: Array = None, *, tol: float, max_iter: int, verbose: int = 0
    ) -> Result:
        """Solve, and warn where the tolerance was not met."""
        result = solve(
            problem,
            x0,
            method=_chosen(self.solver),
            memory=self.memory,
            tol=reachable(tol, problem),
            max_iter=max_iter,
        )
        return self._told(result, tol, verbose)

    def _told(self, result: Result, tol: float, verbose: int) -> Result:
        """Say how a fit went, and warn where the tolerance was not met."""
        name = type(self).__name__
        if verbose:
            print(
                f"[{name}] {result.method}: {result.iterations} iterations, gradient norm "
                f"{result.grad_norm:.2e}, {result.seconds:.2g} s"
            )
        if not result.success:
            warnings.warn(
                f"{name} did not converge: {result.message} The gradient norm is "
                f"{result.grad_norm:.2e} after {result.iterations} iterations, tol is {tol:g}; "
                f"raise max_iter, or scale the columns.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return result


def reachable(tol: float, problem: Problem) -> float:
    """Return a tolerance that the problem's precision can reach."""
    return max(tol, epsilon(problem.xp, problem.dtype))


def _chosen(solver: str | os.PathLike[str] | Method) -> str | Method:
    """Return a method from what ``solver`` may be: a name, a method, its file."""
    if isinstance(solver, Method) or solver in METHODS:
        return solver
    if solver in THEIRS:
        raise InputError(
            f"The solver '{solver}' is scikit-learn's alone: leave it out, or take one of "
            f"{', '.join(METHODS)}."
        )
    if Path(solver).suffix or Path(solver).exists():
        return Method.load(Path(solver))
    if solver in learned_names():
        return str(solver)
    raise unknown_name("solver", str(solver), [*METHODS, *learned_names()])


def row_weights(sample_weight: Array, X: Array) -> np.ndarray | None:
    """Return the rows' weights, None where all are one."""
    if sample_weight is None:
        return None
    return np.asarray(
        _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    )


def product(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return the product of weights, None being ones."""
    if one is None or other is None:
        return other if one is None else one
    return one * other


def total_weight(weights: np.ndarray | None, X: Array) -> float:
    """Return the sum of the rows' weights."""
    return float(X.shape[0] if weights is None else weights.sum(dtype=np.float64))


def inverse_weight(C: float, total: float) -> float:
    """Return the l2 of the mean loss that C is for the sum: 1 / (C times the sum of weights)."""
    return 1.0 / (C * total)


def without_intercept(x: np.ndarray, fitted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and intercept of rows of variables, zero where none was fitted."""
    if fitted:
        return x[..., :-1].copy(), x[..., -1].copy()
    return x, np.zeros(x.shape[:-1], dtype=x.dtype)
