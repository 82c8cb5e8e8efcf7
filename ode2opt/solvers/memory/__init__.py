"""Memories of solved problems: what they hold, how a solve uses one, and their file."""

from ode2opt.solvers.memory.memory import Memory

__all__ = ["Memory"]
