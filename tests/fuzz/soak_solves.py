"""Solve hostile problems by every method, and check all that a result says.

Run `python tests/fuzz/soak_solves.py --count K [--first SEED] [--methods M] [--wild]`. Of every
result the gradient norm is computed again in extended precision, the calls are counted
independently, and under the guard every problem that scipy's L-BFGS-B solves within 15,000
evaluations must be solved within ten times as many calls plus 1,000. The exit code is 1 where a
promise is broken. Where neither arrives and scipy comes ten times nearer, and where a solve takes
ten times scipy's seconds and two more, or is refused in a sentence, that is counted and shown.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it
from fuzz import wild
from fuzz.exact import Case
from fuzz.hostile import make_case
from fuzz.reference import Reference
from support import counting

from ode2opt import Guard, InputError, Memory, Method, Relay, Result, Schedule, Status, solve
from ode2opt.solvers import DefaultCoefficients
from ode2opt.solvers.methods import smooth_names
from ode2opt.solvers.metric import Metric

MOST_EVALUATIONS = 15_000
EASY = 1_000  # calls that every problem may take
UNGUARDED = 200
GUARD_NAMES = ("eigac-c1", "eigac-c2", "eigac-c4", "auto", "newton", "lbfgs")
BY_VALUES = ("auto", "newton", "lbfgs", "memory")  # others ask for gradients first
SERIOUS = ("exception", "not finite", "untrue", "wrong count", "worse", "unsolved")
NOTED = ("refused", "nearer", "slower")  # told in a sentence, or done better by scipy
MUCH, SECONDS = 10, 2.0  # times as near or as slow; seconds that every problem may take


Solver = Callable[[Case, np.random.Generator, dict[str, Any]], Iterator[Result]]


def _named(name: str, case: Case, rng: np.random.Generator, options: dict) -> Iterator[Result]:
    yield solve(case.problem, case.x0, method=name, tol=case.tol, **options)


def random_schedule(rng: np.random.Generator, L: float) -> Schedule:
    """Steps from 1e-3 to 1e3 times the stable one, momentum of any sign and size."""
    K = int(rng.integers(1, 400))
    a = 10 ** rng.uniform(-3, 3) / L * np.exp(rng.normal(0, rng.choice([0, 0.5]), K))
    c = a * rng.uniform(-0.5, 2, K if rng.random() < 0.5 else 1)
    d = np.full(K, rng.uniform(-0.2, 2.2)) if rng.random() < 0.5 else rng.uniform(0, 1, K)
    return Schedule(a, c * np.ones(K), d)


def _scheduled(case: Case, rng: np.random.Generator, options: dict) -> Iterator[Result]:
    L = case.problem.scale(case.x0).L
    case.problem.tally.calls = 0  # finding L is no part of the solve
    schedule = random_schedule(rng, L if math.isfinite(1e3 / L) else 1.0)
    yield solve(case.problem, case.x0, method=schedule, tol=case.tol, **options)


def random_metric(rng: np.random.Generator, n: int) -> Metric | None:
    """None, random lengths, a random basis, or the metric of a foreign problem."""
    how = rng.integers(4)
    if how == 0:
        return None
    if how == 1:
        return Metric("diagonal", 10 ** rng.uniform(-2, 2, n))
    if how == 2:
        r = int(rng.integers(1, min(n, 20) + 1))
        V, _ = np.linalg.qr(rng.standard_normal((n, r)))
        return Metric("lowrank", 10 ** rng.uniform(-1, 1, n), V, 10 ** rng.uniform(-1, 1, r) - 0.05)
    M = rng.standard_normal((2 * n, n)) * 10 ** rng.uniform(-2, 1, n)
    return Metric.inverse_of(M.T @ M / n)


def _learned(case: Case, rng: np.random.Generator, options: dict) -> Iterator[Result]:
    metric, instant = random_metric(rng, case.problem.n), rng.random() < 0.3
    fallback = str(rng.choice(["lbfgs", "metric-lbfgs"] + ["nesterov"] * (not instant)))
    envelope = tuple(3 * 0.97 ** np.arange(30)) if rng.random() < 0.3 else ()
    method = Method(
        schedule=None if instant else DefaultCoefficients(rng.uniform(0.5, 4.0)).schedule(200),
        family="hostile",
        tol=1e-6,
        scale="family" if instant else str(rng.choice(["family", "instance", "product"])),
        family_scale=10 ** rng.uniform(-3, 3),
        metric=metric,
        guard=Guard(fallback=fallback, power=float(rng.choice([1.0, 0.5])), envelope=envelope),
    )
    yield solve(case.problem, case.x0, method=method, tol=case.tol, **options)


def _remembered(case: Case, rng: np.random.Generator, options: dict) -> Iterator[Result]:
    memory = Memory()
    for _ in range(3):
        yield solve(case.problem, case.x0, memory=memory, tol=case.tol, **options)


def _handed(handover: Any, case: Case, rng: np.random.Generator, options: dict) -> Iterator[Result]:
    L = case.problem.scale(case.x0).L
    case.problem.tally.calls = 0
    schedule = DefaultCoefficients(rng.uniform(0.5, 6.0)).schedule(UNGUARDED, L)
    yield solve(case.problem, case.x0, method=schedule, tol=case.tol, handover=handover, **options)


GUARDED: dict[str, Solver] = {
    **{name: partial(_named, name) for name in smooth_names() if name in GUARD_NAMES},
    "schedule": _scheduled,
    "learned": _learned,
    "memory": _remembered,
}
FREE: dict[str, Solver] = {
    **{name: partial(_named, name) for name in smooth_names() if name not in GUARD_NAMES},
    "relay": partial(_handed, Relay()),
    "none": partial(_handed, "none"),
}


class Outcome(NamedTuple):
    """What was found of one solve: "ok" or the promise that was broken, in words."""

    said: str
    solved: bool = False
    calls: float = 0.0
    norm: float = math.inf
    seconds: float = 0.0


def judged(case: Case, result: Result, counted: float) -> str:
    """Return "ok" or what is untrue about a result."""
    x = np.asarray(result.x)
    if not np.all(np.isfinite(x)):
        return "not finite: x"
    if not _counts(case, result.oracle_calls, counted):
        return f"wrong count: {result.oracle_calls:g} said, {counted:g} counted"
    norm, rounding = case.true_norm(x)
    if rounding < math.inf and not abs(result.grad_norm - norm) <= rounding + 1e-6 * norm:
        return f"untrue norm: {result.grad_norm:g} said, {norm:g} is true within {rounding:.1g}"
    if result.success != (result.grad_norm <= case.tol):
        return f"untrue success at {result.grad_norm:g} for {case.tol:g}"
    if (result.status is Status.CONVERGED) != result.success:
        return f"untrue status {result.status.name}"
    if result.status is Status.NON_CONVEX:
        return "untrue: not convex"
    start, there = case.first_norm
    if norm > start + rounding + there:
        return "worse than the start"
    return "ok"


def _counts(case: Case, said: float, counted: float) -> bool:
    """Whether the calls are right; work on the scores of few rows is told but not counted here."""
    if getattr(case.problem, "kinked", False):
        return said >= counted - 1e-6 * (1 + counted)
    return abs(said - counted) <= 1e-6 * (1 + counted)


def attempt(case: Case, name: str, max_iter: int) -> Outcome:
    """Solve by one method and judge; of a memory's solves the worst counts."""
    rng = np.random.default_rng([14, case.seed, len(name)])
    counted, calls, seconds, began = counting(case.problem), 0.0, 0.0, time.process_time()
    solver = (GUARDED | FREE)[name]
    try:
        for result in solver(replace(case, problem=counted), rng, {"max_iter": max_iter}):
            seconds, began = max(seconds, time.process_time() - began), time.process_time()
            said = judged(case, result, counted.tally.calls)
            double = "float64" in str(case.problem.dtype)
            if double and name in BY_VALUES and not math.isfinite(result.fun):
                said = "not finite: the value"
            counted.tally.calls = 0
            calls = max(calls, result.oracle_calls)
            if said != "ok" or not result.success:
                return Outcome(said, False, calls, result.grad_norm, seconds)
    except InputError as error:
        return Outcome(f"refused: {error}")
    except Exception as error:
        return Outcome(f"exception {type(error).__name__}: {error}")
    return Outcome("ok", True, calls, result.grad_norm, seconds)


