"""Batches with a penalty on JAX against ode2opt.solve."""

import numpy as np
import pytest
from integrations.learned import on_iterates, with_prox

from ode2opt import InputError, Logistic, Method, Quadratic, Schedule, solve
from ode2opt.integrations import jax as jaxed
from ode2opt.penalties import L1, Box, Simplex
from ode2opt.proofs.table import Table

N = 12


def quadratics(rng, count):
    A = rng.standard_normal((30, N))
    Q = A.T @ A
    return [Quadratic(Q, A.T @ rng.standard_normal(30)) for _ in range(count)], float(
        np.linalg.eigvalsh(Q)[-1]
    )


@pytest.mark.parametrize(
    ("penalty", "make"),
    [(L1(1.5), on_iterates), (Box(-0.1, 0.2), Table.fista), (Simplex(), on_iterates)],
)
def test_a_batch_is_many_solves(rng, penalty, make):
    problems, L = quadratics(rng, 4)
    method = with_prox(make(40), L)
    found = jaxed.solve_all(method, problems, penalty=penalty, tol=1e-3)
    for i, problem in enumerate(problems):
        one = solve(problem, penalty=penalty, method=method, tol=1e-3, handover="none")
        assert bool(found.success[i]) == one.success
        assert int(found.iterations[i]) == one.iterations
        np.testing.assert_allclose(np.asarray(found.x[i]), one.x, atol=1e-9)
        assert float(found.grad_norm[i]) == pytest.approx(one.residual, rel=1e-5, abs=1e-12)


def test_rows_are_solved_and_the_guard_stops_one_problem_alone(rng):
    A = rng.standard_normal((40, N))
    problems = [Logistic(A, rng.integers(0, 2, 40).astype(float)) for _ in range(3)]
    problems[1] = Logistic(30 * A, problems[1].b)
    method = with_prox(on_iterates(200), float(problems[0].smoothness()))
    found = jaxed.solve_all(method, problems, penalty=L1(0.02), tol=1e-4)
    assert np.asarray(found.success).tolist() == [True, False, True]
    assert "guard" in found.message[1]
    rest = solve(problems[1], np.asarray(found.x[1]), penalty=L1(0.02), tol=1e-4)
    assert rest.success


def test_limits_and_refusals(rng):
    problems, L = quadratics(rng, 2)
    method = with_prox(on_iterates(40), L)
    weight = L1(0.1)
    few = jaxed.solve_all(method, problems, penalty=weight, tol=1e-9, max_iter=3)
    assert np.asarray(few.iterations).tolist() == [3, 3]
    over = jaxed.solve_all(method, problems, penalty=weight, tol=1e-9)
    assert over.message == ["The schedule ended."] * 2
    for options, words in (
        ({"fallback": 5, "penalty": L1(0.1)}, "takes over"),
        ({}, "prox"),
    ):
        with pytest.raises(InputError, match=words):
            jaxed.solve_all(method, problems, **options)
    smooth = Method(schedule=Schedule.gradient_descent(1.0, 9), family="x", tol=1e-3)
    with pytest.raises(InputError, match="smooth"):
        jaxed.solve_all(smooth, problems, penalty=L1(0.1))
    with pytest.raises(InputError, match="list"):
        jaxed.solve_all(method, [], penalty=L1(0.1))
