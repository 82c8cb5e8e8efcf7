"""A line search that stays right down to rounding.

A step is taken when it meets Wolfe's conditions or, where values differ by rounding only, the
approximate ones of Hager and Zhang, which compare slopes instead of values
(docs/mathematics.md, section 11). Trials are placed as Moré and Thuente do. Where a trial finds no
number, no later one goes as far, and a step most of the way there is taken if it gains.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class LineSearchRules(NamedTuple):
    """What a step must do, and how trials are placed; the usual choices of the literature.

    Attributes:
        decrease: Armijo's share of the slope: a step must gain at least this much.
        curvature: the share of the slope that may be left.
        approximate: the same as ``decrease``, in the comparison of slopes.
        furthest: by how much a step may grow in one trial.
        onward: of the way to the other end of a bracket: an extrapolation goes no further.
        half: a bracket that keeps more than this share of its width in two trials is divided.
        back: the share of a step that led to no number.
        near: of the way to a wall, where numbers end: a step that gains goes no further.
        enough: trials after which a step that gains is taken whatever slope is left: f has a kink.
        trials: trials at most.
    """

    decrease: float = 1e-3
    curvature: float = 0.9
    approximate: float = 0.1
    furthest: float = 4.0
    onward: float = 0.66
    half: float = 0.5
    back: float = 0.1
    near: float = 0.75
    enough: int = 15
    trials: int = 30


RULES = LineSearchRules()


class Trial(NamedTuple):
    """A step with the value and the slope along the line there.

    Attributes:
        step: its length.
        value: f there.
        slope: the derivative along the line there.
    """

    step: float
    value: float
    slope: float

    @property
    def finite(self) -> bool:
        """Whether value and slope are numbers."""
        return math.isfinite(self.value) and math.isfinite(self.slope)


class Standstill:
    """Tells when a method goes on without getting anywhere, as at the edge of rounding.

    That is so after a number of steps none of which has lowered the value or, by a tenth, the
    gradient norm.
    """

    def __init__(self) -> None:
        self._value = self._norm = math.inf
        self._steps = 0

    def __call__(self, value: float, norm: float) -> bool:
        self._steps += 1
        if value < self._value or norm < 0.9 * self._norm:
            self._steps = 0
        self._value, self._norm = min(value, self._value), min(norm, self._norm)
        return self._steps >= RULES.trials


def search(
    start: Trial, first: float, at: Callable[[float], Trial], rounding: float
) -> Trial | None:
    """Return a step that can be taken from ``start`` (step 0, a negative slope), or None."""
    slack = rounding * abs(start.value)
    low, high = start, None  # the lowest point so far; the other end of the bracket
    wall = math.inf  # the shortest step at which there is no number
    step, widths = first, [math.inf, math.inf]
    for count in range(RULES.trials):
        if _gains(start, low) and (
            low.step >= RULES.near * wall or (count >= RULES.enough and high)
        ):
            break
        trial = at(step)
        if not trial.finite:
            wall, high = step, None
            step = RULES.back * step if low is start else 0.5 * (low.step + wall)
            continue
        if _accepted(start, trial, slack):
            return trial
        higher = trial.value > low.value + slack  # else slopes tell more than values
        step = _next(low, high, trial, higher)
        if higher:
            high = trial
        else:
            high = low if trial.slope * (trial.step - low.step) >= 0 else high
            low = trial
        if high is not None:
            width = abs(high.step - low.step)
            if width > RULES.half * widths[0] or not _between(low, step, high):
                step = _middle(low, high)
            widths = [widths[1], width]
        elif not step < wall:
            step = 0.5 * (low.step + wall)
        if not 0 < step < math.inf or step == low.step or (high and step == high.step):
            break
    return at(low.step) if _gains(start, low) and (high or wall < math.inf) else None


def _between(one: Trial, step: float, other: Trial) -> bool:
    return min(one.step, other.step) < step < max(one.step, other.step)


def _middle(one: Trial, other: Trial) -> float:
    """Return a step between two: the mean or, where they are of different sizes, that of sizes."""
    short, long = sorted((one.step, other.step))
    if short > RULES.back * long:
        return 0.5 * (short + long)
    return math.sqrt(max(short, RULES.back**2 * long) * long)


def _gains(start: Trial, trial: Trial) -> bool:
    """Whether a step lowers the value by its share of the slope."""
    gain = RULES.decrease * trial.step * start.slope
    return trial.step > 0 and trial.value <= start.value + gain


def _accepted(start: Trial, trial: Trial, slack: float) -> bool:
    if not trial.slope >= RULES.curvature * start.slope:
        return False
    if _gains(start, trial):
        return trial.slope <= -RULES.curvature * start.slope
    flat = trial.value <= start.value + slack
    return flat and trial.slope <= (2 * RULES.approximate - 1) * start.slope


def _next(low: Trial, high: Trial | None, trial: Trial, higher: bool) -> float:
    """Return the step to try after ``trial``, by what value and slope say of the minimum."""
    cubic = _cubic(low, trial)
    if higher:  # too far: the cubic, or half-way to the parabola
        parabola = _parabola(low, trial)
        if not _between(low, cubic, trial):  # by rounding, where values are large
            return parabola
        near = abs(cubic - low.step) < abs(parabola - low.step)
        return cubic if near else 0.5 * (cubic + parabola)
    secant = _secant(low, trial)
    if trial.slope * low.slope < 0:  # past the minimum: the farther back
        return max(cubic, secant, key=lambda step: abs(step - trial.step))
    if abs(trial.slope) < abs(low.slope):  # on the way: the farther on, but not too far
        return _onward(low, high, trial, cubic, secant)
    return _cubic(high, trial) if high is not None else RULES.furthest * trial.step


def _onward(low: Trial, high: Trial | None, trial: Trial, cubic: float, secant: float) -> float:
    sign = math.copysign(1.0, trial.step - low.step)
    if not (cubic - trial.step) * sign > 0:
        cubic = secant if high is not None else RULES.furthest * trial.step
    if high is None:
        step = max(cubic, secant, key=lambda s: abs(s - trial.step))
        return min(max(step, 1.1 * trial.step), RULES.furthest * trial.step)
    step = min(cubic, secant, key=lambda s: abs(s - trial.step))
    limit = trial.step + RULES.onward * (high.step - trial.step)
    return min(step, limit) if sign > 0 else max(step, limit)


def _parabola(low: Trial, trial: Trial) -> float:
    """Return the minimum of the parabola through low's value and slope and trial's value."""
    width = trial.step - low.step
    rise = (low.value - trial.value) / width + low.slope
    return low.step + 0.5 * width * low.slope / rise if rise else low.step + 0.5 * width


def _secant(low: Trial, trial: Trial) -> float:
    bend = trial.slope - low.slope
    return trial.step - trial.slope * (trial.step - low.step) / bend if bend else math.inf


def _cubic(one: Trial, other: Trial) -> float:
    """Return the minimum of the cubic through two values and slopes, infinity if it has none."""
    width = other.step - one.step
    theta = 3 * (one.value - other.value) / width + one.slope + other.slope
    size = max(abs(theta), abs(one.slope), abs(other.slope))
    square = (theta / size) ** 2 - (one.slope / size) * (other.slope / size)
    if not square >= 0:
        return math.inf
    root = math.copysign(size * math.sqrt(square), width)
    below = other.slope - one.slope + 2 * root
    return other.step - width * (other.slope + root - theta) / below if below else math.inf
