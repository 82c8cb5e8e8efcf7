"""When to hand over: the fewest calls, never more than L-BFGS, and an envelope of what was seen."""

from types import SimpleNamespace

import numpy as np
import pytest

from ode2opt import Method, Quadratic, Schedule
from ode2opt.learning.sequence.handing_over import (
    Choice,
    beats_instant,
    best_choice,
    candidates,
    envelope,
    mean_calls,
    overhead_of,
)


def solved(calls, handed_at=None, norms=()):
    handovers = () if handed_at is None else (SimpleNamespace(iteration=handed_at),)
    history = SimpleNamespace(grad_norm=list(norms))
    return SimpleNamespace(
        oracle_calls=calls, iterations=calls, handovers=handovers, history=history, reached=None
    )


def test_horizons_leave_room_beyond_what_was_seen():
    alone = [solved(10), solved(11), solved(20), solved(9), solved(90, handed_at=60)]
    tried = candidates(alone, 60)
    assert [choice.horizon for choice in tried[::4]] == [30, 15, 8, 4, 2, 0]
    assert tried[0] == Choice(30, "metric-lbfgs", 1.0)
    assert tried[1] == Choice(30, "metric-lbfgs", 0.5)
    assert tried[3] == Choice(30, "lbfgs")


@pytest.mark.parametrize(
    ("alone", "fallback", "baseline", "expected"),
    [
        (20, 17, 40, "alone"),  # a quarter more for L-BFGS: 17 costs more than 20
        (20, 15, 40, "fallback"),
        (20, 17, 18, "fallback"),  # alone would need more than the baseline
        (20, 19, 10, "fallback"),  # none is able: the fewest calls
    ],
)
def test_the_cheapest_is_taken_but_never_more_than_the_rival(alone, fallback, baseline, expected):
    options = {Choice(30, "lbfgs"): solved(alone), Choice(0, "lbfgs"): solved(fallback)}
    best, results = best_choice(
        [*options], lambda choice: [options[choice]], [solved(baseline)], 0.25
    )
    assert best.horizon == {"alone": 30, "fallback": 0}[expected]
    assert results == [options[best]]


def test_a_fallback_that_nobody_needed_is_the_one_that_was_best_where_it_was():
    both = [Choice(30, name) for name in ("metric-lbfgs", "lbfgs")]
    short = [Choice(5, name) for name in ("metric-lbfgs", "lbfgs")]
    found = {one: solved(6) for one in both}
    found |= dict(zip(short, [solved(12, handed_at=5), solved(8, handed_at=5)], strict=True))
    best, _ = best_choice([*found], lambda choice: [found[choice]], [solved(40)], 0.25)
    assert best == Choice(30, "lbfgs")


def test_a_fallback_that_nobody_needed_is_told_apart_at_the_start_if_nowhere_else():
    both = [Choice(30, name) for name in ("metric-lbfgs", "lbfgs")]
    found = {one: solved(6) for one in both}
    found |= {Choice(0, "metric-lbfgs"): solved(12), Choice(0, "lbfgs"): solved(8)}
    best, _ = best_choice([*found], lambda choice: [found[choice]], [solved(40)], 0.25)
    assert best == Choice(30, "lbfgs")


@pytest.mark.parametrize(
    ("calls", "handed_at", "overhead", "worth"),
    [
        (20, None, 0.5, True),  # as many calls, but 20 against 30 in costs
        (20, None, 0.0, False),  # the same in everything
        (18, None, 0.0, True),
        (21, None, 0.5, False),  # cheaper, with more calls
        (19, 2, 0.5, True),  # mostly by L-BFGS: 27.5 against 30
        (20, 1, 0.5, False),  # 29.5 against 30
    ],
)
def test_a_table_is_worth_having_if_it_saves_costs_and_takes_no_more_calls(
    calls, handed_at, overhead, worth
):
    mine = [solved(calls, handed_at)]
    assert beats_instant(Choice(30, "metric-lbfgs"), mine, [solved(20)], overhead) == worth


def test_a_large_problem_pays_for_its_gradients_alone():
    small, large = (Quadratic(np.eye(n), np.ones(n)) for n in (10, 3_000))
    assert overhead_of(small) > 4  # L-BFGS itself is most of the work
    assert 0.25 < overhead_of(large) < 0.3


def test_calls_after_the_tolerance_are_not_counted():
    """A sequence's value is looked up once at the end; a line search knows it."""
    result = solved(12)
    result.reached = SimpleNamespace(oracle_calls=11)
    assert mean_calls([result, solved(5)]) == 8


def test_without_a_horizon_the_method_has_no_table():
    table = Method(Schedule([1.0] * 9, [1.0] * 9, [0.5] * 9), "test", 1e-3, "family", 2.0)
    assert Choice(4, "lbfgs").of(table).horizon == 4
    instant = Choice(0, "metric-lbfgs", 0.5).of(table)
    assert instant.instant
    assert (instant.guard.fallback, instant.guard.power) == ("metric-lbfgs", 0.5)


def test_the_envelope_is_above_all_problems_that_needed_no_fallback():
    runs = [solved(2, norms=[2.0, 1.0, 0.1]), solved(1, norms=[1.0, 0.8]),
            solved(9, handed_at=1, norms=[1.0, 50.0])]  # fmt: skip
    assert envelope(runs) == pytest.approx((3.0, 2.4, 0.15))
    assert envelope([runs[2]]) == ()
