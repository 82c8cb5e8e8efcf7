"""What the report of a certified run says: its cap, its proof, and how training kept below it."""

from __future__ import annotations

import math
from pathlib import Path

from ode2opt.base.errors import InputError, Ode2OptError, many
from ode2opt.learning import Options
from ode2opt.proofs.exact import ProvedBound
from ode2opt.solvers.method_file import Method
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.prove import prove
from ode2opt.study.run_files import Metrics

DIGITS = 10**6  # a ratio is shown with six decimals, rounded up
TAIL_WORDS = {"nag": "Nesterov's method", "ogm": "OGM"}
CERTIFIED_WORDS = (
    "The three numbers of each iteration were chosen so that the guarded sequence meets the "
    "tolerance in few iterations on problems of {family}, among tables whose worst case over all "
    "smooth convex functions is below a cap."
)


def cap_of(options: Options) -> float | None:
    """Return the cap of a certified run, None for any other run."""
    return getattr(options, "certified", None)


def add_proof(page: Page, file: Path, method: Method, options: Options) -> None:
    """Add the theorem of a method's proof, checked in exact arithmetic, and its numbers."""
    if method.proof is None:
        return
    try:
        proof = prove(method)
    except Ode2OptError as error:
        raise InputError(f"{file} is damaged: {error}") from None
    assert proof.found is not None
    if not any(proof.found.words in str(one) for one in method.certificate.get("verdict", [])):
        page.add_text(proof.found.words)
    page.add_text("The proof in the method's file was checked in exact arithmetic for this page:")
    page.add_facts(_facts(proof.found, method, options))


def _facts(found: ProvedBound, method: Method, options: Options) -> dict[str, str]:
    cap, tail = cap_of(options), found.proof.tail
    facts = {} if cap is None else {"cap": f"{cap:g} times Nesterov's bound"}
    ratio = math.ceil(found.ratio * DIGITS) / DIGITS
    facts["proved, at most"] = f"{ratio:.6f} times Nesterov's bound"
    facts["rows in the proof"] = str(len(found.proof.rows))
    facts["followed by"] = "nothing" if tail is None else f"{TAIL_WORDS[tail]}, for ever"
    if method.family_scale is not None:
        facts["L"] = f"{method.family_scale:.6g}"
    if method.monitored is not None:
        facts["a solve begins with"] = f"{method.monitored.rho:g} L, and checks the proof"
    return facts


def add_certified_training(page: Page, metrics: Metrics, cap: float) -> None:
    """Add how a certified run went: iterations, validation, and the ratio below the cap."""
    page.add_text(
        f"{many(len(metrics), 'step')}. Every point on the way is certified, by matrix "
        "inequalities in floating point. The method is the point with the fewest calls on held-out "
        "training problems that is proved in exact arithmetic, the start included."
    )
    shown = (
        ("Iterations", "stopping_time", "iterations", "Soft mean count on training problems."),
        ("Validation", "validation", "iterations", "Mean on the held-out training problems."),
        ("Weight of the barrier", "penalty", "mu", "It falls, so that tables may near the cap."),
    )
    for title, name, y, caption in shown:
        page.add_plot(title, [_over_steps(metrics, name)], x="step", y=y, caption=caption)
    page.add_plot(
        "Worst case beside Nesterov's",
        [_over_steps(metrics, "ratio")],
        x="step",
        y="ratio",
        threshold=cap,
        caption="By the matrix inequalities; the dashed line is the cap.",
    )


def _over_steps(metrics: Metrics, name: str) -> Curve:
    known = [line for line in metrics if isinstance(line.get(name), int | float)]
    return Curve(
        name.replace("_", " "), [one["step"] for one in known], [one[name] for one in known]
    )
