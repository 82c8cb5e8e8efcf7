"""Which columns of a table hold features, the label and the weights, as a user asks for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ode2opt.base.errors import InputError, shown
from ode2opt.data.encoding import DECIMALS, MISSING, ColumnEncoding, TableEncoding
from ode2opt.data.files.cells import are_truths

LABEL_NAMES = ("label", "target", "y", "class")
_NUMBER = re.compile("-?[0-9]{1,9}")
_INDEX = re.compile("__index_level_[0-9]+__")
_FIRST_INDEX = ("", "Unnamed: 0")  # what pandas writes for an index, and calls it when it reads it


@dataclass(frozen=True)
class Columns:
    """Which columns are what, by number.

    Attributes:
        label: the column of labels; None without labels.
        features: the columns of features, in their order.
        weights: the column of the rows' weights; None without weights.
        encoded: how features are to be read, in their order; empty where that is to be found out.
        notes: sentences about columns that are not used.
    """

    label: int | None
    features: list[int]
    weights: int | None = None
    encoded: Sequence[ColumnEncoding] = ()
    notes: tuple[str, ...] = ()

    def about(self, names: Sequence[str], labels: Iterable[Any]) -> dict[str, Any]:
        """Return what an encoding says of the label and of the weights."""
        return {
            "label": None if self.label is None else names[self.label],
            "weights": None if self.weights is None else names[self.weights],
            "truths": are_truths(labels),
        }

    @property
    def numbers(self) -> list[int]:
        """The features that an encoding says to be numbers."""
        both = zip(self.features, self.encoded, strict=True)
        return [j for j, column in both if column.kind == "number"]


Names = str | int | Sequence[str | int]
"""Columns by name or number: one, or several."""


class ReadKeywords(TypedDict, total=False):
    """The keywords of :meth:`ReadOptions.of`, which whatever reads a table takes as well.

    Attributes:
        label: the label column of a CSV or Parquet file, by name or number from 0, or the array of
            labels in an NPZ file. By default the column called label, target, y or class, else
            the last one.
        weights: the column (the array) of the rows' weights in the same way; by default none.
        missing: what happens to missing cells: "error" (the default); "drop" leaves their rows
            out; "mean" replaces a number by the mean of its column, while a missing word is an
            error.
        drop: columns of a CSV or Parquet file that are no features; by default none.
        columns: the features, all others are not used; by default all. The label is found as
            without this option, and is no feature though it is named here.
        decimal: the decimal sign of CSV, "." or ","; by default it is found out.
    """

    label: str | int | None
    weights: str | int | None
    missing: str
    drop: Names
    columns: Names
    decimal: str | None


@dataclass(frozen=True)
class ReadOptions:
    """How a user's table is read, as one object; :meth:`of` makes it from keywords.

    Attributes:
        label: the label column by name or number (of an archive: the array), None for the usual.
        weights: the column of weights likewise, None for no weights.
        missing: what happens to missing cells: "error", "drop" or "mean".
        drop: columns that are no features.
        only: the features, empty for all; the label and the weights are none though named here.
        decimal: the decimal sign of text, "." or ","; None to find it out.
        encoding: of a model, for rows to predict: its columns are read, labels may be absent.

    Raises:
        InputError: a value is not known, or both ``drop`` and ``only`` are given.

    Examples:
        >>> ReadOptions.of(label=0, drop="id").drop
        ('id',)
    """

    label: str | None = None
    weights: str | None = None
    missing: str = "error"
    drop: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    decimal: str | None = None
    encoding: TableEncoding | None = None

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("missing", self.missing, MISSING),
            ("decimal", self.decimal or ".", DECIMALS),
        ):
            if value not in choices:
                known = ", ".join(map(shown, choices))
                raise InputError(f"{name} is {shown(value)}: it must be one of {known}.")
        if self.drop and self.only:
            raise InputError("--drop and --columns exclude each other: give one of them.")

    @property
    def known(self) -> frozenset[str]:
        """Names of columns that tell a header."""
        encoding = self.encoding
        return frozenset(encoding.header if encoding and encoding.named else ())

    @property
    def to_predict(self) -> bool:
        """Whether rows are read to predict: labels may be absent."""
        return self.encoding is not None

    @classmethod
    def of(
        cls, options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
    ) -> ReadOptions:
        """Return options from keywords, from options made before, or from either.

        Args:
            options: what keywords that are absent are taken from; None (the default) is the
                defaults.
            **keywords: see :class:`ReadKeywords`; columns may be given by number.

        Raises:
            InputError: a value is not known, or both ``drop`` and ``columns`` are given.
        """
        given: dict[str, Any] = dict(keywords)
        for name in {"label", "weights"} & given.keys():
            given[name] = None if given[name] is None else str(given[name])
        if "columns" in given:
            given["only"] = given.pop("columns")
        for name in {"drop", "only"} & given.keys():
            given[name] = _texts(given[name])
        return replace(options or cls(), **given)

    def columns(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Return which columns hold what: the label as asked for, by its usual names, or last.

        Args:
            names: of all columns, or their numbers.
            named: whether the names are the file's own.
            path: the file, for errors.

        Raises:
            InputError: a column that is asked for is not there, is asked for twice, or two have the
                same name.
        """
        if named:
            check_names(names, str(path))
        if self.encoding is not None:
            return _of_encoding(self.encoding, names, named, path)
        weights = None if self.weights is None else place_of(names, self.weights, path)
        dropped = {place_of(names, name, path) for name in self.drop}
        only = {place_of(names, name, path) for name in self.only}
        label = self._label(names, path, {weights, *dropped, *indices(names, named)})
        for j, what in ((label, "labels"), (weights, "weights")):
            if j is not None and j in dropped:
                raise InputError(
                    f"{path}: the column '{names[j]}' cannot hold {what} and be dropped."
                )
        taken = {label, weights} | dropped
        index = [] if only else [j for j in indices(names, named) if j not in taken]
        among = sorted(only) or range(len(names))
        features = [j for j in among if j not in (*taken, *index)]
        if not features:
            raise InputError(f"{path} has a label column but no features.")
        return Columns(label, features, weights, notes=_about_index(names, index))

    def _label(self, names: Sequence[str], path: Path, taken: set[int | None]) -> int:
        if self.label is not None:
            label = place_of(names, self.label, path)
            if self.weights is not None and label == place_of(names, self.weights, path):
                raise InputError(
                    f"{path}: the column '{names[label]}' cannot hold labels and weights."
                )
            return label
        return usual_label(names, taken)


