"""A stage of training: a target, the StoPM that learns it, and the problems that judge it."""

from __future__ import annotations

from typing import Generic

from ode2opt.learning.helpers import Helpers
from ode2opt.learning.options import Options
from ode2opt.learning.pieces import Pieces
from ode2opt.learning.protocol import TRAINING, VALIDATION, InstanceT, Target, Tree
from ode2opt.learning.stopm import Batch, StoPM, TrainingState
from ode2opt.learning.validation import Validator

CAUTION = 1.02  # the factor by which validation takes the curvature to be larger


class TrainingStage(Generic[Tree, InstanceT]):
    """Steps on the problems of a target; ``options.steps`` is how many there will be."""

    def __init__(self, target: Target[Tree, InstanceT], options: Options, helpers: Helpers) -> None:
        self.target, self.options, self.helpers = target, options, helpers
        self.stopm = StoPM(target.start, target.learnable, options, target.rules)
        self.pieces = Pieces(target, self.stopm)
        self.validator = Validator(self.pieces, VALIDATION, options.validation, CAUTION, helpers)

    def numbers(self, k: int) -> range:
        """Return the numbers of the training problems of step k."""
        return range(k * self.options.batch, (k + 1) * self.options.batch)

    def step(self, state: TrainingState, k: int) -> tuple[TrainingState, Batch]:
        """Update the parameters once, by the slopes of step k's problems."""
        asked = [(state._replace(memory=None), (TRAINING, i)) for i in self.numbers(k)]
        slopes = self.helpers.map(Pieces.slope, self.pieces, asked, compiled=True)
        return self.stopm.updated(state, slopes)
