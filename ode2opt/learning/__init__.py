"""Choosing coefficients: stopping time, penalties, StoPM, checkpoints and logs (needs JAX)."""

from ode2opt.learning.options import Options
from ode2opt.learning.run import Step
from ode2opt.learning.stopping_time import Rules, StoppingTime, stopping_time
from ode2opt.learning.training import Training, learn

__all__ = ["Options", "Rules", "Step", "StoppingTime", "Training", "learn", "stopping_time"]
