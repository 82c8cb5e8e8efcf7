"""What is said of further problems holds with the confidence that is stated: by exact sums."""

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from ode2opt import Family, InputError, Quadratic, solve
from ode2opt.proofs.confidence import (
    Expectation,
    binomial_lower_bound,
    expectation,
    percent_down,
    quantile_bound,
    quantile_rank,
)
from ode2opt.study.benchmark import Settings, run_benchmark
from ode2opt.study.certify import certify_family
from ode2opt.study.result_tables import benchmark_cells, expected_words, legend

SIZES = [1, 2, 10, 20, 59, 200]
CONFIDENCES = [0.6, 0.8, 0.95, 0.99]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_share_is_covered_with_the_stated_confidence_whatever_it_is(n, confidence):
    """P(bound(K) <= p) by the binomial distribution, for shares p all over and next to bounds."""
    bounds = np.array([binomial_lower_bound(k, n, confidence) for k in range(n + 1)])
    assert np.all(np.diff(bounds) > 0)
    for p in (*np.linspace(0.01, 0.999, 60), *(bounds[1:] * (1 - 1e-9)), *bounds[1:] + 1e-9):
        covered = scipy.stats.binom.pmf(np.arange(n + 1), n, p)[bounds <= p].sum()
        assert covered >= confidence - 1e-9
    edge = bounds[-1] * (1 - 1e-9)  # just below it coverage is the confidence itself
    assert scipy.stats.binom.cdf(n - 1, n, edge) == pytest.approx(confidence, abs=1e-6)


def test_it_is_the_bound_of_scipy():
    for k, n in ((0, 5), (3, 5), (5, 5), (197, 200), (1, 1)):
        due = scipy.stats.binomtest(k, n, alternative="greater").proportion_ci(0.9, "exact").low
        assert binomial_lower_bound(k, n, 0.9) == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_quantile_is_bounded_by_the_first_number_that_is_enough(n, share):
    """X_(r) is below the quantile where r or more of n numbers are: a binomial tail."""
    for confidence in CONFIDENCES:
        rank = quantile_rank(n, share, confidence)
        enough = [scipy.stats.binom.cdf(r - 1, n, share) >= confidence for r in range(1, n + 1)]
        assert rank == (enough.index(True) + 1 if any(enough) else None)


def test_the_largest_number_of_calls_is_covered_for_any_distribution():
    """The share within X_(r) is a beta variable: its lower quantile is what is promised."""
    for n in (1, 20, 99, 100, 200, 350):
        rank = n - n // 100
        share = expectation(range(n)).share
        assert scipy.stats.beta(rank, n - rank + 1).sf(share) == pytest.approx(0.95)
        assert expectation(range(n)).calls == rank - 1


def test_repeated_experiments_are_right_as_often_as_they_say():
    """A family of ten kinds of problems, one of which is never solved: all shares are known."""
    rng = np.random.default_rng(0)
    calls = np.array([*range(10, 19), math.inf])
    right = {"share": 0, "solved": 0, "half": 0}
    for _ in range(2_000):
        found = expectation(rng.choice(calls, 30), 0.8)
        right["solved"] += found.solved_share <= 0.9
        right["share"] += found.calls is None or np.mean(calls <= found.calls) >= found.share
        half = found.quantiles["0.5"]
        right["half"] += half is None or np.mean(calls <= half) >= 0.5
    assert min(right.values()) >= 0.8 * 2_000


def test_it_says_so_in_a_sentence():
    found = expectation([34.0] * 200, tol=3e-4)
    assert found.words() == (
        "at least 96.8% are solved to 0.0003 within 34 calls, with confidence 95% "
        "(200 fresh problems)"
    )
    assert expectation([33.91] * 20).words().startswith("at least 86% are solved within 34 calls")
    unsolved = expectation([1.0] * 9 + [math.inf])
    assert unsolved.calls is None
    assert unsolved.words().startswith("at least 60.5% are solved within the iteration limit,")


def test_where_nothing_was_solved_no_share_is_told():
    found = expectation([math.inf] * 10, tol=3e-4)
    assert found.words("500 iterations") == (
        "0 of 10 fresh problems were solved to 0.0003 within 500 iterations"
    )
    assert "%" not in expectation([math.inf]).words()


@pytest.mark.parametrize("share", [0.0, 0.29, 0.9689, 0.96899, 0.9999, 1.0])
def test_shares_are_rounded_down(share):
    assert share - 1e-3 <= float(percent_down(share)) / 100 <= share


