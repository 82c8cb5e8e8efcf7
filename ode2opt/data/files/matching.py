"""Which columns of another file are those of a saved encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ode2opt.base.errors import InputError, shown
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.data.files.columns import (
    LABEL_NAMES,
    MOST_SHOWN,
    Columns,
    check_names,
    first_names,
    indices,
    usual_label,
)


@dataclass(frozen=True)
class EncodingRequest:
    """What the encoding of a model needs of a file; see :class:`ReadRequest`.

    Attributes:
        encoding: of the model.
        decimal: the decimal sign of text; None (the default) where it is to be found out.
        to_predict: whether labels may be absent; True by default.
        weights: None: weights are not read.
    """

    encoding: TableEncoding
    decimal: str | None = None
    to_predict: bool = True
    weights: None = None

    @property
    def label(self) -> str | None:
        return self.encoding.label

    @property
    def known(self) -> frozenset[str]:
        return frozenset(self.encoding.header if self.encoding.named else ())

    def columns(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Return the places of the encoding's columns: by name, or by position without names."""
        if named:
            check_names(names, str(path))
        encoding = self.encoding
        if not encoding.columns:
            return self._of_matrix(names, named, path)
        if named and encoding.named:
            return self._by_name(names, path)
        return self._by_position(names, named, path)

    def _by_name(self, names: Sequence[str], path: Path) -> Columns:
        encoding = self.encoding
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

    def _by_position(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Match a file whose columns are those of training, with or without label and weights."""
        encoding, header = self.encoding, self.encoding.header
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

    def _of_matrix(self, names: Sequence[str], named: bool, path: Path) -> Columns:
        """Match columns in their order; if there is one more than the model has, it is the label.

        Where the file has names, a note says that they do not count, and what became of the label.
        """
        width = self.encoding.width
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
        fills = self.encoding.fills or (None,) * width
        encoded = [ColumnEncoding(names[j], fill=fill) for j, fill in zip(own, fills, strict=True)]
        note = f"The model's columns have no names: columns are taken by position{about_label}."
        return Columns(label, own, encoded=encoded, notes=(note,) if named else ())

    def check_matrix(self, path: Path) -> None:
        """Refuse a file whose columns have no names where the model has words."""
        if self.encoding.worded:
            names = _quoted([column.name for column in self.encoding.worded])
            raise InputError(
                f"{path} holds numbers only, but the model has words in {names}: give it CSV or "
                f"Parquet."
            )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:MOST_SHOWN])) + ", ..." * (len(names) > MOST_SHOWN)
