"""The norm: exact in powers of two on every machine, and right where squares are out of range."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ode2opt.base.arrays import norm

SEEDS = st.integers(0, 2**32 - 1)


def quiet_norm(g):
    """The norm as a solve takes it: squares that overflow are no warning."""
    with np.errstate(over="ignore"):
        return norm(g)


@pytest.mark.parametrize(("dtype", "widest"), [(np.float64, 900), (np.float32, 110)])
@given(seed=SEEDS, exponent=st.floats(-1, 1))
def test_a_power_of_two_comes_out_of_the_norm_exactly(dtype, widest, seed, exponent):
    """The squares of the one are in range, those of the other perhaps not: both ways agree."""
    rng = np.random.default_rng(seed)
    g = rng.standard_normal(rng.integers(1, 40)).astype(dtype)
    k = round(widest * exponent)
    assert quiet_norm(np.ldexp(g, k)) == math.ldexp(norm(g), k)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(seed=SEEDS, place=st.floats(0, 1))
def test_a_norm_out_of_the_range_of_its_squares_is_that_of_hypot(dtype, seed, place):
    """From the smallest numbers that have all their digits to the largest."""
    rng = np.random.default_rng(seed)
    least, most = np.log2(np.finfo(dtype).tiny), np.log2(np.finfo(dtype).max) - 6
    size = 2.0 ** (least + place * (most - least))
    g = (rng.uniform(1, 2, rng.integers(1, 30)) * size).astype(dtype)
    assert quiet_norm(g) == pytest.approx(
        math.hypot(*g.tolist()), rel=30 * float(np.finfo(dtype).eps)
    )


@pytest.mark.parametrize(
    ("entries", "expected"),
    [([], 0.0), ([0.0, -0.0], 0.0), ([5e-324], 5e-324), ([3e-320, 4e-320], 5e-320),
     ([1.0, np.inf], np.inf), ([1.7e308, -1.7e308], np.inf)],
)  # fmt: skip
def test_norms_at_the_ends_of_the_range(entries, expected):
    assert quiet_norm(np.array(entries)) == pytest.approx(expected, rel=1e-3)
    assert math.isnan(quiet_norm(np.array([*entries, np.nan])))
