"""Choosing coefficients: two targets, ``flow`` and ``sequence``, and the training that both share.

Options need no JAX; the rest needs it (the extra ``learn``) and is loaded when it is asked for.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ode2opt.base.errors import needing
from ode2opt.learning.flow.options import FlowOptions
from ode2opt.learning.flow.paper import PaperOptions
from ode2opt.learning.options import Options
from ode2opt.learning.registry import make_options
from ode2opt.learning.sequence.options import SequenceOptions

if TYPE_CHECKING:
    from ode2opt.learning.begin import learn
    from ode2opt.learning.flow.given import ConvergenceQ, FlowState, StabilityP
    from ode2opt.learning.history import TrainingHistory
    from ode2opt.learning.run import Training, TrainingStep
    from ode2opt.paper.stopping_time import Rules, StoppingTime, stopping_time

_LAZY = {
    "learning.begin": ("learn",),
    "paper.stopping_time": ("Rules", "StoppingTime", "stopping_time"),
    "learning.flow.given": ("ConvergenceQ", "FlowState", "StabilityP"),
    "learning.history": ("TrainingHistory",),
    "learning.run": ("Training", "TrainingStep"),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "ConvergenceQ",
    "FlowOptions",
    "FlowState",
    "Options",
    "PaperOptions",
    "Rules",
    "SequenceOptions",
    "StabilityP",
    "StoppingTime",
    "Training",
    "TrainingHistory",
    "TrainingStep",
    "learn",
    "make_options",
    "stopping_time",
]


def __getattr__(name: str) -> Any:
    if name == "Step":
        warnings.warn(
            "ode2opt.learning.Step is TrainingStep since 0.2; the old name goes in 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        name = "TrainingStep"
    if name not in _HOME:
        raise AttributeError(f"module 'ode2opt.learning' has no attribute '{name}'")
    with needing("learn"):
        return getattr(import_module(f"ode2opt.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
