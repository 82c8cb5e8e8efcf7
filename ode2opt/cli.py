"""The command line: parses, calls, prints; no mathematics."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.table import Table

from ode2opt import __version__
from ode2opt.errors import InputError, Ode2OptError
from ode2opt.terminal import (
    bar,
    check_writable,
    downloads,
    err,
    facts_table,
    fail,
    out,
    spinner,
    write_atomically,
    write_json,
)

app = typer.Typer(
    name="ode2opt",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Learn optimisation methods from differential equations, and solve with them.",
    epilog="Add --debug to any command to see the traceback of an error.",
)
data_app = typer.Typer(no_args_is_help=True, help="List, fetch and describe the datasets.")
app.add_typer(data_app, name="data")


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


INTERRUPTED = 130


# Commands --------------------------------------------------------------------------------


@app.command(
    epilog="Example: [bold]ode2opt bench logistic a5a --methods nag,eigac-c4 --instances 20[/bold]"
)
def bench(
    problem: Annotated[str, typer.Argument(help="logistic, lpp or leastsquares")],
    dataset: Annotated[str, typer.Argument(help="a name of 'ode2opt data list', or a file")],
    methods: Annotated[
        str, typer.Option(help="Built-in methods, separated by commas.")
    ] = "gd,nag,nag-restart,igahd,eigac-c1,eigac-c2,eigac-c4,lbfgs",
    instances: Annotated[int, typer.Option(help="Test problems.")] = 100,
    size: SizeOption = None,
    split: SplitOption = None,
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 3e-4,
    max_iter: Annotated[int, typer.Option(help="Iterations a run.")] = 500,
    seed: Annotated[int, typer.Option(help="Drives which rows make a problem.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    handover: HandoverOption = HandoverChoice.guard,
    p: PowerOption = 4,
    l2: RidgeOption = 0.0,
    label: LabelOption = None,
    json_file: JsonOption = None,
) -> None:
    """Compare methods on fresh test problems of a dataset."""
    from ode2opt.study.benchmark import Settings, run_benchmark

    settings = Settings(
        methods=tuple(name.strip() for name in methods.split(",") if name.strip()),
        instances=instances,
        tol=tol,
        max_iter=max_iter,
        seed=seed,
        handover=handover.value,
        jobs=jobs,
    )
    check_writable(json_file)
    family = _family(problem, dataset, split, size, label, _model_options(problem, p, l2))
    with bar(f"{problem} {dataset}", instances) as advance:
        benchmark = run_benchmark(family, settings, advance)
    document = {
        "problem": problem,
        "dataset": dataset,
        "split": family.split,
        "instances": benchmark.instances,
        "size": family.size,
        "tol": tol,
        "max_iter": max_iter,
        "seed": seed,
        "methods": benchmark.statistics(),
    }
    if json_file != "-":
        from ode2opt.study.tables import benchmark_table

        title = (
            f"{problem} {dataset}: {benchmark.instances} test problems of {family.size} rows, "
            f"{family.split} split, tol {tol:g}"
        )
        out.print(benchmark_table(benchmark, title))
    write_json(document, json_file)
    if benchmark.instances < instances:
        fail(f"Interrupted after {benchmark.instances} of {instances} instances.", 1)


@app.command(
    epilog="Example: [bold]ode2opt solve train.csv --problem logistic --l2 0.001 --out x.npz[/bold]"
)
def solve(
    file: Annotated[Path, typer.Argument(help="LIBSVM, CSV, NPZ or Parquet file")],
    problem: Annotated[str, typer.Option(help="logistic, lpp or leastsquares")],
    method: Annotated[str, typer.Option(help="A built-in method.")] = "eigac-c2",
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="At most this many iterations.")] = 100_000,
    max_seconds: Annotated[
        float | None, typer.Option(help="At most this much time.", show_default=False)
    ] = None,
    l2: RidgeOption = 0.0,
    p: PowerOption = 4,
    label: LabelOption = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", metavar="SOLUTION.npz", help="Write x and its facts.")
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Fit one problem to all rows of a file, columns as they are, no intercept."""
    from ode2opt import solve as minimise
    from ode2opt.problems.datasets import rows_of
    from ode2opt.problems.family import kind_of
    from ode2opt.problems.files import read_table

    kind = kind_of(problem)
    options = _model_options(problem, p, l2)
    check_writable(json_file)
    check_writable(out_file)
    if out_file is not None and str(out_file) in ("-", json_file):
        raise InputError(f"--out {out_file} must name a file of its own.")
    rows = rows_of(read_table(file, label=label), str(file), binary=problem == "logistic")
    model = kind(rows.A, rows.b, **options)
    with spinner(f"{problem} {file.name}, {model.N:,} x {model.n:,}") as callback:
        result = minimise(
            model,
            method=method,
            tol=tol,
            max_iter=max_iter,
            max_seconds=max_seconds,
            callback=callback,
        )
    if out_file is not None:
        write_atomically(out_file, result.save)
    if json_file != "-":
        out.print(
            facts_table(result.summary() | {"status": result.message}, f"{method} on {file.name}")
        )
    write_json(result.summary(), json_file)
    if not result.success:
        fail(f"{result.message} Gradient norm {result.grad_norm:.3g}, tolerance {tol:g}.", 1)


