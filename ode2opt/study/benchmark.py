"""The benchmark: methods side by side on fresh test problems of a family.

Each instance is drawn from the test rows by the seed [seed, instance], so results do not depend on
how many processes share the work. A run goes on to ``max_iter`` iterations; what it took to reach
``tol`` is noted on the way. The method "memory" solves the instances in order with one memory, in
this process and to ``tol`` only; what it learns is in its calls and seconds. The constants of
"eigac-tuned" and "nag-tuned" are chosen before on training problems, which their numbers leave out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ode2opt.base.arrays import as_count, epsilon, norm
from ode2opt.base.errors import InputError
from ode2opt.base.threads import one_thread
from ode2opt.executor import Executor, LocalExecutor
from ode2opt.learning.options import COUNT, POSITIVE, WORK_PANEL, Range, check_declared, option
from ode2opt.problems import Family, Problem, Quadratic
from ode2opt.proofs.confidence import CONFIDENCE, check_confidence, expectation
from ode2opt.solvers import Memory, Method, Result, Status, solve
from ode2opt.solvers.methods import HANDOVERS, BuiltIn, runs_a_table
from ode2opt.study.tuned import TUNED, Tuning, entry, tune

MEMORY = "memory"
RUNS_PANEL = "The runs"  # of the help of bench
TRAINING_BASELINES = ("lbfgs", "auto", MEMORY)  # what a training has to be earned back against


@dataclass(frozen=True)
class InstanceOutcome:
    """One method on one instance.

    Attributes:
        measure: log10 of the last gradient norm, or of the rounding of the first one where the last
            is below it.
        complexity: the first iteration at the tolerance, or ``max_iter``.
        oracle_calls: until the tolerance, or in all; set-up included.
        seconds: likewise.
        reached: whether the tolerance was reached.
        diverged: whether the last gradient norm is infinite or larger than the first.
        handed_over: whether another stage took over before the tolerance.
        at_rounding: whether ``measure`` is that of the rounding; False by default.
    """

    measure: float
    complexity: int
    oracle_calls: float
    seconds: float
    reached: bool
    diverged: bool
    handed_over: bool
    at_rounding: bool = False


@dataclass
class Clock:
    """Measures how much of its time a computation had a processor.

    Attributes:
        wall: seconds that went by, 0 at first.
        processor: seconds of the processor in them, 0 at first.
    """

    wall: float = 0.0
    processor: float = 0.0

    def add(self, other: Clock) -> None:
        """Add the times of another clock."""
        self.wall += other.wall
        self.processor += other.processor

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the clock run inside a ``with`` block."""
        wall, processor = time.perf_counter(), time.thread_time()
        yield
        self.add(Clock(time.perf_counter() - wall, time.thread_time() - processor))


Measured = tuple[dict[str, InstanceOutcome], Clock]


@dataclass(frozen=True)
class Settings:
    """What a benchmark is run with.

    ``methods`` are built-in ones by name; "memory" solves the instances in order with one memory,
    "eigac-tuned" and "nag-tuned" have constants that are chosen on training problems.
    ``learned`` are shown under their names. Methods without a table run under the guard where the
    handover "relay" is asked for.
    """

    methods: tuple[str, ...]
    learned: Mapping[str, Method] = field(default_factory=dict)
    instances: int = option(100, "Test problems.", RUNS_PANEL, range=COUNT)
    tol: float = option(3e-4, "Gradient norm to reach.", RUNS_PANEL, range=POSITIVE)
    max_iter: int = option(500, "Iterations a run.", RUNS_PANEL, range=COUNT)
    seed: int = option(
        0, "Drives which rows make a problem.", RUNS_PANEL, range=Range(0, whole=True)
    )
    handover: str = option(
        "guard",
        "Who goes on where a method gives up. guard: the next stage; none: nobody, the first stage "
        "runs alone; relay: the paper's, for EIGAC with a table, while others run as they are.",
        RUNS_PANEL,
        choices=HANDOVERS,
    )
    jobs: int = option(2, "Processes, without --cluster.", WORK_PANEL, range=COUNT)
    confidence: float = option(
        CONFIDENCE, "Of what is said about further problems, between 0 and 1.", RUNS_PANEL
    )

    def __post_init__(self) -> None:
        if not self.names:
            raise InputError("No method to compare: name at least one.")
        for name in self.alone:
            entry(name)
        for name in self.names:
            if self.names.count(name) > 1:
                raise InputError(f"The method {name} is named twice.")
        check_declared(self)
        check_confidence(self.confidence)

    def handovers(self) -> dict[str, str]:
        """Return the handover of each method: the one asked for, or "guard" instead of a relay."""
        if self.handover != "relay":
            return dict.fromkeys(self.names, self.handover)
        tables = {name for name in self.alone if runs_a_table(entry(name))}
        tables |= {name for name, method in self.learned.items() if runs_a_table(method)}
        return {name: "relay" if name in tables else "guard" for name in self.names}

    @property
    def alone(self) -> tuple[str, ...]:
        """The built-in methods that solve each instance by itself."""
        return tuple(name for name in self.methods if name != MEMORY)

    @property
    def names(self) -> tuple[str, ...]:
        """All methods, in the order of the table."""
        return (*self.methods, *self.learned)


