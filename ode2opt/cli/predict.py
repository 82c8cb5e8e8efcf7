"""ode2opt predict."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ode2opt.base.errors import InputError, many
from ode2opt.base.terminal import mention, out, say, write_json
from ode2opt.cli.app import app
from ode2opt.cli.options import DecimalOption, JsonOption, named
from ode2opt.cli.outputs import Output, OverwriteOption, check_outputs, json_with
from ode2opt.cli.spreadsheet import RawOption

if TYPE_CHECKING:
    from ode2opt import Model
    from ode2opt.cli.predictions import Predictions
    from ode2opt.problems.quality import Quality

DOCUMENT = json_with("model", "rows", "predictions")


class Unknown(StrEnum):
    """What is done with words that the model has not seen."""

    error = "error"
    zero = "zero"


@app.command(
    epilog="Example: [bold]ode2opt predict model.safetensors new.csv --out preds.csv --proba[/bold]"
)
def predict(
    model_file: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="a file of 'ode2opt solve --out MODEL.safetensors'", parser=named
        ),
    ],
    file: Annotated[
        Path, typer.Argument(help="LIBSVM, CSV, NPZ or Parquet file with the rows", parser=named)
    ],
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PREDS.csv|.parquet",
            help="Write a prediction for each row.",
            parser=named,
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Probabilities of the classes, too.")
    ] = False,
    unknown_words: Annotated[
        Unknown,
        typer.Option(
            "--unknown",
            help="Words that the model has not seen: error, or zero in all columns of their words.",
        ),
    ] = Unknown.error,
    raw: RawOption = False,
    decimal: DecimalOption = None,
    json_file: JsonOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Predict for each row of a file with a model of 'ode2opt solve', or of an estimator."""
    from ode2opt import Model
    from ode2opt.cli.predictions import Predictions, check_predictions_ending, is_predictions
    from ode2opt.data.files import read_encoded

    outputs = [Output("--out", out_file, is_predictions), Output("--json", json_file, DOCUMENT)]
    check_outputs(outputs, [model_file, file], overwrite)
    check_predictions_ending(out_file)
    model = Model.load(model_file)
    if proba and model.prediction.probabilities is None:
        raise InputError(
            f"--proba: a model of {model.problem} has no probabilities; logistic and softmax have."
        )
    rows = read_encoded(
        file, model.encoding, unknown=unknown_words.value, decimal=decimal and decimal.value
    )
    found = Predictions.of(model, rows.A, proba, rows.rows, rows.total)
    quality, why = _quality(model, rows)
    if out_file is not None:
        found.write(out_file, raw)
    tell = mention if json_file == "-" else say
    for note in (*_notes(model, model_file), *rows.notes, *why):
        tell(note)
    if json_file != "-":
        _show(found, out_file, json_file is None)
        if quality is not None:
            say(f"On the {many(quality.rows, 'row')} of {file.name}: {quality}.")
    document = {"model": str(model_file), "rows": len(found), **found.document()}
    if proba:
        document["classes"] = model.coefficients()["classes"]
    if quality is not None:
        document["quality"] = quality.summary()
    write_json(document, json_file)


def _show(found: Predictions, out_file: Path | None, table: bool) -> None:
    """Say where predictions are, or show the first of them."""
    from ode2opt.cli.predictions import FIRST

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
