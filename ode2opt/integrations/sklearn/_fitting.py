"""What the estimators share: the solver, the memory, what is warned of and refused."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, validate_data

from ode2opt.base.arrays import Array, epsilon, is_dask, refuse_masked
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.storage import check_folder_of
from ode2opt.integrations.sklearn._in_parts import lazily, rows_in_parts
from ode2opt.integrations.sklearn._saving import Saving
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.solvers import METHODS, Memory, Method, Result, solve
from ode2opt.solvers.methods import SUFFIX, learned_names

THEIRS = (
    "cholesky", "liblinear", "lsqr", "newton-cg", "newton-cholesky", "sag", "saga", "sparse_cg",
    "svd",
)  # fmt: skip
"""Solvers of scikit-learn's that are not here: "auto" runs instead, and finds the minimiser."""
MOST = float(np.finfo(np.float32).max) ** 0.75
"""The largest weight of a penalty: single precision holds it, times a coefficient or a row."""
FLOATS = (np.float64, np.float32)
Solver = str | os.PathLike[str] | Method
Memories = Memory | str | os.PathLike[str] | None


@dataclass(eq=False, repr=False, kw_only=True)
class Fitting(Saving):
    """Base of all estimators: the parameters that all have, and one way to minimise."""

    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: Any = 100  # None is no limit, where the namesake takes it
    solver: Solver = "auto"
    memory: ClassVar[Any] = None  # a parameter of those that are :class:`Remembering`
    _came_to_worker = False  # from another process, with a copy of its memory
    _warned = False  # of that, in this process
    _dask_lacks: ClassVar[str | None] = None  # why Dask's arrays are refused, where they are
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "solver": [str, os.PathLike, Method],
        "memory": [Memory, str, os.PathLike, None],
    }

    def __init_subclass__(cls, **options: Any) -> None:
        """Let scikit-learn check the namesake's parameters, and ours."""
        super().__init_subclass__(**options)
        above = [vars(kind).get("_parameter_constraints", {}) for kind in reversed(cls.__mro__)]
        cls._parameter_constraints = {k: v for known in above for k, v in known.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take note that this estimator was sent from another process."""
        super().__setstate__(state)  # type: ignore[misc]
        if multiprocessing.parent_process() is not None:
            self._came_to_worker = True

    def __sklearn_clone__(self) -> Any:
        """Clones share the memory: it is there to be learned from by several fits."""
        cloned = super().__sklearn_clone__()  # type: ignore[misc]
        if self.memory is not None:
            cloned.memory = self.memory
        if self._came_to_worker:
            cloned._came_to_worker = True
        return cloned

    def _warn_of_copies(self) -> None:
        """Warn, once a process, where what a fit learns stays in a worker process."""
        if self._came_to_worker and isinstance(self.memory, Memory) and not Fitting._warned:
            Fitting._warned = True  # scikit-learn sets the filters of warnings anew for each fit
            warnings.warn(
                "This fit runs in a worker process (n_jobs) with a copy of its memory: what it "
                "learns is not shared with other fits. Give memory='FILE', which processes share, "
                "or n_jobs=1.",
                UserWarning,
                stacklevel=2,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.array_api_support = False  # rows are NumPy's or SciPy's
        return tags

    @abstractmethod
    def fit(self, X: Array, y: Array, sample_weight: Array = None) -> Any:
        """Fit to rows.

        Args:
            X: the rows: an array, a SciPy sparse matrix or a data frame; Dask's arrays and frames
                for all but HuberRegressor and LogisticRegressionCV.
            y: the label of each row, its target (for Ridge also several columns of them), or its
                count.
            sample_weight: the weight of each row, not negative; 1 by default.

        Returns:
            self.
        """

    def predict(self, X: Array) -> Array:
        """Predict for rows.

        Args:
            X: the rows; for Dask's array or frame the result is computed when it is asked for.
        """
        return self._for_rows("predict", super().predict, X)  # type: ignore[misc]

    def score(self, X: Array, y: Array, sample_weight: Array = None) -> float:
        """Return how well rows are predicted: accuracy of classes, else R^2.

        Args:
            X: the rows.
            y: their labels or targets.
            sample_weight: the weight of each row; 1 by default.
        """
        refuse_masked_targets(y, sample_weight)
        found: float = super().score(X, y, sample_weight=sample_weight)  # type: ignore[misc]
        return found

    def _for_rows(self, name: str, method: Callable[[Array], Array], X: Array) -> Array:
        refuse_repeated_columns(X)
        refuse_masked(X, "X")
        return lazily(self, name, X) if is_dask(X) else method(X)

    def set_callbacks(self, *callbacks: Any) -> None:
        """Refuse scikit-learn's callbacks: no fit of ours would call them."""
        raise InputError(
            f"{type(self).__name__} of ode2opt does not call scikit-learn's callbacks."
        )

    def _minimise(
        self,
        problem: Problem,
        x0: Array = None,
        *,
        tol: float | None = None,
        spent: int = 0,
        penalty: Penalty | None = None,
    ) -> Result:
        """Solve from ``x0``, by default as the method starts, and warn where ``tol`` was not met.

        ``spent`` iterations have been taken already: they are counted with those that follow.
        A fit depends on its own rows: no point that a memory or a learned method has seen is its
        start.
        """
        self._warn_of_copies()
        tol = float(self.tol) if tol is None else tol
        with _opened(self.memory) as memory:
            result = solve(
                problem,
                x0,
                method=_chosen(self.solver) if penalty is None else self._penalised_solver(),
                penalty=penalty,
                memory=memory,
                start_from_memory=memory is None,
                tol=reachable(tol, problem),
                max_iter=self._most_iterations() - spent,
            )
        if spent:
            result = replace(result, iterations=spent + result.iterations)
        return self._report_fit(result, tol)

    def _most_iterations(self, without_limit: int = 100_000) -> int:
        """Return ``max_iter`` as a number."""
        return without_limit if self.max_iter is None else self.max_iter

    def _penalised_solver(self) -> str | Method:
        """Return the method of a fit with a penalty that is not smooth, or with limits."""
        return _chosen(self.solver)

    def _is_auto(self) -> bool:
        """Whether the way to solve is ours to choose: the solver "auto", without a memory."""
        chosen = _chosen(self.solver)
        return isinstance(chosen, str) and chosen == "auto" and self.memory is None

    def _solve_quietly(self, problem: Problem, x0: Array, *, tol: float, max_iter: int) -> Result:
        """Solve a problem that leads to another, without a memory and without warnings."""
        tol = reachable(tol, problem)
        return solve(problem, x0, method=_chosen(self.solver), tol=tol, max_iter=max_iter)

    def _set_coefficients(self, fits: list[np.ndarray], dtype: Any, targets: int = 1) -> None:
        """Set ``coef_`` and ``intercept_`` from the variables of each target's fit.

        ``targets`` is the number of dimensions that the targets have.
        """
        whole = np.stack(fits).astype(dtype, copy=False)
        coef, intercept = without_intercept(whole, self.fit_intercept)
        self.coef_: Any = coef[0] if len(fits) == 1 else coef
        self.intercept_: Any = 0.0
        if self.fit_intercept:
            self.intercept_ = intercept[0] if targets == 1 else intercept

    def _report_fit(self, result: Result, tol: float) -> Result:
        """Print how a fit went if asked to, and warn where the tolerance was not met."""
        name, (measure, size) = type(self).__name__, result.measure
        if getattr(self, "verbose", 0):
            print(
                f"[{name}] {result.method}: {result.iterations} iterations, {measure} "
                f"{size:.2e}, {result.seconds:.2g} s"
            )
        if self.max_iter == 0:
            warnings.warn(
                f"{name} was given max_iter=0: the coefficients are those it started with.",
                ConvergenceWarning,
                stacklevel=5,
            )
        elif not result.success:
            warnings.warn(
                f"{name} did not converge: {result.message} The {measure} is "
                f"{size:.2e} after {result.iterations} iterations, tol is {tol:g}; "
                f"raise max_iter, or scale the columns.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return result


@dataclass(eq=False, repr=False, kw_only=True)
class Remembering(Fitting):
    """Base of the estimators that take a memory as a parameter: all of it is smooth there."""

    memory: Memories = None  # type: ignore[misc]


@contextmanager
def _opened(memory: Memories) -> Iterator[Memory | None]:
    """Give a fit the memory of a file, and add what the fit has learned to the file."""
    if memory is None or isinstance(memory, Memory):
        yield memory
        return
    file = Path(memory)
    check_folder_of(file)
    opened = Memory.load(file) if file.exists() else Memory()
    yield opened
    opened.update_file(file)


def reachable(tol: float, problem: Problem) -> float:
    """Return a tolerance that the problem's precision can reach."""
    return max(tol, epsilon(problem.xp, problem.dtype))


def _chosen(solver: Solver) -> str | Method:
    """Return a method from what ``solver`` may be: a name, a method, its file as a ``Path``.

    A string is a name only, so that no file is opened that merely has that name. A name that only
    scikit-learn has is "auto". A learned start is left out: other rows have led there.
    """
    if isinstance(solver, Method):
        return solver.replace(start=None) if solver.start_rule == "learned" else solver
    if not isinstance(solver, str):
        return _chosen(Method.load(Path(solver)))
    if solver in METHODS or solver in learned_names():
        return solver
    if solver in THEIRS:
        return "auto"
    if Path(solver).suffix == SUFFIX:
        raise InputError(
            f"The solver {solver!r} is a string, which is taken as a name: for the method in that "
            f"file use solver=pathlib.Path({solver!r})."
        )
    raise unknown_name("solver", solver, [*METHODS, *learned_names()])


def validated(estimator: Any, X: Array, y: Array, **options: Any) -> tuple[Array, np.ndarray]:
    """Return rows and targets as scikit-learn checks them, as NumPy arrays or SciPy's CSR."""
    refuse_repeated_columns(X)
    refuse_masked(X, "X")
    refuse_masked(y, "y")
    return validate_data(estimator, X, y, accept_sparse="csr", dtype=FLOATS, **options)


def refuse_repeated_columns(X: Array) -> None:
    """Refuse a data frame in which two columns have the same name."""
    counts = Counter(map(str, getattr(X, "columns", ())))
    repeated = [f"{name!r} ({count} times)" for name, count in counts.items() if count > 1]
    if repeated:
        raise InputError(
            f"Columns must have names of their own, but these are repeated: {', '.join(repeated)}; "
            f"rename them, or give X.to_numpy()."
        )


def refuse_masked_targets(y: Array, sample_weight: Array) -> None:
    """Refuse targets or weights that are masked arrays."""
    refuse_masked(y, "y")
    refuse_masked(sample_weight, "sample_weight")


def regression_rows(
    estimator: Any, X: Array, y: Array, sample_weight: Array, several: bool = False
) -> tuple[Array, np.ndarray, np.ndarray | None]:
    """Return rows, targets that are numbers (``several``: or columns of them), and weights."""
    if is_dask(X):
        return rows_in_parts(estimator, X, y, sample_weight)
    X, y = validated(estimator, X, y, multi_output=several, y_numeric=True)
    return X, y.astype(X.dtype, copy=False), row_weights(sample_weight, X)


def row_weights(sample_weight: Array, X: Array) -> np.ndarray | None:
    """Return the weights of rows as an array, None where all are one."""
    if sample_weight is None:
        return None
    refuse_masked(sample_weight, "sample_weight")
    return np.asarray(
        _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    )


def product(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return the product of two weights of each row; None stands for ones."""
    if one is None or other is None:
        return other if one is None else one
    return one * other


def total_weight(weights: np.ndarray | None, X: Array) -> float:
    """Return the sum of the weights of all rows."""
    return float(X.shape[0] if weights is None else weights.sum(dtype=np.float64))


def inverse_weight(C: float, total: float) -> float:
    """Return 1 / (C W): the l2 of the mean loss that is C for the sum."""
    return quotient(quotient(1.0, C), total)


def quotient(number: float, by: float) -> float:
    """Return a quotient as the weight of a penalty, cut where it would overflow.

    Coefficients are zero to rounding long before that.
    """
    found = number / by if number < MOST * by else MOST
    return min(found, MOST)


def without_intercept(x: np.ndarray, fitted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and intercepts from rows of variables."""
    if fitted:
        return x[..., :-1].copy(), x[..., -1].copy()
    return x, np.zeros(x.shape[:-1], dtype=x.dtype)
