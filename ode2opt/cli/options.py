"""Options that several commands share, what a shell completes them with, what is made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.base.errors import InputError
from ode2opt.base.terminal import downloads, mention, say, write_json
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    Recogniser,
    check_outputs,
)
from ode2opt.cli.penalising import L1Penalty
from ode2opt.data.files import ReadOptions
from ode2opt.problems.family import KINDS

# Completion: without an offer a shell completes names of files.


def problem_names(incomplete: str) -> list[str]:
    """Return the names of problems that begin in a way."""
    from ode2opt.problems.family import KINDS

    return _beginning(KINDS, incomplete)


def dataset_names(incomplete: str) -> list[str]:
    """Return the named datasets that begin in a way."""
    from ode2opt.problems import DATASETS

    return _beginning(DATASETS, incomplete)


def method_names(incomplete: str) -> list[str]:
    """Return the built-in and learned methods that begin in a way."""
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.library import learned_names

    return _beginning([*METHODS, *learned_names()], incomplete)


def learned_method_names(incomplete: str) -> list[str]:
    """Return the learned methods of the package that begin in a way."""
    from ode2opt.solvers.library import learned_names

    return _beginning(learned_names(), incomplete)


def listed_method_names(incomplete: str) -> list[str]:
    """Return a list of methods, separated by commas, with its last name completed."""
    from ode2opt.solvers import METHODS
    from ode2opt.study.tuned import TUNED

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _beginning([*METHODS, *TUNED, "memory"], last)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


class Split(StrEnum):
    """How train and test rows are told apart."""

    paper = "paper"
    shuffled = "shuffled"


class EstimatorChoice(StrEnum):
    """How curvature is estimated."""

    power = "power"
    l0l1 = "l0l1"


class MissingChoice(StrEnum):
    """What happens to missing cells."""

    error = "error"
    drop = "drop"
    mean = "mean"


class DecimalChoice(StrEnum):
    """The decimal sign of text."""

    point = "."
    comma = ","


def named(text: str | Path) -> Path:
    """Return the path that an option names; an empty name is refused."""
    if not str(text):
        raise typer.BadParameter("the name is empty")
    return Path(text)


def _named_json(text: str | None) -> str | None:
    return text if text is None else str(text) if text == "-" else str(named(text))


RESULT_PANEL = "The result"
PROBLEM_NAMES = " or ".join([", ".join([*KINDS][:-1]), [*KINDS][-1]])
ProblemArgument = Annotated[str, typer.Argument(help=PROBLEM_NAMES, autocompletion=problem_names)]
DatasetArgument = Annotated[
    str,
    typer.Argument(help="a name of 'ode2opt data list', or a file", autocompletion=dataset_names),
]
SeedOption = Annotated[int, typer.Option(help="Drives which rows make a problem.")]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON; - is standard output.",
        callback=_named_json,
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="No lines of progress on stderr where it is no terminal (one a minute otherwise).",
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
PowerOption = Annotated[int, typer.Option("--p", help="The even power of lpp.")]
RidgeOption = Annotated[float, typer.Option("--l2", help="Weight of l2/2 |x|^2.")]
InterceptOption = Annotated[
    bool,
    typer.Option("--intercept", help="Fit an intercept, which l2 leaves alone: x's last number."),
]


def _cluster(purpose: str) -> Any:
    return typer.Option(
        "--cluster",
        metavar="local|ADDRESS",
        help=f"Dask workers to {purpose}: processes of this machine, started and closed, or those "
        f"of a running scheduler.",
        show_default=False,
    )


def _workers(what: str) -> Any:
    text = f"Processes of --cluster local{what}; one a processor by default."
    return typer.Option("--workers", min=1, help=text, show_default=False)


ClusterOption = Annotated[str | None, _cluster("hold the rows")]
WorkersOption = Annotated[int | None, _workers(", or threads without a cluster")]
WorkClusterOption = Annotated[str | None, _cluster("share the work")]
WorkProcessesOption = Annotated[int | None, _workers("")]
MemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        metavar="2GB",
        help="What rows in parts may take; the rest stays on disk.",
        show_default=False,
    ),
]


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


@dataclass(frozen=True)
class Reading:
    """The options of commands that read a user's table."""

    label: LabelOption = None
    missing: MissingOption = MissingChoice.error
    drop: DropOption = None
    columns: ColumnsOption = None
    decimal: DecimalOption = None

    def options(self) -> ReadOptions:
        """Return how tables are read."""
        return ReadOptions.of(
            label=self.label,
            weights=getattr(self, "weights", None),
            missing=self.missing.value,
            drop=_names(self.drop),
            columns=_names(self.columns),
            decimal=self.decimal and self.decimal.value,
        )


