"""The demonstration: learn on bundled real data, compare with every built-in method, report.

Two methods are learned: the paper's, a flow, and a sequence in a metric, which is the one to use.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from ode2opt.errors import needing
from ode2opt.problems import Family
from ode2opt.solvers import METHODS, Method, solve
from ode2opt.study.benchmark import Benchmark, Settings, run_benchmark

INSTANCES, STEPS, TOL, SHOWN = 20, 60, 3e-4, 150
METHOD_FILE, REPORT_FILE = "method.safetensors", "report.html"
LEARNED = {"learned": "sequence", "learned-flow": "flow"}
Watch = tuple[Callable[[Any], None] | None, Callable[[str], None]]
UNSEEN: Watch = (None, lambda text: None)


def demo_family() -> Family:
    """Return odd against even digits (scikit-learn's digits) as logistic regressions."""
    return Family.from_dataset("logistic", "digits", split="shuffled")


def run_demo(
    folder: Path,
    training: Callable[[str], AbstractContextManager[Watch]] = lambda words: nullcontext(UNSEEN),
    testing: Callable[[], AbstractContextManager[Callable[[], None]]] = lambda: nullcontext(
        lambda: None
    ),
) -> Benchmark:
    """Learn, compare, and write the learned sequence and its report into a folder.

    Args:
        folder: where method.safetensors and report.html go; older ones are replaced.
        training: shows a training under a description, like ``ode2opt.terminal.live_training``.
        testing: gives what is called after each test problem.
    """
    with needing("learn"):
        from ode2opt.learning.begin import begun
        from ode2opt.learning.registry import make_options
        from ode2opt.study.run_report import run_report

    family = demo_family()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        learned = {}
        for name, target in LEARNED.items():
            options = make_options({"target": target, "steps": STEPS, "tol": TOL})
            with training(f"learning a {target}") as (callback, note):
                run = begun(family, options, Path(scratch) / target, False, note)
                learned[name] = run.run(callback)
        with testing() as advance:
            settings = Settings(tuple(METHODS), learned, INSTANCES, TOL, jobs=2)
            benchmark = run_benchmark(family, settings, advance)
        document = {"methods": benchmark.statistics(), "instances": benchmark.instances}
        curves = _curves(family, learned)
        page = run_report(Path(scratch) / "sequence", benchmark=document, curves=curves)
        learned["learned"].save(folder / METHOD_FILE)
        page.save(folder / REPORT_FILE)
    return benchmark


def _curves(family: Family, learned: Mapping[str, Method]) -> dict[str, list[float]]:
    """Return gradient norms by iteration on one test problem."""
    problem = family.sample([0, 0], part="test")
    curves: dict[str, list[float]] = {}
    for name in (*learned, "gd", "nag", "eigac-c1", "eigac-c4", "lbfgs"):
        result = solve(
            problem, problem.start(), method=learned.get(name, name), tol=TOL,
            max_iter=SHOWN, stop_at_tol=False, history=True,
        )  # fmt: skip
        assert result.history is not None
        curves[name] = result.history.grad_norm
    return curves
