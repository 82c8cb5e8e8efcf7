"""Random convex problems under random and often absurd schedules: does the guard keep its promise?

Run `python benchmarks/guard_stress.py [COUNT]`. The same problems are solved by auto, newton and
lbfgs, and by a memory that sees each of them twice, the second time from elsewhere. Every case must
return a finite point, a gradient norm no larger than the starting one and a true status; every
problem with a minimiser must reach its tolerance.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ode2opt import (
    LeastSquares,
    Logistic,
    Lpp,
    Memory,
    Problem,
    Quadratic,
    Result,
    Schedule,
    Status,
    solve,
)

KINDS = ("logistic", "separable", "lpp", "quadratic")
MAX_ITER = 400_000


@dataclass(frozen=True)
class Case:
    """One problem, one schedule, and what may be expected of them."""

    kind: str
    problem: Problem
    schedule: Schedule
    x0: np.ndarray
    tol: float


Solver = Callable[[Case, int], Result]


def make_case(seed: int) -> Case:
    """Return a case that depends on ``seed`` only."""
    rng = np.random.default_rng([20, seed])
    kind = KINDS[rng.integers(len(KINDS))]
    dtype = np.float32 if rng.random() < 0.3 else np.float64
    n = int(np.exp(rng.uniform(0, np.log(300))).round())
    problem = MAKERS[kind](rng, n, dtype)
    x0 = (rng.standard_normal(n) * 10 ** rng.uniform(-2, 1)).astype(dtype)
    norm = float(np.linalg.norm(problem.gradient(x0)))
    relative = 1e-4 if dtype == np.float32 else 1e-6
    return Case(kind, problem, _schedule(rng, problem.scale(x0).L), x0, max(relative * norm, 1e-6))


def _schedule(rng: np.random.Generator, L: float) -> Schedule:
    """Steps from 1e-3 to 1e3 times the stable one, momentum of any sign and size."""
    K = int(rng.integers(1, 400))
    a = 10 ** rng.uniform(-3, 3) / L * np.exp(rng.normal(0, rng.choice([0, 0.5]), K))
    c = a * rng.uniform(-0.5, 2, K if rng.random() < 0.5 else 1)
    d = np.full(K, rng.uniform(-0.2, 2.2)) if rng.random() < 0.5 else rng.uniform(0, 1, K)
    return Schedule(a, c * np.ones(K), d)


def _features(rng: np.random.Generator, n: int) -> np.ndarray:
    rows = int(rng.integers(1, 400))
    return rng.standard_normal((rows, n)) * 10 ** rng.uniform(-1, 1, n)


def _logistic(rng: np.random.Generator, n: int, dtype: type) -> Problem:
    A = _features(rng, n)
    b = (rng.random(len(A)) < 0.5).astype(float)
    return Logistic(A.astype(dtype), b, l2=10 ** rng.uniform(-4, 0))


def _separable(rng: np.random.Generator, n: int, dtype: type) -> Problem:
    A = _features(rng, n)
    return Logistic(A.astype(dtype), (A @ rng.standard_normal(n) > 0).astype(float))


def _lpp(rng: np.random.Generator, n: int, dtype: type) -> Problem:
    A = _features(rng, n) / np.sqrt(n)
    b = rng.standard_normal(len(A))
    if rng.random() < 0.3:
        return LeastSquares(A.astype(dtype), b)
    return Lpp(A.astype(dtype), b, p=int(rng.choice([4, 6])))


def _quadratic(rng: np.random.Generator, n: int, dtype: type) -> Problem:
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    w = 10 ** rng.uniform(-rng.uniform(0, 8), 0, n) * 10 ** rng.uniform(-3, 3)
    Q = (V * w) @ V.T
    Q = ((Q + Q.T) / 2).astype(dtype)
    return Quadratic(Q, Q @ rng.standard_normal(n).astype(dtype))


MAKERS = dict(zip(KINDS, (_logistic, _separable, _lpp, _quadratic), strict=True))


def verdict(case: Case, result: Result) -> str:
    """Return "ok" or the promise that was broken."""
    problem, x = case.problem, np.asarray(result.x)
    if not np.all(np.isfinite(x)):
        return "non-finite x"
    norm, start = (float(np.linalg.norm(problem.gradient(p))) for p in (x, case.x0))
    slack = 1 + 1e-3 if problem.dtype == np.float32 else 1 + 1e-9
    if norm > start * slack:
        return "worse than the start"
    if (norm <= case.tol * slack) != result.success or (
        (result.status is Status.CONVERGED) != result.success
    ):
        return f"untrue status {result.status.name}"
    if not result.success and case.kind != "separable":
        return f"not converged ({result.status.name})"
    return "ok"


def _scheduled(case: Case, max_iter: int) -> Result:
    return solve(case.problem, case.x0, method=case.schedule, tol=case.tol, max_iter=max_iter)


def _named(name: str, case: Case, max_iter: int) -> Result:
    return solve(case.problem, case.x0, method=name, tol=case.tol, max_iter=max_iter)


def _remembered(case: Case, max_iter: int) -> Result:
    memory = Memory()
    for x0 in (-case.x0, case.x0):
        result = solve(case.problem, x0, memory=memory, tol=case.tol, max_iter=max_iter)
    return result


SOLVERS: dict[str, Solver] = {
    "schedule": _scheduled,
    **{name: partial(_named, name) for name in ("auto", "newton", "lbfgs")},
    "memory": _remembered,
}


def stress(
    seeds: range, max_iter: int = MAX_ITER, solver: Solver = _scheduled
) -> tuple[Counter[str], list[int]]:
    """Run the cases; return how often each verdict fell, and the seeds that were not ok."""
    verdicts: Counter[str] = Counter()
    failed = []
    for seed in seeds:
        case = make_case(seed)
        result = solver(case, max_iter)
        said = verdict(case, result)
        verdicts[said] += 1
        verdicts["handed over"] += bool(result.handovers)
        if said != "ok":
            failed.append(seed)
    return verdicts, failed


def main() -> dict[str, float]:
    """Run all cases and return the share of broken promises."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    failures = 0
    for name, solver in SOLVERS.items():
        verdicts, failed = stress(range(count), solver=solver)
        print(f"{name}: {count} cases: {dict(verdicts)}; failed seeds: {failed}", flush=True)
        failures += len(failed)
    return {"guard_failures": failures / (count * len(SOLVERS))}


if __name__ == "__main__":
    main()
