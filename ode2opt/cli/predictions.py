"""Predictions as a table: one row a row of the file, to be shown or written."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ode2opt.base.errors import InputError, MissingDependencyError
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import plain
from ode2opt.cli.spreadsheet import csv_of

if TYPE_CHECKING:
    import numpy as np

    from ode2opt import Model

FIRST = 10  # rows that are shown
LONGEST_HEADER = 1 << 20  # characters of a first line that is looked at
CSV, PARQUET = (".csv",), (".parquet", ".pq")


@dataclass(frozen=True)
class Predictions:
    """Columns by name; a row without a prediction has None in each.

    Attributes:
        columns: ``prediction``, and ``proba_CLASS`` for each class where these are asked for; of
            several targets ``prediction_0``, ``prediction_1``, ...
    """

    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, model: Model, A: Any, proba: bool, rows: np.ndarray, total: int) -> Predictions:
        """Return the predictions for rows of a file."""
        found = model.predict(A)
        several = found.ndim > 1
        columns = (
            {f"prediction_{k}": one for k, one in enumerate(found.T)}
            if several
            else {"prediction": found}
        )
        if proba:
            assert model.classes is not None
            each = zip(model.classes.tolist(), model.predict_proba(A).T, strict=True)
            columns |= {f"proba_{label}": values for label, values in each}
        return cls({name: _spread(values, rows, total) for name, values in columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def made(self) -> int:
        """How many rows have a prediction."""
        return sum(cell is not None for cell in next(iter(self.columns.values())))

    def table(self) -> Table:
        """Return the first rows for a terminal."""
        table = Table()
        for name in ("row", *self.columns):
            table.add_column(plain(name), justify="right")
        for i in range(min(FIRST, len(self))):
            cells = [values[i] for values in self.columns.values()]
            table.add_row(str(i + 1), *(plain(_shown(cell)) for cell in cells))
        return table

    def document(self) -> dict[str, Any]:
        """Return the fields for JSON: a list a row where there are several numbers."""
        names = [name for name in self.columns if not name.startswith("proba_")]
        probabilities = [name for name in self.columns if name.startswith("proba_")]
        found: dict[str, Any] = {"predictions": self._rows(names)}
        return found | ({"probabilities": self._rows(probabilities)} if probabilities else {})

    def _rows(self, names: list[str]) -> list[Any]:
        columns = [[_finite(cell) for cell in self.columns[name]] for name in names]
        return (
            columns[0] if len(columns) == 1 else [list(row) for row in zip(*columns, strict=True)]
        )

    def write(self, path: Path, raw: bool = False) -> None:
        """Write CSV or Parquet, by the file's ending."""
        content = self._parquet() if path.suffix.lower() in PARQUET else self._csv(raw)
        write_atomically(path, lambda stream: stream.write(content))

    def _csv(self, raw: bool) -> bytes:
        return csv_of([self.columns, *zip(*self.columns.values(), strict=True)], raw)

    def _parquet(self) -> bytes:
        import pyarrow
        import pyarrow.parquet

        stream = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(self.columns), stream)
        return stream.getvalue()


def is_predictions(path: Path) -> bool:
    """Whether a file has just the columns that :meth:`Predictions.write` gives it."""
    if path.suffix.lower() in PARQUET:
        import pyarrow.parquet

        names = pyarrow.parquet.read_schema(path).names
    else:
        with path.open(encoding="utf-8", newline="") as lines:
            names = next(csv.reader([lines.readline(LONGEST_HEADER)]), [])
    if names[:1] == ["prediction"]:
        return len(names) != 2 and all(name.startswith("proba_") for name in names[1:])
    return len(names) > 1 and names == [f"prediction_{k}" for k in range(len(names))]


def check_predictions_ending(path: Path | None) -> None:
    """Refuse a file that is neither CSV nor Parquet by its name, or cannot be written here."""
    if path is None:
        return
    ending = path.suffix.lower()
    if ending not in (*CSV, *PARQUET):
        raise InputError(f"--out {path} ends in neither .csv nor .parquet: name one of these.")
    if ending in PARQUET:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise MissingDependencyError(
                "Parquet files need pyarrow: pip install pyarrow."
            ) from None


def _spread(values: np.ndarray, rows: np.ndarray, total: int) -> list[Any]:
    """Return a value for each row of the file, None for those that have none."""
    found: list[Any] = [None] * total
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        found[row] = value
    return found


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _finite(cell: Any) -> Any:
    """Return None in the place of a number that is not finite: JSON has no infinity."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
