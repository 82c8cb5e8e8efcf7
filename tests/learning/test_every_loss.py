"""Methods can be learned for every loss, by both targets, and find scipy's minimiser."""

import numpy as np
import pytest
import scipy.optimize

from ode2opt import Family, learn, solve

N, n = 900, 6
QUICK = {"steps": 2, "batch": 2, "validation": 2, "validate_every": 1, "horizon": 60}


def targets(name, rng, z):
    noisy = z + rng.standard_normal(N)
    return {
        "poisson": lambda: rng.poisson(np.exp(z)),
        "huber": lambda: z + rng.standard_t(2, N),
        "squaredhinge": lambda: noisy > 0,
        "softmax": lambda: np.digitize(noisy, [-0.5, 0.5]),
    }[name]().astype(float)


@pytest.fixture(scope="module", params=["poisson", "huber", "squaredhinge", "softmax"])
def family(request):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((N, n)) * np.linspace(0.2, 2, n)
    b = targets(request.param, rng, A @ np.linspace(-0.5, 0.5, n))
    weights = rng.random(N) + 0.5
    return Family.from_arrays(
        request.param, A, b, size=120, weights=weights, l2=0.05, intercept=True
    )


@pytest.mark.parametrize(
    "options",
    [
        {"target": "sequence", "steps": 0, "validation": 2},
        pytest.param({"target": "sequence", **QUICK}, marks=pytest.mark.exhaustive),
        pytest.param({"target": "flow", **QUICK, "horizon": 500}, marks=pytest.mark.exhaustive),
    ],
    ids=["instant", "sequence", "flow"],
)
def test_a_learned_method_finds_the_minimiser(family, options, tmp_path):
    method = learn(family, out=tmp_path / "run", tol=1e-3, **options)
    problem = family.sample(5, part="test")
    found = solve(problem, method=method, tol=1e-9)
    due = scipy.optimize.minimize(
        problem.value_and_gradient, np.zeros(problem.n), jac=True, tol=1e-14, method="BFGS"
    )
    assert found.success
    assert abs(found.fun - due.fun) <= 1e-12
    np.testing.assert_allclose(problem.gradient(due.x), 0, atol=1e-6)
