"""The options of commands that read a user's table: one list, and one object made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from ode2opt.data.files import ReadOptions


class MissingChoice(StrEnum):
    """What happens to missing cells."""

    error = "error"
    drop = "drop"
    mean = "mean"


class DecimalChoice(StrEnum):
    """The decimal sign of text."""

    point = "."
    comma = ","


LabelOption = Annotated[str | None, typer.Option(help="Label column of a CSV or Parquet file.")]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of a CSV or Parquet file (array of an NPZ file) with the rows' weights.",
        show_default=False,
    ),
]
MissingOption = Annotated[
    MissingChoice,
    typer.Option(
        help="What happens to missing cells: drop leaves their rows out, mean takes the mean of "
        "the column (of numbers; a missing word stays an error).",
    ),
]
DropOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns of a CSV or Parquet file that are no features: names or numbers from 0, "
        "separated by commas.",
        show_default=False,
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="The only columns of a CSV or Parquet file that are features, given like --drop.",
        show_default=False,
    ),
]
DecimalOption = Annotated[
    DecimalChoice | None,
    typer.Option(
        metavar=". or ,",
        help="The decimal sign of a CSV file; by default it is found out.",
        show_default=False,
    ),
]
READING: dict[str, tuple[Any, Any]] = {
    "label": (LabelOption, None),
    "weights": (WeightsOption, None),
    "missing": (MissingOption, MissingChoice.error),
    "drop": (DropOption, None),
    "columns": (ColumnsOption, None),
    "decimal": (DecimalOption, None),
}
"""The options, with annotation and default, in the order of the help."""
ReadingOption = ReadOptions
"""Stands for all of them in the signature of a command; see :func:`with_reading_options`."""


def with_reading_options(weights: bool = True) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator: a command's parameter ``reading`` becomes the options of a table."""
    names = [name for name in READING if weights or name != "weights"]

    def give(function: Callable[..., None]) -> Any:
        def command(**given: Any) -> None:
            function(reading=reading_of({name: given.pop(name) for name in names}), **given)

        own = signature(function, eval_str=True)
        parameters = [
            each
            for parameter in own.parameters.values()
            for each in (_options(names) if parameter.name == "reading" else [parameter])
        ]
        command.__signature__ = own.replace(  # type: ignore[attr-defined]
            parameters=[each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
        )
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return command

    return give


def _options(names: list[str]) -> list[Parameter]:
    kind = Parameter.KEYWORD_ONLY
    pairs = ((name, *READING[name]) for name in names)
    return [Parameter(name, kind, default=first, annotation=own) for name, own, first in pairs]


def reading_of(given: Mapping[str, Any]) -> ReadOptions:
    """Return how tables are read, from the values of a command's options."""
    values = {name: given.get(name, first) for name, (_, first) in READING.items()}
    return ReadOptions.of(
        label=values["label"],
        weights=values["weights"],
        missing=values["missing"].value,
        drop=_names(values["drop"]),
        columns=_names(values["columns"]),
        decimal=values["decimal"] and values["decimal"].value,
    )


def _names(text: str | None) -> list[str]:
    """Return the names of a list that is separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
