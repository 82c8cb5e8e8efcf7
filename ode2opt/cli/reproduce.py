"""ode2opt reproduce."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import WorkersLostError, needing
from ode2opt.base.progress import bar_or_lines
from ode2opt.base.terminal import fail, mention, say
from ode2opt.cli.app import app
from ode2opt.cli.options import WorkClusterOption, WorkProcessesOption, executor_of, named
from ode2opt.cli.outputs import check_folder


@app.command(
    epilog="Example: [bold]ode2opt reproduce --quick --out study[/bold], or "
    "[bold]ode2opt reproduce --only table2,fig5[/bold]; on a cluster whose workers see DIR, "
    "[bold]ode2opt reproduce --out /shared/study --cluster tcp://10.0.0.1:8786[/bold]"
)
def reproduce(
    only: Annotated[
        str | None,
        typer.Option(
            metavar="table2,fig5,...",
            help="Just these of table1 to table5 and fig2 to fig7.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A small version: 10 test problems, short trainings: about 11 minutes, two cores.",
        ),
    ] = False,
    out_dir: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where everything goes.", parser=named)
    ] = Path("reproduction"),
    jobs: Annotated[int, typer.Option(help="Processes, without --cluster.")] = 2,
    cluster: WorkClusterOption = None,
    workers: WorkProcessesOption = None,
) -> None:
    """Make the paper's tables and figures, with its numbers beside ours.

    DIR gets results.json, tables/, figures/ and report.html. What is done is kept in DIR/cache:
    after an interruption the same command goes on.
    """
    with needing("study"):
        for package in ("matplotlib", "jinja2"):
            import_module(package)
    with needing("learn"):
        from ode2opt.study.reproduction import Reproduction
    jobs = as_count(jobs, "jobs")
    check_folder(out_dir)
    study = Reproduction(out_dir.absolute(), only, quick)
    mention(f"reproduce: {study.left}.")
    kept = f"{out_dir} keeps what is done, and the same command goes on."
    try:
        with (
            executor_of(cluster, workers) as executor,
            bar_or_lines("reproduce", study.cost) as advance,
        ):
            if executor is not None:
                executor.check_folder(study.folder)
            study.run(jobs, advance, executor)
        files = study.write()
    except KeyboardInterrupt:
        fail(f"Interrupted: {kept}", 1)
    except WorkersLostError as error:
        fail(f"{error} {kept}", 1)
    say(f"{len(files)} files in {out_dir}: see {out_dir / 'report.html'}.")
    study.check()
