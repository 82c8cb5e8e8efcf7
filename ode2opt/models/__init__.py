"""Fitted linear models: they predict, and are written to a file and read again."""

from ode2opt.models.model import Model
from ode2opt.models.model_file import Fit

__all__ = ["Fit", "Model"]
