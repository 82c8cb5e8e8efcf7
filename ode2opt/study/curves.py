"""The curves of a plot: what is worth drawing, at how many points, and which hide each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ode2opt.base.errors import InputError

EMPTY, ZERO = NOTHING = ("no value", "0 throughout")  # what is told instead of being drawn


class Curve(NamedTuple):
    """A line of a plot.

    Curves of one name look the same on the whole page and share an entry of the legend.

    Attributes:
        name: what the legend calls it.
        x: the horizontal coordinates.
        y: the heights; a value that is not finite is a gap.
        group: curves of one group are shown and hidden together; by default those of one name.
    """

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    group: str = ""


class Plot(NamedTuple):
    """Curves in one pair of axes, to be drawn on a page or in a figure.

    ``marks`` are points that only figures draw, with their marker; one without heights stands at
    the top. ``symlog`` is the height below which the axis of a figure is linear.
    """

    title: str
    curves: Sequence[Curve]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    threshold: float | None = None
    heights: tuple[float, float] | None = None
    caption: str = ""
    note: str = ""
    symlog: float | None = None
    scattered: bool = False
    marks: Sequence[tuple[Curve, str]] = ()


class Drawing(NamedTuple):
    """What of some curves is drawn: nothing where none of them varies.

    Attributes:
        curves: those to draw, as arrays.
        hidden: for each of them, how many later ones hide it.
        said: sentences about what is not drawn and what is hidden.
    """

    curves: list[Curve]
    hidden: list[int]
    said: str


def worth_drawing(curves: Sequence[Curve], log: bool) -> Drawing:
    """Sort out curves that show nothing, and find those that hide each other."""
    curves = [_checked(curve) for curve in curves]
    flat = [_flat_words(curve) for curve in curves]
    if all(flat):
        return Drawing([], [], _nothing_drawn(curves, [words or "" for words in flat]))
    pairs = list(zip(curves, flat, strict=True))
    drawn = [curve for curve, words in pairs if words not in NOTHING]
    hiding = _hidden_by(drawn, log)
    said = [f"{curve.name}: {words}." for curve, words in pairs if words in NOTHING]
    said += [
        f"The curves of {curve.name} and {drawn[later[0]].name} coincide."
        for curve, later in zip(drawn, hiding, strict=True)
        if later
    ]
    return Drawing(drawn, [len(later) for later in hiding], " ".join(said))


def _checked(curve: Curve) -> Curve:
    """Return a curve of arrays, or refuse one whose points have no two coordinates."""
    x, y = (np.asarray(values, dtype=float) for values in (curve.x, curve.y))
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"The curve {curve.name} has x of {x.shape} and y of {y.shape}.")
    return curve._replace(x=x, y=y)


def _flat_words(curve: Curve) -> str | None:
    """Return how a flat curve is described: no value, zero, constant; None for one that varies."""
    y = np.asarray(curve.y)
    finite = y[np.isfinite(y)]
    if not len(finite):
        return EMPTY
    least, most = finite.min(), finite.max()
    if least == most == 0:
        return ZERO
    if len(finite) > 1 and most - least <= 1e-9 * max(abs(least), abs(most)):
        return f"{most:.6g} throughout"
    return None


def _nothing_drawn(curves: Sequence[Curve], words: Sequence[str]) -> str:
    if len(set(words)) == 1:
        return f"{words[0].capitalize()}."
    said = (f"{curve.name}: {word}" for curve, word in zip(curves, words, strict=True))
    return f"{'; '.join(said)}."


def _hidden_by(curves: Sequence[Curve], log: bool, part: float = 0.01) -> list[list[int]]:
    """Return for each curve the later ones that hide it: closer than a part of the height."""
    heights = [_heights(curve, log) for curve in curves]
    seen = np.concatenate([values[np.isfinite(values)] for values in heights])
    near = part * np.ptp(seen) if len(seen) else 0.0
    return [
        [j for j in range(i + 1, len(curves)) if _alike(curves, heights, i, j, near)]
        for i in range(len(curves))
    ]


def _heights(curve: Curve, log: bool) -> np.ndarray:
    y = np.asarray(curve.y, dtype=float)
    return np.log10(y, out=np.full(y.shape, np.nan), where=y > 0) if log else y


def _alike(curves: Sequence[Curve], heights: list[np.ndarray], i: int, j: int, near: float) -> bool:
    if curves[i].name == curves[j].name or not np.array_equal(curves[i].x, curves[j].x):
        return False
    a, b = heights[i], heights[j]
    both = np.isfinite(a) & np.isfinite(b)
    return bool(both.any() and np.abs(a - b)[both].max() <= near)


def thinned(curve: Curve, most: int = 300) -> Curve:
    """Return a curve with at most ``most`` points: both ends, and the extremes of each stretch.

    By default two for each four pixels of a plot.
    """
    x, y = np.asarray(curve.x), np.asarray(curve.y)
    if len(x) <= most:
        return curve
    kept = [0, len(x) - 1]
    for part in np.array_split(np.arange(len(x)), most // 2 - 1):
        finite = part[np.isfinite(y[part])]
        if len(finite):
            kept += [finite[y[finite].argmin()], finite[y[finite].argmax()]]
        else:
            kept.append(part[0])  # a gap stays one
    chosen = np.unique(kept)
    return curve._replace(x=x[chosen], y=y[chosen])


def plain(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Return six digits of each value, for JSON."""
    return [
        float(f"{value:.6g}") if math.isfinite(value) else None
        for value in np.asarray(values).tolist()
    ]
