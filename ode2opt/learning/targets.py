"""The targets by name, and how a sequence is begun: several times, by the best on held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ode2opt.learning.flow_target import FlowTarget
from ode2opt.learning.options import Options
from ode2opt.learning.references import LOOKS, References
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.learning.sequence import Learned
from ode2opt.learning.sequence_target import SequenceTarget
from ode2opt.learning.stopm import StoPM
from ode2opt.learning.target import VALIDATION, Target
from ode2opt.problems.base import Problem
from ode2opt.problems.family import Family

LARGEST_BASIS = 1_000  # variables up to which a whole basis is kept
WARM_UP = 1 / 2  # the share of the steps after which restarts are compared
RATES = (1.0, 2.0)  # step sizes of the restarts, in those of the options
OVERHEAD = 100_000  # what Python costs an iteration, in operations, about


class Restart(NamedTuple):
    """One way to begin: a metric, where it looks at curvature, and a factor on the step size."""

    metric: str
    reference: str
    rate: float


def target_of(
    family: Family, options: Options, directory: RunDirectory | None, note: Callable[[str], None]
) -> Target:
    """Return the target of the options; ``note`` is told what goes on.

    A sequence is begun several times, and training goes on with what is best on held-out training
    problems; the choice is kept in the run's folder.
    """
    if options.target == "flow":
        return FlowTarget(family, options)
    note("solving problems to learn from")
    known = References(family, options)
    restarts = _restarts(options, known.solved[0][0].problem)
    stored = None if directory is None else directory.load_choice()
    if stored is not None and tuple(stored["chosen"]) in restarts:
        metric, reference, _ = stored["chosen"]
        return SequenceTarget(family, options, metric, reference, known)
    targets: dict[tuple[str, str], SequenceTarget] = {}
    tried = []
    for i, (metric, reference, rate) in enumerate(restarts, start=1):
        note(f"beginning {i} of {len(restarts)}: metric {metric}, {reference}")
        if (metric, reference) not in targets:
            made = SequenceTarget(family, options, metric, reference, known)
            targets[metric, reference] = made
        tried.append(_begun(targets[metric, reference], rate))
    prices = [price for price, _ in tried]
    best = int(np.argmin(prices))
    if directory is not None:
        table = [one._asdict() | {"price": p} for one, p in zip(restarts, prices, strict=True)]
        directory.save_choice({"chosen": list(restarts[best]), "tried": table})
    chosen = targets[restarts[best][:2]]
    chosen.start = tried[best][1]
    return chosen


def _restarts(options: Options, problem: Problem) -> list[Restart]:
    looks = list(LOOKS) if options.reference == "auto" else [options.reference]
    kinds = [options.metric]
    if options.metric == "auto":
        kinds = ["spectral" if problem.n <= LARGEST_BASIS else "lowrank"]
        if 2 * problem.n**2 > OVERHEAD + problem.gradient_flops():  # a basis may cost too much
            kinds.append("diagonal")
    return [
        Restart(kind, look, rate)
        for kind in kinds
        for look in (looks[:1] if kind in ("none", "diagonal") else looks)
        for rate in RATES
    ]


def _begun(target: SequenceTarget, rate: float) -> tuple[float, Learned]:
    """Train for a while; return what a held-out solve costs in gradients, and what is learned."""
    options = target.options
    steps = max(1, round(WARM_UP * options.steps))
    short = replace(options, steps=steps, lr=rate * options.learning_rate)
    stopm = StoPM(target.start, target.learnable, short, target.rules)
    state = stopm.start
    for k in range(steps):
        state, _ = stopm.step(state, target.batch(k, options.batch))
    learned: Any = stopm.learned(state)
    problems = [target.problem(VALIDATION, i) for i in range(options.validation)]
    results = [
        target.solve(learned, problem, target.of(problem, VALIDATION, i))
        for i, problem in enumerate(problems)
    ]
    metric = target.method(learned, 1).metric
    extra = 0 if metric is None else metric.flops / (OVERHEAD + problems[0].gradient_flops())
    return float(np.mean([result.oracle_calls for result in results])) * (1 + extra), learned
