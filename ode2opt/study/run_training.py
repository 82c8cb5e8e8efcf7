"""How the training of a run went, as plots of its report."""

from __future__ import annotations

from typing import NamedTuple

from ode2opt.base.errors import many
from ode2opt.study.curves import Curve
from ode2opt.study.page import Page
from ode2opt.study.run_files import RESTART, Metrics, Run


class Shown(NamedTuple):
    """A plot of the training: its title, what metrics.jsonl calls its curves, what they are."""

    title: str
    names: tuple[str, ...]
    y: str
    caption: str


HELD_OUT = Shown(
    "Validation", ("validation",), "iterations", "Mean on the held-out training problems."
)
TRAINING = (
    Shown(
        "Stopping time and loss",
        ("stopping_time", "loss"),
        "t or iterations",
        "Mean over a batch; the loss is the stopping time + penalty (P + Q).",
    ),
    HELD_OUT,
    Shown(
        "Violations P and Q",
        ("P", "Q"),
        "violation",
        "P: stability along the way; Q: conditions on the coefficients; means over a batch.",
    ),
    Shown("Penalty", ("penalty",), "penalty", "The coefficient of P + Q."),
)
RATIO = Shown(
    "Worst case, in units of Nesterov's",
    ("ratio",),
    "ratio",
    "By the matrix inequalities; the dashed line is the cap.",
)
CERTIFIED_TRAINING = (
    Shown("Iterations", ("stopping_time",), "iterations", "Soft mean count on training problems."),
    HELD_OUT,
    Shown("Weight of the barrier", ("penalty",), "mu", "It falls: tables may near the cap."),
    RATIO,
)


def add_training(page: Page, run: Run) -> None:
    """Add plots of the steps of a run, and of its restarts."""
    if not run.options.steps:
        return
    page.add_heading("Training")
    if run.restarts:
        _add_restarts(page, run.restarts)
    if not run.metrics:
        page.add_text("No step is done yet.")
        return
    page.add_text(_training_words(run))
    for one in TRAINING if run.cap is None else CERTIFIED_TRAINING:
        shown = [_measured(run.metrics, name) for name in one.names]
        cap = run.cap if one is RATIO else None
        page.plot(one.title, shown, "step", one.y, threshold=cap, caption=one.caption)


def _training_words(run: Run) -> str:
    if run.cap is not None:
        return (
            f"{many(len(run.metrics), 'step')}. Every point on the way is certified, by matrix "
            "inequalities in floating point. The method is the point with the fewest calls on "
            "held-out training problems that is proved in exact arithmetic, the start included."
        )
    judged = [line for line in run.metrics if line["validation"] is not None]
    feasible = sum(bool(line.get("feasible")) for line in judged)
    return (
        f"{len(run.metrics)} steps, {len(judged)} validations; {feasible} of these found all "
        "conditions met and the guard idle. The method is the best point of that kind, the start "
        "included; where there is none, the best point that was validated."
    )


def _add_restarts(page: Page, restarts: Metrics) -> None:
    by_number: dict[int, Metrics] = {}
    for line in restarts:
        by_number.setdefault(line[RESTART], []).append(line)
    curves = [
        _measured(lines, "stopping_time")._replace(name=f"beginning {number}")
        for number, lines in by_number.items()
    ]
    caption = (
        "Mean stopping time over a batch, for each way to begin; training goes on with the one "
        "that costs least on held-out training problems (choice.json)."
    )
    page.plot("Restarts", curves, "step", "t or iterations", caption=caption)


def _measured(metrics: Metrics, name: str) -> Curve:
    """Return a column of metrics.jsonl as a curve over the steps that have it."""
    known = [line for line in metrics if isinstance(line.get(name), int | float)]
    steps, values = ([line[key] for line in known] for key in ("step", name))
    return Curve(name.replace("_", " "), steps, values)
