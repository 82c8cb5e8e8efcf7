"""Tables for the terminal."""

from __future__ import annotations

from rich import box
from rich.table import Table

from ode2opt.study.benchmark import Benchmark

LEGEND = (
    "measure: log10 of the gradient norm at the last iteration; complexity: first iteration at the "
    "tolerance; calls, ms: until the tolerance, set-up included. Means (standard deviations) over "
    "the instances; > where some did not reach the tolerance."
)


def benchmark_table(benchmark: Benchmark, title: str) -> Table:
    """Return the benchmark as a table, one row a method; the fewest calls in bold."""
    total = benchmark.instances
    table = Table(title=title, caption=LEGEND, caption_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    for name in ("measure", "complexity", "worst", "calls", "ms", "reached"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("events")
    statistics = benchmark.statistics()
    fewest = min((row["oracle_calls_mean"] for row in statistics.values()), default=0)
    for method, row in statistics.items():
        mark = "" if row["reached"] == total else ">"
        table.add_row(
            method,
            f"{row['measure_mean']:.2f} ({row['measure_std']:.3f})",
            f"{mark}{row['complexity_mean']:.1f} ({row['complexity_std']:.1f})",
            f"{mark}{row['complexity_max']}",
            f"{mark}{row['oracle_calls_mean']:.0f}",
            f"{mark}{1e3 * row['seconds_mean']:.1f}",
            f"{row['reached']}/{total}",
            _events(row),
            style="bold" if row["oracle_calls_mean"] == fewest and row["reached"] else "",
        )
    return table


def _events(row: dict[str, float | int]) -> str:
    names = {"diverged": "diverged", "handovers": "handed over"}
    return ", ".join(f"{row[key]} {word}" for key, word in names.items() if row[key])
