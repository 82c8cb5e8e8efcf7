"""What is proved of a flow, a table or a method: theorems, certificates, chains, exact proofs."""

from importlib import import_module
from typing import Any
from warnings import warn

from ode2opt.base.errors import needing

_HOME = {
    "Certificate": "certificate",
    "FlowBound": "bounds",
    "Proof": "certificate",
    "Theorem": "theorem",
    "WorstCase": "chain",
    "certificate_of": "following",
    "flow_bound": "bounds",
    "theorem_of": "theorem",
    "worst_case": "chain",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "IterationsBound":
        warn("IterationsBound is deprecated since 0.2: use WorstCase.", DeprecationWarning, 2)
        name = "WorstCase"
    if name not in _HOME:
        raise AttributeError(f"module 'ode2opt.proofs' has no attribute '{name}'")
    with needing("learn"):
        return getattr(import_module(f"ode2opt.proofs.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
