"""A training run on one page: what was learned, how good it is, what is promised, and how."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.errors import (
    InputError,
    MissingDependencyError,
    Ode2OptError,
    needing,
    shown,
)
from ode2opt.base.machine import described
from ode2opt.learning import FlowOptions, comparison
from ode2opt.proofs.confidence import Expectation
from ode2opt.proofs.table import Table
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.prove import prove
from ode2opt.study.result_tables import CONDITIONS, benchmark_table
from ode2opt.study.run_files import OWN_NAME, Compared, Run, part_of, read_run
from ode2opt.study.run_training import add_training

if TYPE_CHECKING:
    from ode2opt.paper.coefficients import Coefficients

LEARNED = "learned"  # how curves of what was learned are called
SHOWN_NAMES = {OWN_NAME: LEARNED, **comparison.NAMES}
TAIL_WORDS = {"nag": "Nesterov's method", "ogm": "OGM"}
WORDS = {
    "flow": "The coefficients beta(t) and gamma(t) of an inertial system were chosen by StoPM so "
    "that its flow meets the tolerance early on problems of {family}, under the conditions for "
    "convergence and stability. The method is the system's Euler discretisation.",
    "sequence": "The three numbers of each iteration and a metric were chosen together, so that "
    "the guarded sequence meets the tolerance in few iterations on problems of {family}.",
    "certified": "The three numbers of each iteration were chosen so that the guarded sequence "
    "meets the tolerance in few iterations on problems of {family}, among tables whose worst case "
    "over all smooth convex functions is below a cap.",
    "proximal": "The numbers of each iteration with a prox were chosen so that the residual meets "
    "the tolerance in few iterations on problems of {family} with a penalty.",
    "instant": "There is no table of steps: the method is L-BFGS from the start, in a metric that "
    "makes the mean curvature of solved problems of {family} round, as far as that helps on "
    "held-out ones.",
}


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
    run = read_run(run_dir)
    page = _first_part(run)
    _add_learned(page, run)
    _add_statistics(page, run)
    if curves is None:
        _add_convergence(page, run)
    if benchmark is not None or curves is not None:
        _add_comparison(page, run, benchmark, curves or {})
    _add_certificate(page, run)
    _add_proof(page, run)
    _add_coefficients(page, run)
    add_training(page, run)
    _add_provenance(page, run.config)
    return page


def _first_part(run: Run) -> Page:
    """Return a page that begins with what the method needs compared with its baselines."""
    title = f"A method learned for {run.method.family}"
    if not run.method.provenance.get("finished"):
        return Page(title, "Training is not finished: this is the best method so far.")
    fresh = run.statistic("fresh", Compared)
    if fresh is None:
        raise InputError(f"{run.file} is no valid method: its statistics are damaged.")
    page = Page(title, comparison.comparison_sentence(asdict(fresh)))
    milliseconds = {name: 1e3 * seconds for name, seconds in fresh.seconds.items()}
    for what, values in (("Gradients", fresh.calls), ("Milliseconds", milliseconds)):
        names = [name for name in SHOWN_NAMES if name in values]  # this method first
        missed = {name: fresh.reached[name] < fresh.problems for name in names}
        page.add_bars(
            f"{what} to the tolerance",
            {SHOWN_NAMES[name]: values[name] for name in names},
            {SHOWN_NAMES[name]: ">" * missed[name] + f"{values[name]:.3g}" for name in names},
            "> where some problems did not get there." * any(missed.values()),
        )
    return page


def _add_learned(page: Page, run: Run) -> None:
    method, options = run.method, run.options
    page.add_heading("What was learned")
    page.add_text(_learned_words(run).format(family=method.family))
    facts = {
        "problems": method.family,
        "method": method.words,
        "tolerance": f"{method.tol:g}",
        "training": f"{len(run.metrics)} of {options.steps} steps",
        "seconds in all": _shown(method.statistics.get("seconds")),
    }
    if run.metrics:
        facts["problems a step"] = str(options.batch)
    page.add_facts(facts)


def _learned_words(run: Run) -> str:
    method = run.method
    if method.instant:
        vain = " Training found no table that does clearly better there."
        return WORDS["instant"] + vain * bool(run.options.steps)
    kind = "certified" if run.cap is not None else run.options.target
    count = "Three" if method.proximal is None else "Four"
    return (
        f"{WORDS[kind if method.proximal is None else 'proximal']} {count} numbers an iteration, "
        f"for {method.horizon} iterations, divided by {_scale_words(run)} Where it does not do "
        f"well, {method.guard.words(method.metric is not None)} takes over."
    )


def _scale_words(run: Run) -> str:
    return {
        "family": f"the family's curvature {run.method.family_scale or 0.0:.4g}.",
        "paper": "the paper's step constant L of each problem.",
    }.get(run.method.scale, "the curvature at each problem's start point.")


def _add_statistics(page: Page, run: Run) -> None:
    method = run.method
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
    if (found := run.statistic("statistical", Expectation)) is not None:
        page.add_text(
            f"Of this family {found.words()}. This is true of problems that are drawn the same way "
            "as those, and of no others."
        )
    fresh, held_out = (run.statistic(key, Compared) for key in ("fresh", "held_out"))
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


def _add_convergence(page: Page, run: Run) -> None:
    """Add gradient norms over oracle calls, where the method file has them."""
    if not (curves := run.curves()):
        return
    names = [name for name in SHOWN_NAMES if name in curves]
    names += [name for name in curves if name not in SHOWN_NAMES]
    shown = [Curve(SHOWN_NAMES.get(n, n), curves[n].calls, curves[n].norms) for n in names]
    caption = (
        "The first of the fresh test problems, by each method from the same start; the dashed line "
        "is the tolerance."
    )
    page.plot(
        "Gradient norm on a fresh problem", shown, "oracle calls", "gradient norm", log_y=True,
        threshold=run.method.tol, caption=caption,
    )  # fmt: skip


def _add_comparison(
    page: Page,
    run: Run,
    benchmark: Mapping[str, Any] | None,
    curves: Mapping[str, Sequence[float]],
) -> None:
    page.add_heading("Compared with other methods")
    if benchmark is not None:
        benchmark_table(benchmark["methods"], benchmark["instances"]).add_to(page)
    if curves:
        names = sorted(curves, key=lambda name: name != LEARNED)  # it gets the page's first colour
        shown = [Curve(name, range(len(curves[name])), curves[name]) for name in names]
        page.plot(
            "Gradient norm", shown, "iteration", "gradient norm", log_y=True,
            threshold=run.method.tol,
            caption="On one test problem; the dashed line is the tolerance.",
        )  # fmt: skip


def _add_certificate(page: Page, run: Run) -> None:
    page.add_heading("What is promised")
    certificate = run.method.certificate
    if not certificate:
        page.add_text("The method is certified when training is finished.")
        return
    verdict = certificate.get("verdict", [])
    if not isinstance(verdict, list):
        raise InputError(f"{run.file} is damaged: its verdict is {shown(verdict)}, not a list.")
    for sentence in verdict:
        page.add_text(str(sentence))
    margins = part_of(run.file, certificate, "margins")
    if any(margin is not None for margin in margins.values()):
        page.add_table(
            ["condition", "smallest margin"],
            [[meaning, _shown(margins.get(name))] for name, meaning in CONDITIONS.items()],
            f"Along {_shown(certificate.get('instances'))} held-out training problems; a condition "
            "holds where its margin is positive.",
        )


def _add_proof(page: Page, run: Run) -> None:
    """Add the theorem of a method's proof, checked in exact arithmetic, and its numbers."""
    method = run.method
    if method.proof is None:
        return
    try:
        found = prove(method).found
    except Ode2OptError as error:
        raise InputError(f"{run.file} is damaged: {error}") from None
    assert found is not None
    if not any(found.words in str(one) for one in method.certificate.get("verdict", [])):
        page.add_text(found.words)
    page.add_text("The proof in the method's file was checked in exact arithmetic for this page:")
    ratio, tail = math.ceil(found.ratio * 10**6) / 10**6, found.proof.tail  # rounded up
    facts = {} if run.cap is None else {"cap": f"{run.cap:g} times Nesterov's bound"}
    facts["proved, at most"] = f"{ratio:.6f} times Nesterov's bound"
    facts["rows in the proof"] = str(len(found.proof.rows))
    facts["followed by"] = "nothing" if tail is None else f"{TAIL_WORDS[tail]}, for ever"
    if method.family_scale is not None:
        facts["L"] = f"{method.family_scale:.6g}"
    if method.monitored is not None:
        facts["a solve begins with"] = f"{method.monitored.rho:g} L, and checks the proof"
    page.add_facts(facts)


