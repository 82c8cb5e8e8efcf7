"""ode2opt bench."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from ode2opt.base.errors import InputError
from ode2opt.base.terminal import bar, fail, out, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import opt, options_of, with_options
from ode2opt.cli.options import (
    RESULT_PANEL,
    DatasetArgument,
    FamilyOptions,
    JsonResult,
    ProblemArgument,
    WeightedReading,
    WorkOptions,
    listed_method_names,
    load_method,
    say_notes,
)
from ode2opt.cli.outputs import dataset_files, json_with, method_file
from ode2opt.learning.options import PROBLEMS_PANEL, WORK_PANEL
from ode2opt.study.benchmark import RUNS_PANEL, Benchmark, Settings

RESULT = json_with("problem", "dataset", "instances", "methods")


@app.command(
    epilog="Example: [bold]ode2opt bench logistic a5a --methods nag,lbfgs "
    "--method mine=runs/logistic-a5a/method.safetensors[/bold], or, with four processes of Dask, "
    "[bold]ode2opt bench logistic a5a --cluster local --workers 4[/bold]"
)
@with_options(
    options_of({"bench": Settings}),
    {
        RUNS_PANEL: ("methods", "method"),
        PROBLEMS_PANEL: ("family", "reading"),
        WORK_PANEL: ("work",),
        RESULT_PANEL: ("result",),
    },
)
def bench(
    *,
    problem: ProblemArgument,
    dataset: DatasetArgument,
    methods: Annotated[
        str,
        opt(
            "Built-in methods, separated by commas; memory solves the problems in order, "
            "each with what the ones before have taught; eigac-tuned and nag-tuned choose their "
            "constants on two training problems.",
            autocompletion=listed_method_names,
        ),
    ] = "gd,nag,nag-restart,igahd,eigac-c1,eigac-c2,eigac-c4,lbfgs,auto,memory",
    method: Annotated[
        list[str] | None,
        opt("A learned method; may be given several times.", metavar="[NAME=]FILE"),
    ] = None,
    work: WorkOptions,
    family: FamilyOptions,
    reading: WeightedReading,
    result: JsonResult,
    **runs: Any,
) -> None:
    """Compare methods on fresh test problems of a dataset."""
    from ode2opt.study.benchmark import run_benchmark

    files = _method_files(method or [])
    result.check(RESULT, [*dataset_files(dataset), *map(method_file, files.values())])
    learned = {name: load_method(file) for name, file in files.items()}
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    settings = Settings(names, learned, **runs)
    problems, asked = family.family(problem, dataset, reading), settings.instances
    with work.executor() as executor, bar(f"{problem} {dataset}", asked) as advance:
        benchmark = run_benchmark(problems, settings, advance, executor)
    document = {
        "problem": problem,
        "dataset": dataset,
        "split": problems.split,
        "instances": benchmark.instances,
        "size": problems.size,
        "tol": settings.tol,
        "max_iter": settings.max_iter,
        "seed": settings.seed,
        "methods": benchmark.statistics(),
    }
    if benchmark.tuned:
        document["tuned"] = {name: one.summary() for name, one in benchmark.tuned.items()}
    unlike = [name for name, own in settings.handovers().items() if own != settings.handover]
    if unlike:
        document["as_they_are"] = unlike
    if result.for_people:
        _show(benchmark, problems, f"{problem} {dataset}", unlike)
    result.write(document)
    if benchmark.instances < asked:
        fail(f"Interrupted after {benchmark.instances} of {asked} instances.", 1)


def _show(benchmark: Benchmark, family: Any, cell: str, unlike: Sequence[str]) -> None:
    """Print the table, and what is to be known about it."""
    from ode2opt.study.result_tables import benchmark_table, expected_words, payback_sentences

    settings, statistics = benchmark.settings, benchmark.statistics()
    title = (
        f"{cell}: {benchmark.instances} test problems of {family.size} rows, {family.split} split, "
        f"tol {settings.tol:g}"
    )
    out.print(benchmark_table(statistics, benchmark.instances, title).terminal())
    say_notes(family.words, family.notes)
    for sentence in (
        *(one.words() for one in benchmark.tuned.values()),
        *_without_relay(unlike),
        *_away(settings.learned, family),
        *expected_words(statistics, settings.learned),
        *payback_sentences(statistics),
        *filter(None, [benchmark.disturbance()]),
    ):
        say(sentence)


def _without_relay(names: Sequence[str]) -> Iterator[str]:
    """Say which methods the relay that was asked for does not apply to."""
    if names:
        yield f"The relay is for EIGAC with a table; run as they are: {', '.join(names)}."


def _away(learned: Mapping[str, Any], family: Any) -> Iterator[str]:
    """Say of each method that was learned for another family or split that it was."""
    for name, method in learned.items():
        home = method.provenance.get("family")
        there = (home.get("name"), home.get("split")) if isinstance(home, dict) else None
        if there is not None and there != (family.name, family.split):
            yield f"{name} was learned for {there[0]} ({there[1]} split), not for these problems."


def _method_files(given: list[str]) -> dict[str, str]:
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
