"""The matrices and labels that solvers are compared on: real tables and made ones, all seeded.

Every entry of ``CELLS`` returns (A, b) with b in {0, 1}. No matrix has a column for an intercept,
and none is to be fitted: packages treat intercepts differently, so that f would not be the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.signal import lfilter
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfTransformer

from ode2opt.data.files import ReadOptions, read_libsvm
from ode2opt.data.preparing import binary_labels, largest_entries, quicker_layout, scaled
from ode2opt.data.sources import obtain_file

Data = tuple[Any, np.ndarray]
CORRELATION = 0.9
WORDS = 57  # drawn for a text on average; about 47 of them differ
SIGNAL = 2.0  # standard deviation of the true scores
WRONG_LABELS = 0.05  # of the texts of two topics


def from_files(*names: str, n: int) -> Data:
    """Return the rows of LIBSVM files together, with columns of size one."""
    asked = ReadOptions()
    tables = [read_libsvm(obtain_file(name), asked, n).whole(asked.missing) for name in names]
    A = sp.vstack([table.A for table in tables], format="csr")
    b = binary_labels(np.concatenate([table.labels for table in tables]), names[0])
    return quicker_layout(scaled(A, largest_entries(A))), b


def breast_cancer() -> Data:
    """569 x 30, columns of mean zero and variance one."""
    A, b = datasets.load_breast_cancer(return_X_y=True)
    return (A - A.mean(axis=0)) / A.std(axis=0), b.astype(float)


def digits() -> Data:
    """1,797 x 64, odd digits against even ones."""
    A, digit = datasets.load_digits(return_X_y=True)
    return A / 16, (digit % 2).astype(float)


def correlated(rows: int, n: int) -> Data:
    """Dense Gaussian rows whose neighbouring columns are correlated, as in a time series."""
    rng = np.random.default_rng([1, rows, n])
    A = rng.standard_normal((rows, n))
    A[:, 1:] *= np.sqrt(1 - CORRELATION**2)
    A = np.ascontiguousarray(lfilter([1.0], [1.0, -CORRELATION], A, axis=1))
    return A, labels(rng, A, rng.standard_normal(n))


def one_hot(rng: np.random.Generator, rows: int, n: int) -> Data:
    """Fourteen categorical columns with skewed frequencies, as in a5a; sparse."""
    groups = np.array_split(np.arange(n), 14)
    columns = []
    for group in groups:
        weights = 1.0 / np.arange(1, len(group) + 1) ** 1.2
        columns.append(rng.choice(group, rows, p=weights / weights.sum()))
    index = np.stack(columns, axis=1).ravel()
    A = sp.csr_matrix((np.ones(index.size), index, np.arange(0, index.size + 1, 14)), (rows, n))
    truth = np.random.default_rng(n).standard_normal(n)
    chance = 1 / (1 + np.exp(-(A @ truth - 1.0)))
    return A, (rng.random(rows) < chance).astype(float)


def one_hot_dense(rows: int, n: int) -> Data:
    """The same as a dense array."""
    A, b = one_hot(np.random.default_rng([2, rows, n]), rows, n)
    return A.toarray(), b


def text(rows: int, n: int) -> Data:
    """Texts as tf-idf: words by Zipf's law, unit rows, labels from one word in twenty."""
    rng = np.random.default_rng([3, rows, n])
    lengths = 1 + rng.poisson(WORDS - 1, rows)
    share = np.cumsum(1.0 / np.arange(1, n + 1))
    words = np.searchsorted(share, share[-1] * rng.random(lengths.sum()))
    places = (np.repeat(np.arange(rows), lengths), words)
    counts = sp.coo_matrix((np.ones(words.size), places), (rows, n)).tocsr()
    A = TfidfTransformer().fit_transform(counts)
    return A, labels(rng, A, rng.standard_normal(n) * (rng.random(n) < 0.05))


def topics(rows: int, n: int, seed: int) -> Data:
    """Texts of two topics as tf-idf: a tenth of the words is likelier in one of them."""
    rng = np.random.default_rng([4, rows, n, seed])
    b = rng.integers(0, 2, rows)
    tilt = rng.standard_normal(n) * (rng.random(n) < 0.1)
    lengths = 1 + rng.poisson(WORDS - 1, rows)
    where = np.repeat(np.arange(rows), lengths)
    words = np.empty(where.size, dtype=int)
    for topic in (0, 1):
        share = np.cumsum(np.exp((2 * topic - 1) * tilt) / np.arange(1, n + 1))
        own = b[where] == topic
        words[own] = np.searchsorted(share, share[-1] * rng.random(own.sum()))
    counts = sp.coo_matrix((np.ones(words.size), (where, words)), (rows, n)).tocsr()
    wrong = rng.random(rows) < WRONG_LABELS
    return TfidfTransformer().fit_transform(counts), np.where(wrong, 1 - b, b).astype(float)


def labels(rng: np.random.Generator, A: Any, truth: np.ndarray) -> np.ndarray:
    """Draw labels from a logistic model whose scores have standard deviation SIGNAL."""
    scores = A @ truth
    scores *= SIGNAL / scores.std()
    return (rng.random(scores.size) < 1 / (1 + np.exp(-scores))).astype(float)


CELLS: dict[str, Callable[[], Data]] = {
    "a5a": partial(from_files, "a5a", "a5a.t", n=123),
    "w3a.t": partial(from_files, "w3a.t", n=300),
    "mushrooms": partial(from_files, "mushrooms", n=112),
    "phishing": partial(from_files, "phishing", n=68),
    "covtype20k": partial(from_files, "covtype20k", n=54),
    "breast_cancer": breast_cancer,
    "digits": digits,
    "correlated-100": partial(correlated, 200_000, 100),
    "correlated-300": partial(correlated, 100_000, 300),
    "one-hot": partial(one_hot_dense, 200_000, 100),
    "text-20k": partial(text, 8_000, 20_000),
    "text-50k": partial(text, 100_000, 50_000),
}
