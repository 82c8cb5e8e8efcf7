"""One cell of the study, a problem on a dataset: train its method, measure and follow all methods.

Every function returns plain values for JSON, and the same ones (seconds aside) whenever and
wherever it is called.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from ode2opt.base.errors import Ode2OptError
from ode2opt.base.schedule import Schedule
from ode2opt.coefficients import restored
from ode2opt.data.datasets import describe
from ode2opt.learning import learn
from ode2opt.learning.config import read_config
from ode2opt.learning.flow.smoothness import scatter
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.problems import Family, Logistic, Problem, Start, load_dataset
from ode2opt.problems.minimiser import has_minimiser, separable
from ode2opt.solvers import Method, Progress, Relay, Result, solve
from ode2opt.study.benchmark import Settings, run_benchmark
from ode2opt.study.reproduction.cache import Store
from ode2opt.study.reproduction.plan import (
    CLASSICS,
    FOLLOWED,
    GUARDED,
    ITERATIONS,
    LEARNED,
    SEED,
    TOL,
    Effort,
    Item,
)

Made = dict[str, Any]


@lru_cache(maxsize=2)
def family_of(problem: str, dataset: str) -> Family:
    """Return the family of a cell, with the paper's split."""
    return Family.from_dataset(problem, dataset, split="paper")


def data(store: Store, effort: Effort, item: Item) -> Made:
    """Describe a dataset as it is loaded, and say whether planes separate its classes."""
    loaded = load_dataset(item.dataset, split="paper")
    family = family_of(item.problem, item.dataset)
    problems = (family.sample([SEED, i], part="test") for i in range(effort.instances))
    answers = [has_minimiser(problem) for problem in problems]
    return {
        "facts": describe(loaded)
        | {
            "train_separable": separable(Logistic(loaded.train.A, loaded.train.b)),
            "problems": len(answers),
            "problems_without_minimiser": answers.count(False),
        }
    }


def classics(store: Store, effort: Effort, item: Item) -> Made:
    """Measure the methods that learn nothing, without a guard as in the paper."""
    return _measured(effort, item, "none", methods=tuple(row.key for row in CLASSICS))


def learned(store: Store, effort: Effort, item: Item) -> Made:
    """Measure the learned method under the paper's relay, and under the guard."""
    method = learned_method(store, item)
    relayed = _measured(effort, item, "relay", learned={LEARNED.key: method})
    guarded = _measured(effort, item, "guard", learned={GUARDED.key: method})
    return {name: relayed[name] | guarded[name] for name in relayed}


def _measured(
    effort: Effort,
    item: Item,
    handover: str,
    methods: tuple[str, ...] = (),
    learned: dict[str, Method] | None = None,
) -> Made:
    settings = Settings(
        methods=methods, learned=learned or {}, instances=effort.instances, tol=TOL,
        max_iter=ITERATIONS, seed=SEED, handover=handover, jobs=1,
    )  # fmt: skip
    benchmark = run_benchmark(family_of(item.problem, item.dataset), settings)
    outcomes = {name: [asdict(one) for one in found] for name, found in benchmark.outcomes.items()}
    return {"statistics": benchmark.statistics(), "outcomes": outcomes}


def training(store: Store, effort: Effort, item: Item) -> Made:
    """Learn the cell's method; an interrupted training goes on."""
    return _trained(store, item, {"seed": SEED} | dict(effort.training))


def protocol(store: Store, effort: Effort, item: Item) -> Made:
    """Learn the cell's method by the paper's protocol; an interrupted training goes on.

    Coefficients may leave what has a meaning (alpha h > t0): the steps until then are the result.
    """
    run = RunDirectory(store.run(item))
    try:
        return _trained(store, item, effort.paper_options(item))
    except Ode2OptError as error:
        if not run.metrics.is_file():
            raise
        options = read_config(run.path)["options"]
        return {"steps": _columns(run), "options": options, "broken_off": str(error)}


