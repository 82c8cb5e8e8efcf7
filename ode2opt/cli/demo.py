"""ode2opt demo."""

from pathlib import Path
from typing import Annotated

import typer

from ode2opt.cli.app import app
from ode2opt.cli.options import named
from ode2opt.terminal import bar, live_training, out, say

TITLE = "Odd against even digits, logistic regression, tol 3e-4"


@app.command(epilog="Example: [bold]ode2opt demo[/bold]")
def demo(
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where method and report go.", parser=named)
    ] = Path("ode2opt-demo"),
) -> None:
    """Learn two methods on real handwritten digits, compare, write a report; about two minutes."""
    from ode2opt.study import demo as study
    from ode2opt.study.tables import benchmark_table

    benchmark = study.run_demo(
        out_dir,
        lambda words: live_training(words, study.STEPS),
        lambda: bar("test problems", study.INSTANCES),
    )
    out.print(benchmark_table(benchmark, TITLE))
    say("learned: a sequence in a metric; learned-flow: the paper's.")
    say(f"The method is {out_dir / study.METHOD_FILE}, the report {out_dir / study.REPORT_FILE}.")
