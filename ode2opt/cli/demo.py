"""ode2opt demo."""

from pathlib import Path
from typing import Annotated

import typer

from ode2opt.cli.app import app
from ode2opt.terminal import bar, live_training, out

TITLE = "Odd against even digits, logistic regression, tol 3e-4"


@app.command(epilog="Example: [bold]ode2opt demo[/bold]")
def demo(
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where method and report go.")
    ] = Path("ode2opt-demo"),
) -> None:
    """Learn a method on real handwritten digits, compare it, write a report; about a minute."""
    from ode2opt.study import demo as study
    from ode2opt.study.tables import benchmark_table

    with (
        live_training("learning", study.STEPS) as (callback, _),
        bar("test problems", study.INSTANCES) as advance,
    ):
        benchmark = study.run_demo(out_dir, callback, advance)
    out.print(benchmark_table(benchmark, TITLE))
    out.print(
        f"The method is {out_dir / study.METHOD_FILE}, the report {out_dir / study.REPORT_FILE}."
    )
