"""A training run on one page: what was learned, how good it is, what is promised, and how."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ode2opt.base.errors import InputError, MissingDependencyError, needing, shown
from ode2opt.learning import FlowOptions, Options, comparison, make_options
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.paper.schedule import Schedule
from ode2opt.proofs.table import Table
from ode2opt.solvers.method_file import Formula, Method
from ode2opt.solvers.metric import Metric
from ode2opt.study.convergence import add_convergence
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.run_files import (
    OWN_NAME,
    RESTART,
    Compared,
    Metrics,
    compared,
    expected_of,
    part_of,
    read_metrics,
    read_run,
)
from ode2opt.study.run_proof import CERTIFIED_WORDS, add_certified_training, add_proof, cap_of
from ode2opt.study.terminal_tables import CONDITIONS, benchmark_cells, legend

if TYPE_CHECKING:
    from ode2opt.paper.coefficients import Coefficients

LEARNED = "learned"  # how curves of what was learned are called
SHOWN_NAMES = {OWN_NAME: LEARNED, **comparison.NAMES}


def run_report(
    run_dir: Path,
    *,
    benchmark: Mapping[str, Any] | None = None,
    curves: Mapping[str, Sequence[float]] | None = None,
) -> Page:
    """Return the report of a run directory, as ``ode2opt train`` writes it.

    Examples:
        >>> run_report(Path("runs/logistic-a5a")).save("report.html")
    """
    directory = RunDirectory(run_dir)
    config = read_run(directory)
    method, metrics = Method.load(directory.method), read_metrics(directory.metrics)
    restarts = [line for line in metrics if line[RESTART] is not None]
    metrics = [line for line in metrics if line[RESTART] is None]
    options = make_options(config["options"])
    page = _first_part(directory.method, method)
    _add_learned(page, method, options, metrics)
    _add_statistics(page, directory.method, method)
    if curves is None:
        add_convergence(page, directory.method, method, SHOWN_NAMES)
    if benchmark is not None or curves is not None:
        _add_comparison(page, method, benchmark, curves or {})
    _add_certificate(page, directory.method, method)
    add_proof(page, directory.method, method, options)
    _add_coefficients(page, directory.method, method, options)
    _add_training(page, restarts, metrics, options)
    _add_provenance(page, config)
    return page


def _first_part(file: Path, method: Method) -> Page:
    """Return a page that begins with what the method needs compared with its baselines."""
    title = f"A method learned for {method.family}"
    if not method.provenance.get("finished"):
        return Page(title, "Training is not finished: this is the best method so far.")
    fresh = compared(file, method, "fresh")
    if fresh is None:
        raise InputError(f"{file} is no valid method: its statistics are damaged.")
    page = Page(title, comparison.comparison_sentence(asdict(fresh)))
    _add_bars(page, "Gradients to the tolerance", fresh, fresh.calls)
    milliseconds = {name: 1e3 * seconds for name, seconds in fresh.seconds.items()}
    _add_bars(page, "Milliseconds to the tolerance", fresh, milliseconds)
    return page


def _add_bars(page: Page, title: str, fresh: Compared, values: Mapping[str, float]) -> None:
    """Add a bar for each method that was run on fresh problems, this one first."""
    names = [name for name in SHOWN_NAMES if name in values]
    missed = {name: fresh.reached[name] < fresh.problems for name in names}
    page.add_bars(
        title,
        {SHOWN_NAMES[name]: values[name] for name in names},
        {SHOWN_NAMES[name]: ">" * missed[name] + f"{values[name]:.3g}" for name in names},
        "> where some problems did not get there." * any(missed.values()),
    )


def _add_learned(page: Page, method: Method, options: Options, metrics: Metrics) -> None:
    page.add_heading("What was learned")
    said = _instant_words(options) if method.instant else _table_words(method, options)
    page.add_text(said.format(family=method.family))
    facts = {
        "problems": method.family,
        "method": method.words,
        "tolerance": f"{method.tol:g}",
        "training": f"{len(metrics)} of {options.steps} steps",
        "seconds in all": _shown(method.statistics.get("seconds")),
    }
    if metrics:
        facts["problems a step"] = str(options.batch)
    page.add_facts(facts)


WORDS = {
    "flow": "The coefficients beta(t) and gamma(t) of an inertial system were chosen by StoPM so "
    "that its flow meets the tolerance early on problems of {family}, under the conditions for "
    "convergence and stability. The method is the system's Euler discretisation.",
    "sequence": "The three numbers of each iteration and a metric were chosen together, so that "
    "the guarded sequence meets the tolerance in few iterations on problems of {family}.",
}


PROXIMAL_WORDS = (
    "The numbers of each iteration with a prox were chosen so that the residual meets the "
    "tolerance in few iterations on problems of {family} with a penalty."
)


def _instant_words(options: Options) -> str:
    said = (
        "There is no table of steps: the method is L-BFGS from the start, in a metric that makes "
        "the mean curvature of solved problems of {family} round, as far as that helps on "
        "held-out ones."
    )
    return said + " Training found no table that does clearly better there." * bool(options.steps)


def _table_words(method: Method, options: Options) -> str:
    learned = WORDS[options.target] if cap_of(options) is None else CERTIFIED_WORDS
    if method.proximal is not None:
        learned = PROXIMAL_WORDS
    count = "Three" if method.proximal is None else "Four"
    return (
        f"{learned} {count} numbers an iteration, for {method.horizon} iterations, "
        f"divided by {_scale_words(method)} Where it does not do well, "
        f"{method.guard.words(method.metric is not None)} takes over."
    )


def _scale_words(method: Method) -> str:
    if method.scale == "family":
        return f"the family's curvature {method.family_scale:.4g}."
    if method.scale == "paper":
        return "the paper's step constant L of each problem."
    return "the curvature at each problem's start point."


def _add_statistics(page: Page, file: Path, method: Method) -> None:
    page.add_heading("How good it is")
    kinds = {"validation": "held-out training problems", "test": "fresh test problems"}
    rows = [
        [name, *_statistics(method.statistics[key])]
        for key, name in kinds.items()
        if isinstance(method.statistics.get(key), dict)
    ]
    page.add_table(
        ["problems", "iterations", "worst", "reached", "handed over", "P", "Q"],
        rows,
        f"Iterations of the guarded sequence to the gradient norm {method.tol:g}, mean and worst; "
        "> where some problems did not get there. Handed over: how often the guard had to step in. "
        "P, Q: the largest violations of the conditions.",
    )
    if (found := expected_of(file, method)) is not None:
        page.add_text(
            f"Of this family {found.words()}. This is true of problems that are drawn the same way "
            "as those, and of no others."
        )
    fresh, held_out = (compared(file, method, key) for key in ("fresh", "held_out"))
    if fresh is not None:
        _add_rivals(page, fresh, {} if held_out is None else held_out.calls)


def _add_rivals(page: Page, fresh: Compared, held_out: Mapping[str, float]) -> None:
    page.add_table(
        ["method", "gradients", "milliseconds", "gradients, held-out training problems"],
        [
            [
                SHOWN_NAMES.get(name, name),
                _shown(calls),
                _shown(1e3 * fresh.seconds[name]),
                _shown(held_out.get(name)),
            ]
            for name, calls in fresh.calls.items()
        ],
        f"To the tolerance on {fresh.problems} fresh test problems, all methods from the same "
        "start points on one thread: mean oracle calls, median time.",
    )


def _statistics(found: Mapping[str, Any]) -> list[str]:
    reached, total = found.get("reached"), found.get("total")
    mark = "" if reached == total else ">"
    return [
        mark + _shown(found.get("complexity")),
        mark + _shown(found.get("worst")),
        f"{_shown(reached)}/{_shown(total)}",
        *(_shown(found.get(name)) for name in ("handovers", "P", "Q")),
    ]


def _add_comparison(
    page: Page,
    method: Method,
    benchmark: Mapping[str, Any] | None,
    curves: Mapping[str, Sequence[float]],
) -> None:
    page.add_heading("Beside other methods")
    if benchmark is not None:
        total = benchmark["instances"]
        page.add_table(
            ["method", "measure", "complexity", "worst", "oracle calls", "within", "ms", "reached"],
            [benchmark_cells(name, row, total) for name, row in benchmark["methods"].items()],
            legend(benchmark["methods"]),
        )
    if curves:
        names = sorted(curves, key=lambda name: name != LEARNED)  # it gets the page's first colour
        page.add_plot(
            "Gradient norm",
            [Curve(name, range(len(curves[name])), curves[name]) for name in names],
            x="iteration",
            y="gradient norm",
            log_y=True,
            threshold=method.tol,
            caption="On one test problem; the dashed line is the tolerance.",
        )


def _add_certificate(page: Page, file: Path, method: Method) -> None:
    page.add_heading("What is promised")
    certificate = method.certificate
    if not certificate:
        page.add_text("The method is certified when training is finished.")
        return
    verdict = certificate.get("verdict", [])
    if not isinstance(verdict, list):
        raise InputError(f"{file} is damaged: its verdict is {shown(verdict)}, not a list.")
    for sentence in verdict:
        page.add_text(str(sentence))
    margins = part_of(file, certificate, "margins")
    if all(margin is None for margin in margins.values()):
        return
    page.add_table(
        ["condition", "smallest margin"],
        [[meaning, _shown(margins.get(name))] for name, meaning in CONDITIONS.items()],
        f"Along {_shown(certificate.get('instances'))} held-out training problems; a condition "
        "holds where its margin is positive.",
    )


def _add_coefficients(page: Page, file: Path, method: Method, options: Options) -> None:
    page.add_heading("The coefficients" if not method.instant else "The metric")
    if method.formula is not None:
        _add_formula(page, file, method.formula, method.horizon, options)
    if method.schedule is not None:
        _add_schedule(page, method.schedule)
    if method.proximal is not None:
        _add_proximal(page, method.proximal)
    if method.metric is not None:
        _add_metric(page, method.metric)


def _add_schedule(page: Page, schedule: Schedule) -> None:
    k = np.arange(len(schedule))
    numbers = {name: getattr(schedule, name) for name in "acd"}
    page.add_plot(
        "The schedule",
        [Curve(name, k, values) for name, values in numbers.items()],
        x="iteration k",
        y="a, c, d",
        log_y=all(np.all(values > 0) for values in numbers.values()),
        caption="e = u - a g;  x <- x + e;  u <- u - d e - c g, for a curvature of 1.",
    )


def _add_proximal(page: Page, table: Table) -> None:
    k = np.arange(len(table))
    page.add_plot(
        "The table",
        [Curve(name, k, getattr(table, name)) for name in Table.names()],
        x="iteration k",
        y=", ".join(Table.names()),
        caption="g = the gradient at x + w (x - x_before);  x <- prox of x + m (x - x_before) "
        "- p g + q g_before with the step p - q, for a curvature of 1.",
    )


def _add_metric(page: Page, metric: Metric) -> None:
    page.add_facts({"metric": metric.kind, "variables": str(metric.n)})
    lengths = metric.lengths()
    page.add_plot(
        "The metric's lengths",
        [Curve(LEARNED, range(len(lengths)), lengths)],
        x="direction",
        y="length",
        log_y=True,
        caption="M g stands for the gradient g, M = S S^T: how far S stretches each direction, in "
        "order. Flat directions of the training problems are the long ones.",
    )


def _add_formula(page: Page, file: Path, formula: Formula, horizon: int, options: Options) -> None:
    if not isinstance(options, FlowOptions):
        raise InputError(f"{file} has coefficients, which the run's {options.target} has not.")
    try:
        with needing("learn"):
            from ode2opt.coefficients import restored
    except MissingDependencyError as error:
        page.add_text(f"The curves of beta and gamma are left out. {error}")
        return
    try:
        learned = restored(formula.kind, formula.settings, formula.parameters)
    except InputError as error:
        raise InputError(f"{file} is no valid method: {error}") from None
    t = formula.t0 + formula.h * np.arange(horizon)
    alpha = f"{float(learned.alpha):.6g}"
    page.add_facts(
        {
            "alpha": f"{alpha} ({'learned' if options.learn_alpha else 'not learned'})",
            "step h": f"{formula.h:g}",
            "first time t0": f"{formula.t0:g}",
        }
    )
    both = {LEARNED: _curves(learned, t), "at the start": _curves(options.first_coefficients(), t)}
    for name in ("beta", "gamma"):
        page.add_plot(
            f"{name}(t)",
            [Curve(who, t, found[name]) for who, found in both.items()],
            x="t",
            y=f"{name}(t)",
            log_x=True,
        )


def _curves(coefficients: Coefficients, t: np.ndarray) -> dict[str, np.ndarray]:
    found = coefficients.curves(t)
    return {"beta": found.beta, "gamma": found.gamma}


class _Shown(NamedTuple):
    """A plot of the training: its title, what metrics.jsonl calls its curves, what they are."""

    title: str
    names: tuple[str, ...]
    y: str
    caption: str


_TRAINING = (
    _Shown(
        "Stopping time and loss",
        ("stopping_time", "loss"),
        "t or iterations",
        "Mean over a batch; the loss is the stopping time + penalty (P + Q).",
    ),
    _Shown("Validation", ("validation",), "iterations", "Mean on the held-out training problems."),
    _Shown(
        "Violations P and Q",
        ("P", "Q"),
        "violation",
        "P: stability along the way; Q: conditions on the coefficients; means over a batch.",
    ),
    _Shown("Penalty", ("penalty",), "penalty", "The coefficient of P + Q."),
)


def _add_training(page: Page, restarts: Metrics, metrics: Metrics, options: Options) -> None:
    if not options.steps:
        return
    page.add_heading("Training")
    if restarts:
        _add_restarts(page, restarts)
    if not metrics:
        page.add_text("No step is done yet.")
        return
    if (cap := cap_of(options)) is not None:
        add_certified_training(page, metrics, cap)
        return
    judged = [line for line in metrics if line["validation"] is not None]
    feasible = sum(bool(line.get("feasible")) for line in judged)
    page.add_text(
        f"{len(metrics)} steps, {len(judged)} validations; {feasible} of these found all "
        "conditions met and the guard idle. The method is the best point of that kind, the start "
        "included; where there is none, the best point that was validated."
    )
    for title, names, y, caption in _TRAINING:
        curves = [_measured(metrics, name) for name in names]
        page.add_plot(title, curves, x="step", y=y, caption=caption)


def _add_restarts(page: Page, restarts: Metrics) -> None:
    by_number: dict[int, Metrics] = {}
    for line in restarts:
        by_number.setdefault(line[RESTART], []).append(line)
    page.add_plot(
        "Restarts",
        [
            curve._replace(name=f"beginning {number}")
            for number, lines in by_number.items()
            for curve in [_measured(lines, "stopping_time")]
        ],
        x="step",
        y="t or iterations",
        caption="Mean stopping time over a batch, for each way to begin; training goes on with the "
        "one that costs least on held-out training problems (choice.json).",
    )


def _measured(metrics: Metrics, name: str) -> Curve:
    """Return a column of metrics.jsonl as a curve over the steps that have it."""
    known = [line for line in metrics if line[name] is not None]
    steps, values = ([line[key] for line in known] for key in ("step", name))
    return Curve(name.replace("_", " "), steps, values)


def _add_provenance(page: Page, config: Mapping[str, Any]) -> None:
    page.add_heading("How it was made")
    family, options, versions = (config[key] for key in ("family", "options", "versions"))
    page.add_text("The data:")
    page.add_facts({name: _shown(value) for name, value in family.items()})
    page.add_text("The options; the seed drives which problems are drawn:")
    page.add_facts({name.replace("_", " "): _option(value) for name, value in options.items()})
    page.add_text("The packages of the training:")
    page.add_facts({name: _shown(value) for name, value in versions.items()})
    page.add_text("The machine of this report:")
    page.add_facts(
        {
            "system": platform.platform(),
            "processor": platform.machine(),
            "cores": str(os.cpu_count()),
            "Python": platform.python_version(),
        }
    )


def _option(value: Any) -> str:
    """Return an option's value in short: coefficients to begin with are many numbers."""
    if value is None:
        return "default"
    return "as given" if isinstance(value, dict) else _shown(value)


def _shown(value: Any) -> str:
    """Return a value of a JSON file for the eye."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    return str(value)
