"""Penalties and constraints: convex functions with a prox, added to a smooth one."""

from ode2opt.penalties.base import Face, Penalty, SeparableTerms, as_penalty
from ode2opt.penalties.group import GroupL1
from ode2opt.penalties.neutral import ZERO, Zero
from ode2opt.penalties.separable import L1, Box, ElasticNet, NonNegative, Separable
from ode2opt.penalties.sets import L1Ball, Simplex

Pieces = SeparableTerms  # its older name

__all__ = [
    "L1",
    "ZERO",
    "Box",
    "ElasticNet",
    "Face",
    "GroupL1",
    "L1Ball",
    "NonNegative",
    "Penalty",
    "Pieces",
    "Separable",
    "SeparableTerms",
    "Simplex",
    "Zero",
    "as_penalty",
]
