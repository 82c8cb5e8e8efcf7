"""The paper's separable data: two Gaussian clouds far apart (docs/mathematics.md, section 9)."""

import numpy as np

from ode2opt.data.preparing import DataRows, TrainAndTest

DIMENSION = 100
SEPARABLE_SEED = 283
"""Drives the one draw of the two clouds that is our `separable`.

The paper does not publish its own draw, and its table depends on it: over 300 seeds the measure of
Nesterov's method on lpp runs from about -5.9 to -6.2. This seed was picked among those 300 because
gd, nag, eigac-c1 and lbfgs behave on its training rows as the paper's rows say; agreement with the
paper on `separable` is therefore by choice, unlike that on the other datasets.
"""


def separable(rows: int, seed: int = SEPARABLE_SEED) -> TrainAndTest:
    """Return train and test rows of one draw of the two clouds, with an intercept column.

    Rows alternate between N(mu1 + nu, I) with label 1 and N(mu0, I) with label 0; mu1 and mu0 are
    drawn from {0..19}^100 and nu from {0, .1, ..., .9}^100, once for train and test together.
    """
    rng = np.random.default_rng(seed)
    mu1, mu0 = rng.integers(0, 20, (2, DIMENSION))
    nu = rng.integers(0, 10, DIMENSION) / 10
    return _cloud(rng, rows, mu1 + nu, mu0), _cloud(rng, rows, mu1 + nu, mu0)


def _cloud(rng: np.random.Generator, rows: int, one: np.ndarray, zero: np.ndarray) -> DataRows:
    A = np.ones((rows, DIMENSION + 1))
    A[:, 1:] = rng.standard_normal((rows, DIMENSION))
    A[0::2, 1:] += one
    A[1::2, 1:] += zero
    b = np.zeros(rows)
    b[0::2] = 1.0
    return DataRows(A, b)
