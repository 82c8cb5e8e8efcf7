"""The demonstration on bundled data: solve a problem, solve a stream, learn a method."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from ode2opt.base.errors import needing
from ode2opt.problems import Family, Logistic, load_dataset
from ode2opt.solvers import Memory, Method, Result, solve
from ode2opt.study.benchmark import Benchmark, Settings, followed, run_benchmark

INSTANCES, STEPS, TOL, SHOWN = 20, 40, 3e-4, 150
L2, TIGHT = 1e-4, 1e-6  # of the single problem
METHODS = ("nag", "eigac-c4", "lbfgs", "lbfgs-scipy", "auto", "memory")
CURVES = ("gd", "nag", "eigac-c1", "eigac-c4", "lbfgs")
METHOD_FILE, REPORT_FILE = "method.safetensors", "report.html"
LEARNED = "learned"
TrainingDisplay = tuple[Callable[[Any], None] | None, Callable[[str], None]]
UNSEEN: TrainingDisplay = (None, lambda text: None)


def demo_family() -> Family:
    """Return odd against even digits (scikit-learn's digits) as logistic regressions."""
    return Family.from_dataset("logistic", "digits", split="shuffled")


def solve_one() -> dict[str, Result]:
    """Solve one problem, of all training rows, by scipy's L-BFGS and by what plans itself."""
    data = load_dataset("digits", split="shuffled")
    problem = Logistic(data.train.A, data.train.b, l2=L2)
    for method in ("lbfgs-scipy", "auto"):  # what is imported on first use is loaded
        solve(problem, method=method, max_iter=1)
    return {name: solve(problem, method=name, tol=TIGHT) for name in ("lbfgs-scipy", "auto")}


def solve_stream() -> dict[str, list[float]]:
    """Solve fresh problems in turn by L-BFGS and with a memory; return their calls."""
    memory = Memory()
    calls: dict[str, list[float]] = {"lbfgs": [], "memory": []}
    for problem in map(partial(demo_family().sample, part="test"), range(INSTANCES)):
        calls["lbfgs"].append(solve(problem, method="lbfgs", tol=TOL).oracle_calls)
        calls["memory"].append(solve(problem, memory=memory, tol=TOL).oracle_calls)
    return calls


def learn_method(
    folder: Path,
    training: Callable[[str], AbstractContextManager[TrainingDisplay]] = lambda words: nullcontext(
        UNSEEN
    ),
    testing: Callable[[], AbstractContextManager[Callable[[], None]]] = lambda: nullcontext(
        lambda: None
    ),
) -> Benchmark:
    """Learn a sequence, compare, and write it and its report into a folder."""
    with needing("learn"):
        from ode2opt.learning.begin import start_run
        from ode2opt.learning.registry import make_options
        from ode2opt.study.run_report import run_report

    family = demo_family()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        options = make_options({"target": "sequence", "steps": STEPS, "tol": TOL})
        with training("learning a method") as (callback, note):
            method = start_run(family, options, Path(scratch) / "run", False, note).run(callback)
        with testing() as advance:
            settings = Settings(METHODS, {LEARNED: method}, INSTANCES, TOL, jobs=2)
            benchmark = run_benchmark(family, settings, advance)
        document = {"methods": benchmark.statistics(), "instances": benchmark.instances}
        page = run_report(Path(scratch) / "run", benchmark=document, curves=_curves(family, method))
        method.save(folder / METHOD_FILE)
        page.save(folder / REPORT_FILE)
    return benchmark


def _curves(family: Family, learned: Method) -> dict[str, list[float]]:
    """Return gradient norms by iteration on one test problem."""
    problem, settings = (
        family.sample([0, 0], part="test"),
        Settings(CURVES, tol=TOL, max_iter=SHOWN),
    )
    methods: dict[str, str | Method] = {LEARNED: learned, **{name: name for name in CURVES}}
    found = {name: followed(problem, each, settings, "guard") for name, each in methods.items()}
    return {name: one.history.grad_norm for name, one in found.items() if one.history}
