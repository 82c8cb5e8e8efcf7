"""ode2opt predict."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from ode2opt.base.errors import InputError, MissingDependencyError, many
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import mention, out, plain, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import choice_opt, file_argument, file_opt, opt, with_options
from ode2opt.cli.options import DecimalOption, JsonResult, ModelArgument
from ode2opt.cli.outputs import Output, json_with
from ode2opt.cli.spreadsheet import RawOption, csv_of

if TYPE_CHECKING:
    import numpy as np

    from ode2opt import Model
    from ode2opt.problems.quality import Quality

DOCUMENT = json_with("model", "rows", "predictions")
FIRST = 10  # rows that are shown
CSV, PARQUET = (".csv",), (".parquet", ".pq")


UnknownOption: Any = choice_opt(
    ("error", "zero"),
    "Words that the model has not seen: error, or zero in all columns of their words.",
    "--unknown",
)


@app.command(
    epilog="Example: [bold]ode2opt predict model.safetensors new.csv --out preds.csv --proba[/bold]"
)
@with_options()
def predict(
    *,
    model_file: ModelArgument,
    file: Annotated[Path, file_argument("LIBSVM, CSV, NPZ or Parquet file with the rows")],
    out_file: Annotated[
        Path | None,
        file_opt("Write a prediction for each row.", "--out", metavar="PREDS.csv|.parquet"),
    ] = None,
    proba: Annotated[bool, opt("Probabilities of the classes, too.", "--proba")] = False,
    unknown_words: UnknownOption = "error",
    raw: RawOption = False,
    decimal: DecimalOption = None,
    result: JsonResult,
) -> None:
    """Predict for each row of a file with a model of 'ode2opt solve', or of an estimator."""
    from ode2opt import Model
    from ode2opt.data.files import read_encoded

    result.check(DOCUMENT, [model_file, file], Output("--out", out_file, is_predictions))
    check_predictions_ending(out_file)
    model = Model.load(model_file)
    if proba and model.prediction.probabilities is None:
        raise InputError(
            f"--proba: a model of {model.problem} has no probabilities; logistic and softmax have."
        )
    rows = read_encoded(
        file, model.encoding, unknown=str(unknown_words), decimal=decimal and str(decimal)
    )
    found = Predictions.of(model, rows.A, proba, rows.rows, rows.total)
    quality, why = _quality(model, rows)
    if out_file is not None:
        found.write(out_file, raw)
    tell = say if result.for_people else mention
    for note in (*_notes(model, model_file), *rows.notes, *why):
        tell(note)
    if result.for_people:
        _show(found, out_file, result.json_file is None)
        if quality is not None:
            say(f"On the {many(quality.rows, 'row')} of {file.name}: {quality}.")
    document = {"model": str(model_file), "rows": len(found), **found.document()}
    if proba:
        document["classes"] = model.coefficients()["classes"]
    if quality is not None:
        document["quality"] = quality.summary()
    result.write(document)


def _show(found: Predictions, out_file: Path | None, table: bool) -> None:
    """Say where predictions are, or show the first of them."""
    if out_file is not None:
        without = len(found) - found.made
        none = f"; {many(without, 'row')} of {len(found):,} left without" if without else ""
        say(f"{many(found.made, 'prediction')} written to {out_file}{none}.")
    elif table:
        out.print(found.table())
        if len(found) > FIRST:
            say(f"{FIRST} of {len(found):,} rows are shown; --out FILE writes all of them.")


def _quality(model: Model, rows: Any) -> tuple[Quality | None, list[str]]:
    """Return how well labels are predicted, if there are any, and why that cannot be measured."""
    if rows.labels is None or (model.classes is None and len(model.coef) > 1):
        return None, []
    try:
        return model.quality(rows.A, rows.labels), []
    except InputError as error:
        return None, [f"How well the model predicts cannot be told: {error}"]


def _notes(model: Model, file: Path) -> list[str]:
    """Say what a user of the model should know."""
    fit = model.fit
    if fit.success is not False:
        return []
    reached = "" if fit.grad_norm is None else f": its gradient norm is {fit.grad_norm:.3g}"
    return [f"The fit of {file.name} did not reach its tolerance{reached}."]


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
            names = next(csv.reader([lines.readline(2**20)]), [])
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