def guarded(
    case: Case, name: str, reference: Reference, most: int = MOST_EVALUATIONS
) -> tuple[Outcome, float]:
    """Solve under the guard within the reference's limit; returns that reference too.

    scipy is asked for as much as it takes to know: who needs at most 1,000 calls is within the
    limit whatever scipy needs.
    """
    outcome, known = attempt(case, name, EASY), reference.within(EASY)
    if outcome.said != "ok":
        return outcome, known
    if not outcome.solved or outcome.calls > EASY:
        known = reference.within(most)
        limit = most if known == math.inf else 10 * int(known) + 1_000
        outcome = attempt(case, name, limit)
        if outcome.said == "ok" and not (outcome.solved and outcome.calls <= limit):
            return outcome._replace(said=_fell_short(outcome, known, reference)), known
    if outcome.seconds > MUCH * reference.seconds + SECONDS and known < math.inf:
        words = f"slower: {outcome.seconds:.1f} s, scipy {reference.seconds:.1f} s"
        return outcome._replace(said=words), known
    return outcome, known


def _fell_short(outcome: Outcome, known: float, reference: Reference) -> str:
    """Say what scipy did better where a problem was not solved, "ok" if nothing."""
    if known < math.inf:
        return f"unsolved: {outcome.calls:.0f} calls, solved {outcome.solved}, scipy {known:.0f}"
    if outcome.norm > MUCH * reference.norm and not outcome.solved:
        return f"nearer: {outcome.norm:.2g} is left, by scipy {reference.norm:.2g}"
    return "ok"


