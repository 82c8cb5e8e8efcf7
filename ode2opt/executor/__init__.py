"""Who does the work of rows in parts, of training and of studies."""

from ode2opt.executor.interface import Executor, HeldItems
from ode2opt.executor.local import THIS_PROCESS, LocalExecutor

__all__ = ["THIS_PROCESS", "Executor", "HeldItems", "LocalExecutor"]
