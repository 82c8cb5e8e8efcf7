"""Options and loaders that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from ode2opt.errors import InputError
from ode2opt.terminal import downloads


class Split(StrEnum):
    """How train and test rows are told apart."""

    paper = "paper"
    shuffled = "shuffled"


class HandoverChoice(StrEnum):
    """What watches a schedule."""

    guard = "guard"
    relay = "relay"
    none = "none"


class EstimatorChoice(StrEnum):
    """How curvature is estimated."""

    power = "power"
    l0l1 = "l0l1"


PROBLEM_NAMES = "logistic, lpp or leastsquares"
ProblemArgument = Annotated[str, typer.Argument(help=PROBLEM_NAMES)]
DatasetArgument = Annotated[str, typer.Argument(help="a name of 'ode2opt data list', or a file")]
SeedOption = Annotated[int, typer.Option(help="Drives which rows make a problem.")]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE|-", help="Write the result as JSON; - is standard output."
    ),
]
SizeOption = Annotated[
    int | None, typer.Option(help="Rows a problem; by default the paper's.", show_default=False)
]
SplitOption = Annotated[
    Split | None,
    typer.Option(
        help="paper: by file order; shuffled: at random. "
        "By default paper for named data, shuffled for files.",
        show_default=False,
    ),
]
LabelOption = Annotated[str | None, typer.Option(help="Label column of a CSV or Parquet file.")]
PowerOption = Annotated[int, typer.Option("--p", help="The even power of lpp.")]
RidgeOption = Annotated[float, typer.Option("--l2", help="Weight of l2/2 |x|^2.")]
HandoverOption = Annotated[HandoverChoice, typer.Option(help="What watches the EIGAC methods.")]


def load_family(
    problem: str,
    dataset: str,
    split: Split | None,
    size: int | None,
    label: str | None,
    options: dict[str, Any],
) -> Any:
    from ode2opt.problems import Family

    with downloads() as progress:
        return Family.from_dataset(
            problem,
            dataset,
            split=split and split.value,
            size=size,
            label=label,
            progress=progress,
            **options,
        )


def model_options(problem: str, p: int, l2: float) -> dict[str, Any]:
    from ode2opt.problems.family import kind_of
    from ode2opt.problems.linear_model import Lpp

    options: dict[str, Any] = {"l2": l2}
    if kind_of(problem) is Lpp:
        options["p"] = p
    elif p != 4:
        raise InputError(f"--p {p} is for lpp; {problem} has no power.")
    return options
