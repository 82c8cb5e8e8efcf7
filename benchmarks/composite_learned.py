"""Learned tables with a prox on fresh problems: iterations, handovers, truth, seconds beside peers.

python benchmarks/composite_learned.py [--problems 200] [--tables DIR [--learn-only]] [--record]
                                       [FAMILY]...

Families: sparse coding, box MPC, deconvolution (ode2opt.penalties.families). Tables are learned on
training draws, for 1e-3 and 1e-5 at once; the problems measured here have seeds that no training
or validation has. FISTA and FISTA with restart are the textbook's, with the step 1/L of the exact L
(Beck and Teboulle, 2009; gradient restart of O'Donoghue and Candes, 2015); "solve" is
``solve(method="fista")``, which also looks for longer steps and pays for it in gradients: of its
iterations most have two. Learned ones run under the guard, and what FISTA does after a handover is
counted. "Proved" is learned inside FISTA's theorem. "Untrue" counts solves that say success
where the residual, computed anew from Q and b by other formulas, is above the tolerance.
Seconds are those of the processor a problem at 1e-5, the better of two passes; peers have the
loosest of their own tolerances at which all of 20 training problems have a residual of 1e-5, and
prepare what all problems share (Gram matrix, factorisation) before the clock starts. "In C" is the
exported header, compiled by cc; where its guard stops, ``solve`` goes on. Peers that are not
installed are left out. With --tables DIR tables are kept there, and taken from there: learning
needs the extra ``learn``, measuring does not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import composite_solvers
import numpy as np
from recording import RECORD, Table, record

from ode2opt import Family, Method, Result, solve
from ode2opt.penalties.families import box_mpc, deconvolution, sparse_coding
from ode2opt.problems.base import Problem
from ode2opt.problems.quadratic import Quadratic

TOLS = (1e-3, 1e-5)
STREAM = 910_001  # of seeds: not one of training (0), validation (1) or test (2)
PRACTICE = 20  # training problems on which a peer's tolerance is chosen
MOST = 20_000  # iterations
ITERATIONS = (
    "family", "tolerance", "FISTA", "FISTA with restart", "solve", "its gradients", "learned",
    "its gradients ", "learned/restart", "handovers", "proved", "its handovers", "untrue",
)  # fmt: skip
SECONDS = ("family", "who", "ms a problem", "times learned", "largest residual")


class Subject(NamedTuple):
    """A family and how its table is learned.

    Attributes:
        family: makes the problems.
        options: of training, beside target and tolerance.
    """

    family: Callable[[], Family]
    options: dict[str, Any]


SUBJECTS = {
    "sparse coding": Subject(sparse_coding, {"horizon": 120, "steps": 400, "patience": 12}),
    "box MPC": Subject(box_mpc, {"horizon": 170, "steps": 600, "patience": 20}),
    "deconvolution": Subject(
        deconvolution,
        {"horizon": 90, "steps": 300, "patience": 12, "batch": 4, "validation": 6},
    ),
}
PROVED = {"horizon": 170, "steps": 150}  # steps up to 1/L only: more of them are needed


def main() -> None:
    """Learn or read the tables of each family, and measure them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", choices=[*SUBJECTS, []])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--learn-only", action="store_true")
    parser.add_argument(RECORD, action="store_true")
    options = parser.parse_args()
    iterations, seconds = Table(*ITERATIONS, quiet=True), Table(*SECONDS, quiet=True)
    for name in options.families or SUBJECTS:
        subject = SUBJECTS[name]
        family = subject.family()
        methods = {
            kind: learned(family, subject.options, kind, options.tables)
            for kind in ("spline", "proved")
        }
        if options.learn_only:
            continue
        fresh = [family.sample([STREAM, i], part="test") for i in range(options.problems)]
        count_iterations(iterations, family, fresh, methods)
        measure_seconds(seconds, family, fresh, methods["spline"])
    for table in (iterations, seconds):
        print("| " + " | ".join(table.columns) + " |\n" + "|---" * len(table.columns) + "|")
        for row in table.rows:
            print("| " + " | ".join("-" if cell is None else str(cell) for cell in row) + " |")
    if options.record:
        record("composite_learned", {"iterations": iterations, "seconds": seconds})


