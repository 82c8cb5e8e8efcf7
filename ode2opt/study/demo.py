"""The demonstration: learn on bundled real data, compare with every built-in method, report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ode2opt.errors import needing
from ode2opt.problems import Family
from ode2opt.solvers import METHODS, Method, solve
from ode2opt.study.benchmark import Benchmark, Settings, run_benchmark

INSTANCES, STEPS, TOL, SHOWN = 20, 60, 3e-4, 150
METHOD_FILE, REPORT_FILE = "method.safetensors", "report.html"


def demo_family() -> Family:
    """Return odd against even digits (scikit-learn's digits) as logistic regressions."""
    return Family.from_dataset("logistic", "digits", split="shuffled")


def run_demo(
    folder: Path,
    callback: Callable[[Any], None] | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Benchmark:
    """Learn, compare, and write method and report into a folder.

    Args:
        folder: where method.safetensors and report.html go; older ones are replaced.
        callback: sees every step of training.
        advance: called after each test problem.
    """
    with needing("learn"):
        from ode2opt.learning import learn
        from ode2opt.study.run_report import run_report

    family = demo_family()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        method = learn(family, out=Path(scratch) / "run", steps=STEPS, tol=TOL, callback=callback)
        settings = Settings(tuple(METHODS), {"learned": method}, INSTANCES, TOL, jobs=2)
        benchmark = run_benchmark(family, settings, advance)
        document = {"methods": benchmark.statistics(), "instances": benchmark.instances}
        page = run_report(Path(scratch) / "run", benchmark=document, curves=_curves(family, method))
        method.save(folder / METHOD_FILE)
        page.save(folder / REPORT_FILE)
    return benchmark


def _curves(family: Family, method: Method) -> dict[str, list[float]]:
    """Return gradient norms by iteration on one test problem."""
    problem = family.sample([0, 0], part="test")
    curves: dict[str, list[float]] = {}
    for name in ("learned", "gd", "nag", "eigac-c1", "eigac-c4", "lbfgs"):
        result = solve(
            problem, problem.start(), method=method if name == "learned" else name, tol=TOL,
            max_iter=SHOWN, stop_at_tol=False, history=True,
        )  # fmt: skip
        assert result.history is not None
        curves[name] = result.history.grad_norm
    return curves