def _add_coefficients(page: Page, run: Run) -> None:
    method = run.method
    page.add_heading("The coefficients" if not method.instant else "The metric")
    if method.formula is not None:
        _add_formula(page, run)
    if method.schedule is not None:
        numbers = {name: getattr(method.schedule, name) for name in "acd"}
        page.plot(
            "The schedule", _over_iterations(numbers), "iteration k", "a, c, d",
            log_y=all(np.all(values > 0) for values in numbers.values()),
            caption="e = u - a g;  x <- x + e;  u <- u - d e - c g, for a curvature of 1.",
        )  # fmt: skip
    if method.proximal is not None:
        numbers = {name: getattr(method.proximal, name) for name in Table.names()}
        caption = (
            "g = the gradient at x + w (x - x_before);  x <- prox of x + m (x - x_before) - p g "
            "+ q g_before with the step p - q, for a curvature of 1."
        )
        page.plot(
            "The table", _over_iterations(numbers), "iteration k", ", ".join(numbers),
            caption=caption,
        )  # fmt: skip
    if method.metric is not None:
        page.add_facts({"metric": method.metric.kind, "variables": str(method.metric.n)})
        caption = (
            "M g stands for the gradient g, M = S S^T: how far S stretches each direction, in "
            "order. Flat directions of the training problems are the long ones."
        )
        lengths = _over_iterations({LEARNED: method.metric.lengths()})
        page.plot(
            "The metric's lengths", lengths, "direction", "length", log_y=True, caption=caption
        )


def _over_iterations(numbers: Mapping[str, np.ndarray]) -> list[Curve]:
    return [Curve(name, range(len(values)), values) for name, values in numbers.items()]


def _add_formula(page: Page, run: Run) -> None:
    options, formula = run.options, run.method.formula
    assert formula is not None
    if not isinstance(options, FlowOptions):
        raise InputError(f"{run.file} has coefficients, which the run's {options.target} has not.")
    try:
        with needing("learn"):
            from ode2opt.coefficients import restored
    except MissingDependencyError as error:
        page.add_text(f"The curves of beta and gamma are left out. {error}")
        return
    try:
        learned = restored(formula.kind, formula.settings, formula.parameters)
    except InputError as error:
        raise InputError(f"{run.file} is no valid method: {error}") from None
    t = formula.t0 + formula.h * np.arange(run.method.horizon)
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
        shown = [Curve(who, t, found[name]) for who, found in both.items()]
        page.plot(f"{name}(t)", shown, "t", f"{name}(t)", log_x=True)


def _curves(coefficients: Coefficients, t: np.ndarray) -> dict[str, np.ndarray]:
    found = coefficients.curves(t)
    return {"beta": found.beta, "gamma": found.gamma}


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
    page.add_facts({name: str(value) for name, value in described().items()})


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
