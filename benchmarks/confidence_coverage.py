"""How often statements about further problems are right; printed as tables.

    python benchmarks/confidence_coverage.py [--record] [PROBLEMS] [EXPERIMENTS]

The first table repeats an experiment on a family whose distribution is known: 2,000 problems are
solved once, and the family is a draw of one of them. An experiment draws n problems, states what
further ones need, and is right where the 2,000 agree; how often it is can be computed exactly, too.
The second table states it from problems of training rows, and looks whether problems of test rows
agree: on the paper's split the rows differ.

--record keeps the tables of docs/bounds.md.
"""

from __future__ import annotations

import math
import sys
from itertools import product

import numpy as np
from recording import RECORD, Table, record
from scipy.stats import binom

from ode2opt import Family, solve
from ode2opt.base.threads import one_thread
from ode2opt.proofs.confidence import BEYOND, binomial_lower_bound, expectation, quantile_rank

PROBLEM, DATASET, METHOD, TOL = "logistic", "a5a", "lbfgs", 3e-4
PROBLEMS, EXPERIMENTS, LIMIT = 2_000, 200, 500
SIZES, CONFIDENCES = (20, 60, 200), (0.8, 0.95, 0.99)
DATASETS, SEEN, FRESH = ("a5a", "w3a", "mushrooms", "phishing", "covtype20k"), 60, 200


def calls_of(family: Family, part: str, count: int, seed: int) -> np.ndarray:
    """Return the calls that problems of some rows take; infinity where the limit is met."""
    found = []
    for i in range(count):
        problem = family.sample([seed, i], part=part)
        reached = solve(problem, problem.start(), method=METHOD, tol=TOL, max_iter=LIMIT).reached
        found.append(math.inf if reached is None else reached.oracle_calls)
    return np.array(found)


def right_within(calls: np.ndarray, share: float, rank: int | None, drawn: np.ndarray) -> bool:
    """Whether at least a share of the family takes no more than the number of a rank drawn."""
    return rank is None or bool(np.mean(calls <= np.sort(drawn)[rank - 1]) >= share)


def chance_within(calls: np.ndarray, share: float, rank: int | None, size: int) -> float:
    """Return the exact probability of that: fewer than ``rank`` of n draws below the quantile."""
    if rank is None:
        return 1.0
    quantile = np.sort(calls)[math.ceil(share * len(calls) - 1e-9) - 1]
    return float(binom.cdf(rank - 1, size, np.mean(calls < quantile)))


def chance_of_share(p: float, size: int, confidence: float) -> float:
    """Return the exact probability that the binomial bound of p is not above it."""
    bounds = np.array([binomial_lower_bound(k, size, confidence) for k in range(size + 1)])
    return float(binom.pmf(np.arange(size + 1), size, p)[bounds <= p].sum())


def coverage(calls: np.ndarray, experiments: int) -> Table:
    """Print how many experiments were right, and the exact probability, by statement."""
    budget = float(np.quantile(calls, 0.9))
    solved = float(np.mean(calls <= budget))
    names = ("within the calls told", "half", "90%", f"solved in {budget:.0f} calls")
    table = Table("problems", "confidence", "share told", *names)
    rng = np.random.default_rng(0)
    for size, confidence in product(SIZES, CONFIDENCES):
        share = expectation(calls[:size], confidence).share
        ranks = {share: size - size // BEYOND}
        ranks |= {q: quantile_rank(size, q, confidence) for q in (0.5, 0.9)}
        right = np.zeros(len(names))
        for _ in range(experiments):
            drawn = rng.choice(calls, size)
            held = [right_within(calls, q, rank, drawn) for q, rank in ranks.items()]
            count = int(np.sum(drawn <= budget))
            right += [*held, binomial_lower_bound(count, size, confidence) <= solved]
        exact = [chance_within(calls, q, rank, size) for q, rank in ranks.items()]
        exact.append(chance_of_share(solved, size, confidence))
        cells = [f"{r / experiments:.1%} ({e:.1%})" for r, e in zip(right, exact, strict=True)]
        table.add(size, f"{confidence:.0%}", f"{share:.1%}", *cells)
    return table


def other_rows() -> Table:
    """Print what is promised from problems of training rows, and found on those of test rows."""
    table = Table("data", "split", "share told", "within calls", "share on test rows", "true")
    for dataset in DATASETS:
        for split in ("shuffled", "paper"):
            family = Family.from_dataset(PROBLEM, dataset, split=split)
            found = expectation(calls_of(family, "train", SEEN, seed=1))
            assert found.calls is not None, f"{dataset} has problems beyond {LIMIT} iterations."
            share = float(np.mean(calls_of(family, "test", FRESH, seed=2) <= found.calls))
            holds = "yes" if share >= found.share else "no"
            cells = (f"{found.share:.1%}", f"{found.calls:.0f}", f"{share:.1%}", holds)
            table.add(dataset, split, *cells)
    return table


def main(problems: int = PROBLEMS, experiments: int = EXPERIMENTS) -> None:
    """Print both tables."""
    with one_thread():
        family = Family.from_dataset(PROBLEM, DATASET, split="shuffled")
        calls = calls_of(family, "test", problems, seed=0)
        tables = {"coverage": coverage(calls, experiments), "other_rows": other_rows()}
    if RECORD in sys.argv:
        record("confidence_coverage", tables)


if __name__ == "__main__":
    main(*map(int, [word for word in sys.argv[1:] if word != RECORD]))
