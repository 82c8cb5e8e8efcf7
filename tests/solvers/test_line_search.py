"""The line search: Wolfe's conditions, checked by hand on random convex functions of a line."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from ode2opt.solvers.stages.line_search import Trial, search

ROUNDING = 2e-15
seeds = st.integers(0, 2**32 - 1)


class Line:
    """A function of the step, its derivative, and all that was asked of them."""

    def __init__(self, value, slope):
        self.value, self.slope, self.asked = value, slope, []

    def at(self, step):
        self.asked.append(Trial(step, self.value(step), self.slope(step)))
        return self.asked[-1]

    def search(self, first, rounding=ROUNDING):
        with np.errstate(all="ignore"):
            return search(Trial(0.0, self.value(0.0), self.slope(0.0)), first, self.at, rounding)


def convex(seed):
    """Softplus functions, a parabola and a higher power, of any size, with a minimum."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 6))
    w, a = 10 ** rng.uniform(-3, 3, k), rng.standard_normal(k) * 10 ** rng.uniform(-2, 2, k)
    b, c, d = 3 * rng.standard_normal(k), 10 ** rng.uniform(-4, 4), rng.choice([0, 1e-3, 1e3])
    m, p = rng.standard_normal() * 10 ** rng.uniform(-2, 2), int(rng.choice([4, 6]))
    sign = 1.0

    def value(t):
        r = sign * t - m
        return float(w @ np.logaddexp(0, a * sign * t + b) + c * r**2 / 2 + d * r**p / p)

    def slope(t):
        r = sign * t - m
        return sign * float((w * a) @ expit(a * sign * t + b) + c * r + d * r ** (p - 1))

    sign = -1.0 if slope(0.0) > 0 else 1.0
    return Line(value, slope)


def meets_wolfe(line, found):
    """Sufficient decrease (1e-3) and the strong curvature condition (0.9)."""
    value, slope = line.value(0.0), line.slope(0.0)
    enough = line.value(found.step) <= value + 1e-3 * found.step * slope
    return enough and abs(line.slope(found.step)) <= 0.9 * abs(slope)


def meets_approximate_wolfe(line, found):
    """No increase beyond rounding, and Hager and Zhang's two bounds of the slope."""
    value, slope = line.value(0.0), line.slope(0.0)
    flat = line.value(found.step) <= value + ROUNDING * abs(value)
    return flat and 0.9 * slope <= line.slope(found.step) <= (2 * 0.1 - 1) * slope


@settings(max_examples=150, deadline=None)
@given(seed=seeds, size=st.floats(-5, 5))
def test_a_step_is_found_and_meets_wolfes_conditions(seed, size):
    line = convex(seed)
    assume(line.slope(0.0) < -1e-8)
    found = line.search(10**size)
    assert found is not None
    assert meets_wolfe(line, found) or meets_approximate_wolfe(line, found)
    assert found is line.asked[-1]
    assert len(line.asked) <= 20


@settings(max_examples=50, deadline=None)
@given(curvature=st.floats(1e-6, 1e6), minimum=st.floats(1e-3, 1e3))
def test_the_minimum_of_a_parabola_is_taken_at_once(curvature, minimum):
    line = Line(lambda t: curvature * (t - minimum) ** 2, lambda t: 2 * curvature * (t - minimum))
    assert line.search(minimum).step == minimum
    assert len(line.asked) == 1
    line.asked.clear()
    line.search(50 * minimum)  # far too long: interpolation is exact on a parabola
    assert len(line.asked) == 2


@settings(max_examples=50, deadline=None)
@given(seed=seeds, first=st.floats(0.01, 100))
def test_where_values_are_all_rounding_slopes_decide(seed, first):
    noise = np.random.default_rng(seed)
    line = Line(lambda t: 1e6 + 1e-10 * noise.integers(-1, 2), lambda t: 1e-9 * (t - 1.0))
    found = line.search(first)
    assert found is not None
    assert abs(found.step - 1.0) <= 0.9


def test_without_slack_the_same_rise_is_refused():
    line = Line(lambda t: 1.0 + (t > 0) * 1e-13, lambda t: t - 1.0)
    assert line.search(1.0, rounding=1e-12) is not None
    assert line.search(1.0, rounding=1e-14) is None


@settings(max_examples=50, deadline=None)
@given(
    edge=st.floats(1e-3, 1e3), far=st.floats(1, 1e6),
    outside=st.sampled_from([math.inf, math.nan, -math.inf]),
)  # fmt: skip
def test_a_step_to_where_nothing_is_defined_is_shortened(edge, far, outside):
    """-log(edge - t) - t: beyond the edge there is no number."""

    def value(t):
        return -math.log(edge - t) - 9 * t / edge if t < edge else outside

    def slope(t):
        return 1 / (edge - t) - 9 / edge if t < edge else outside

    line = Line(value, slope)
    found = line.search(far * edge)
    assert found.step < edge
    assert meets_wolfe(line, found) or meets_approximate_wolfe(line, found)


@pytest.mark.parametrize("nothing", [math.nan, math.inf])
def test_where_no_step_has_a_number_there_is_none(nothing):
    line = Line(lambda t: nothing if t else 0.0, lambda t: nothing if t else -1.0)
    assert line.search(1.0) is None
    assert 0 < len(line.asked) <= 30


def test_a_slope_that_is_not_finite_is_no_number_either():
    line = Line(lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1) if t < 5 else math.nan)
    assert line.search(10.0).step < 5


def test_a_line_without_end_has_no_step():
    line = Line(lambda t: -t, lambda t: -1.0)
    assert line.search(1.0) is None
    assert len(line.asked) <= 30


def test_an_untrue_slope_ends_the_search():
    line = Line(lambda t: t, lambda t: -1.0)  # it says downhill, but goes uphill
    assert line.search(1.0) is None
    assert len(line.asked) <= 30


@pytest.mark.parametrize("sharp", [1e-3, 1e-9, 0.0])
def test_at_a_kink_a_step_that_gains_is_taken(sharp):
    """Steeper behind the kink than before it, so that no slope in between is ever met."""
    line = Line(
        lambda t: 3 * np.hypot(sharp, t - 1) + 2 * (t - 1),
        lambda t: 3 * (t - 1) / (np.hypot(sharp, t - 1) or 1.0) + 2,
    )
    found = line.search(0.3)
    assert found is not None
    assert line.asked[-1] == found
    assert len(line.asked) <= 17
    assert line.value(found.step) <= line.value(0.0) + 1e-3 * found.step * line.slope(0.0)
    assert abs(found.step - 1) < 0.1


def test_a_line_without_a_minimum_has_no_step():
    assert Line(lambda t: -t, lambda t: -1.0).search(1.0) is None
