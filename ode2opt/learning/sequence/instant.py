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
    """An instant method and how it did.

    Attributes:
        folded: the method for each fold, and last for all rows.
        results: its solves of the held-out problems.
    """

    folded: Folded
    results: list[Result]

    @property
    def method(self) -> Method:
        """The method for all rows."""
        return self.folded[-1]


def instant(background: Background, held_out: HeldOut) -> Instant:
    """Return the instant method, in the power of its preconditioner that costs least."""
    folded = plain_instant(background)
    best, results = best_choice(
        instant_choices(),
        lambda choice: held_out.solved([choice.of(one) for one in folded]),
        held_out.baselines["lbfgs"],
        held_out.overhead,
    )
    return Instant([best.of(one) for one in folded], results)


def plain_instant(background: Background) -> Folded:
    """Return the instant method in the preconditioner itself, without choosing a power."""
    metrics = background.metrics()
    scale = background.scale(metrics[-1])
    return [
        Method(
            schedule=None,
            family=background.family.name,
            tol=background.options.tol,
            scale="family",
            family_scale=scale,
            metric=metric,
            start=background.rule(fold),
            guard=Guard(fallback="metric-lbfgs"),
        )
        for fold, metric in enumerate(metrics)
    ]