@dataclass
class Benchmark:
    """The outcomes of a benchmark so far.

    Attributes:
        settings: what it is run with.
        outcomes: by method, one for each instance; empty at first.
        tuned: the constants of methods that have some chosen; empty at first.
        clock: seconds of all solves, and of the processor in them.
    """

    settings: Settings
    outcomes: dict[str, list[InstanceOutcome]] = field(default_factory=dict)
    tuned: dict[str, Tuning] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)

    @property
    def instances(self) -> int:
        """How many instances are done."""
        return len(next(iter(self.outcomes.values()), []))

    def disturbance(self, least_share: float = 0.8) -> str | None:
        """Return a warning that a processor was theirs for less than a share of their seconds."""
        share = self.clock.processor / self.clock.wall if self.clock.wall else 1.0
        if share >= least_share:
            return None
        return (
            f"The timing is disturbed: solves had a processor for {share:.0%} of their seconds; "
            f"lower --jobs, or end what else is running."
        )

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Return the numbers of ``bench --json`` for each method.

        Standard deviations are those of the sample. A measure is not below the rounding of the
        first gradient norm; ``measure_at_rounding`` counts the instances where the last norm is.
        Where the tolerance was not reached, complexity is ``max_iter``, and calls and seconds are
        those of the whole run. For a learned method ``earned_back`` says after how many solves the
        seconds of its training are saved, against lbfgs, auto and memory where they ran; None is
        never. ``statistical`` is what further problems of the family need, see
        :class:`ode2opt.proofs.confidence.Expectation`.
        """
        found = {name: _statistics(seen) for name, seen in self.outcomes.items() if seen}
        for name, row in found.items():
            row["statistical"] = self._expected(name)
        for name, method in self.settings.learned.items():
            spent = method.statistics.get("seconds")
            if name in found and isinstance(spent, float):
                found[name]["earned_back"] = {
                    baseline: _solves(spent, found[baseline], found[name])
                    for baseline in TRAINING_BASELINES
                    if baseline in found
                }
        return found

    def _expected(self, name: str) -> dict[str, Any] | None:
        """Return what further problems need; None for a memory: its solves are not independent."""
        if name == MEMORY:
            return None
        calls = [o.oracle_calls if o.reached else math.inf for o in self.outcomes[name]]
        return expectation(calls, self.settings.confidence, self.settings.tol).summary()


def _solves(spent: float, baseline: Mapping[str, Any], mine: Mapping[str, Any]) -> int | None:
    """Return after how many solves the seconds ``spent`` are saved, None for never."""
    saved = baseline["seconds_mean"] - mine["seconds_mean"]
    known = saved > 0 and 0 <= spent / saved < math.inf
    return math.ceil(spent / saved) if known else None


def run_benchmark(
    family: Family,
    settings: Settings,
    advance: Callable[[], None] = lambda: None,
    executor: Executor | None = None,
) -> Benchmark:
    """Run every method on every instance.

    Ctrl-C ends the benchmark early: what is done is returned.

    Examples:
        >>> settings = Settings(("nag", "lbfgs"), instances=2, jobs=1)
        >>> run_benchmark(family, settings).statistics()["lbfgs"]["reached"]
        2
    """
    benchmark = Benchmark(settings, {name: [] for name in settings.names})
    remembered = _stream(family, settings, benchmark.clock) if MEMORY in settings.methods else []
    tol, max_iter, seed = settings.tol, settings.max_iter, settings.seed
    with one_thread():
        for name in (one for one in settings.methods if one in TUNED):
            benchmark.tuned[name] = tune(name, family, tol=tol, max_iter=max_iter, seed=seed)
    try:
        numbers = range(settings.instances)
        executor = executor or LocalExecutor(as_count(settings.jobs, "jobs"))
        found = executor.map(_measure, (family, settings, benchmark.tuned), numbers)
        for i, (outcomes, clock) in enumerate(found):
            benchmark.clock.add(clock)
            for name, outcome in outcomes.items():
                benchmark.outcomes[name].append(outcome)
            if remembered:
                benchmark.outcomes[MEMORY].append(remembered[i])
            advance()
    except KeyboardInterrupt:
        if not benchmark.instances:
            raise
    return benchmark


def _stream(family: Family, settings: Settings, clock: Clock) -> list[InstanceOutcome]:
    """Solve the instances in order with one memory, before others share the processor."""
    memory, found = Memory(), []
    handover = settings.handovers()[MEMORY]
    with one_thread():
        _warm_up(("auto",))
        for i in range(settings.instances):
            problem = _instance(family, settings, i)
            rounding = _rounding(problem)
            with clock.running():
                result = solve(
                    problem, memory=memory, tol=settings.tol, max_iter=settings.max_iter,
                    handover=handover,
                )  # fmt: skip
            found.append(_outcome(result, settings, rounding))
    return found


def _instance(family: Family, settings: Settings, i: int) -> Problem:
    return family.sample([settings.seed, i], part="test")


def _rounding(problem: Problem) -> float:
    """Return the gradient norm at the start point, times the rounding of its numbers.

    Norms below it cannot be told apart: where the infimum is not attained, as on separable rows,
    methods only differ in how far out they go.
    """
    g = problem.gradient(problem.start().x0)
    return epsilon(problem.xp, problem.dtype) * norm(g)


def _log(norm: float) -> float:
    return math.log10(max(norm, 1e-300)) if math.isfinite(norm) else math.inf


def _measure(given: tuple[Family, Settings, Mapping[str, Tuning]], instance: int) -> Measured:
    """Run all methods on one instance, on one thread each, so that seconds can be compared."""
    (family, settings, tuned), clock = given, Clock()
    with one_thread():
        _warm_up(settings.alone)
        problem = _instance(family, settings, instance)
        methods: dict[str, str | Method | BuiltIn] = {name: name for name in settings.alone}
        methods |= settings.learned
        methods |= {name: chosen.method for name, chosen in tuned.items()}
        handovers, rounding = settings.handovers(), _rounding(problem)
        with clock.running():
            found = {
                name: _outcome(
                    followed(problem, each, settings, handovers[name]), settings, rounding
                )
                for name, each in methods.items()
            }
    return found, clock


@cache
def _warm_up(methods: tuple[str, ...]) -> None:
    """Let each method import what it needs before the first instance is timed."""
    problem = Quadratic(np.diag(np.arange(1.0, 20.0)), np.ones(19))
    for method in methods:
        solve(problem, problem.start(), method=entry(method), max_iter=3)


def followed(
    problem: Problem, method: str | Method | BuiltIn, settings: Settings, handover: str
) -> Result:
    """Run a method to the last iteration, with its history; a learned one has its own start."""
    return solve(
        problem, None if isinstance(method, Method) else problem.start(), method=method,
        tol=settings.tol, max_iter=settings.max_iter, handover=handover, stop_at_tol=False,
        history=True,
    )  # fmt: skip


def _outcome(result: Result, settings: Settings, rounding: float) -> InstanceOutcome:
    """Return what is noted of a solve; one without a history ended at the tolerance."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    reached, history, last, first = result.reached, result.history, result.grad_norm, math.inf
    spent = result if history is None or reached is None else reached
    if history is not None:
        first = history.grad_norm[0]
        # At the limit of precision the last point of the history is a mere trial.
        if result.status not in (Status.STALLED, Status.LINE_SEARCH):
            last = history.grad_norm[-1]
    return InstanceOutcome(
        measure=_log(max(last, rounding)),
        at_rounding=last < rounding,
        complexity=reached.iteration if reached else settings.max_iter,
        oracle_calls=spent.oracle_calls,
        seconds=spent.seconds,
        reached=reached is not None,
        diverged=not math.isfinite(last) or last > first,
        handed_over=any(
            history is None or reached is None or h.iteration < reached.iteration
            for h in result.handovers
        ),
    )


def _statistics(found: Sequence[InstanceOutcome]) -> dict[str, Any]:
    measure = np.array([o.measure for o in found])
    complexity = np.array([o.complexity for o in found], dtype=float)
    return {
        "measure_mean": _finite(np.mean(measure)),
        "measure_std": _spread(measure),
        "measure_at_rounding": sum(o.at_rounding for o in found),
        "complexity_mean": float(np.mean(complexity)),
        "complexity_std": _spread(complexity),
        "complexity_max": int(np.max(complexity)),
        "oracle_calls_mean": float(np.mean([o.oracle_calls for o in found])),
        "seconds_mean": float(np.mean([o.seconds for o in found])),
        "reached": sum(o.reached for o in found),
        "diverged": sum(o.diverged for o in found),
        "handovers": sum(o.handed_over for o in found),
    }


def _spread(values: np.ndarray) -> float:
    if len(values) < 2 or not np.all(np.isfinite(values)):
        return 0.0
    return float(np.std(values, ddof=1))


def _finite(value: Any) -> float:
    """JSON has no infinity: a method that diverged is given the largest exponent there is."""
    return float(np.nan_to_num(value, posinf=308.0))
