"""Whether training earns its place: trained and instant methods on fresh problems of each family.

python benchmarks/trained.py [--keep FOLDER] [--record] [PROBLEM DATASET]...

Both are made from the training rows of the shuffled split with the defaults, and solve the same
test problems, in turn. --record keeps the table of docs/measurements/learned.md; with --keep,
method files are kept in a folder, and found there by the next run.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

from recording import RECORD, Table, record
from training_defaults import SPLIT, TOL, measured

from ode2opt import Family, Method, learn

DATASETS = ("mushrooms", "a5a", "w3a", "phishing", "separable", "covtype20k")
CELLS = list(product(("logistic", "lpp"), DATASETS))
COLUMNS = ("problem", "what was kept", "calls", "of instant's", "seconds of instant's")
OPTIONS: dict[str, dict[str, int]] = {"instant": {"steps": 0}, "trained": {}}
FEWER_CALLS, FEWER_SECONDS = 0.8, 0.6  # of the instant method's: clearly better


def main() -> None:
    """Make and measure both in each cell, and print a row for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*")
    parser.add_argument("--keep", type=Path)
    parser.add_argument(RECORD, action="store_true")
    options = parser.parse_args()
    named = options.cells
    cells = list(zip(named[::2], named[1::2], strict=True)) or CELLS
    table = Table(*COLUMNS)
    better = 0
    for problem, dataset in cells:
        family = Family.from_dataset(problem, dataset, split=SPLIT)
        file = options.keep and options.keep / f"{problem}-{dataset}"
        base = measured(family, made(family, "instant", file))
        method = made(family, "trained", file)
        found = measured(family, method)
        calls, seconds = (found[key] / base[key] for key in ("calls", "seconds"))
        better += calls <= FEWER_CALLS or seconds <= FEWER_SECONDS
        numbers = (f"{found['calls']:.1f}", f"{calls:.2f}", f"{seconds:.2f}")
        table.add(f"{problem} {dataset}", method.words, *numbers)
    print(f"\nclearly better in {better} of {len(cells)}")
    if options.record:
        record("trained", {"methods": table})


def made(family: Family, kind: str, stem: Path | None) -> Method:
    """Learn a sequence, or take it from the file that is kept."""
    file = stem and stem.with_name(f"{stem.name}-{kind}.safetensors")
    if file and file.exists():
        return Method.load(file)
    method = learn(family, target="sequence", tol=TOL, **OPTIONS[kind])
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        method.save(file)
    return method


if __name__ == "__main__":
    main()
