"""The adapter inside scipy.optimize.minimize, beside scipy's own methods."""

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, minimize, rosen, rosen_der, rosen_hess, rosen_hess_prod

from ode2opt import InputError, Memory
from ode2opt.integrations.scipy import minimizer

TARGET = np.array([1.0, -2.0, 3.0])
CURVATURE = np.array([1.0, 10.0, 100.0])


def bowl(x, target=TARGET):
    return 0.5 * float(CURVATURE @ (x - target) ** 2)


def slope(x, target=TARGET):
    return CURVATURE * (x - target)


@pytest.mark.parametrize("method", ["auto", "lbfgs", "eigac-c2", "nag-restart"])
def test_the_minimum_is_found_and_told_as_scipy_tells_it(method):
    result = minimize(bowl, np.zeros(3), jac=slope, method=minimizer(method), tol=1e-8)
    assert isinstance(result, OptimizeResult)
    assert result.success
    assert result.status == 0
    np.testing.assert_allclose(result.x, TARGET, atol=1e-7)
    assert result.fun == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(result.jac, slope(result.x))
    assert np.linalg.norm(result.jac) <= 1e-8
    assert result.nit > 0
    assert isinstance(result.message, str)


def test_counts_are_those_of_the_calls():
    calls = {"f": 0, "g": 0}

    def fun(x):
        calls["f"] += 1
        return rosen(x)

    def jac(x):
        calls["g"] += 1
        return rosen_der(x)

    result = minimize(fun, np.zeros(4), jac=jac, method=minimizer(), tol=1e-6)
    assert result.success
    assert (result.nfev, result.njev) == (calls["f"], calls["g"])
    reference = minimize(
        rosen, np.zeros(4), jac=rosen_der, method="L-BFGS-B", options={"gtol": 1e-7}
    )
    np.testing.assert_allclose(result.x, reference.x, atol=1e-4)
    assert result.nfev <= 2 * reference.nfev


def test_value_and_gradient_together_and_arguments():
    other = TARGET[::-1].copy()
    both = minimize(
        lambda x, t: (bowl(x, t), slope(x, t)), np.zeros(3), args=(other,), jac=True,
        method=minimizer(), tol=1e-8,
    )  # fmt: skip
    np.testing.assert_allclose(both.x, other, atol=1e-7)
    single = minimize(bowl, np.zeros(3), args=other, jac=slope, method=minimizer(), tol=1e-8)
    np.testing.assert_allclose(single.x, other, atol=1e-7)


@pytest.mark.parametrize("jac", [None, "2-point"])
def test_gradients_may_be_differences(jac):
    result = minimize(bowl, np.zeros(3), jac=jac, method=minimizer(), tol=1e-3)
    assert result.success
    np.testing.assert_allclose(result.x, TARGET, atol=1e-3)
    assert result.nfev >= 4 * result.njev


@pytest.mark.parametrize("second", [{"hess": rosen_hess}, {"hessp": rosen_hess_prod}])
def test_second_derivatives_are_used(second):
    start = np.full(4, 1.05)
    result = minimize(rosen, start, jac=rosen_der, method=minimizer("newton"), tol=1e-8, **second)
    assert result.success
    assert result.nhev > 0
    np.testing.assert_allclose(result.x, np.ones(4), atol=1e-6)


def test_both_kinds_of_callback_see_iterates_and_can_stop():
    seen = []

    def by_point(xk):
        seen.append(xk)
        xk[:] = np.nan  # a copy: nothing happens
        if len(seen) == 3:
            raise StopIteration

    stopped = minimize(rosen, np.zeros(4), jac=rosen_der, method=minimizer(), callback=by_point)
    assert len(seen) == 3
    assert not stopped.success
    assert stopped.status != 0

    values = []

    def by_result(intermediate_result):
        assert intermediate_result.fun == pytest.approx(rosen(intermediate_result.x))
        values.append(intermediate_result.fun)

    result = minimize(rosen, np.zeros(4), jac=rosen_der, method=minimizer(), callback=by_result)
    assert result.success
    assert len(values) >= result.nit
    assert min(values) == pytest.approx(result.fun, abs=1e-6)


def test_limits_are_kept():
    result = minimize(rosen, np.zeros(4), jac=rosen_der, method=minimizer(), options={"maxiter": 3})
    assert not result.success
    assert result.nit <= 3
    assert "limit" in result.message


def test_calls_may_share_a_memory():
    memory = Memory()
    method = minimizer(memory=memory)
    for shift in range(4):
        target = TARGET + shift / 100
        result = minimize(bowl, np.zeros(3), args=(target,), jac=slope, method=method, tol=1e-6)
        np.testing.assert_allclose(result.x, target, atol=1e-5)
    assert memory.solves == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"options": {"maxfun": 3}}, "maxfun"),
        ({"bounds": [(0, 1)] * 3}, "without bounds"),
        ({"constraints": {"type": "eq", "fun": sum}}, "without bounds and constraints"),
        ({"jac": lambda x: x[:2]}, "gradient has shape"),
    ],
)
def test_what_cannot_be_done_is_said(options, words):
    with pytest.raises(InputError, match=words):
        minimize(bowl, np.zeros(3), **({"jac": slope, "method": minimizer()} | options))
