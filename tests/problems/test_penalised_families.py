"""Families with a penalty: what they promise of their problems, against independent matrices."""

import numpy as np
import pytest

from ode2opt import L1, Family, InputError, Quadratic
from ode2opt.penalties.families import box_mpc, deconvolution, sparse_coding


@pytest.mark.parametrize("make", [sparse_coding, deconvolution, box_mpc])
def test_problems_are_convex_repeatable_and_differ_between_train_and_test(make):
    family = make()
    one, again, other = family.sample(3), make().sample(3), family.sample(4)
    x = np.random.default_rng(0).standard_normal(one.n)
    np.testing.assert_array_equal(one.gradient(x), again.gradient(x))
    assert not np.allclose(one.gradient(x), other.gradient(x))
    assert x @ one.hvp(x, x) > 0
    assert family.penalty.prox(x, 0.1).shape == x.shape
    assert np.all(np.isfinite(family.sample(3, part="test").gradient(x)))
    assert "penalty" in str(family._listing())


def test_the_dictionary_has_columns_of_norm_1_and_test_signals_another_image():
    family = sparse_coding()
    problem = family.sample(0)
    np.testing.assert_allclose(np.diag(problem.Q), 1.0)
    assert np.linalg.matrix_rank(problem.Q, tol=1e-9) <= 250
    assert not np.allclose(problem.b, family.sample(0, part="test").b)


def test_the_condensed_control_problem_is_the_simulated_one():
    """Q and b against a simulation of the chain, stage by stage."""
    from ode2opt.penalties.families import FORCES, MASSES, STAGES, _chain

    A, B = _chain()
    rng = np.random.default_rng(5)
    problem = box_mpc().sample(5)
    state = np.repeat([2.0, 1.0], MASSES) * rng.uniform(-1, 1, 2 * MASSES)

    def cost(u):
        x, total = state, 0.05 * u @ u
        for force in u.reshape(STAGES, FORCES):
            x = A @ x + B @ force
            total += 0.5 * x @ x
        return total

    u, v = np.random.default_rng(0).standard_normal((2, 100))
    expected = cost(u) - cost(v)
    assert float(problem.value(u) - problem.value(v)) == pytest.approx(expected, rel=1e-9)


def test_a_penalty_is_added_to_a_copy_and_must_have_a_prox():
    family = Family.from_sampler(lambda rng: Quadratic(np.eye(2), rng.standard_normal(2)))
    assert family.with_penalty(L1(0.5)).penalty is not None
    assert family.penalty is None
    for wrong in (0.5, L1):
        with pytest.raises(InputError, match="no penalty"):
            family.with_penalty(wrong)
