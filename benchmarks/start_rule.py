"""Calls of ``solve(problem, method=NAME)`` beside those of ``bench``, for every shipped method.

    python benchmarks/start_rule.py [--problems 40]

Both solve the same fresh test problems of the method's family to a gradient norm of 3e-4, at most
500 iterations. They agree where both start by the rule that the method's file says.
"""

from __future__ import annotations

import argparse
from statistics import fmean

import alone  # noqa: F401 - before numpy
from recording import Table

from ode2opt import Family, solve
from ode2opt.solvers.methods import by_name, learned_names
from ode2opt.study.benchmark import Settings, run_benchmark


def main() -> None:
    """Print a row a method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=40)
    count = parser.parse_args().problems
    table = Table("method", "solve", "handovers", "bench", "solve / bench")
    for name in learned_names():
        family = Family.from_dataset(*name.split("-"), split="shuffled")
        settings = Settings((), {name: by_name(name)}, instances=count, jobs=1)
        measured = run_benchmark(family, settings).statistics()[name]["oracle_calls_mean"]
        found = [
            solve(family.sample([0, i], part="test"), method=name, tol=3e-4, max_iter=500)
            for i in range(count)
        ]
        calls = fmean(result.oracle_calls for result in found)
        handed = sum(bool(result.handovers) for result in found)
        table.add(name, f"{calls:.2f}", handed, f"{measured:.2f}", f"{calls / measured:.3f}")


if __name__ == "__main__":
    main()