NAN, WRONG = math.nan, {"share": 2.0}
FINE = expectation([1.0, 2.0]).summary()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: expectation([]), "0 problems: solve at least one"),
        (lambda: expectation([1.0], 0.0), "confidence is 0: it must be between 0 and 1"),
        (lambda: expectation([1.0], 1), "confidence is 1: it must be between 0 and 1"),
        (lambda: expectation([1.0], 95), "confidence is 95: it must be between 0 and 1"),
        (lambda: expectation([1.0], NAN), "confidence is nan"),
        (lambda: expectation([1.0], "high"), "confidence is 'high': it must be a number"),
        (lambda: expectation([1.0, NAN]), "calls is not known"),
        (lambda: binomial_lower_bound(3, 2), "3 of 2 problems"),
        (lambda: binomial_lower_bound(-1, 2), "-1 of 2 problems"),
        (lambda: quantile_bound([], 0.5), "0 problems"),
        (lambda: quantile_rank(5, 1.0), "share is 1.0"),
        (lambda: Settings(("gd",), confidence=1.5), "confidence is 1.5"),
        (lambda: Expectation(**FINE | {"share": 2.0}), "that cannot be"),
        (lambda: Expectation(**FINE | {"calls": -1.0}), "that cannot be"),
    ],
)
def test_what_cannot_be_is_named(asked, said):
    with pytest.raises(InputError, match=said):
        asked()


def test_bench_tells_it_of_every_method_but_a_memory():
    """A memory's solves depend on each other: nothing is said of further ones."""
    family = Family.from_sampler(lambda rng: Quadratic(np.diag([1.0, 9.0]), rng.random(2)))
    settings = Settings(("lbfgs", "gd", "memory"), instances=8, max_iter=30, jobs=1, confidence=0.9)
    benchmark = run_benchmark(family, settings)
    found = benchmark.statistics()
    calls = sorted(outcome.oracle_calls for outcome in benchmark.outcomes["lbfgs"])
    told = found["lbfgs"]["statistical"]
    assert told["calls"] == calls[-1]
    assert told["share"] == pytest.approx(0.1 ** (1 / 8))
    assert (told["confidence"], told["problems"], told["tol"]) == (0.9, 8, 3e-4)
    assert found["gd"]["statistical"]["calls"] is None
    assert found["gd"]["statistical"]["solved_share"] == 0
    assert found["memory"]["statistical"] is None
    cells = {name: benchmark_cells(name, row, 8)[5] for name, row in found.items()}
    assert cells == {"lbfgs": str(math.ceil(calls[-1])), "gd": "-", "memory": "-"}
    assert "at least 74.9% of such problems" in legend(found)
    assert "confidence 90%" in legend(found)
    [sentence] = expected_words(found, learned=())
    assert sentence.startswith("lbfgs: of this family at least 74.9% are solved to 0.0003 within")


def test_a_certificate_tells_it_of_fresh_problems():
    family = Family.from_arrays("logistic", *rows(), size=60, l2=0.1)
    certificate = certify_family("nag", family, instances=4, seed=5, K=60)
    problems = [family.sample([5, i], part="test") for i in range(4)]
    calls = [
        solve(problem, problem.start(), method="nag", tol=3e-4).reached.oracle_calls
        for problem in problems
    ]
    told = certificate.summary()["statistical"]
    assert told == expectation(calls, tol=3e-4).summary()
    assert told["share"] == pytest.approx(0.05**0.25)
    assert certificate.words()[-1].startswith(
        "Statistical: of this family at least 47.2% are solved to 0.0003"
    )
    few = certify_family("nag", family, instances=4, seed=5, K=2)
    assert (few.statistical["calls"], few.statistical["solved_share"]) == (None, 0)
    assert few.words()[-1] == (
        "Statistical: of this family 0 of 4 fresh problems were solved to 0.0003 within 2 "
        "iterations."
    )


def rows():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 4))
    return A, (A @ np.ones(4) + rng.standard_normal(300) > 0).astype(float)


def test_the_coverage_experiment_computes_what_it_should():
    """On four kinds of problems, all chances can be written down."""
    script = importlib.import_module("confidence_coverage")
    calls = np.array([1.0, 2.0, 3.0, 4.0])
    assert script.chance_within(calls, 0.75, 2, 2) == pytest.approx(1 - 0.5**2)
    assert script.chance_within(calls, 0.76, 1, 2) == pytest.approx(0.25**2)
    assert script.chance_within(calls, 0.9, None, 2) == 1
    assert script.right_within(calls, 0.75, 2, np.array([3.0, 1.0]))
    assert not script.right_within(calls, 0.76, 2, np.array([3.0, 1.0]))
    bounds = [0.0, 1 - math.sqrt(0.8), math.sqrt(0.2)]
    for p in (0.1, 0.2, 0.44, 0.45):
        chances = [(1 - p) ** 2, 2 * p * (1 - p), p * p]
        right = sum(c for c, b in zip(chances, bounds, strict=True) if b <= p)
        assert script.chance_of_share(p, 2, 0.8) == pytest.approx(right)
    table = script.coverage(np.repeat(calls, 10), 20)
    kept = Path(script.__file__).parent / "results/confidence_coverage.json"
    shown = json.loads(kept.read_text())["tables"]["coverage"]
    assert shown["columns"][:6] == table.columns[:6]
    for row in (*table.rows, *shown["rows"]):
        exact = [float(cell.split("(")[1].rstrip("%)")) for cell in row[3:]]
        assert min(exact) >= float(row[1].rstrip("%"))
