"""Options that several commands share, what a shell completes them with, what is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ode2opt.base.errors import InputError
from ode2opt.base.terminal import downloads, mention, say, write_json
from ode2opt.cli.from_options import choice_opt, file_argument, named, opt
from ode2opt.cli.outputs import Output, OverwriteOption, Recogniser, check_outputs
from ode2opt.data.files import ReadOptions
from ode2opt.problems.family import KINDS

if TYPE_CHECKING:
    import numpy as np

    from ode2opt import Family
    from ode2opt.penalties import Penalty


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell completes names with; without an offer it completes names of files."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _datasets() -> Iterable[str]:
    from ode2opt.problems import DATASETS

    return DATASETS


def _methods(built_in: bool) -> Iterable[str]:
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.methods import learned_names

    return [*(METHODS if built_in else ()), *learned_names()]


dataset_names = completing(_datasets)
method_names = completing(lambda: _methods(built_in=True))
learned_method_names = completing(lambda: _methods(built_in=False))


def listed_method_names(incomplete: str) -> list[str]:
    """Return a list of methods, separated by commas, with its last name completed."""
    from ode2opt.solvers import METHODS
    from ode2opt.study.tuned import TUNED

    before, comma, last = incomplete.rpartition(",")
    names = completing(lambda: [*METHODS, *TUNED, "memory"])(last)
    return [before + comma + name for name in names]


def _named_json(text: str | None) -> str | None:
    return text if text is None else str(text) if text == "-" else str(named(text))


RESULT_PANEL = "The result"
*_FIRST, _LAST = KINDS
PROBLEM_NAMES = f"{', '.join(_FIRST)} or {_LAST}"
problem_names = completing(lambda: KINDS)
ProblemArgument = Annotated[str, typer.Argument(help=PROBLEM_NAMES, autocompletion=problem_names)]
DatasetArgument = Annotated[
    str,
    typer.Argument(help="a name of 'ode2opt data list', or a file", autocompletion=dataset_names),
]
ModelArgument = Annotated[
    Path, file_argument("a file of 'ode2opt solve --out MODEL.safetensors'", metavar="MODEL")
]
SeedOption = Annotated[int, opt("Drives which rows make a problem.")]
QuietOption = Annotated[
    bool,
    opt(
        "No lines of progress on stderr where it is no terminal (one a minute otherwise).",
        "--quiet",
    ),
]
SplitOption: Any = choice_opt(
    ("paper", "shuffled"),
    "paper: by file order; shuffled: at random. By default paper for named data, shuffled for "
    "files.",
)
DecimalOption: Any = choice_opt(
    (".", ","),
    "The decimal sign of a CSV file; by default it is found out.",
    metavar=". or ,",
)
MissingOption: Any = choice_opt(
    ("error", "drop", "mean"),
    "What happens to missing cells: drop leaves their rows out, mean takes the mean of the column "
    "(of numbers; a missing word stays an error).",
)


def cluster_opt(purpose: str) -> Any:
    """Declare the option of Dask workers."""
    return opt(
        f"Dask workers to {purpose}: processes of this machine, started and closed, or those of a "
        f"running scheduler.",
        "--cluster",
        metavar="local|ADDRESS",
    )


def workers_opt(what: str) -> Any:
    """Declare how many workers there are."""
    text = f"Processes of --cluster local{what}; one a processor by default."
    return opt(text, "--workers", min=1)


@dataclass(frozen=True)
class WorkOptions:
    """The options of commands whose work is shared among Dask workers."""

    cluster: Annotated[str | None, cluster_opt("share the work")] = None
    workers: Annotated[int | None, workers_opt("")] = None

    @contextmanager
    def executor(self, same: Sequence[str] = ()) -> Iterator[Any | None]:
        """Give the executor, None without --cluster; a local one is closed."""
        if self.cluster is None:
            if self.workers is not None:
                raise InputError("--workers is for --cluster local.")
            yield None
            return
        from ode2opt.integrations.dask import open_executor

        with open_executor(self.cluster, self.workers, same=same, tell=mention) as executor:
            yield executor


@dataclass(frozen=True)
class Reading:
    """The options of commands that read a user's table."""

    label: Annotated[str | None, opt("Label column of a CSV or Parquet file.")] = None
    missing: MissingOption = "error"
    drop: Annotated[
        str | None,
        opt(
            "Columns of a CSV or Parquet file that are no features: names or numbers from 0, "
            "separated by commas.",
            metavar="COLUMNS",
        ),
    ] = None
    columns: Annotated[
        str | None,
        opt(
            "The only columns of a CSV or Parquet file that are features, given like --drop.",
            metavar="COLUMNS",
        ),
    ] = None
    decimal: DecimalOption = None

    def options(self) -> ReadOptions:
        """Return how tables are read."""
        return ReadOptions.of(
            label=self.label,
            weights=getattr(self, "weights", None),
            missing=str(self.missing),
            drop=_names(self.drop),
            columns=_names(self.columns),
            decimal=self.decimal and str(self.decimal),
        )