def chosen(case: Case, count: int | None) -> list[str]:
    """Return the methods that a problem is solved by: all, or some at random."""
    names = [name for name in (*GUARDED, *FREE) if name != "newton" or case.problem.has_hvp]
    if count is None:
        return names
    rng = np.random.default_rng([15, case.seed])
    return [str(name) for name in rng.choice(names, min(count, len(names)), replace=False)]


class Soak:
    """What a number of seeds gave."""

    def __init__(
        self, make: Callable[[int], Case] = make_case, most: int = MOST_EVALUATIONS
    ) -> None:
        self.make, self.most = make, most
        self.counts: Counter[str] = Counter()
        self.by_method: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.broken: list[tuple[int, str, str, str]] = []
        self.noted: list[tuple[int, str, str, str]] = []

    def run(self, seeds: range, methods: int | None = None, only: str | None = None) -> None:
        """Run the cases of some seeds."""
        for seed in seeds:
            case = self.make(seed)
            reference = Reference(case)
            for name in only.split(",") if only else chosen(case, methods):
                if name in GUARDED:
                    self.note(case, name, *guarded(case, name, reference, self.most))
                else:
                    self.note(case, name, attempt(case, name, UNGUARDED))
            self.counts["problems"] += 1
            self.counts["solved by scipy"] += reference.evaluations < math.inf

    def note(self, case: Case, name: str, outcome: Outcome, known: float = math.inf) -> None:
        """Count one solve."""
        said = outcome.said
        kind = next((word for word in SERIOUS + NOTED if said.startswith(word)), "ok")
        self.by_method[name][kind] += 1
        self.counts["solves"] += 1
        self.counts[kind] += 1
        self.counts["guarded"] += name in GUARDED
        self.counts["guarded and solved"] += name in GUARDED and outcome.solved
        self.counts["above 3 times scipy"] += outcome.solved and outcome.calls > 3 * known
        if kind != "ok":
            found = (case.seed, case.kind, name, said)
            (self.broken if kind in SERIOUS else self.noted).append(found)


def main() -> None:
    """Run and print counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--methods", type=int, default=None)
    parser.add_argument("--only", default=None, help="methods, with commas between them")
    parser.add_argument("--wild", action="store_true", help="problems of wild.py")
    parser.add_argument("--most", type=int, default=MOST_EVALUATIONS, help="of scipy")
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args()
    import jax

    jax.config.update("jax_enable_x64", True)
    soak, began = (
        Soak(wild.make_case if options.wild else make_case, options.most),
        time.perf_counter(),
    )
    for seed in range(options.first, options.first + options.count):
        if time.perf_counter() - began > options.seconds:
            break
        soak.run(range(seed, seed + 1), options.methods, options.only)
    for found in soak.broken + soak.noted:
        print(*found, sep=" | ", flush=True)
    for name, counts in sorted(soak.by_method.items()):
        print(f"{name}: {dict(counts)}")
    print(f"{dict(soak.counts)} in {time.perf_counter() - began:.0f} s")
    sys.exit(any(word in soak.counts for word in SERIOUS))


if __name__ == "__main__":
    main()
