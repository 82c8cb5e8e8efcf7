"""What problems say that solvers may ask of them."""

import numpy as np
import pytest

import ode2opt
from ode2opt.problems import Deconvolution, Parts, Problem, Quadratic

A, b = np.eye(3), np.array([0.0, 1.0, 0.0])
ROWS = {"hvp", "diagonal", "rows", "hessian"}
HELD = ROWS | {"matrix", "host"}


@pytest.mark.parametrize(
    ("problem", "names"),
    [
        (ode2opt.Logistic(A, b), HELD | {"smoothness"}),
        (ode2opt.LeastSquares(A, b), HELD | {"smoothness", "quadratic"}),
        (ode2opt.Lpp(A, b), HELD),
        (ode2opt.Poisson(A, b), HELD),
        (ode2opt.SquaredHinge(A, b), HELD | {"smoothness", "kinked"}),
        (ode2opt.Softmax(A, b), HELD | {"smoothness", "classes"}),
        (Parts(ode2opt.Logistic, [(A, b)]), ROWS | {"smoothness"}),
        (Quadratic(A, b), {"hvp", "hessian", "quadratic", "smoothness", "Q"}),
        (Deconvolution(b, b), {"hvp", "quadratic", "smoothness"}),
        (Problem.from_function(sum, np.ones_like, n=2), set()),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_a_problem_names_what_it_provides(problem: Problem, names: set[str]) -> None:
    assert problem.provides == names
    if "smoothness" in names:
        assert np.isfinite(problem.smoothness())