def learned(family: Family, options: dict[str, Any], kind: str, folder: Path | None) -> Method:
    """Return the method of a folder, or learn it."""
    path = folder and folder / f"{family.name.replace(' ', '-')}-{kind}.safetensors"
    if path and path.exists():
        return Method.load(path)
    from ode2opt import learn

    began = time.process_time()
    options = options | (PROVED if kind == "proved" else {})
    method = learn(family, target="sequence", coefficients=kind, tol=min(TOLS), **options)
    print(f"{family.name}, {kind}: learned in {time.process_time() - began:.0f} s", flush=True)
    if path:
        method.save(path)
    return method


def count_iterations(
    table: Table, family: Family, problems: Sequence[Problem], methods: dict[str, Method]
) -> None:
    """Add a row for each tolerance."""
    curvatures = [composite_solvers.curvature(one) for one in problems[:1]]
    for tol in TOLS:
        plain = [
            np.mean([
                composite_solvers.fista(one, family.penalty, curvatures[0], tol, restart)
                for one in problems
            ])
            for restart in (False, True)
        ]  # fmt: skip
        kinds: dict[str, Any] = {"solve": "fista", **methods}
        found = {
            kind: [
                solve(one, penalty=family.penalty, method=method, tol=tol, max_iter=MOST)
                for one in problems
            ]
            for kind, method in kinds.items()
        }
        mean = {kind: np.mean([one.iterations for one in each]) for kind, each in found.items()}
        calls = {kind: np.mean([one.oracle_calls for one in each]) for kind, each in found.items()}
        table.add(
            family.name, f"{tol:g}", *(f"{each:.1f}" for each in plain), f"{mean['solve']:.1f}",
            f"{calls['solve']:.1f}", f"{mean['spline']:.1f}", f"{calls['spline']:.1f}",
            f"{mean['spline'] / plain[1]:.2f}", handovers(found["spline"]),
            f"{mean['proved']:.1f}", handovers(found["proved"]),
            sum(untrue(family, problems, each, tol) for each in found.values()),
        )  # fmt: skip


def handovers(results: Sequence[Result]) -> int:
    """Return how many solves were handed over."""
    return sum(bool(one.handovers) for one in results)


def untrue(
    family: Family, problems: Sequence[Problem], results: Sequence[Result], tol: float
) -> int:
    """Return how many solves claim what is not so, or did not arrive."""
    return sum(
        not one.success or composite_solvers.residual(problem, family.penalty, one.x) > tol
        for problem, one in zip(problems, results, strict=True)
    )


def measure_seconds(
    table: Table, family: Family, problems: Sequence[Problem], method: Method
) -> None:
    """Add a row for each solver: ours, and the peers that are installed."""
    tol, penalty = min(TOLS), family.penalty
    ways: dict[str, Callable[[Problem], np.ndarray]] = {
        f"learned, {words}": lambda problem, m=way: (
            solve(problem, penalty=penalty, method=m, tol=tol, max_iter=MOST).x
        )
        for words, way in (("by solve", method),)
    }
    ways |= {
        f"solve, {name}": lambda problem, m=name: (
            solve(problem, penalty=penalty, method=m, tol=tol, max_iter=MOST).x
        )
        for name in ("fista", "auto")
    }
    if isinstance(problems[0], Quadratic):
        compiled = composite_solvers.in_c(method, family, problems[0].Q, tol)
        ways |= {} if compiled is None else {"learned, in C": compiled}
    practice = [family.sample([STREAM + 1, i]) for i in range(PRACTICE)]
    ways |= composite_solvers.peers(family, practice, tol)
    first = None
    for name, way in ways.items():
        way(problems[0])
        spent = []
        for _ in range(2):
            began = time.process_time()
            points = [way(problem) for problem in problems]
            spent.append((time.process_time() - began) / len(problems))
        first = first or min(spent)
        worst = max(
            composite_solvers.residual(problem, penalty, x)
            for problem, x in zip(problems, points, strict=True)
        )
        table.add(
            family.name, name, f"{1e3 * min(spent):.3f}", f"{min(spent) / first:.2f}",
            f"{worst:.1e}",
        )  # fmt: skip


if __name__ == "__main__":
    main()
