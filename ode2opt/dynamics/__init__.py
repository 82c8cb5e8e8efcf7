"""The inertial system: coefficients, flow, curvature, conditions, certificate.

Schedules, tables with a prox and the default coefficients need NumPy only; the rest needs JAX (the
extra ``learn``) and is loaded when it is asked for. It works in double precision: ``flow`` and
``certificate_of`` see to that themselves; code of your own that calls coefficients or estimators,
or ``flow`` under JAX's transformations, is wrapped in ``double``.
"""

from importlib import import_module
from typing import Any

from ode2opt.dynamics.default import DefaultCoefficients
from ode2opt.dynamics.proximal import ProximalTable
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import needing

_LAZY = {
    "coefficients": (
        "Coefficients", "Default", "Feasible", "Neural", "Polynomial", "Proved", "Spline", "Table",
        "restored",
    ),
    "diffrax_flow": ("Flow", "State", "flow"),
    "jaxed": ("double", "stack", "to_jax"),
    "estimators": ("Estimator", "Global", "L0L1", "PowerIteration"),
    "conditions": (
        "Growth", "best_convergence", "best_pair", "contraction", "convergence", "growth",
        "largest_stable_C", "linear_margin", "stability_margin",
    ),
    "certificate": ("Certificate", "Proof"),
    "following": ("certificate_of",),
    "flow_bounds": ("FlowBound", "flow_bound"),
    "lyapunov": (
        "IntegralEstimates", "Pair", "ReferencePoint", "delta", "energy", "energy_rate",
        "integral_estimates", "starting_energy",
    ),
    "theorems": ("Theorem", "theorem_of"),
    "worst_cases": ("IterationsBound", "worst_case"),
}  # fmt: skip
_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = ["DefaultCoefficients", "ProximalTable", "Schedule", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ode2opt.dynamics' has no attribute '{name}'")
    with needing("learn"):
        return getattr(import_module(f"ode2opt.dynamics.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