@dataclass(frozen=True)
class WeightedReading(Reading):
    """The same where rows may have weights."""

    weights: Annotated[
        str | None,
        opt(
            "Column of a CSV or Parquet file (array of an NPZ file) with the rows' weights.",
            metavar="COLUMN",
        ),
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """What a problem is made with, its rows apart."""

    l2: Annotated[float, opt("Weight of l2/2 |x|^2.", "--l2")] = 0.0
    intercept: Annotated[
        bool, opt("Fit an intercept, which l2 leaves alone: x's last number.", "--intercept")
    ] = False
    p: Annotated[int, opt("The even power of lpp.", "--p")] = 4

    def options(self, problem: str) -> dict[str, Any]:
        """Return the arguments of a problem; a power is refused where there is none."""
        from ode2opt.problems.family import kind_of
        from ode2opt.problems.losses import Lpp

        options: dict[str, Any] = {"l2": self.l2} | ({"intercept": True} if self.intercept else {})
        if kind_of(problem) is Lpp:
            options["p"] = self.p
        elif self.p != 4:
            raise InputError(f"--p {self.p} is for lpp; {problem} has no power.")
        return options


PENALTY_PANEL = "Penalty and limits"


def _weight(flag: str, metavar: str, text: str) -> Any:
    return opt(text, flag, metavar=metavar, rich_help_panel=PENALTY_PANEL)


Weight = float | None


@dataclass(frozen=True)
class L1Penalty:
    """The weight of |x|_1, and the share of it that is on absolute values, not on squares."""

    l1: Annotated[
        Weight,
        _weight(
            "--l1", "W", "Add W |x|_1: many coefficients become 0; an intercept is left alone."
        ),
    ] = None
    l1_ratio: Annotated[
        Weight,
        _weight(
            "--l1-ratio",
            "R",
            "Of --l1 W: add W (R |x|_1 + (1 - R)/2 |x|^2), an elastic net; 1 by default.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.l1 is not None and not 0 <= self.l1 < math.inf:
            raise InputError(f"--l1 is {self.l1:g}: it must be zero or a positive number.")
        if self.l1_ratio is not None and self.l1 is None:
            raise InputError("--l1-ratio says how --l1 W is shared out: give --l1, too.")
        if self.l1_ratio is not None and not 0 <= self.l1_ratio <= 1:
            raise InputError(f"--l1-ratio is {self.l1_ratio:g}: it must be between 0 and 1.")

    def penalty(self, sizes: np.ndarray | None = None) -> Penalty | None:
        """Return the penalty; None if nothing was asked for."""
        from ode2opt.penalties import L1, ElasticNet

        if self.l1 is None:
            return None
        return L1(self.l1) if self.l1_ratio is None else ElasticNet(self.l1, self.l1_ratio)

    def family(self, family: Family) -> Family:
        """Return a family with the penalty added to each problem; as it is where there is none."""
        found = self.penalty()
        return family if found is None else family.with_penalty(found)

    def about(self) -> dict[str, Any]:
        """Return what was asked for by name, without what was not."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Penalising(L1Penalty):
    """The same with limits: the least and the largest coefficient, or both as a box."""

    lower: Annotated[
        Weight,
        _weight("--lower", "A", "No coefficient below A, such as 0; an intercept is left alone."),
    ] = None
    upper: Annotated[
        Weight, _weight("--upper", "B", "No coefficient above B; an intercept is left alone.")
    ] = None
    box: Annotated[
        tuple[float, float] | None,
        _weight("--box", "A B", "Short for --lower A --upper B, such as --box 0 1."),
    ] = None

    def __post_init__(self) -> None:
        if self.box is not None:
            if self.lower is not None or self.upper is not None:
                raise InputError(
                    "--box A B is short for --lower A --upper B: give one form of them."
                )
            for name, limit in (("lower", self.box[0]), ("upper", self.box[1]), ("box", None)):
                object.__setattr__(self, name, limit)
        super().__post_init__()
        for name in ("lower", "upper"):
            if math.isnan(getattr(self, name) or 0.0):
                raise InputError(f"--{name} is nan: it must be a number.")
        low, high = self._limits()
        if low > high or low == math.inf or high == -math.inf:
            raise InputError(f"No number lies between --lower {low:g} and --upper {high:g}.")

    def _limits(self) -> tuple[float, float]:
        lower = -math.inf if self.lower is None else self.lower
        return lower, math.inf if self.upper is None else self.upper

    def penalty(self, sizes: np.ndarray | None = None) -> Penalty | None:
        """Return the penalty; limits are for columns that were divided by ``sizes``."""
        from ode2opt.penalties import Box

        found = super().penalty(sizes)
        if self.lower is None and self.upper is None:
            return found
        box = Box(*(limit if sizes is None else limit * sizes for limit in self._limits()))
        return box if found is None else found + box


@dataclass(frozen=True)
class FamilyOptions(ModelOptions):
    """The options of commands that draw problems from a dataset."""

    size: Annotated[int | None, opt("Rows a problem; by default the paper's.")] = None
    split: SplitOption = None

    def family(
        self, problem: str, dataset: str, reading: Reading, penalty: L1Penalty | None = None
    ) -> Any:
        """Return the family of problems of a dataset, showing a download."""
        from ode2opt.problems import Family

        options = self.options(problem) | {"split": self.split and str(self.split)}
        options |= {"size": self.size, "reading": reading.options()}
        with downloads() as progress:
            family = Family.from_dataset(problem, dataset, progress=progress, **options)
        return family if penalty is None else penalty.family(family)


@dataclass(frozen=True)
class JsonResult:
    """The options of commands whose result is a JSON document, too."""

    json_file: Annotated[
        str | None,
        opt(
            "Write the result as JSON; - is standard output.",
            "--json",
            metavar="FILE|-",
            callback=_named_json,
        ),
    ] = None
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


def say_notes(words: tuple[str, ...], notes: tuple[str, ...] = ()) -> None:
    """Say what was done to a file, and what has become of labels that are not numbers."""
    from ode2opt.data.preparing import labels_note

    for note in notes:
        say(note)
    if words:
        say(labels_note(words))


def load_method(name: str) -> Any:
    """Return a built-in method's name as it is, or the method of a file or of the package."""
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.methods import by_name_or_file

    return name if name in METHODS else by_name_or_file(name)


def _names(text: str | None) -> list[str]:
    """Return the names of a list that is separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]
