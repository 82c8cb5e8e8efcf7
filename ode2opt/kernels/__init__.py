"""Compiled loops over the rows of a linear model (extra ``fast``), and their threads."""

from ode2opt.base.threads import threads
from ode2opt.kernels.row_loss import RowLoss
from ode2opt.kernels.rows import available

__all__ = ["RowLoss", "available", "threads"]
