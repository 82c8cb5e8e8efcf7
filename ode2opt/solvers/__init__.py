"""What a user runs: schedules, EIGAC, guard and relay, the classics, the result."""

import warnings
from typing import Any

from ode2opt.base.schedule import Schedule
from ode2opt.paper.default import DefaultCoefficients
from ode2opt.proofs.table import Table
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.memory import Memory
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.methods import METHODS
from ode2opt.solvers.options import AutoOptions, MemoryOptions
from ode2opt.solvers.oracle import Progress
from ode2opt.solvers.path_result import PathProgress, PenaltyPath
from ode2opt.solvers.penalty_path import path
from ode2opt.solvers.relay import Relay
from ode2opt.solvers.result import Handover, History, Milestone, Result, Status
from ode2opt.solvers.solve import solve

__all__ = [
    "METHODS",
    "AutoOptions",
    "DefaultCoefficients",
    "Guard",
    "Handover",
    "History",
    "Memory",
    "MemoryOptions",
    "Method",
    "Milestone",
    "PathProgress",
    "PenaltyPath",
    "Progress",
    "ProximalTable",
    "Relay",
    "Result",
    "Schedule",
    "Status",
    "Table",
    "path",
    "solve",
]
_HOME = {"ProximalTable": "Table"}  # deprecated name: the name now


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ode2opt.solvers' has no attribute '{name}'")
    warnings.warn(
        f"ode2opt.solvers.{name} is deprecated since 0.2 and goes in 0.4: use "
        f"ode2opt.solvers.{_HOME[name]}.",
        DeprecationWarning,
        stacklevel=2,
    )
    return globals()[_HOME[name]]


def __dir__() -> list[str]:
    return sorted(__all__)
