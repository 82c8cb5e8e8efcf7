"""Pictures of results and methods for a notebook; matplotlib is loaded when one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ode2opt.base.errors import InputError, needing
from ode2opt.base.schedule import Schedule

if TYPE_CHECKING:
    from ode2opt.solvers.method_file import Method
    from ode2opt.solvers.result import Result

WIDTHS, HEIGHT = (6.0, 4.6), 3.8  # inches of one panel: alone, and beside others
# Okabe and Ito's colours, which most colour-blind readers can tell apart, and a dash for each.
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#D55E00", "linestyle": (0, (5, 2))},
    {"color": "#009E73", "linestyle": (0, (6, 2, 1.2, 2))},
)


class PlotRules(NamedTuple):
    """What is drawn how.

    Attributes:
        few: points of a curve that are marked one by one.
        largest: number that is drawn: beyond it matplotlib's logarithmic axes overflow.
        wide: largest by smallest number of a schedule that is drawn on a logarithmic scale.
        grey: of the tolerance.
    """

    few: int = 60
    largest: float = 1e200
    wide: float = 20.0
    grey: str = "0.45"


RULES = PlotRules()


def new_panels(count: int, ax: Any = None) -> list[Any]:
    """Return ``count`` axes side by side: those given, or those of a new figure."""
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, dtype=object)))
        wrong = [one for one in given if not hasattr(one, "plot")]
        if wrong or len(given) != count:
            what = f"a {type(wrong[0]).__name__} is among them" if wrong else f"not {len(given)}"
            raise InputError(f"ax must be matplotlib axes, {count} of them: {what}.")
        return given
    with needing("study"):
        from matplotlib import pyplot
    _, panels = pyplot.subplots(
        1, count, figsize=(count * WIDTHS[count > 1], HEIGHT), layout="constrained", squeeze=False
    )
    return list(panels.ravel())


def draw(ax: Any, x: np.ndarray, y: np.ndarray, label: str, style: int, log: bool = True) -> None:
    """Draw a curve; what is no size to draw is left out: infinity, zero on a logarithmic scale."""
    seen = (np.abs(y) < RULES.largest) & ((y > 1 / RULES.largest) | (not log))
    marker = "." if len(y) <= RULES.few else None
    ax.plot(x, np.where(seen, y, np.nan), label=label, marker=marker, **STYLES[style])


def finish(ax: Any, title: str, x: str, y: str, log: bool = True, legend: bool = True) -> None:
    """Name a panel and its axes, and add its grid and legend."""
    if log:
        ax.set_yscale("log")
    ax.set_title(title, fontsize=10, parse_math=False)  # a family may be named "$"
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(True, color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if legend and ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize=8, framealpha=0.9)


def tolerance_line(ax: Any, tol: float) -> None:
    """Draw a line across a panel at a tolerance."""
    ax.axhline(tol, color=RULES.grey, linewidth=0.9, linestyle=":", label=f"tolerance {tol:g}")


def plot_result(result: Result, ax: Any = None) -> Any:
    """Draw the gradient norm of a solve over its oracle calls; see :meth:`Result.plot`."""
    history = result.history
    if history is None:
        raise InputError("This result has no history to draw: solve with history=True.")
    (ax,) = new_panels(1, ax)
    calls, norms = np.asarray(history.oracle_calls), np.asarray(history.grad_norm)
    draw(ax, calls, norms, "gradient norm", 0)
    if len(calls) and norms[-1] == 0:
        lowest = min([n for n in norms if n > 0] + [result.tol or 1.0])
        ax.plot(calls[-1:], [lowest / 10], "v", color=STYLES[0]["color"], label="0, exactly")
    for handover in result.handovers:
        at = calls[min(max(handover.iteration, 0), len(calls) - 1)]
        label = f"handover to {handover.to}, iteration {handover.iteration}"
        ax.axvline(at, color=STYLES[1]["color"], linewidth=0.9, linestyle="--", label=label)
    if result.tol is not None:
        tolerance_line(ax, result.tol)
    finish(ax, result.message, "oracle calls (gradients, set-up included)", "gradient norm")
    return ax


def plot_method(method: Method, ax: Any = None) -> Sequence[Any]:
    """Draw a method's coefficients and its schedule; see :meth:`Method.plot`."""
    schedule = method.table()
    formula = None if ax is not None and np.size(np.asarray(ax)) == 1 else method.formula
    if formula is None:
        panels = new_panels(1, ax)
    else:
        t = formula.t0 + formula.h * np.arange(method.horizon + 1)
        curves = method.coefficients().curves(t)  # before there is a figure: JAX may be missing
        panels = new_panels(2, ax)
        draw(panels[0], t, curves.beta, "β, damping by the Hessian", 0)
        draw(panels[0], t, curves.gamma, "γ, weight of the gradient", 1)
        title = f"{formula.kind} coefficients, for curvature 1"
        finish(panels[0], title, "time t", "coefficient")
    draw_schedule(panels[-1], schedule, f"schedule for {method.family}")
    return panels


def draw_schedule(ax: Any, schedule: Schedule, title: str) -> None:
    """Draw the three numbers of each iteration; on a logarithmic scale where they span much."""
    k = np.arange(len(schedule))
    numbers = {"a, of the move": schedule.a, "c, of the velocity": schedule.c,
               "d, friction": schedule.d}  # fmt: skip
    least, most = (extreme(np.concatenate([*numbers.values()])) for extreme in (np.min, np.max))
    log = bool(0 < least < most / RULES.wide)
    for style, (label, values) in enumerate(numbers.items()):
        draw(ax, k, values, label, style, log)
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", integer=True)
    finish(ax, title, "iteration k", "a and c (times curvature), d", log)
