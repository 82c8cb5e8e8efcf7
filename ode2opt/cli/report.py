"""ode2opt report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ode2opt.base.terminal import say
from ode2opt.cli.app import app
from ode2opt.cli.options import named
from ode2opt.cli.outputs import PAGE, Output, OverwriteOption, check_outputs, input_files

REPORT = "report.html"


@app.command(epilog="Example: [bold]ode2opt report runs/logistic-a5a[/bold]")
def report(
    run_dir: Annotated[
        Path, typer.Argument(help="a folder that 'ode2opt train' wrote", parser=named)
    ],
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help=f"By default RUN_DIR/{REPORT}.",
            show_default=False,
            parser=named,
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Show a training run on one HTML page, readable without a network."""
    from ode2opt.study.run_report import run_report

    target = file or run_dir / REPORT
    if run_dir.is_dir():  # run_report says what is wrong with anything else
        inputs = [one for one in input_files(run_dir) if one.name != REPORT]
        check_outputs([Output("--out", target, PAGE)], inputs, overwrite)
    run_report(run_dir).save(target)
    say(f"The report is {target}")
