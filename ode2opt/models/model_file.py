"""The model file: a fitted linear model in one safetensors file, its labels among what it holds.

Reading it needs NumPy only, validates every field, and executes nothing from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ode2opt.base.arrays import as_count, as_ridge
from ode2opt.base.errors import InputError, shown, unknown_name
from ode2opt.base.record import MODEL, Arrays, as_document
from ode2opt.base.schema import read as read_fields
from ode2opt.data.encoding import TableEncoding
from ode2opt.problems.quality import Quality

_COEF, _INTERCEPT, _SCALING, _TABLE = "coefficients", "intercept", "scaling", "table"
_ARCHIVE = b"PK\x03\x04"  # how a ZIP archive begins
_PLAIN = ("problem", "fit", "precision")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Fit:
    """How a model was fitted; what is not known is None.

    Attributes:
        rows: how many it was fitted to.
        l2: weight of l2/2 |x|^2 beside the mean loss.
        tol: the gradient norm (with a penalty, the residual) that was asked for.
        grad_norm: the one that was reached.
        success: whether the tolerance was reached.
        quality: by the rows it was measured on: "fit", "holdout" or "test".
    """

    rows: int | None = None
    l2: float | None = None
    tol: float | None = None
    grad_norm: float | None = None
    success: bool | None = None
    quality: dict[str, Quality] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows is not None:
            as_count(self.rows, "rows")
        if self.l2 is not None:
            as_ridge(self.l2)
        for name in ("tol", "grad_norm"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"its {name} is {value}.")


@dataclass(frozen=True)
class _ModelHeader:
    """The description in a model file; its arrays are beside it."""

    version: int | None
    problem: str
    options: dict[str, Any]
    fit: Fit
    classes: tuple[Any, ...] | None = None
    class_form: str | None = None
    precision: str = "float64"
    estimator: dict[str, Any] | None = None


def write(path: str | Path, model: Any) -> None:
    """Write a :class:`ode2opt.Model`; a crash or a full disk leaves what was there."""
    arrays = {_COEF: model.coef, _INTERCEPT: model.intercept}
    if model.scaling is not None:
        arrays[_SCALING] = model.scaling
    arrays[_TABLE] = as_document(model.encoding.to_json())
    form, classes = (None, None) if model.classes is None else stored(model.classes)
    header = _ModelHeader(
        version=MODEL.version,
        options=dict(model.options),
        classes=None if classes is None else tuple(classes),
        class_form=form,
        estimator=None if model.estimator is None else dict(model.estimator),
        **{name: getattr(model, name) for name in _PLAIN},
    )
    MODEL.write(path, arrays, asdict(header))


def read(path: str | Path, make: Callable[..., Made]) -> Made:
    """Return what ``make`` makes of the fields of a model, checked."""
    if _is_archive(Path(path)):
        raise InputError(
            f"{path} is no model file but an archive such as NPZ: 'ode2opt solve --out "
            f"X.safetensors' makes a model."
        )
    return MODEL.read(path, lambda arrays, about: make(**_fields(arrays, about)))


def _is_archive(path: Path) -> bool:
    """Whether a file begins as ZIP archives do, such as NPZ files."""
    try:
        with path.open("rb") as stream:
            return stream.read(len(_ARCHIVE)) == _ARCHIVE
    except OSError:
        return False  # which is told where the file is read


def _fields(arrays: Arrays, about: dict[str, Any]) -> dict[str, Any]:
    header = read_fields(_ModelHeader, about)
    classes = header.classes
    found = {
        "coef": arrays.take(_COEF),
        "intercept": arrays.take(_INTERCEPT),
        "scaling": arrays.take(_SCALING) if _SCALING in arrays else None,
        "classes": None if classes is None else restored(header.class_form, classes),
        "encoding": TableEncoding.from_json(arrays.document(_TABLE)),
        "options": header.options,
        "estimator": header.estimator,
    }
    return found | {name: getattr(header, name) for name in _PLAIN}


FORMS: dict[str, tuple[Any, type]] = {
    "words": (np.str_, str),
    "objects": (object, str),
    "whole numbers": (np.int64, int),
    "numbers": (np.float64, float),
    "booleans": (np.bool_, bool),
}
"""How labels are stored: the NumPy type of their array, and that of each in JSON."""
_OF_NUMPY = {"U": "words", "O": "objects", "i": "whole numbers", "u": "whole numbers",
             "f": "numbers", "b": "booleans"}  # fmt: skip


def as_classes(labels: Any) -> np.ndarray:
    """Return the labels of classes as an array; numbers that are all whole become integers.

    So a file that says 0 and 1 has predictions 0 and 1, though numbers are read as floats.
    """
    found = np.asarray(labels)
    if found.dtype.kind == "f" and np.all(found == np.round(found)) and np.all(abs(found) < 2**53):
        found = found.astype(np.int64)
    return found


def form_of(classes: np.ndarray) -> str:
    """Return how labels are stored; refuses what is neither a word nor a number."""
    form = _OF_NUMPY.get(classes.dtype.kind)
    if form is None or (form == "objects" and not all(isinstance(x, str) for x in classes)):
        raise InputError(
            f"The classes {shown(classes.tolist())} cannot be stored: words, numbers and booleans "
            f"can."
        )
    return form


def stored(classes: np.ndarray) -> tuple[str, list[Any]]:
    """Return the form of labels, and each of them for JSON."""
    return form_of(classes), classes.tolist()


def restored(form: str | None, labels: Sequence[Any]) -> np.ndarray:
    """Return the labels that :func:`stored` gave, checked."""
    if form not in FORMS:
        raise unknown_name("form of classes", str(form), FORMS)
    kind, plain = FORMS[form]
    for label in labels:
        if type(label) is not plain:
            raise InputError(f"its class {shown(label)} is none of {form}.")
    if len(set(labels)) != len(labels):
        raise InputError("it has a class twice.")
    try:
        return np.array(labels, dtype=kind)
    except (OverflowError, ValueError):
        raise InputError("one of its classes is too large a number.") from None


def as_targets(labels: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    """Return labels as targets of a model: counted from 0 in the order of classes, or numbers."""
    found = np.asarray(labels)
    if classes is None:
        if found.dtype.kind not in "fiub":
            raise InputError(f"The label {shown(found[0])} is a word, but the model has numbers.")
        return found.astype(np.float64)
    place = {label: k for k, label in enumerate(classes.tolist())}
    texts = classes.dtype.kind in "UO"
    keys = [_as_text(label) if texts else label for label in found.tolist()]
    for key in keys:
        if key not in place:
            raise InputError(f"The label {shown(key)} is none of the model's classes.")
    return np.array([place[key] for key in keys], dtype=np.float64)


def _as_text(label: Any) -> str:
    """Return a label as a file spells it: there numbers may be words of a model."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
