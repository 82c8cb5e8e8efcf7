"""Penalties and constraints: convex functions with a prox, added to a smooth one."""

from ode2opt.penalties.base import Face, Penalty, Pieces, as_penalty
from ode2opt.penalties.group import GroupL1
from ode2opt.penalties.separable import L1, Box, ElasticNet, NonNegative, Separable
from ode2opt.penalties.sets import L1Ball, Simplex

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "Face",
    "GroupL1",
    "L1Ball",
    "NonNegative",
    "Penalty",
    "Pieces",
    "Separable",
    "Simplex",
    "as_penalty",
]
