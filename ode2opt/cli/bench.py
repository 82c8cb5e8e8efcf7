"""ode2opt bench."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from ode2opt.base.progress import bar
from ode2opt.base.terminal import fail, out, say, write_json
from ode2opt.cli.app import app
from ode2opt.cli.completion import listed_method_names
from ode2opt.cli.options import (
    DatasetArgument,
    HandoverChoice,
    HandoverOption,
    InterceptOption,
    JsonOption,
    PowerOption,
    ProblemArgument,
    RidgeOption,
    SeedOption,
    SizeOption,
    SplitOption,
    WorkClusterOption,
    WorkProcessesOption,
    executor_of,
    load_family,
    load_method,
    method_files,
    model_options,
    say_notes,
)
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    check_outputs,
    dataset_files,
    json_with,
    method_file,
)
from ode2opt.cli.reading import ReadingOption, with_reading_options
from ode2opt.data.files.columns import DEFAULT_OPTIONS

RESULT = json_with("problem", "dataset", "instances", "methods")


@app.command(
    epilog="Example: [bold]ode2opt bench logistic a5a --methods nag,lbfgs "
    "--method mine=runs/logistic-a5a/method.safetensors[/bold], or, with four processes of Dask, "
    "[bold]ode2opt bench logistic a5a --cluster local --workers 4[/bold]"
)
@with_reading_options()
def bench(
    problem: ProblemArgument,
    dataset: DatasetArgument,
    methods: Annotated[
        str,
        typer.Option(
            help="Built-in methods, separated by commas; memory solves the problems in order, "
            "each with what the ones before have taught.",
            autocompletion=listed_method_names,
        ),
    ] = "gd,nag,nag-restart,igahd,eigac-c1,eigac-c2,eigac-c4,lbfgs,auto,memory",
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FILE", help="A learned method; may be given several times."),
    ] = None,
    instances: Annotated[int, typer.Option(help="Test problems.")] = 100,
    size: SizeOption = None,
    split: SplitOption = None,
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 3e-4,
    max_iter: Annotated[int, typer.Option(help="Iterations a run.")] = 500,
    seed: SeedOption = 0,
    jobs: Annotated[int, typer.Option(help="Processes, without --cluster.")] = 2,
    cluster: WorkClusterOption = None,
    workers: WorkProcessesOption = None,
    handover: HandoverOption = HandoverChoice.guard,
    confidence: Annotated[
        float,
        typer.Option(help="Of what is said about further problems, between 0 and 1."),
    ] = 0.95,
    p: PowerOption = 4,
    l2: RidgeOption = 0.0,
    intercept: InterceptOption = False,
    reading: ReadingOption = DEFAULT_OPTIONS,
    json_file: JsonOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Compare methods on fresh test problems of a dataset."""
    from ode2opt.study.benchmark import Settings, run_benchmark

    files = method_files(method or [])
    inputs = [*dataset_files(dataset), *map(method_file, files.values())]
    check_outputs([Output("--json", json_file, RESULT)], inputs, overwrite)
    settings = Settings(
        methods=tuple(name.strip() for name in methods.split(",") if name.strip()),
        learned={name: load_method(file) for name, file in files.items()},
        instances=instances,
        tol=tol,
        max_iter=max_iter,
        seed=seed,
        handover=handover.value,
        jobs=jobs,
        confidence=confidence,
    )
    model = model_options(problem, p, l2, intercept)
    family = load_family(problem, dataset, split, size, model, reading)
    with (
        executor_of(cluster, workers) as executor,
        bar(f"{problem} {dataset}", instances) as advance,
    ):
        benchmark = run_benchmark(family, settings, advance, executor)
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
    as_they_are = [name for name, own in settings.handovers().items() if own != handover.value]
    if as_they_are:
        document["as_they_are"] = as_they_are
    if json_file != "-":
        from ode2opt.study.terminal_tables import (
            benchmark_table,
            expected_words,
            payback_sentences,
        )

        title = (
            f"{problem} {dataset}: {benchmark.instances} test problems of {family.size} rows, "
            f"{family.split} split, tol {tol:g}"
        )
        out.print(benchmark_table(benchmark, title))
        say_notes(family.words, family.notes)
        for sentence in (
            *_without_relay(as_they_are),
            *_away(settings.learned, family),
            *expected_words(benchmark.statistics(), settings.learned),
            *payback_sentences(benchmark.statistics()),
            *filter(None, [benchmark.disturbance()]),
        ):
            say(sentence)
    write_json(document, json_file)
    if benchmark.instances < instances:
        fail(f"Interrupted after {benchmark.instances} of {instances} instances.", 1)


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
