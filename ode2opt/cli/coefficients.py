"""ode2opt coefficients."""

from __future__ import annotations

import csv
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from ode2opt.base.errors import InputError
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import out, plain, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import file_opt, with_options
from ode2opt.cli.options import JsonResult, ModelArgument
from ode2opt.cli.outputs import Output, json_with
from ode2opt.cli.spreadsheet import RawOption, csv_of

if TYPE_CHECKING:
    from ode2opt import Model

DOCUMENT = json_with("columns", "intercept", "coefficients", "classes")
NAME, VALUE, INTERCEPT = "column", "coefficient", "(intercept)"
MOST_SHOWN = 50  # coefficients on a terminal


@app.command(
    epilog="Example: [bold]ode2opt coefficients model.safetensors --out coefficients.csv[/bold]"
)
@with_options()
def coefficients(
    *,
    model_file: ModelArgument,
    out_file: Annotated[
        Path | None, file_opt("Write all of them as CSV.", "--out", metavar="FILE.csv")
    ] = None,
    raw: RawOption = False,
    result: JsonResult,
) -> None:
    """Show the coefficients of a model by the names of columns, the largest first."""
    from ode2opt import Model

    result.check(DOCUMENT, [model_file], Output("--out", out_file, _is_coefficients))
    if out_file is not None and out_file.suffix.lower() != ".csv":
        raise InputError(f"--out {out_file} does not end in .csv: coefficients are written as CSV.")
    model = Model.load(model_file)
    header, rows = _sorted(model)
    if out_file is not None:
        content = csv_of([header, *rows], raw)
        write_atomically(out_file, lambda stream: stream.write(content))
    if result.for_people:
        _show(model, header, rows)
    result.write(model.coefficients())


def _is_coefficients(path: Path) -> bool:
    """Whether a file has the header and the first row that this command writes."""
    with path.open(encoding="utf-8", newline="") as lines:
        header, first = islice(chain(csv.reader(lines), repeat([])), 2)
    several = len(header) > 2 and all(name.startswith(f"{VALUE}_") for name in header[1:])
    return header[:1] == [NAME] and (several or header[1:] == [VALUE]) and first[:1] == [INTERCEPT]


def _sorted(model: Model) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the table's columns, and its rows: the intercept, then by size."""
    import numpy as np

    single = len(model.coef) == 1
    labels = range(len(model.coef)) if model.classes is None else model.classes.tolist()
    header = [NAME, VALUE] if single else [NAME, *(f"{VALUE}_{label}" for label in labels)]
    names, order = model.encoding.names, np.argsort(-np.abs(model.coef).max(axis=0), kind="stable")
    rows = [[names[j], *model.coef[:, j].tolist()] for j in order.tolist()]
    return header, [[INTERCEPT, *model.intercept.tolist()], *rows]


def _show(model: Model, header: list[str], rows: list[list[Any]]) -> None:
    table = Table()
    for k, name in enumerate(header):
        table.add_column(plain(name), justify="right" if k else "left")
    for name, *values in rows[: MOST_SHOWN + 1]:
        table.add_row(plain(name), *(f"{value:.6g}" for value in values))
    out.print(table)
    if len(rows) > MOST_SHOWN + 1:
        say(f"The {MOST_SHOWN} largest of {len(rows) - 1:,} are shown; --out FILE.csv has all.")
    if model.classes is not None and len(model.coef) == 1:
        first, second = model.classes.tolist()
        say(f"Positive scores predict {second!r}, others {first!r}.")
