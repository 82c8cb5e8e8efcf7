"""Methods by name: the built-in ones, and the learned ones that come with the package."""

from __future__ import annotations

import os
from pathlib import Path

from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.schedule import Schedule
from ode2opt.solvers.built_in import METHODS, BuiltIn, built_in
from ode2opt.solvers.method_file import Method

SUFFIX = ".safetensors"
FOLDER = Path(__file__).parents[1] / "learned"
"""The files of the learned methods; its README.md says where they come from."""


def learned_names() -> list[str]:
    """Return the names of the learned methods that come with the package."""
    return sorted(file.stem for file in FOLDER.glob(f"*{SUFFIX}"))


def by_name(name: str) -> BuiltIn | Method:
    """Return a built-in method, or a learned one as "logistic-a5a"."""
    if name in METHODS or name.endswith(SUFFIX):
        return built_in(name)
    known = learned_names()
    if name not in known:
        raise unknown_name("method", name, [*METHODS, *known])
    return Method.load(FOLDER / f"{name}{SUFFIX}")


def method_of(method: str | Path | Method | Schedule) -> BuiltIn | Method | Schedule:
    """Return what a ``method`` argument stands for; the rule of every function that takes one.

    A string is a name and never a file; a ``Path`` is the file of a learned method; a ``Method``
    and a ``Schedule`` are taken as they are.
    """
    if isinstance(method, str):
        return by_name(method)
    if isinstance(method, os.PathLike):
        return Method.load(Path(method))
    if not isinstance(method, Method | Schedule):
        raise InputError(
            f"method must be a name, a Method, a Schedule or the Path of a method's file, not "
            f"{type(method).__name__}."
        )
    return method


def by_name_or_file(name: str) -> BuiltIn | Method:
    """Return a method by its name, or that of a file."""
    if Path(name).suffix == SUFFIX or (Path(name).exists() and name not in METHODS):
        return Method.load(name)
    return by_name(name)
