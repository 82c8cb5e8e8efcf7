"""ode2opt learns optimisation methods from differential equations, and solves with them."""

from importlib.metadata import version as _version
from typing import Any

from ode2opt.errors import InputError, Ode2OptError
from ode2opt.problems import Family, LeastSquares, Logistic, Lpp, Problem, Quadratic, load_dataset
from ode2opt.solvers import Guard, Relay, Result, Schedule, Status, solve

__version__ = _version("ode2opt")

__all__ = [
    "Family",
    "Guard",
    "InputError",
    "LeastSquares",
    "Logistic",
    "Lpp",
    "Ode2OptError",
    "Problem",
    "Quadratic",
    "Relay",
    "Result",
    "Schedule",
    "Status",
    "certify",
    "load_dataset",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name == "certify":  # needs JAX: loaded when it is asked for
        from ode2opt.errors import needing

        with needing("learn"):
            from ode2opt.study.certification import certify
        return certify
    raise AttributeError(f"module 'ode2opt' has no attribute '{name}'")
