"""The targets by name, and how a sequence is begun: several times, by the best on held-out ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ode2opt.learning.background import OVERHEAD
from ode2opt.learning.flow_target import FlowTarget
from ode2opt.learning.handing_over import mean_calls
from ode2opt.learning.known import known_of
from ode2opt.learning.options import Options
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.learning.sequence_target import SequenceTarget
from ode2opt.learning.stopm import StoPM
from ode2opt.learning.target import VALIDATION, Target
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory

WARM_UP = 1 / 2  # the share of the steps after which restarts are compared


def target_of(
    family: Family,
    options: Options,
    memory: Memory | None,
    directory: RunDirectory | None,
    note: Callable[[str], None],
) -> Target:
    """Return the target of the options; ``note`` is told what goes on.

    A sequence is begun several times, and training goes on with what is best on held-out training
    problems; the choice is kept in the run's folder.
    """
    if options.target == "flow":
        return FlowTarget(family, options)
    known = known_of(family, options, memory, note)
    restarts = known.restarts()
    stored = None if directory is None else directory.load_choice()
    if stored is not None and tuple(stored["chosen"]) in restarts:
        metric, reference = stored["chosen"]
        return SequenceTarget(family, options, metric, reference, known)
    targets, prices = [], []
    for i, restart in enumerate(restarts, start=1):
        note(f"beginning {i} of {len(restarts)}: metric {restart.metric}, {restart.reference}")
        targets.append(SequenceTarget(family, options, *restart, known))
        prices.append(_begin(targets[-1]))
    best = int(np.argmin(prices))
    if directory is not None:
        table = [one._asdict() | {"price": p} for one, p in zip(restarts, prices, strict=True)]
        directory.save_choice({"chosen": list(restarts[best]), "tried": table})
    return targets[best]


def _begin(target: SequenceTarget) -> float:
    """Train for a while, from where the target then starts; return what a held-out solve costs."""
    options = target.options
    steps = max(1, round(WARM_UP * options.steps))
    stopm = StoPM(target.start, target.learnable, replace(options, steps=steps), target.rules)
    state = stopm.start
    for k in range(steps):
        state, _ = stopm.step(state, target.batch(k, options.batch))
    target.start = learned = stopm.learned(state)
    problems = [target.problem(VALIDATION, i) for i in range(options.validation)]
    results = [
        target.solve(learned, problem, target.of(problem, VALIDATION, i))
        for i, problem in enumerate(problems)
    ]
    metric = target.method(learned, 1).metric
    extra = 0 if metric is None else metric.flops / (OVERHEAD + problems[0].gradient_flops())
    return mean_calls(results) * (1 + extra)
