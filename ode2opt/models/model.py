"""A fitted linear model: it predicts, and is written to a file and read again."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, as_matrix, as_raw_weights, refuse_masked
from ode2opt.base.display import Displayed, Listing, brief
from ode2opt.base.errors import InputError, many, shown
from ode2opt.data.encoding import TableEncoding
from ode2opt.data.frames import encoded_frame, is_frame
from ode2opt.models import model_file
from ode2opt.models.model_file import Fit, as_classes, as_targets
from ode2opt.problems.family import KINDS, kind_of
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.predicting import Prediction
from ode2opt.problems.quality import Quality, tally
from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.result import Result

PRECISIONS = ("float64", "float32")
_NO_OPTIONS = {"A", "b", "l2", "weights", "intercept", "offset", "classes"}


@dataclass(frozen=True, eq=False)
class Model(Displayed):
    """A fitted linear model: predicts for rows of the columns that it was fitted to.

    Attributes:
        problem: the loss by its name: "logistic", "softmax", "squaredhinge", "poisson",
            "leastsquares", "lpp" or "huber".
        coef: coefficients by class (or target) and column, for columns as they are in the file.
        intercept: one for each class (or target), zero where none was fitted.
        encoding: the columns: their names, words and means for missing cells, the label's name.
        classes: the labels, in the order of ``coef``; None where numbers are predicted.
        options: those of the loss, such as ``p`` and ``delta``.
        scaling: what columns were divided by in the fit; ``coef`` is without it.
        fit: how it was fitted, and how well it fits.
        precision: "float32" where the fit was in single precision.
        estimator: what a scikit-learn estimator needs to be made again.

    Examples:
        >>> model = Model.of(problem, solve(problem))
        >>> model.save("model.safetensors")
        >>> Model.load("model.safetensors").predict(A)
    """

    problem: str
    coef: np.ndarray
    intercept: np.ndarray
    encoding: TableEncoding
    classes: np.ndarray | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    scaling: np.ndarray | None = None
    fit: Fit = field(default_factory=Fit)
    precision: str = "float64"
    estimator: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_options(self.problem, self.options)
        if self.precision not in PRECISIONS:
            raise InputError(f"its precision is {shown(self.precision)}.")
        if self.coef.ndim != 2 or self.intercept.shape != self.coef.shape[:1]:
            raise InputError(
                f"its coefficients have the shape {self.coef.shape}, its intercept "
                f"{self.intercept.shape}."
            )
        self._check_classes()
        n = self.coef.shape[1]
        if self.encoding.width != n:
            raise InputError(f"it has {n} coefficients for {self.encoding.width} columns.")
        if self.scaling is not None and not (
            self.scaling.shape == (n,) and np.all(self.scaling > 0)
        ):
            raise InputError("its scaling is not one positive number a column.")

    def _check_classes(self) -> None:
        width = len(self.coef)
        if not self.prediction.classes:
            if self.classes is not None:
                raise InputError(f"it has classes, but {self.problem} predicts numbers.")
            return
        known = 0 if self.classes is None else len(self.classes)
        one, each = self.problem != "softmax", self.problem != "logistic"
        if not ((one and width == 1 and known == 2) or (each and width == known >= 2)):
            raise InputError(f"it has {known} classes and {width} rows of coefficients.")

    def __repr__(self) -> str:
        words = [self.problem, many(self.coef.shape[1], "column")]
        if self.classes is not None:
            words.append(f"classes {shown(self.classes.tolist())}")
        words += [f"{on}: {quality}" for on, quality in self.fit.quality.items()]
        return f"Model({', '.join(words)})"

    def _listing(self) -> Listing:
        rows = [("problem", self.problem), ("columns", f"{self.coef.shape[1]:,}")]
        if self.encoding.label is not None:
            rows.append(("predicts", str(self.encoding.label)))
        if self.classes is not None:
            rows.append(("classes", ", ".join(map(brief, self.classes.tolist()))))
        rows += [(name, brief(value)) for name, value in self.options.items()]
        told = {"rows": self.fit.rows, "l2": self.fit.l2, "tolerance reached": self.fit.success}
        rows += [(name, brief(value)) for name, value in told.items() if value is not None]
        rows += [(f"quality on {on}", str(quality)) for on, quality in self.fit.quality.items()]
        if len(self.coef) == 1:
            rows.append(("intercept", f"{self.intercept[0]:.4g}"))
            rows.append(("largest coefficients", self._largest()))
        return Listing("Model", rows)

    def _largest(self, most: int = 5) -> str:
        """Return the largest coefficients with the names of their columns."""
        names, coef = self.encoding.names, self.coef[0]
        first = np.argsort(-np.abs(coef), kind="stable")[:most]
        return ", ".join(f"{names[i]} {coef[i]:.4g}" for i in first)

    @classmethod
    def of(
        cls,
        problem: RowModel,
        result: Any,
        *,
        classes: Any = None,
        encoding: TableEncoding | None = None,
        scaling: np.ndarray | None = None,
        tol: float | None = None,
        quality: Mapping[str, Quality] | None = None,
        **more: Any,
    ) -> Model:
        """Return the model of a problem's solution.

        Args:
            problem: a built-in loss on rows, in one matrix or in parts.
            result: what ``solve`` returned for it.
            classes: the labels that the problem's 0, 1, ... stand for; by default the words that
                the problem was given as labels, else these numbers.
            encoding: the columns; by default those of the DataFrame that the problem was made of,
                else columns without names.
            scaling: what the columns were divided by; the coefficients are then divided, too.
            tol: the tolerance that was asked for; by default that of the result.
            quality: how well it fits, by the rows it was measured on.
            more: ``options`` as in the attributes; by default those of the problem, unless it is
                in parts.
        """
        _check_solution(problem, result)
        coef, intercept = _by_class(problem, np.asarray(result.x))
        if scaling is not None:
            coef = coef / scaling
        if isinstance(problem, LinearModel):
            names = option_names(type(problem))
            more = {"options": {name: getattr(problem, name) for name in names}} | more
        encoding = encoding or problem.encoding or TableEncoding(coef.shape[1])
        labels, (_, reached) = classes, result.measure
        if labels is None and kind_of(problem.kind.lower()).prediction.classes:
            labels = np.array(problem.label_values or range(max(2, problem.width)))
            labels = labels.astype(bool) if encoding.truths else labels
        return cls(
            problem=problem.kind.lower(),
            coef=coef.astype(np.float64),
            intercept=intercept.astype(np.float64),
            classes=None if labels is None else as_classes(labels),
            encoding=encoding,
            scaling=scaling,
            fit=Fit(
                rows=problem.N,
                l2=problem.l2,
                tol=result.tol if tol is None else tol,
                grad_norm=reached if math.isfinite(reached) else None,
                success=result.success,
                quality=dict(quality or {}),
            ),
            precision=str(np.dtype(coef.dtype)),
            **more,
        )

    @property
    def prediction(self) -> Prediction:
        """How scores are read."""
        return KINDS[self.problem].prediction

    def scores(self, A: Array) -> np.ndarray:
        """Return A times the coefficients plus the intercept: N numbers, or N for each class.

        Args:
            A: rows with the model's columns in their order, dense or sparse. Those of a frame are
                found by name, and words are taken; a model without names takes them by position.
        """
        n, nameless = self.coef.shape[1], hasattr(A, "columns") and not self.encoding.columns
        A = as_matrix(self._by_name(A))
        if A.shape[1] != n:
            why = ": it has no names of columns, and takes them by position" * nameless
            raise InputError(f"The rows have {A.shape[1]} columns, the model {n}{why}.")
        found = np.asarray(A @ self.coef.T) + self.intercept
        return found[:, 0] if len(self.coef) == 1 else found

    def _by_name(self, A: Array) -> Array:
        """Return the columns of a frame in the model's order; other rows as they are."""
        if not hasattr(A, "columns") or not self.encoding.columns:
            return A
        if is_frame(A):
            return encoded_frame(A, self.encoding)
        found = {str(name): name for name in A.columns}
        lacking = [name for name in self.encoding.names if name not in found]
        if lacking:
            raise InputError(f"The rows have no column {shown(lacking[0])}, which the model needs.")
        return A[[found[name] for name in self.encoding.names]].to_numpy()

    def predict(self, A: Array) -> np.ndarray:
        """Return the class of each row, as its label; for counts the means, else the scores.

        Args:
            A: rows: a matrix, or a data frame with the model's columns by name.
        """
        scores = self.scores(A)
        if self.classes is None:
            return self.prediction.numbers(scores)
        return self.classes[self.prediction.chosen(scores)]

    def predict_proba(self, A: Array) -> np.ndarray:
        """Return the probabilities of classes, one column for each; logistic and softmax only.

        Args:
            A: rows: a matrix, or a data frame with the model's columns by name.
        """
        if self.prediction.probabilities is None:
            raise InputError(
                f"A model of {self.problem} has no probabilities: logistic and softmax have."
            )
        return self.prediction.probabilities(self.scores(A))

    def quality(self, A: Array, labels: Array, weights: Array = None) -> Quality:
        """Return how well the model predicts rows.

        Args:
            A: the rows.
            labels: of the rows: classes as in ``classes``, else numbers.
            weights: of the rows; one each by default.
        """
        refuse_masked(labels, "labels")
        scores, found = self.scores(A), np.asarray(labels)
        if self.classes is None and len(self.coef) > 1:
            raise InputError(f"The model has {len(self.coef)} targets: quality is for one.")
        if found.shape != scores.shape[:1]:
            raise InputError(
                f"The labels have the shape {found.shape} for {many(len(scores), 'row')}: each row "
                f"needs one."
            )
        if weights is not None:
            weights = as_raw_weights(weights, np.empty(len(scores)))
        return tally(self.prediction, scores, as_targets(found, self.classes), weights).quality()

    def coefficients(self) -> dict[str, Any]:
        """Return names and numbers for JSON: columns, intercept, coefficients, classes.

        Of a model with scores for each class, ``intercept`` and ``coefficients`` have an entry for
        each. Columns without a name are called by their numbers, from 0.
        """
        single = len(self.coef) == 1
        return {
            "columns": self.encoding.names,
            "intercept": float(self.intercept[0]) if single else self.intercept.tolist(),
            "coefficients": self.coef[0].tolist() if single else self.coef.tolist(),
            "classes": None if self.classes is None else self.classes.tolist(),
        }

    def save(self, path: str | Path) -> None:
        """Write the file; a crash or a full disk leaves what was there.

        Args:
            path: the file, which ends in .safetensors.
        """
        model_file.write(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a file written by :meth:`save`; every field is checked, nothing is executed.

        Args:
            path: the file.
        """
        return model_file.read(path, cls)


def _check_options(problem: str, options: Mapping[str, Any]) -> None:
    """Refuse an unknown loss, and options that it does not take."""
    kind: type[LinearModel] = kind_of(str(problem))
    for name in options:
        if name not in option_names(kind):
            raise InputError(f"{problem} has no option {shown(name)}.")
    kind(np.zeros((1, 1)), np.zeros(1), **options)  # which checks their values


def _check_solution(problem: Any, result: Any) -> None:
    """Refuse what is no loss on rows, no result of a solve, or a result of another problem."""
    if not isinstance(problem, RowModel):
        raise InputError(
            f"A model is made of a loss on rows, such as Logistic, not of {type(problem).__name__}."
        )
    if not isinstance(result, Result):
        raise InputError(
            f"A model is made of what solve(problem) returned, not of {type(result).__name__}."
        )
    if np.shape(result.x) != (problem.n,):
        raise InputError(
            f"The result has {many(np.size(result.x), 'variable')}, the problem {problem.n}: it is "
            f"of another one."
        )


def _by_class(problem: RowModel, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a solution's coefficients by class and column, and its intercepts."""
    by_column = x.reshape(-1, problem.width)
    if problem.intercept:
        return by_column[:-1].T.copy(), by_column[-1].copy()
    return by_column.T.copy(), np.zeros(problem.width, dtype=x.dtype)


def option_names(kind: type[LinearModel]) -> set[str]:
    """Return the names of a loss's own options."""
    return set(inspect.signature(kind.__init__).parameters) - _NO_OPTIONS - {"self"}
