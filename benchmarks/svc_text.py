"""LinearSVC on texts beside liblinear: processor seconds, 2 and 4 classes, C = 0.1, 1 and 10.

    python benchmarks/svc_text.py [--rows 15000] [--words 20000] [--seeds 11,12] [--repeat 2]

Texts are drawn at random: words by Zipf's law, tilted by class, a tenth of the labels wrong;
columns are TF-IDF with logarithmic counts, rows of unit length. Each row of the table has two
ratios of our seconds to liblinear's (``sklearn.svm.LinearSVC`` as it comes, the quicker of the dual
and the primal where these differ): with both at their default tolerances, and with ours at the
gradient norm (of our objective) that liblinear's default solution has. Of each the quickest of a
few fits counts. The constants of ours were chosen on seeds 0 to 2 of other shapes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import geometric_mean
from typing import Any, NamedTuple

import alone  # noqa: F401 - before numpy
import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC as Theirs

from ode2opt.integrations.sklearn import LinearSVC
from ode2opt.problems import SquaredHinge

LENGTH = 80  # words of a text, about
TILTED = 0.2  # of the words are likelier or rarer in a class
WRONG = 0.1  # of the labels
CLASSES, CS = (2, 4), (0.1, 1.0, 10.0)


def texts(rows: int, words: int, classes: int, seed: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Return TF-IDF rows of random texts, and their classes."""
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, words + 1) ** 1.05
    tilts = rng.standard_normal((classes, words)) * (rng.random((classes, words)) < TILTED)
    y = rng.integers(classes, size=rows)
    lengths = np.maximum(5, rng.lognormal(np.log(LENGTH), 0.6, rows).astype(int))
    owner, drawn = np.repeat(np.arange(rows), lengths), rng.random(lengths.sum())
    columns = np.zeros(len(owner), dtype=int)
    for k in range(classes):
        total = np.cumsum(zipf * np.exp(tilts[k]))
        mine = y[owner] == k
        columns[mine] = np.searchsorted(total, drawn[mine] * total[-1])
    counts = sp.csr_matrix((np.ones(len(owner)), (owner, columns)), shape=(rows, words))
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    wrong = rng.random(rows) < WRONG
    y[wrong] = rng.integers(classes, size=wrong.sum())
    return sp.csr_matrix(X), y


class Timed(NamedTuple):
    """A fit and its processor seconds."""

    seconds: float
    model: Any


def timed(make: Callable[[], Any], X: Any, y: np.ndarray, repeat: int) -> Timed:
    """Return the quickest of some fits."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        model = make().fit(X, y)
        found.append(Timed(time.process_time() - began, model))
    return min(found, key=lambda fit: fit.seconds)


def gradient_norm(model: Any, X: Any, y: np.ndarray, C: float) -> float:
    """Return the largest gradient norm of a model's classes, in our objective."""
    l2 = 1 / (C * len(y))
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    norms = []
    for k, coef, intercept in zip(classes, model.coef_, model.intercept_, strict=True):
        problem = SquaredHinge(X, y == k, l2=l2, intercept=True, intercept_l2=l2)
        norms.append(float(np.linalg.norm(problem.gradient(np.append(coef, intercept)))))
    return max(norms)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=15_000)
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--seeds", default="11,12")
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| seed | classes | C | liblinear | its norm | ours | our norm | ratio | equal norms |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for seed in map(int, options.seeds.split(",")):
        for classes in CLASSES:
            X, y = texts(options.rows, options.words, classes, seed)
            for C in CS:
                ratios.append(_line(seed, X, y, C, options.repeat))
    default, equal = (geometric_mean(column) for column in zip(*ratios, strict=True))
    most = [max(column) for column in zip(*ratios, strict=True)]
    print(
        f"\n{options.rows:,} x {options.words:,}: geometric means {default:.2f} at default "
        f"tolerances, {equal:.2f} at equal norms; largest {most[0]:.2f} and {most[1]:.2f}."
    )


def _line(seed: int, X: Any, y: np.ndarray, C: float, repeat: int) -> tuple[float, float]:
    """Print one row of the table; returns its ratios."""
    theirs = min(
        (timed(lambda dual=dual: Theirs(C=C, dual=dual), X, y, repeat) for dual in (True, False)),
        key=lambda fit: fit.seconds,
    )
    norm = gradient_norm(theirs.model, X, y, C)
    ours = timed(lambda: LinearSVC(C=C), X, y, repeat)
    equal = timed(lambda: LinearSVC(C=C, tol=norm), X, y, repeat)
    found = gradient_norm(ours.model, X, y, C)
    ratios = ours.seconds / theirs.seconds, equal.seconds / theirs.seconds
    print(
        f"| {seed} | {len(np.unique(y))} | {C:g} | {theirs.seconds:.2f} s | {norm:.0e} | "
        f"{ours.seconds:.2f} s | {found:.0e} | {ratios[0]:.2f} | {ratios[1]:.2f} |",
        flush=True,
    )
    return ratios


if __name__ == "__main__":
    main()
