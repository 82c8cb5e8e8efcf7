"""ode2opt demo."""

from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from ode2opt.base.progress import bar, live_training
from ode2opt.base.record import METHOD
from ode2opt.base.terminal import out, say
from ode2opt.cli.app import app
from ode2opt.cli.options import named
from ode2opt.cli.outputs import (
    PAGE,
    Output,
    OverwriteOption,
    check_folder,
    check_outputs,
)

TITLE = "Odd against even digits, logistic regression, tol 3e-4"


@app.command(epilog="Example: [bold]ode2opt demo[/bold]")
def demo(
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where method and report go.", parser=named)
    ] = Path("ode2opt-demo"),
    overwrite: OverwriteOption = False,
) -> None:
    """Solve one problem of handwritten digits, then a stream, then learn a method; a minute."""
    from ode2opt.study import demo as study
    from ode2opt.study.terminal_tables import benchmark_table

    check_folder(out_dir)
    if out_dir.is_dir():
        kinds = {study.METHOD_FILE: METHOD.is_at, study.REPORT_FILE: PAGE}
        outputs = [Output("--out", out_dir / name, ours) for name, ours in kinds.items()]
        check_outputs(outputs, overwrite=overwrite)
    say("1. One logistic regression on handwritten digits, gradient norm 1e-6:")
    for name, one in study.solve_one().items():
        say(f"   {name:12}{one.oracle_calls:6.0f} calls{1e3 * one.seconds:8.1f} ms   {one.method}")
    stream = study.solve_stream()
    say(f"2. {study.INSTANCES} fresh ones in turn, gradient norm {study.TOL:g}; calls of each:")
    for name, calls in stream.items():
        shown = " ".join(f"{one:.0f}" for one in calls)
        say(f"   {name:12}{fmean(calls):6.1f} on average: {shown}")
    say("3. A method learned for such problems, on fresh ones:")
    benchmark = study.learn_method(
        out_dir,
        lambda words: live_training(words, study.STEPS, quiet=True),
        lambda: bar("test problems", study.INSTANCES),
    )
    out.print(benchmark_table(benchmark, TITLE))
    say(f"The method is {out_dir / study.METHOD_FILE}, the report {out_dir / study.REPORT_FILE}.")
