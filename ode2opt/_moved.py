"""Older import paths: each leads to the room that has its names now."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "confidence": ("proofs.confidence",),
    "dynamics": ("paper", "proofs", "solvers"),
    "dynamics.certificate": ("proofs.certificate",),
    "dynamics.coefficients": ("coefficients",),
    "dynamics.coefficients.base": ("paper.coefficients",),
    "dynamics.conditions": ("paper.conditions",),
    "dynamics.diffrax_flow": ("paper.check_flow",),
    "dynamics.flow_bounds": ("proofs.bounds",),
    "dynamics.lyapunov": ("paper.lyapunov", "proofs.bounds"),
    "dynamics.proofs": ("proofs",),
    "dynamics.proofs.chain": ("proofs.chain",),
    "dynamics.proofs.check_proof": ("proofs.check_proof",),
    "dynamics.proofs.exact": ("proofs.exact",),
    "dynamics.proofs.theorem": ("proofs.theorem",),
    "dynamics.proximal": ("proofs.table", "solvers"),
    "dynamics.schedule": ("base.schedule",),
    "dynamics.theorems": ("proofs.theorem",),
    "dynamics.worst_cases": ("proofs.chain", "proofs"),
    "errors": ("base.errors",),
    "problems.encoding": ("data.encoding",),
    "problems.files": ("data.files",),
    "proofs.theorems": ("proofs.theorem",),
    "proofs.worst_cases": ("proofs.chain",),
    "solvers.built_in": ("solvers.methods",),
    "solvers.composite": ("solvers",),
    "solvers.composite.path": ("solvers.penalty_path",),
    "solvers.composite.path_result": ("solvers.path_result",),
    "solvers.library": ("solvers.methods",),
    "solvers.memory_state": ("solvers.memory.state",),
    "study.paths": ("study.trajectories",),
    "solvers.proximal_table": ("proofs.table", "solvers"),
}
"""Old module to the modules that have its names, below ``ode2opt``."""


class _Moved(MetaPathFinder, Loader):
    """Makes an old module of the names of the new ones, with a warning at its import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        old = name.removeprefix("ode2opt.")
        return ModuleSpec(name, self, is_package=True) if old != name and old in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        homes = [f"ode2opt.{home}" for home in MOVED[module.__name__.removeprefix("ode2opt.")]]
        warnings.warn(
            f"{module.__name__} is deprecated since 0.2 and goes in 0.4: use {' or '.join(homes)}.",
            DeprecationWarning,
            stacklevel=2,
        )

        def lookup(key: str) -> Any:
            for home in homes:
                if not key.startswith("__") and hasattr(import_module(home), key):
                    return getattr(import_module(home), key)
            raise AttributeError(f"module '{module.__name__}' has no attribute '{key}'")

        module.__getattr__ = lookup  # type: ignore[method-assign]


sys.meta_path.append(_Moved())
