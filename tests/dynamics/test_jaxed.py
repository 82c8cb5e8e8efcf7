"""Problems as JAX sees them."""

import jax
import numpy as np
import pytest

from ode2opt.dynamics import to_jax
from ode2opt.problems.family import KINDS


@pytest.mark.parametrize("kind", KINDS.values())
def test_problems_of_one_kind_and_shape_are_one_tree(kind, x64):
    """What is compiled for one serves the other: nothing of their data is static."""
    problems = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        b = rng.integers(0, 2, 9).astype(float)
        problem = kind(rng.standard_normal((9, 2)), b, l2=0.1)
        problem.start()
        x = np.ones(problem.n)
        problem.value_and_gradient(x)
        problem.hvp(x, x)
        problems.append(problem)
    one, other = map(to_jax, problems)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for twin, problem in zip((one, other), problems, strict=True):
        assert float(twin.value(x)) == pytest.approx(problem.value(x), rel=1e-12)
        np.testing.assert_allclose(twin.gradient(x), problem.gradient(x), rtol=1e-10, atol=1e-13)
