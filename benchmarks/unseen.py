"""Made data that no constant of the package was chosen on: for measuring only.

Whoever tunes anything leaves these alone. Every entry of ``UNSEEN`` returns (A, b) like those of
benchmarks/data.py: b in {0, 1}, no column for an intercept, all seeded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from data import Data, labels

FIELDS = 26  # of a row of hashed categories
CATEGORIES = 200_000  # of a field, most of them rare
FACTORS = 20


def skewed_counts(rows: int, n: int) -> Data:
    """Counts as they come: rates differ a hundredfold among rows and among columns."""
    rng = np.random.default_rng([11, rows, n])
    rates = np.exp(0.7 * rng.standard_normal((rows, 1)) + 1.2 * rng.standard_normal(n) - 1)
    A = rng.poisson(rates).astype(float)
    return A, labels(rng, A, rng.standard_normal(n) / (1 + A.mean(axis=0)))


def mixed_scales(rows: int, n: int) -> Data:
    """Gaussian columns in units of their own: sizes from 1e-3 to 1e3, evenly in the exponent."""
    rng = np.random.default_rng([12, rows, n])
    sizes = 10.0 ** rng.permutation(np.linspace(-3, 3, n))
    A = rng.standard_normal((rows, n)) * sizes
    return A, labels(rng, A, rng.standard_normal(n) / sizes)


def clustered_rows(rows: int, n: int, clusters: int) -> Data:
    """Rows close to a few centres, of very different shares, one cluster after the other."""
    rng = np.random.default_rng([13, rows, n])
    centres = rng.standard_normal((clusters, n))
    share = 1.0 / np.arange(1, clusters + 1)
    which = np.sort(rng.choice(clusters, rows, p=share / share.sum()))
    A = centres[which] + 0.2 * rng.standard_normal((rows, n))
    return A, labels(rng, A, rng.standard_normal(n))


def hashed_categories(rows: int, n: int) -> Data:
    """Categories by Zipf's law, hashed into n columns with a sign; sparse."""
    rng = np.random.default_rng([14, rows, n])
    share = np.cumsum(1.0 / np.arange(1, CATEGORIES + 1) ** 1.1)
    category = np.searchsorted(share, share[-1] * rng.random((rows, FIELDS)))
    columns = rng.integers(0, n, (FIELDS, CATEGORIES), dtype=np.int32)
    signs = rng.choice([-1.0, 1.0], (FIELDS, CATEGORIES))
    field = np.arange(FIELDS)
    entries, index = signs[field, category].ravel(), columns[field, category].ravel()
    ends = np.arange(0, index.size + 1, FIELDS, dtype=np.int32)
    A = sp.csr_matrix((entries, index, ends), (rows, n))
    A.sum_duplicates()
    return A, labels(rng, A, rng.standard_normal(n))


def factors_float32(rows: int, n: int) -> Data:
    """Dense rows of a few common factors and noise, in single precision."""
    rng = np.random.default_rng([15, rows, n])
    loads = rng.standard_normal((FACTORS, n)) / np.sqrt(FACTORS)
    A = rng.standard_normal((rows, FACTORS)) @ loads + 0.5 * rng.standard_normal((rows, n))
    A = A.astype(np.float32)
    return A, labels(rng, A, rng.standard_normal(n))


UNSEEN: dict[str, Callable[[], Data]] = {
    "skewed-counts": partial(skewed_counts, 50_000, 80),
    "mixed-scales": partial(mixed_scales, 30_000, 60),
    "clustered-rows": partial(clustered_rows, 60_000, 150, 40),
    "hashed-50k": partial(hashed_categories, 40_000, 50_000),
    "float32": partial(factors_float32, 100_000, 120),
}
