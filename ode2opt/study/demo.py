"""The demonstration: bundled real data, every built-in method, one table."""

from __future__ import annotations

from collections.abc import Callable

from ode2opt.problems import Family
from ode2opt.solvers import METHODS
from ode2opt.study.benchmark import Benchmark, Settings, run_benchmark

INSTANCES = 20


def run_demo(advance: Callable[[], None] = lambda: None) -> Benchmark:
    """Compare all built-in methods on odd against even digits (scikit-learn's digits)."""
    family = Family.from_dataset("logistic", "digits", split="shuffled")
    settings = Settings(tuple(METHODS), instances=INSTANCES, jobs=2)
    return run_benchmark(family, settings, advance)
