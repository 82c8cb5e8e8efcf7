"""The labels of classes as a file holds them: words, numbers or booleans, in the model's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, shown, unknown_name

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
