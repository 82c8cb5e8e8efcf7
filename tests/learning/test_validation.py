"""Validation: which points are feasible, what is counts_of, and what training makes of it."""

import math
from types import SimpleNamespace

import pytest

from ode2opt.learning.protocol import TrainingStage
from ode2opt.learning.run import LARGEST_PENALTY, Training
from ode2opt.learning.run_directory import Position
from ode2opt.learning.stage import REJECT_RATIO
from ode2opt.learning.validation import (
    FEASIBILITY_TOL,
    ProblemTasks,
    Validation,
    Validator,
    counts_of,
    statistics,
)
from ode2opt.paper.stopm import TrainingState


def validation(complexity=10.0, **fields):
    """All is well, but for what is given."""
    well = {
        "worst": 20, "reached": 4, "handovers": 0, "flows": 4, "P": 0.0, "Q": 0.0, "total": 4,
    }  # fmt: skip
    return Validation(complexity, **well | fields)


@pytest.mark.parametrize(
    ("fields", "strictly", "otherwise"),
    [
        ({}, True, True),
        ({"P": FEASIBILITY_TOL, "Q": FEASIBILITY_TOL}, True, True),
        ({"reached": 3}, False, False),
        ({"handovers": 1}, False, True),
        ({"P": 1.01 * FEASIBILITY_TOL}, False, True),
        ({"Q": 1.01 * FEASIBILITY_TOL}, False, True),
        ({"P": math.inf}, False, True),
        ({"flows": 0}, True, True),
    ],
)
def test_feasible_is_what_arrives_without_violation_or_guard(fields, strictly, otherwise):
    assert validation(**fields).feasible is strictly
    assert validation(**fields, strict=False).feasible is otherwise


def test_a_method_file_is_told_of_the_sequence():
    assert validation(12.5, reached=3).statistics() == {
        "complexity": 12.5, "worst": 20, "reached": 3, "handovers": 0, "total": 4,
        "feasible": False,
    }  # fmt: skip


def result(iterations, success=True, handovers=()):
    return SimpleNamespace(iterations=iterations, success=success, handovers=handovers)


RESULTS = [result(10), result(30, handovers=("guard", "again")), result(50, success=False)]


def test_iterations_arrivals_and_handovers_are_counted():
    expected = {"complexity": 30.0, "worst": 50, "reached": 2, "handovers": 1, "total": 3}
    assert counts_of(RESULTS) == expected
    assert statistics(RESULTS) == expected | {"feasible": False}
    assert statistics(RESULTS[:2])["feasible"]  # the guard may have stepped in


class Held:
    """A target of three problems that are their own numbers, solved and followed as given."""

    strict = True

    def problem(self, stream, i):
        return (stream, i)

    def instance(self, problem, stream, i):
        assert problem == (stream, i)
        return SimpleNamespace(number=i)

    def solve(self, learned, problem, one):
        assert learned == "learned"
        assert problem[1] == one.number
        return RESULTS[one.number]


class Following:
    """A StoPM that measured P and Q before; P grows with the safety."""

    def __init__(self, P, Q, reached=(True, False, True)):
        self.P, self.Q, self.reached = P, Q, reached

    def learned(self, state):
        return "learned"

    def measure(self, state, one, safety):
        i = one.number
        return SimpleNamespace(P=safety * self.P[i], Q=self.Q[i], reached=self.reached[i])


def test_a_validator_solves_every_problem_and_keeps_the_largest_violations():
    tasks = ProblemTasks(Held(), Following((0.0, 0.25, 0.125), (0.0, 0.0, 3.0)))
    found = Validator(tasks, 1, 3, safety=2.0)(None)
    assert (found.P, found.Q, found.flows) == (0.5, 3.0, 2)
    assert (found.complexity, found.reached, found.handovers, found.total) == (30.0, 2, 1, 3)
    assert found.strict


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_violation_that_is_no_number_is_no_feasible_one(bad):
    for name, following in (
        ("P", Following((0.0, bad, 0.0), (0.0,) * 3)),
        ("Q", Following((0.0,) * 3, (bad, 0.0, 0.0))),
    ):
        found = Validator(ProblemTasks(Held(), following), 1, 3)(None)
        assert getattr(found, name) == math.inf


# What training makes of it ----------------------------------------------------------------------


class Judged(TrainingStage):
    """A stage that is only judged."""

    def finished(self, state, found):
        raise AssertionError("training is not over")


def training(strict=True, **options):
    """A training that has been set up, with a penalty of 1 and parameters that are words."""
    run = object.__new__(Training)
    run.options = SimpleNamespace(
        **{"penalty_growth": 2.0, "patience": 3, "keep": "best"} | options
    )
    run.position = Position(penalty=1.0)
    run.state, run.best = TrainingState("start", None, 1.0), "start"
    run.stage, run.directory = Judged(), None
    run.stage.worse = math.inf if strict else REJECT_RATIO
    return run


def judged(run, *found):
    """Each finding is judged at parameters of its own number, from 0 on."""
    for i, one in enumerate(found):
        run.state = run.state._replace(parameters=i)
        run._judge(one)
    return run


def good(complexity, **fields):
    return validation(complexity, **fields)


def bad(complexity):
    return validation(complexity, Q=1.0)


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ([bad(9)], 0),
        ([bad(9), good(50)], 1),  # feasible before infeasible
        ([good(50), bad(9)], 0),
        ([good(50), good(40), good(45)], 1),  # then the least complexity
        ([bad(50), bad(40), bad(45)], 1),
        ([bad(5), good(50), bad(1), good(49)], 3),
        ([good(40), good(40)], 0),  # as good is no better
    ],
)
def test_the_best_point_is_feasible_first_and_then_the_quickest(found, best):
    run = judged(training(), *found)
    assert run.best == best
    assert run.position.best == found[best].statistics()


def test_the_penalty_grows_where_a_point_is_infeasible_and_there_only():
    run = training(penalty_growth=3.0)
    for one, penalty in ((bad(9), 3.0), (good(9), 3.0), (bad(9), 9.0), (bad(8), 27.0)):
        judged(run, one)
        assert run.state.penalty == run.position.penalty == penalty
    judged(run, *[bad(9)] * 40)
    assert run.state.penalty == LARGEST_PENALTY


def test_training_is_over_when_no_point_was_better_for_a_while():
    run = judged(training(patience=2), good(50), good(60))
    assert (run.position.stale, run.position.over) == (1, False)
    judged(run, good(40))
    assert (run.position.stale, run.position.over) == (0, False)
    judged(run, good(41), bad(1))
    assert (run.position.stale, run.position.over) == (2, True)


@pytest.mark.parametrize(("strict", "kept"), [(True, "far"), (False, "best")])
def test_a_sequence_that_got_much_worse_goes_back_to_the_best(strict, kept):
    run = training(strict)
    run.state = run.state._replace(parameters="best")
    run._judge(good(10.0))
    for complexity, expected in (
        (0.99 * REJECT_RATIO * 10, "far"),
        (1.01 * REJECT_RATIO * 10, kept),
    ):
        run.state = run.state._replace(parameters="far")
        run._judge(good(complexity))
        assert run.state.parameters == expected
    assert run.best == "best"