def _texts(names: Names) -> tuple[str, ...]:
    each = [names] if isinstance(names, str | int) else names
    return tuple(map(str, each))


DEFAULT_OPTIONS = ReadOptions()


def _of_encoding(encoding: TableEncoding, names: Sequence[str], named: bool, path: Path) -> Columns:
    """Return the places of an encoding's columns: by name, or by position without names."""
    if not encoding.columns:
        return _of_matrix(encoding, names, named, path)
    if named and encoding.named:
        return _by_name(encoding, names, path)
    return _by_position(encoding, names, named, path)


def _by_name(encoding: TableEncoding, names: Sequence[str], path: Path) -> Columns:
    places = {name: j for j, name in enumerate(names)}
    lacking = [column.name for column in encoding.columns if column.name not in places]
    if lacking:
        raise InputError(
            f"{path} has no column {_quoted(lacking)}, which the model needs: its columns are "
            f"{first_names(names)}."
        )
    skipped = {*encoding.header, *(names[j] for j in indices(names, True))}
    extra = [name for name in names if name not in skipped]
    notes = (f"Columns that the model does not have are ignored: {_quoted(extra)}.",)
    return Columns(
        None if encoding.label is None else places.get(encoding.label),
        [places[column.name] for column in encoding.columns],
        encoded=encoding.columns,
        notes=notes if extra else (),
    )


