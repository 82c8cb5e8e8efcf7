"""ode2opt demo."""

from ode2opt.cli.app import app
from ode2opt.terminal import bar, out


@app.command(epilog="Example: [bold]ode2opt demo[/bold]")
def demo() -> None:
    """Compare the methods on real handwritten digits, odd against even; takes seconds."""
    from ode2opt.study.demo import INSTANCES, run_demo
    from ode2opt.study.tables import benchmark_table

    with bar("logistic digits", INSTANCES) as advance:
        benchmark = run_demo(advance)
    out.print(benchmark_table(benchmark, "Odd against even digits, logistic regression, tol 3e-4"))
