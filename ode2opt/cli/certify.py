"""ode2opt certify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.base.errors import InputError, needing
from ode2opt.base.progress import bar
from ode2opt.base.storage import write_atomically
from ode2opt.base.terminal import fail, out, say, write_json
from ode2opt.cli.app import app
from ode2opt.cli.completion import method_names
from ode2opt.cli.options import (
    DatasetArgument,
    EstimatorChoice,
    InterceptOption,
    JsonOption,
    PowerOption,
    ProblemArgument,
    RidgeOption,
    SeedOption,
    SizeOption,
    SplitOption,
    load_family,
    load_method,
    model_options,
    named,
)
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    check_outputs,
    dataset_files,
    json_with,
    method_file,
    unknown,
)
from ode2opt.cli.penalising import L1Option, Penalising, RatioOption
from ode2opt.cli.reading import ReadingOption, with_reading_options
from ode2opt.data.files.columns import DEFAULT_OPTIONS

RESULT = json_with("method", "problem", "dataset", "levels")


@app.command(epilog="Example: [bold]ode2opt certify eigac-c4 lpp a5a --worst-case 5[/bold]")
@with_reading_options(weights=False)
def certify(
    method: Annotated[
        str,
        typer.Argument(
            help="a learned method's file, or a built-in with a schedule",
            autocompletion=method_names,
        ),
    ],
    problem: ProblemArgument,
    dataset: DatasetArgument,
    instances: Annotated[int, typer.Option(help="Test problems to follow.")] = 10,
    size: SizeOption = None,
    split: SplitOption = None,
    max_iter: Annotated[int, typer.Option(help="Iterations to follow.")] = 500,
    seed: SeedOption = 0,
    estimator: Annotated[
        EstimatorChoice, typer.Option(help="How the curvature along the way is found.")
    ] = EstimatorChoice.power,
    worst_case: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Print a bound on N <= 201 iterations over all L-smooth convex functions.",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw contraction factor, C and |1-B|.", parser=named),
    ] = None,
    p: PowerOption = 4,
    l2: RidgeOption = 0.0,
    l1: L1Option = None,
    l1_ratio: RatioOption = None,
    intercept: InterceptOption = False,
    reading: ReadingOption = DEFAULT_OPTIONS,
    json_file: JsonOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Say what is proved of a method, and what holds along instances; exits 1 if it is refused.

    A proved method is never refused. Any other has to be linearly stable along the instances; its
    flow, if it has one, to meet Theorem 1 with a bound below the start; and its first 80 iterations
    not to be driven away by any function as smooth as the instances. --worst-case decides nothing.
    """
    with needing("learn"):
        from ode2opt.study import style
        from ode2opt.study.certify import certify_family

    check_outputs(
        [Output("--json", json_file, RESULT), Output("--figure", figure, unknown)],
        [*dataset_files(dataset), method_file(method)],
        overwrite,
    )
    form = None if figure is None else style.check_figure_file(figure)
    model = model_options(problem, p, l2, intercept)
    penalising = Penalising(l1, l1_ratio)
    family = penalising.family(load_family(problem, dataset, split, size, model, reading))
    with bar(f"{method} on {problem} {dataset}", instances) as advance:
        certificate = certify_family(
            load_method(method), family, instances=instances, seed=seed, K=max_iter,
            estimator=estimator.value, worst_case=worst_case, advance=advance,
        )  # fmt: skip
    if figure is not None and not certificate.traces:
        raise InputError(f"{method} has no table to draw; leave out --figure.")
    if figure is not None:
        drawn = style.certificate_figure(certificate)
        write_atomically(figure, lambda stream: drawn.savefig(stream, format=form))
    if json_file != "-":
        from ode2opt.study.terminal_tables import certificate_table

        if certificate.conditions:
            out.print(certificate_table(certificate, f"{method} on {problem} {dataset}"))
        for sentence in certificate.words():
            say(sentence)
    write_json(
        {"problem": problem, "dataset": dataset}
        | certificate.summary()
        | {"method": method}
        | _details(certificate),
        json_file,
    )
    if certificate.refused:
        fail(f"The certificate of {method} is refused: {certificate.refusal}", 1)


def _details(certificate: Any) -> dict[str, Any]:
    return {"estimator": certificate.estimator, "verdict": certificate.words()}