def _by_position(encoding: TableEncoding, names: Sequence[str], named: bool, path: Path) -> Columns:
    """Match a file whose columns are those of training, with or without label and weights."""
    header = encoding.header
    used = [name for name in header if name in {column.name for column in encoding.columns}]
    orders = (
        header,
        [name for name in header if name != encoding.label],
        [name for name in header if name not in (encoding.label, encoding.weights)],
        [name for name in header if name in (*used, encoding.label)],
        used,
    )
    order = next((order for order in orders if len(order) == len(names)), None)
    if order is None:
        raise InputError(
            f"{path} has {len(names)} columns, but the rows of the model have {len(header)}: "
            f"without names in both, columns are matched by position."
        )
    places = {name: j for j, name in enumerate(order)}
    owner = "The model's columns have" if named else f"{path.name} has"
    return Columns(
        None if encoding.label is None else places.get(encoding.label),
        [places[column.name] for column in encoding.columns],
        encoded=encoding.columns,
        notes=(f"{owner} no names: columns are taken by position.",)
        if named or encoding.named
        else (),
    )


def _of_matrix(encoding: TableEncoding, names: Sequence[str], named: bool, path: Path) -> Columns:
    """Match columns in their order; if there is one more than the model has, it is the label.

    Where the file has names, a note says that they do not count, and what became of the label.
    """
    width = encoding.width
    own = [j for j in range(len(names)) if j not in indices(names, named)]
    label, about_label = None, ""
    if len(own) == width + 1:
        label = own[usual_label([names[j] for j in own])]
        own.remove(label)
        about_label = f", and {shown(names[label])} is taken as the label"
    elif called := [names[j] for j in own if names[j].strip().lower() in LABEL_NAMES]:
        about_label = f", {shown(called[0])} as a feature, too"
    if len(own) != width:
        raise InputError(f"{path} has {len(own)} columns, but the model has {width}.")
    fills = encoding.fills or (None,) * width
    encoded = [ColumnEncoding(names[j], fill=fill) for j, fill in zip(own, fills, strict=True)]
    note = f"The model's columns have no names: columns are taken by position{about_label}."
    return Columns(label, own, encoded=encoded, notes=(note,) if named else ())


def usual_label(names: Sequence[str], taken: set[int | None] = frozenset()) -> int:  # type: ignore[assignment]
    """Return the column that is called label, target, y or class, else the last that is free."""
    lower = [name.strip().lower() for name in names]
    usual = [lower.index(name) for name in LABEL_NAMES if name in lower]
    last = reversed(range(len(names)))
    return next((j for j in (*usual, *last) if j not in taken), 0)


def indices(names: Sequence[str], named: bool) -> list[int]:
    """Return the columns that pandas writes for an index: the same rule for every kind of file.

    These are called ``__index_level_0__``, or are the first and have no name.
    """
    return [
        j
        for j, name in enumerate(names)
        if named and (_INDEX.fullmatch(name) or (j == 0 and name.strip() in _FIRST_INDEX))
    ]


def _about_index(names: Sequence[str], index: Sequence[int]) -> tuple[str, ...]:
    called = [
        f"Column {shown(names[j])}" if names[j].strip() else "The first column, without a name,"
        for j in index
    ]
    return tuple(f"{what} is an index and is left out; --columns takes it in." for what in called)


def place_of(names: Sequence[str], asked: str, path: Path) -> int:
    """Return the number of a column."""
    if asked in names:
        return list(names).index(asked)
    if _NUMBER.fullmatch(asked) and -len(names) <= int(asked) < len(names):
        return int(asked) % len(names)
    near = get_close_matches(asked, names, n=3)
    told = f"did you mean {' or '.join(map(shown, near))}?" if near else (
        f"its columns are {first_names(names)}."
    )  # fmt: skip
    raise InputError(f"{path} has no column '{asked}': {told}")


def first_names(names: Sequence[str], most: int = 8) -> str:
    """Return the first names for a sentence."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) == len(names):
        return
    first: dict[str, int] = {}
    for j, name in enumerate(names):
        if name in first:
            which = f"the name {shown(name)}" if name else "no name"
            raise InputError(
                f"{where}: columns {first[name]} and {j} (counted from 0) both have {which}: "
                f"rename one of them."
            )
        first[name] = j


def check_matrix(wanted: ReadOptions, path: Path) -> None:
    """Refuse a file whose columns have no names where the model has words."""
    if wanted.encoding is not None and wanted.encoding.worded:
        names = _quoted([column.name for column in wanted.encoding.worded])
        raise InputError(
            f"{path} holds numbers only, but the model has words in {names}: give it CSV or "
            f"Parquet."
        )


def _quoted(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(map(shown, names[:most])) + ", ..." * (len(names) > most)
