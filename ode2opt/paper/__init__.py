"""The paper's system, in reading order; the sections are those of docs/mathematics.md.

1. ``ishd``: the inertial system with Hessian-driven damping and its discretisation EIGAC
   (sections 1 and 2). EIGAC's three numbers, iteration by iteration, are a ``Schedule``.
2. ``coefficients``: alpha, beta(t), gamma(t): the paper's formula and networks, and what one's own
   need (section 8); ``default``: the formula in NumPy. More kinds: ``ode2opt.coefficients``.
3. ``conditions``: convergence, stability, contraction (sections 3 and 4); ``curvature``: the three
   estimators of Lambda (section 5); ``lyapunov``: the function E of Theorem 1.
4. ``stopping_time``: T, P, Q (section 6). T is found in ``crossing``, x_bar enters P in ``_p``,
   and delta' <= lam t w is a term of ``violation``, as it is of ``conditions.convergence``.
5. ``stopm``: one step of Algorithm 2 (section 7); ``_value_and_slope`` has all that is
   differentiated, T + rho (P + Q). ``train``: its loop.
6. ``check_flow``: the flow by diffrax, the independent check.

Another coefficient network is a subclass of ``Coefficients`` with ``beta`` and ``gamma``, another
estimator one of ``Estimator``, given as ``Rules(estimator=...)``; penalties of one's own are
``Rules.own``. Each goes to ``train`` as it is.

Schedules and default coefficients need NumPy only; the rest needs JAX (the extra ``learn``) and is
loaded when it is asked for. It works in double precision: code of your own that calls coefficients
or estimators, or ``flow`` under JAX's transformations, is wrapped in ``double``.
"""

from importlib import import_module
from typing import Any

from ode2opt.base.errors import needing
from ode2opt.base.schedule import Schedule
from ode2opt.paper.default import DefaultCoefficients

_LAZY = {
    "paper.coefficients": ("Coefficients", "Default", "Neural"),
    "paper.check_flow": ("Flow", "flow"),
    "paper.ishd": ("State",),
    "paper.curvature": ("Estimator", "Global", "L0L1", "PowerIteration"),
    "paper.conditions": (
        "Growth", "best_convergence", "best_pair", "contraction", "convergence", "growth",
        "largest_stable_C", "linear_margin", "stability_margin",
    ),
    "paper.lyapunov": (
        "Pair", "ReferencePoint", "delta", "energy", "energy_rate", "starting_energy",
    ),
    "base.precision": ("double",),
    "problems.jaxed": ("stack", "to_jax"),
    "proofs.bounds": ("IntegralEstimates", "integral_estimates"),
    "coefficients": ("Feasible", "Polynomial", "Proved", "Spline", "Table", "restored"),
}  # fmt: skip
_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = ["DefaultCoefficients", "Schedule", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ode2opt.paper' has no attribute '{name}'")
    with needing("learn"):
        return getattr(import_module(f"ode2opt.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
