"""An instant method: L-BFGS in the metric that makes a family's mean Hessian round.

It takes a few solved problems and no training (docs/mathematics.md, section 14): M is the inverse
of the mean Hessian along their paths, with a floor.
"""

from __future__ import annotations

from typing import NamedTuple

from ode2opt.learning.sequence.background import Background
from ode2opt.learning.sequence.handing_over import best_choice, instant_choices
from ode2opt.learning.sequence.held_out import Folded, HeldOut
from ode2opt.solvers import Guard, Method, Result


class Instant(NamedTuple):
    """The method for each fold and last for all rows, and its solves of held-out problems."""

    folded: Folded
    results: list[Result]

    @property
    def method(self) -> Method:
        """The method for all rows."""
        return self.folded[-1]


def instant(known: Background, held_out: HeldOut) -> Instant:
    """Return the instant method, in the power of its metric that is best on held-out problems."""
    folded = plain_instant(known)
    best, results = best_choice(
        instant_choices(),
        lambda choice: held_out.solved([choice.of(one) for one in folded]),
        held_out.rivals["lbfgs"],
        held_out.overhead,
    )
    return Instant([best.of(one) for one in folded], results)


def plain_instant(known: Background) -> Folded:
    """Return the instant method in its metric itself."""
    metrics = known.metrics()
    scale = known.scale(metrics[-1])
    return [
        Method(
            schedule=None,
            family=known.family.name,
            tol=known.options.tol,
            scale="family",
            family_scale=scale,
            metric=metric,
            start=None if known.starts is None else known.starts[fold],
            guard=Guard(fallback="metric-lbfgs"),
        )
        for fold, metric in enumerate(metrics)
    ]
