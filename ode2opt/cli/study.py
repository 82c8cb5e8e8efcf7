"""ode2opt reproduce | report | demo: commands that write pages."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Annotated

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import WorkersLostError, needing
from ode2opt.base.record import METHOD
from ode2opt.base.terminal import bar, bar_or_lines, fail, live_training, mention, out, say
from ode2opt.cli.app import app
from ode2opt.cli.from_options import file_argument, file_opt, opt, with_options
from ode2opt.cli.options import WorkOptions
from ode2opt.cli.outputs import (
    PAGE,
    Output,
    OverwriteOption,
    check_folder,
    check_outputs,
    input_files,
)

REPORT = "report.html"
TITLE = "Odd against even digits, logistic regression, tol 3e-4"


@app.command(
    epilog="Example: [bold]ode2opt reproduce --quick --out study[/bold], or "
    "[bold]ode2opt reproduce --only table2,fig5[/bold]; on a cluster whose workers see DIR, "
    "[bold]ode2opt reproduce --out /shared/study --cluster tcp://10.0.0.1:8786[/bold]"
)
@with_options()
def reproduce(
    *,
    only: Annotated[
        str | None,
        opt("Just these of table1 to table5 and fig2 to fig7.", metavar="table2,fig5,..."),
    ] = None,
    quick: Annotated[
        bool,
        opt(
            "A small version: 10 test problems, short trainings: about 11 minutes, two cores.",
            "--quick",
        ),
    ] = False,
    out_dir: Annotated[Path, file_opt("Where everything goes.", "--out", metavar="DIR")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int, opt("Processes, without --cluster.")] = 2,
    work: WorkOptions,
) -> None:
    """Make the paper's tables and figures, with its numbers next to ours.

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
            work.executor() as executor,
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


@app.command(epilog="Example: [bold]ode2opt report runs/logistic-a5a[/bold]")
def report(
    run_dir: Annotated[Path, file_argument("a folder that 'ode2opt train' wrote")],
    file: Annotated[Path | None, file_opt(f"By default RUN_DIR/{REPORT}.", "--out")] = None,
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


@app.command(epilog="Example: [bold]ode2opt demo[/bold]")
def demo(
    out_dir: Annotated[
        Path, file_opt("Where method and report go.", "--out", metavar="DIR")
    ] = Path("ode2opt-demo"),
    overwrite: OverwriteOption = False,
) -> None:
    """Solve one problem of handwritten digits, then a stream, then learn a method; a minute."""
    from ode2opt.study import demo as study
    from ode2opt.study.result_tables import benchmark_table

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
    statistics, total = benchmark.statistics(), benchmark.instances
    out.print(benchmark_table(statistics, total, TITLE).terminal())
    say(f"The method is {out_dir / study.METHOD_FILE}, the report {out_dir / study.REPORT_FILE}.")
