"""The minimal training loop: what it needs, and that the stopping time falls."""

import numpy as np
import optax
import pytest

from ode2opt import Family, InputError
from ode2opt.paper import Default
from ode2opt.paper.train import train


@pytest.fixture(scope="module")
def family():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 3))
    return Family.from_arrays("logistic", A, (A[:, 0] > 0).astype(float), size=60, l2=0.1)


def test_the_stopping_time_falls(family):
    fresh = (family.sample([0, 0]) for _ in range(100))
    learned, seen = train(
        Default(C=1.0), fresh, steps=4, batch=1, tol=1e-2, optimizer=optax.adam(0.1)
    )
    assert seen[-1].stopping_time - 1 < 0.95 * (seen[0].stopping_time - 1)  # t0 = 1
    assert all(found.reached == 1 for found in seen)
    assert float(learned.C) > 1.2
    assert float(learned.alpha) == 6.0


def test_problems_that_end_are_told(family):
    with pytest.raises(InputError, match=r"ended in step 0: 2 x 3 are due"):
        train(Default(), [family.sample([0, 0])], steps=2, batch=3)
