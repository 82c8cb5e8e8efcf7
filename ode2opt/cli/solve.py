"""ode2opt solve."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ode2opt.base.errors import InputError, many
from ode2opt.base.terminal import facts_table, fail, mention, out, say, spinner, write_json
from ode2opt.base.terminal import reading as reading_bar
from ode2opt.cli.app import app
from ode2opt.cli.fit_rows import FitRows
from ode2opt.cli.fitted import (
    KEPT,
    SOLUTION,
    KeptPoint,
    check_model_ending,
    kept_file,
    measured,
    quality_facts,
    unconverged_file,
    with_quality,
    write_solution,
)
from ode2opt.cli.from_options import with_options
from ode2opt.cli.options import (
    PROBLEM_NAMES,
    ClusterOption,
    InterceptOption,
    JsonOption,
    MemoryLimitOption,
    PowerOption,
    QuietOption,
    RidgeOption,
    WeightedReading,
    WorkersOption,
    as_bytes,
    method_names,
    model_options,
    named,
    problem_names,
    say_notes,
)
from ode2opt.cli.outputs import (
    Output,
    OverwriteOption,
    check_outputs,
    json_with,
    method_file,
    read_before,
)
from ode2opt.cli.penalising import (
    BoxOption,
    L1Option,
    LowerOption,
    Penalising,
    RatioOption,
    UpperOption,
    limits_of,
    method_for,
)

if TYPE_CHECKING:
    from ode2opt import Result

RESULT = json_with("status", "success", "grad_norm", "oracle_calls")


@app.command(
    epilog="Example: [bold]ode2opt solve train.csv --problem logistic --l2 0.001 --holdout 0.2 "
    "--out model.safetensors[/bold], then [bold]ode2opt predict model.safetensors new.csv[/bold]. "
    "Few columns: [bold]ode2opt solve train.csv --problem logistic --intercept --l1 0.01[/bold]; "
    "shares between 0 and 1: [bold]--box 0 1[/bold]. "
    "Larger than memory, or than one machine: [bold]ode2opt solve 'data/part-*.parquet' --problem "
    "logistic --label y --cluster tcp://10.0.0.1:8786 --out model.safetensors --resume[/bold]"
)
@with_options()
def solve(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="LIBSVM, CSV, NPZ or Parquet file, a folder of them, or a pattern in quotes",
            parser=named,
        ),
    ],
    problem: Annotated[str, typer.Option(help=PROBLEM_NAMES, autocompletion=problem_names)],
    method: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME",
            help="A learned method's file, or a built-in name.",
            autocompletion=method_names,
        ),
    ] = "auto",
    memory: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Use what earlier solves left in this file, and leave there what this one finds.",
            show_default=False,
            parser=named,
        ),
    ] = None,
    tol: Annotated[
        float,
        typer.Option(help="Gradient norm to reach; with a penalty or limits, the residual."),
    ] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="At most this many iterations.")] = 100_000,
    max_seconds: Annotated[
        float | None, typer.Option(help="At most this much time.", show_default=False)
    ] = None,
    l2: RidgeOption = 0.0,
    l1: L1Option = None,
    l1_ratio: RatioOption = None,
    lower: LowerOption = None,
    upper: UpperOption = None,
    box: BoxOption = None,
    intercept: InterceptOption = False,
    p: PowerOption = 4,
    reading: WeightedReading,
    scale_columns: Annotated[
        bool,
        typer.Option(
            help="Divide each column by its largest entry, as train does with files, and give x "
            "for the columns as they are."
        ),
    ] = False,
    cluster: ClusterOption = None,
    workers: WorkersOption = None,
    memory_limit: MemoryLimitOption = None,
    out_file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="MODEL.safetensors",
            help="Write the model, for predict and coefficients; a name that ends in .npz gets "
            "plain arrays.",
            parser=named,
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tell how well the rows of this file are predicted, too.",
            show_default=False,
            parser=named,
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Hold back this share of the rows (of each class), such as 0.2: they are not "
            "fitted to, and it is told how well they are predicted.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Drives which rows --holdout takes.", min=0)] = 0,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on from the point of a solve that was broken off, if there is one: it is "
            "kept beside --out, in a file that ends in .partial.",
        ),
    ] = False,
    json_file: JsonOption = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit one problem to all rows of a file, or of many files."""
    from ode2opt import Memory, Model
    from ode2opt import solve as minimise
    from ode2opt.data.preparing import check_share
    from ode2opt.problems.family import kind_of

    asked = Penalising(l1, l1_ratio, *limits_of(lower, upper, box))
    kind, chosen = kind_of(problem), method_for(bool(asked.about()), method, memory)
    held_back = None if holdout is None else (check_share(holdout), seed)
    options = model_options(problem, p, l2, intercept)
    if str(out_file) == "-":
        raise InputError("--out - must name a file: --json - prints the result.")
    aside = unconverged_file(out_file)
    outputs = [
        Output("--json", json_file, RESULT),
        Output("--out", out_file, SOLUTION),
        Output("the unconverged solution", aside, SOLUTION),
        Output("--memory", memory, read_before),
        Output("the kept point", kept_file(out_file), read_before if resume else KEPT),
    ]
    check_outputs(outputs, [file, test, method_file(method)], overwrite)
    check_model_ending(out_file)
    known = None if memory is None else Memory.load(memory) if memory.exists() else Memory()
    with ExitStack() as stack:
        limit = as_bytes(memory_limit)
        rows = FitRows(file, reading.options(), scale_columns, cluster, workers, limit, held_back)
        with reading_bar(f"{problem} {file.name}: rows are read", quiet) as rows.watcher:
            model, beside = rows.model(kind, options, stack)
            if test is not None:
                rows.read_test(test)
        shown = f"{problem} {file.name}, {model.N:,} x {model.n:,}"
        about = options | {"problem": problem, "rows": str(file), "scaled": scale_columns}
        about |= asked.about()
        about |= {} if held_back is None else {"holdout": held_back}
        kept = KeptPoint(out_file, about | {"N": model.N})
        words = "residual" if asked.about() else "gradient norm"
        callback = kept.watching(stack.enter_context(spinner(shown, beside, quiet, words)))
        found = minimise(
            model,
            kept.start(model.n, resume),
            method=chosen,
            penalty=asked.penalty(rows.sizes),
            memory=known,
            tol=tol,
            max_iter=max_iter,
            max_seconds=max_seconds,
            callback=callback,
        )
        fitted = Model.of(
            model,
            found,
            classes=rows.classes,
            encoding=rows.encoding,
            scaling=rows.sizes,
            tol=tol,
            options={name: value for name, value in options.items() if name == "p"},
        )
        quality = measured(fitted, model, found, rows.others)
        result = _for_columns_as_they_are(found, model, rows.sizes)
        if out_file is not None:
            target = out_file if result.success or aside is None else aside
            write_solution(target, with_quality(fitted, quality), result)
        kept.finish(found)
        learned = chosen != method and result.success
        unscaled = learned and not scale_columns and _unscaled(model)
    if json_file != "-":
        facts = _facts(result) | rows.facts(model.N) | quality_facts(quality, rows.others)
        out.print(facts_table(facts, f"{method} on {file.name}"))
        _say_about(rows, unscaled)
    document = result.summary()
    document["quality"] = {name: each.summary() for name, each in quality.items()}
    write_json(document, json_file)
    if memory is not None and known is not None and result.success:
        known.update_file(memory)
    if not result.success:
        if aside is not None:
            mention(f"{out_file} reached its tolerance, and stays; this solution is in {aside}.")
        go_on = kept.resume_command(result)
        name, size = result.measure
        fail(f"{result.message} {name.capitalize()} {size:.3g}, tolerance {tol:g}.", 1, go_on)