@app.command(epilog="Example: [bold]ode2opt certify eigac-c4 lpp a5a --worst-case 5[/bold]")
def certify(
    method: Annotated[str, typer.Argument(help="a built-in method with a schedule")],
    problem: Annotated[str, typer.Argument(help="logistic, lpp or leastsquares")],
    dataset: Annotated[str, typer.Argument(help="a name of 'ode2opt data list', or a file")],
    instances: Annotated[int, typer.Option(help="Test problems to follow.")] = 10,
    size: SizeOption = None,
    split: SplitOption = None,
    max_iter: Annotated[int, typer.Option(help="Iterations to follow.")] = 500,
    seed: Annotated[int, typer.Option(help="Drives which rows make a problem.")] = 0,
    estimator: Annotated[
        EstimatorChoice, typer.Option(help="How the curvature along the way is found.")
    ] = EstimatorChoice.power,
    worst_case: Annotated[
        int | None,
        typer.Option(metavar="N", help="Add the exact worst case of N <= 30 iterations."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw contraction factor, C and |1-B|.")
    ] = None,
    p: PowerOption = 4,
    l2: RidgeOption = 0.0,
    label: LabelOption = None,
    json_file: JsonOption = None,
) -> None:
    """Say what theory and instances promise about a method; exits 1 if it is refused."""
    from ode2opt.study import certification

    check_writable(json_file)
    check_writable(figure)
    family = _family(problem, dataset, split, size, label, _model_options(problem, p, l2))
    with bar(f"{method} on {problem} {dataset}", instances) as advance:
        certificate = certification.certify_family(
            method, family, instances=instances, seed=seed, K=max_iter,
            estimator=estimator.value, worst_case=worst_case, advance=advance,
        )  # fmt: skip
    if figure is not None:
        from ode2opt.study.figures import certificate_figure

        drawn = certificate_figure(certificate)
        form = figure.suffix.lstrip(".") or "png"
        write_atomically(figure, lambda stream: drawn.savefig(stream, format=form))
    if json_file != "-":
        from ode2opt.study.tables import certificate_table

        out.print(certificate_table(certificate, f"{method} on {problem} {dataset}"))
        for sentence in certificate.words():
            out.print(sentence, highlight=False)
    write_json(
        {"problem": problem, "dataset": dataset} | certificate.summary() | _details(certificate),
        json_file,
    )
    if certificate.refused:
        fail(f"The certificate of {method} is refused; see the margins.", 1)


def _told(result: Any) -> dict[str, Any]:
    handovers = "; ".join(str(handover) for handover in result.handovers) or "none"
    return result.summary() | {"status": result.message, "handovers": handovers}


def _details(certificate: Any) -> dict[str, Any]:
    return {"estimator": certificate.estimator, "verdict": certificate.words()}


@app.command(epilog="Example: [bold]ode2opt demo[/bold]")
def demo() -> None:
    """Compare the methods on real handwritten digits, odd against even; takes seconds."""
    from ode2opt.study.demo import INSTANCES, run_demo
    from ode2opt.study.tables import benchmark_table

    with bar("logistic digits", INSTANCES) as advance:
        benchmark = run_demo(advance)
    out.print(benchmark_table(benchmark, "Odd against even digits, logistic regression, tol 3e-4"))


@data_app.command("list", epilog="Example: [bold]ode2opt data list[/bold]")
def data_list(json_file: JsonOption = None) -> None:
    """List the named datasets and where each would come from."""
    from ode2opt.problems import DATASETS

    check_writable(json_file)
    rows = [
        {
            "name": name,
            "columns": spec.n,
            "train": spec.n_train,
            "test": spec.n_test,
            "size": spec.size,
            "origin": spec.origin,
            "place": spec.place(),
        }
        for name, spec in DATASETS.items()
    ]
    if json_file != "-":
        table = Table("name", "columns", "train", "test", "rows a problem", "origin", "place")
        for row in rows:
            table.add_row(*(f"{v:,}" if isinstance(v, int) else str(v) for v in row.values()))
        out.print(table)
    write_json(rows, json_file)


@data_app.command("fetch", epilog="Example: [bold]ode2opt data fetch a5a[/bold]")
def data_fetch(name: Annotated[str, typer.Argument(help="a dataset's name")]) -> None:
    """Download a dataset into the cache, check its hash, and read it once."""
    from ode2opt.errors import unknown_name
    from ode2opt.problems import DATASETS

    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    data = _load(name)
    out.print(f"{name} is ready: {DATASETS[name].place()}, {data.n} columns.")


@data_app.command("info", epilog="Example: [bold]ode2opt data info mushrooms[/bold]")
def data_info(
    name: Annotated[str, typer.Argument(help="a dataset's name, or a file")],
    split: SplitOption = None,
    label: LabelOption = None,
    json_file: JsonOption = None,
) -> None:
    """Describe a dataset as it is loaded: sizes, density, share of ones in train and test."""
    from ode2opt.problems.datasets import describe

    check_writable(json_file)
    facts = describe(_load(name, split, label))
    if json_file != "-":
        out.print(facts_table(facts, name))
    write_json(facts, json_file)


# Helpers --------------------------------------------------------------------------------


def _family(
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


def _load(name: str, split: Split | None = None, label: str | None = None) -> Any:
    from ode2opt.problems import load_dataset

    with downloads() as progress:
        return load_dataset(
            name, split=split and split.value, binary=None, label=label, progress=progress
        )


def _model_options(problem: str, p: int, l2: float) -> dict[str, Any]:
    from ode2opt.problems.family import kind_of
    from ode2opt.problems.linear_model import Lpp

    options: dict[str, Any] = {"l2": l2}
    if kind_of(problem) is Lpp:
        options["p"] = p
    elif p != 4:
        raise InputError(f"--p {p} is for lpp; {problem} has no power.")
    return options


def _version(value: bool) -> None:
    if value:
        out.print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line; an error is one sentence, a traceback comes with --debug."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        app(args=arguments, prog_name="ode2opt")
    except Ode2OptError as error:
        _end(str(error), error.exit_code, debug)
    except MemoryError as error:
        _end(f"Out of memory: {error}", 1, debug)
    except OSError as error:
        _end(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ") + ".", 1, debug)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer's code for Ctrl-C
            _end("Interrupted.", 1, debug)
        raise
    except Exception as error:
        _end(f"{type(error).__name__}: {error} (this is a bug; --debug shows where).", 1, debug)
    sys.exit(0)


def _end(sentence: str, code: int, debug: bool) -> NoReturn:
    if debug:
        err.print_exception()
    try:
        fail(sentence, code)
    except typer.Exit:
        sys.exit(code)
