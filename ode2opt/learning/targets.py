"""The targets by name, and the choice of a metric on training problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ode2opt.learning.flow_target import FlowTarget
from ode2opt.learning.options import Options
from ode2opt.learning.references import LOOKS, References
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.learning.sequence_target import SequenceTarget
from ode2opt.learning.stopm import StoPM
from ode2opt.learning.target import TRAINING, VALIDATION, Target
from ode2opt.learning.validation import Validator
from ode2opt.problems.family import Family

LARGEST_BASIS = 1_000  # variables up to which a whole basis is kept
WARM_UP = 1 / 4  # the share of the steps after which candidates are compared
OVERHEAD = 100_000  # what Python costs an iteration, in operations, about

Choice = tuple[str, str]


def target_of(family: Family, options: Options, directory: RunDirectory | None) -> Target:
    """Return the target of the options; a choice that was made is kept in the run's folder."""
    if options.target == "flow":
        return FlowTarget(family, options)
    known = References(family, options)
    candidates = _candidates(options, known.solved[0][0].problem.n)
    choice = candidates[0]
    if len(candidates) > 1:
        stored = None if directory is None else directory.load_choice()
        if stored is not None and tuple(stored["chosen"]) in candidates:
            choice = tuple(stored["chosen"])
        else:
            prices = {pair: _price(family, options, pair, known) for pair in candidates}
            choice = min(prices, key=prices.__getitem__)
            if directory is not None:
                tried = [{"metric": m, "reference": r, "price": p} for (m, r), p in prices.items()]
                directory.save_choice({"chosen": list(choice), "tried": tried})
    return SequenceTarget(family, options, *choice, known)


def _candidates(options: Options, n: int) -> Sequence[Choice]:
    references = list(LOOKS) if options.reference == "auto" else [options.reference]
    if options.metric != "auto":
        looks = references if options.metric != "none" else references[:1]
        return [(options.metric, reference) for reference in looks]
    basis = "spectral" if n <= LARGEST_BASIS else "lowrank"
    return [("diagonal", references[0]), *((basis, reference) for reference in references)]


def _price(family: Family, options: Options, choice: Choice, known: References) -> float:
    """Train a candidate for a while; return gradients a held-out solve, the metric's cost added."""
    target = SequenceTarget(family, options, *choice, known)
    short = options.shortened(max(1, round(WARM_UP * options.steps)))
    stopm = StoPM(target.start, target.learnable, short, target.rules)
    state = stopm.start
    for k in range(short.steps):
        numbers = range(k * options.batch, (k + 1) * options.batch)
        state, _ = stopm.step(state, [target.instance(TRAINING, i) for i in numbers])
    validator = Validator(target, VALIDATION, options.validation)
    learned: Any = stopm.learned(state)
    pairs = zip(validator.problems, validator.instances, strict=True)
    calls = float(np.mean([target.solve(learned, *pair).oracle_calls for pair in pairs]))
    metric = target.method(learned, 1).metric
    gradient = OVERHEAD + validator.problems[0].gradient_flops()
    return calls * (1 + (0.0 if metric is None else metric.flops / gradient))