def _for_columns_as_they_are(result: Result, model: Any, sizes: Any) -> Result:
    """Return the solution for columns that were not divided by their sizes."""
    import numpy as np

    if sizes is None:
        return result
    each = np.repeat(np.append(sizes, [1.0] * model.intercept), model.width)
    return replace(result, x=result.x / each)


def _say_about(rows: FitRows, unscaled: bool) -> None:
    """Say what was done to the rows, and what a user should know."""
    from ode2opt.data import categories

    say_notes(rows.words, (*rows.label_found(), *rows.notes))
    for other in rows.others:
        for note in other.rows.notes:
            say(f"Of the {other.where}: {note}")
    if rows.categories:
        say(categories.words_note(rows.categories))
    if unscaled:
        say(
            "A method that train made of a file knows columns of largest entry 1, and these have "
            "others: see --scale-columns."
        )


def _unscaled(model: Any) -> bool:
    """Whether a column's largest entry is neither 1 nor 0."""
    squares = model.largest_squares()
    return bool(((squares != 0) & (squares != 1)).any())


def _facts(result: Result) -> dict[str, Any]:
    handovers = "; ".join(str(handover) for handover in result.handovers) or "none"
    told = result.summary() | {
        "status": result.message, "method": result.method, "handovers": handovers,
        "bound": "nothing is known of f(x) - f*" if result.bound is None else str(result.bound),
    }  # fmt: skip
    del told["bound_from"]
    if result.support is not None:
        del told["bound"]  # the gap tells it
        told["gap"] = "not known" if result.gap is None else f"at most {result.gap:.3g}"
        told["support"] = f"{len(result.support):,} of {many(len(result.x), 'variable')}"
    return told
