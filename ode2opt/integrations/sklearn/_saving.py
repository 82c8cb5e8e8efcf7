"""Estimators in model files: ``save`` and ``load``, without pickle."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ode2opt.base.errors import InputError, shown, unknown_name
from ode2opt.base.schema import read
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.models.model import Model

ATTRIBUTES = ("n_iter_", "scale_", "C_", "l1_ratio_", "solver_", "alpha_", "dual_gap_")
"""What is kept of a fit beside coefficients, classes and the columns' names."""
NOT_KEPT = ("memory",)
"""Parameters that no file decides: a fit would write to the file of a memory."""


class Saving:
    """Mixin of all estimators: a fitted one is written to a model file and read again."""

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a model file, which ``ode2opt predict`` takes, too.

        Kept are what predictions need (coefficients, classes, the columns' names) and parameters
        that are numbers, texts, lists or dictionaries. Others (a memory, a method, a splitter, a
        random state) are the default ones after ``load``.

        Args:
            path: the file, such as ``model.safetensors``.

        Examples:
            >>> from ode2opt.integrations.sklearn import LogisticRegression
            >>> LogisticRegression().fit(X, y).save("model.safetensors")
            >>> LogisticRegression.load("model.safetensors").predict(X)
        """
        model_of(self).save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the estimator that :meth:`save` wrote; every field of the file is checked.

        Args:
            path: the file, of an estimator of this class.

        Examples:
            >>> from ode2opt.integrations.sklearn import Ridge
            >>> Ridge().fit(X, y).save("model.safetensors")
            >>> Ridge.load("model.safetensors").predict(X)
        """
        model = Model.load(path)
        saved = _saved(model, path)
        if saved.name != cls.__name__:
            raise InputError(
                f"{path} holds a {shown(saved.name)[1:-1]}, not a {cls.__name__}: use "
                f"ode2opt.integrations.sklearn.load."
            )
        try:
            return _restored(cls, model, saved)
        except InputError as error:
            raise InputError(f"{path} is no valid estimator: {error}") from None


@dataclass(frozen=True)
class _Saved:
    """What a model file stores of an estimator in addition to the model."""

    name: str
    parameters: dict[str, Any]
    attributes: dict[str, Any]
    flat_coef: bool
    flat_intercept: bool


def load_as(path: str | Path, classes: list[Any]) -> Any:
    """Return the estimator of a model file, of whichever of the classes it is."""
    name = _saved(Model.load(path), path).name
    known = {cls.__name__: cls for cls in classes}
    if name not in known:
        raise unknown_name("estimator", name, known)
    return known[name].load(path)


def model_of(estimator: Any) -> Model:
    """Return the model of a fitted estimator."""
    check_is_fitted(estimator)
    coef = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else estimator.coef_
    coef, intercept = np.asarray(coef), np.asarray(estimator.intercept_)
    rows = np.atleast_2d(coef)
    saved = _Saved(
        name=type(estimator).__name__,
        parameters=_plain_ones(
            {k: v for k, v in estimator.get_params(deep=False).items() if k not in NOT_KEPT}
        ),
        attributes=_plain_ones(
            {name: getattr(estimator, name) for name in ATTRIBUTES if hasattr(estimator, name)}
        ),
        flat_coef=coef.ndim == 1,
        flat_intercept=intercept.ndim == 0,
    )
    problem, options = _loss_of(estimator)
    return Model(
        problem=problem,
        coef=rows.astype(np.float64),
        intercept=np.broadcast_to(intercept, (len(rows),)).astype(np.float64),
        encoding=_encoding(estimator, rows.shape[1]),
        classes=getattr(estimator, "classes_", None),
        options=options,
        precision=str(coef.dtype),
        estimator=asdict(saved),
    )


def _encoding(estimator: Any, width: int) -> TableEncoding:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return TableEncoding(width)
    columns = tuple(ColumnEncoding(str(name)) for name in names)
    header = tuple(column.name for column in columns)
    return TableEncoding(width, columns, header=header, named=True)


def _log_loss(estimator: Any) -> tuple[str, dict[str, Any]]:
    return ("logistic" if len(estimator.classes_) == 2 else "softmax"), {}


def _huber(estimator: Any) -> tuple[str, dict[str, Any]]:
    """Return Huber's loss at the scale that was found."""
    delta = float(estimator.epsilon * estimator.scale_)
    return "huber", {"delta": delta} if 0 < delta < math.inf else {}


_LOSSES: dict[str, Callable[[Any], tuple[str, dict[str, Any]]]] = {
    **dict.fromkeys(("LogisticRegression", "LogisticRegressionCV"), _log_loss),
    "LinearSVC": lambda estimator: ("squaredhinge", {}),
    **dict.fromkeys(
        ("ElasticNet", "ElasticNetCV", "Lasso", "LassoCV", "Ridge"),
        lambda estimator: ("leastsquares", {}),
    ),
    "PoissonRegressor": lambda estimator: ("poisson", {}),
    "LpRegression": lambda estimator: ("lpp", {"p": int(estimator.p)}),
    "HuberRegressor": _huber,
}


def _loss_of(estimator: Any) -> tuple[str, dict[str, Any]]:
    """Return the loss of an estimator by its name, and its options."""
    name = type(estimator).__name__
    if name not in _LOSSES:
        raise InputError(f"A {name} cannot be saved: {', '.join(_LOSSES)} can.")
    return _LOSSES[name](estimator)


def _saved(model: Model, path: str | Path) -> _Saved:
    if model.estimator is None:
        raise InputError(
            f"{path} is of ode2opt solve, not of an estimator: ode2opt.Model.load reads it."
        )
    try:
        return read(_Saved, model.estimator)
    except InputError as error:
        raise InputError(f"{path} is no valid estimator: {error}") from None


def _restored(cls: Any, model: Model, saved: _Saved) -> Any:
    estimator = cls()
    known = estimator.get_params(deep=False)
    for name in saved.parameters:
        if name not in known or name in NOT_KEPT:
            raise InputError(f"{cls.__name__} has no parameter {shown(name)} to be read.")
    estimator.set_params(**{name: _value(each) for name, each in saved.parameters.items()})
    coef = model.coef.astype(model.precision)
    intercept = model.intercept.astype(model.precision)
    if (saved.flat_coef or saved.flat_intercept) and len(coef) > 1 and np.ptp(intercept):
        raise InputError("its coefficients are not those of one target.")
    estimator.coef_ = coef[0] if saved.flat_coef else coef
    estimator.intercept_ = intercept[0] if saved.flat_intercept else intercept
    estimator.n_features_in_ = coef.shape[1]
    if model.encoding.named:
        estimator.feature_names_in_ = np.array(model.encoding.names, dtype=object)
    if model.classes is not None:
        estimator.classes_ = model.classes
    for name, value in saved.attributes.items():
        setattr(estimator, name, _attribute(name, value))
    return estimator


def _attribute(name: str, value: Any) -> Any:
    if name not in ATTRIBUTES:
        raise InputError(f"it has an attribute {shown(name)} that nothing reads.")
    value = _value(value)
    if not isinstance(value, list):
        return value
    try:
        return np.array(value, dtype=np.int32 if name == "n_iter_" else np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"its {name} is not made of numbers.") from None


def _plain_ones(values: dict[str, Any]) -> dict[str, Any]:
    """Return those that JSON can hold, as JSON holds them."""
    found = {}
    for name, value in values.items():
        try:
            found[name] = _plain(value)
        except TypeError:
            continue
    return found


def _plain(value: Any) -> Any:
    """Return a value for JSON: a dictionary as pairs, infinity as a word; others: TypeError."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(each)] for key, each in value.items()]}
    raise TypeError(type(value))


def _value(plain: Any) -> Any:
    """Return what :func:`_plain` was given."""
    if isinstance(plain, list):
        return [_value(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() == {"number"} and plain["number"] in ("inf", "-inf", "nan"):
        return float(plain["number"])
    pairs = plain.get("pairs")
    if plain.keys() == {"pairs"} and isinstance(pairs, list) and all(map(_is_pair, pairs)):
        return {key: _value(each) for key, each in pairs}
    raise InputError(f"it has a value {shown(plain)} that nothing reads.")


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], list | dict)
