"""ode2opt solve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ode2opt.cli.app import app
from ode2opt.cli.options import (
    PROBLEM_NAMES,
    InterceptOption,
    JsonOption,
    LabelOption,
    PowerOption,
    RidgeOption,
    load_method,
    model_options,
    named,
)
from ode2opt.errors import InputError
from ode2opt.storage import write_atomically
from ode2opt.terminal import (
    check_writable,
    facts_table,
    fail,
    out,
    say,
    spinner,
    write_json,
)


@app.command(
    epilog="Example: [bold]ode2opt solve train.csv --problem logistic --l2 0.001 --out x.npz "
    "--memory nightly.safetensors[/bold]"
)
def solve(
    file: Annotated[Path, typer.Argument(help="LIBSVM, CSV, NPZ or Parquet file", parser=named)],
    problem: Annotated[str, typer.Option(help=PROBLEM_NAMES)],
    method: Annotated[
        str, typer.Option(metavar="FILE|NAME", help="A learned method's file, or a built-in name.")
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
    tol: Annotated[float, typer.Option(help="Gradient norm to reach.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="At most this many iterations.")] = 100_000,
    max_seconds: Annotated[
        float | None, typer.Option(help="At most this much time.", show_default=False)
    ] = None,
    l2: RidgeOption = 0.0,
    intercept: InterceptOption = False,
    p: PowerOption = 4,
    label: LabelOption = None,
    scale_columns: Annotated[
        bool,
        typer.Option(
            help="Divide each column by its largest entry, as train does with files, and give x "
            "for the columns as they are."
        ),
    ] = False,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", metavar="SOLUTION.npz", help="Write x and its facts.", parser=named),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Fit one problem to all rows of a file."""
    import numpy as np

    from ode2opt import Memory
    from ode2opt import solve as minimise
    from ode2opt.problems.datasets import rows_of
    from ode2opt.problems.family import kind_of
    from ode2opt.problems.files import read_table
    from ode2opt.problems.preparing import largest_entries, scaled

    kind, chosen = kind_of(problem), load_method(method)
    options = model_options(problem, p, l2, intercept)
    check_writable(json_file)
    check_writable(out_file)
    check_writable(memory)
    known = None if memory is None else Memory.load(memory) if memory.exists() else Memory()
    if out_file is not None and str(out_file) in ("-", json_file):
        raise InputError(f"--out {out_file} must name a file of its own.")
    rows = rows_of(read_table(file, label=label), str(file), binary=kind.binary)
    A, sizes = rows.A, None
    if scale_columns:
        sizes = largest_entries(A)
        A = scaled(A, sizes)
    model = kind(A, rows.b, **options)
    with spinner(f"{problem} {file.name}, {model.N:,} x {model.n:,}") as callback:
        result = minimise(
            model,
            method=chosen,
            memory=known,
            tol=tol,
            max_iter=max_iter,
            max_seconds=max_seconds,
            callback=callback,
        )
    if sizes is not None:
        result = replace(result, x=result.x / np.append(sizes, [1.0] * intercept))
    if memory is not None and known is not None and result.success:
        known.save(memory)
    if out_file is not None:
        write_atomically(out_file, result.save)
    if json_file != "-":
        out.print(facts_table(_told(result), f"{method} on {file.name}"))
        if sizes is None and chosen != method and (largest_entries(A) != 1).any():
            say(
                "A method that train made of a file knows columns of largest entry 1, and these "
                "have others: see --scale-columns."
            )
    write_json(result.summary(), json_file)
    if not result.success:
        fail(f"{result.message} Gradient norm {result.grad_norm:.3g}, tolerance {tol:g}.", 1)


def _told(result: Any) -> dict[str, Any]:
    handovers = "; ".join(str(handover) for handover in result.handovers) or "none"
    return result.summary() | {
        "status": result.message, "method": result.method, "handovers": handovers,
    }  # fmt: skip
