"""A solver declares what it needs of a problem; none asks for its class."""

import re
from pathlib import Path

import numpy as np
import pytest

import ode2opt.solvers
from ode2opt import (
    L1,
    Deconvolution,
    Logistic,
    Parts,
    Problem,
    Quadratic,
    Simplex,
    Softmax,
    SquaredHinge,
    solve,
)
from ode2opt.penalties import ZERO
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.plan import plan

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((300, 4)), np.arange(300) % 2.0
PROBLEMS = {
    "rows": Logistic(A, B, l2=0.1),
    "parts": Parts(Logistic, [(A[:150], B[:150]), (A[150:], B[150:])]),
    "kinks": SquaredHinge(A, B, l2=0.1),
    "classes": Softmax(A, np.arange(300) % 3, l2=0.1),
    "quadratic": Quadratic(np.eye(4), np.ones(4)),
    "operator": Deconvolution(np.array([0.5, 1.0, 0.5]), RNG.standard_normal(8)),
    "function": Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=4),
}


@pytest.mark.parametrize("penalty", [ZERO, L1(0.01), Simplex()], ids=["none", "l1", "simplex"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_plan_has_stages_whose_needs_are_met_and_they_arrive(name, penalty):
    problem = PROBLEMS[name]
    stages = plan(Objective(problem, penalty.on(problem)), Costs(problem))
    assert all(stage.needs <= problem.provides for stage in stages)
    result = solve(problem, np.zeros(problem.n), penalty=None if penalty is ZERO else penalty)
    assert result.success


def test_no_solver_asks_for_the_class_of_a_problem():
    """But where a user's argument is checked."""
    asks = re.compile(r"isinstance\((\w+\.)*(problem|part|inner), (?!Problem\))")
    for file in Path(ode2opt.solvers.__file__).parent.rglob("*.py"):
        assert not asks.search(file.read_text(encoding="utf-8")), file