@dataclass(frozen=True)
class WeightedReading(Reading):
    """The same where rows may have weights."""

    weights: WeightsOption = None


@dataclass(frozen=True)
class FamilyOptions:
    """The options of commands that draw problems from a dataset."""

    size: SizeOption = None
    split: SplitOption = None
    p: PowerOption = 4
    l2: RidgeOption = 0.0
    intercept: InterceptOption = False

    def family(
        self, problem: str, dataset: str, reading: Reading, penalty: L1Penalty | None = None
    ) -> Any:
        """Return the family of problems of a dataset, showing a download."""
        from ode2opt.problems import Family

        options = model_options(problem, self.p, self.l2, self.intercept)
        with downloads() as progress:
            family = Family.from_dataset(
                problem,
                dataset,
                split=self.split and self.split.value,
                size=self.size,
                progress=progress,
                reading=reading.options(),
                **options,
            )
        return family if penalty is None else penalty.family(family)


@dataclass(frozen=True)
class JsonResult:
    """The options of commands whose result is a JSON document, too."""

    json_file: JsonOption = None
    overwrite: OverwriteOption = False

    @property
    def for_people(self) -> bool:
        """Whether standard output is for people: JSON is written elsewhere, or not at all."""
        return self.json_file != "-"

    def check(
        self, ours: Recogniser, inputs: Iterable[str | Path | None] = (), *more: Output
    ) -> None:
        """Refuse outputs that would replace something else, or cannot be written."""
        check_outputs([Output("--json", self.json_file, ours), *more], inputs, self.overwrite)

    def write(self, document: Any) -> None:
        """Write the document where it was asked for."""
        write_json(document, self.json_file)


@contextmanager
def executor_of(
    cluster: str | None, workers: int | None, same: Sequence[str] = ()
) -> Iterator[Any | None]:
    """Give the executor of a Dask cluster, None where none is asked for; a local one is closed."""
    if cluster is None:
        if workers is not None:
            raise InputError("--workers is for --cluster local.")
        yield None
        return
    from ode2opt.integrations.dask import open_executor

    with open_executor(cluster, workers, same=same, tell=mention) as executor:
        yield executor


def as_bytes(amount: str | None) -> int | None:
    """Return the bytes of an amount of memory."""
    if amount is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([kMGT]?)(i?)B", amount)
    size = 0
    if found is not None:
        number, unit, binary = found.groups()
        size = int(float(number) * (1024 if binary else 1000) ** " kMGT".index(unit or " "))
    if size <= 0:
        raise InputError(f"'{amount}' is no amount of memory: write it like 2GB.")
    return size


def say_notes(words: tuple[str, ...], notes: tuple[str, ...] = ()) -> None:
    """Say what was done to a file, and what has become of labels that are not numbers."""
    from ode2opt.data.preparing import labels_note

    for note in notes:
        say(note)
    if words:
        say(labels_note(words))


def method_files(given: list[str]) -> dict[str, str]:
    """Return the files of options ``[NAME=]FILE`` by name; without one, by the file's stem."""
    files: dict[str, str] = {}
    for text in given:
        name, sign, file = text.partition("=")
        if not sign or not name or "/" in name:
            name, file = Path(text).stem, text
        if name in files:
            raise InputError(f"The method {name} is named twice: give --method NAME=FILE.")
        files[name] = file
    return files


def load_method(name: str) -> Any:
    """Return a built-in method's name as it is, or the method of a file or of the package."""
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.library import by_name_or_file

    return name if name in METHODS else by_name_or_file(name)


def model_options(problem: str, p: int, l2: float, intercept: bool) -> dict[str, Any]:
    """Return the arguments of a problem beside its rows."""
    from ode2opt.problems.family import kind_of
    from ode2opt.problems.losses import Lpp

    options: dict[str, Any] = {"l2": l2} | ({"intercept": True} if intercept else {})
    if kind_of(problem) is Lpp:
        options["p"] = p
    elif p != 4:
        raise InputError(f"--p {p} is for lpp; {problem} has no power.")
    return options


def _names(text: str | None) -> list[str]:
    """Return the names of a list that is separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
