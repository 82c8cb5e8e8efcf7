"""Learn optimisation methods from differential equations; use them on streams of problems; know
what is proved.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ode2opt import _moved  # noqa: F401 - older import paths
from ode2opt.base.errors import InputError, Ode2OptError, needing
from ode2opt.kernels import threads
from ode2opt.models import Model
from ode2opt.penalties import L1, Box, ElasticNet, GroupL1, L1Ball, NonNegative, Penalty, Simplex
from ode2opt.problems import (
    Deconvolution,
    Family,
    Huber,
    LeastSquares,
    LinearModel,
    Logistic,
    Lpp,
    Parts,
    Poisson,
    Problem,
    Quadratic,
    Softmax,
    SquaredHinge,
    load_dataset,
)
from ode2opt.solvers import (
    AutoOptions,
    Guard,
    Memory,
    MemoryOptions,
    Method,
    Relay,
    Result,
    Schedule,
    Status,
    path,
    solve,
)

if TYPE_CHECKING:
    from ode2opt.learning import learn
    from ode2opt.study.certify import certify
    from ode2opt.study.prove import prove
    from ode2opt.study.trajectories import trajectories

    __version__: str

__all__ = [
    "L1",
    "AutoOptions",
    "Box",
    "Deconvolution",
    "ElasticNet",
    "Family",
    "GroupL1",
    "Guard",
    "Huber",
    "InputError",
    "L1Ball",
    "LeastSquares",
    "LinearModel",
    "Logistic",
    "Lpp",
    "Memory",
    "MemoryOptions",
    "Method",
    "Model",
    "NonNegative",
    "Ode2OptError",
    "Parts",
    "Penalty",
    "Poisson",
    "Problem",
    "Quadratic",
    "Relay",
    "Result",
    "Schedule",
    "Simplex",
    "Softmax",
    "SquaredHinge",
    "Status",
    "__version__",
    "certify",
    "learn",
    "load_dataset",
    "path",
    "prove",
    "solve",
    "threads",
    "trajectories",
]


_LAZY = {  # all but prove need JAX
    "certify": "ode2opt.study.certify",
    "learn": "ode2opt.learning",
    "prove": "ode2opt.study.prove",
    "trajectories": "ode2opt.study.trajectories",
}


def _from_dask(kind: type[LinearModel], *args: Any, **options: Any) -> Parts:
    """Return the problem of Dask's rows; Dask is loaded here, as it need not be installed."""
    from ode2opt.integrations.dask import from_dask

    return from_dask(kind, *args, **options)


LinearModel.makers["dask"] = _from_dask


def __getattr__(name: str) -> Any:
    if name == "__version__":  # asked for late: to read what is installed takes 20 ms
        from importlib.metadata import version

        return version("ode2opt")
    if name in _LAZY:
        with needing("learn"):
            return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'ode2opt' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