def _trained(store: Store, item: Item, options: dict[str, Any]) -> Made:
    run = RunDirectory(store.run(item))
    if run.finished:  # the study was interrupted just after
        method = Method.load(run.method)
    else:
        family, resume = family_of(item.problem, item.dataset), run.config.exists()
        method = learn(family, out=run.path, resume=resume, **options)
    return {
        "steps": _columns(run),
        "horizon": method.horizon,
        "curves": _curves(method),
        "certificate": dict(method.certificate),
        "statistics": dict(method.statistics),
        "options": method.provenance["options"],
    }


def learned_method(store: Store, item: Item, kind: str = "training") -> Method:
    """Return the method that a training of an item's cell has learned."""
    return Method.load(RunDirectory(store.run(item._replace(kind=kind))).method)


def _columns(run: RunDirectory) -> dict[str, list[Any]]:
    """Return the columns of metrics.jsonl that are shown."""
    lines = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    names = ("step", "stopping_time", "P", "Q", "reached", "failed", "validation", "seconds")
    return {name: [line[name] for line in lines] for name in names}


def _curves(method: Method, points: int = 120) -> dict[str, list[float]]:
    """Return beta and gamma against t, and the schedule against k, for curvature 1."""
    formula, schedule = method.formula, method.schedule
    assert formula is not None
    k = np.unique(np.linspace(0, method.horizon - 1, points).round().astype(int))
    t = formula.t0 + formula.h * k
    curves = restored(formula.kind, formula.settings, formula.parameters).curves(t)
    columns = {"k": k, "t": t, "beta": curves.beta, "gamma": curves.gamma}
    columns |= {name: getattr(schedule, name)[k] for name in "acd"}
    return {name: six_digits(values) for name, values in columns.items()}


def six_digits(values: Any) -> list[float]:
    """Return values rounded to six digits, which is what can be drawn."""
    return [float(f"{value:.6g}") for value in np.asarray(values, dtype=float).tolist()]


# What the figures show of single test problems ---------------------------------------------------


def instance_of(item: Item) -> tuple[Problem, Start]:
    """Return the one test problem that figures show, the first of the benchmark's, and its
    start.
    """
    problem = family_of(item.problem, item.dataset).sample([SEED, 0], part="test")
    return problem, problem.start()


def example(store: Store, effort: Effort, item: Item) -> Made:
    """Follow every method on one test problem, well past the horizon, with function values."""
    problem, start = instance_of(item)
    methods: dict[str, str | Method] = {row.key: row.key for row in CLASSICS}
    methods[LEARNED.key] = learned_method(store, item)
    lines = {key: _with_values(problem, start, method) for key, method in methods.items()}
    exact = solve(problem, start, method="lbfgs", tol=1e-10, max_iter=20_000).fun
    return {"lines": lines, "least_value": exact}


def _with_values(problem: Problem, start: Start, method: str | Method) -> Made:
    values: list[float] = []

    def look(progress: Progress) -> None:
        values.append(float(problem.value(progress.x)))

    handover = "none" if isinstance(method, str) else "relay"
    result = followed(problem, start, method, handover, FOLLOWED, look)
    assert result.history is not None
    return {
        "grad_norm": six_digits(result.history.grad_norm),
        "value": values,
        "handovers": [one.iteration for one in result.handovers],
    }


def followed(
    problem: Problem, start: Start, method: str | Method | Schedule, handover: str | Relay,
    iterations: int, look: Callable[[Progress], None],
) -> Result:  # fmt: skip
    """Run a method to the last iteration, whatever it does."""
    return solve(
        problem, start, method=method, tol=TOL, max_iter=iterations, handover=handover,
        stop_at_tol=False, history=True, callback=look,
    )  # fmt: skip


def smoothness(store: Store, effort: Effort, item: Item) -> Made:
    """Return gradient norms and curvatures along four methods on one test problem."""
    problem, _ = instance_of(item)
    found = scatter(problem, every=effort.scatter_every)
    return {"points": {method: points.tolist() for method, points in found.items()}}
