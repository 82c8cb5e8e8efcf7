"""Methods by name: the built-in ones, and the learned ones that come with the package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError, shown, unknown_name
from ode2opt.base.schedule import Schedule
from ode2opt.solvers.built_in import METHODS, BuiltIn, built_in, smooth_names
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
        raise unknown_name("method", name, [*smooth_names(), *known])
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


def method_for(method: Any, penalised: bool) -> BuiltIn | Method | Schedule:
    """Return the method of a solve; one for the other kind of problems is refused."""
    if not penalised:
        # With constants of its own no name stands for it.
        found = method if isinstance(method, BuiltIn) else method_of(method)
        if isinstance(found, Method) and found.proximal is not None:
            raise InputError(
                f"The method for {found.family} is for problems with a penalty: give penalty as "
                f"well."
            )
        return found
    names = [name for name, one in METHODS.items() if one.penalised]
    if isinstance(method, str):
        if method in names:
            return METHODS[method]
        if method not in {*METHODS, *learned_names()}:
            raise unknown_name("method", method, names)
    elif isinstance(method, Path | Method):
        found = method_of(method)
        if isinstance(found, Method) and found.proximal is not None:
            return found
    raise InputError(
        f"The method {shown(method)} is for smooth functions: with a penalty use "
        f"{', '.join(repr(name) for name in names)}, or one learned for it."
    )


def by_name_or_file(name: str) -> BuiltIn | Method:
    """Return a method by its name, or that of a file."""
    if Path(name).suffix == SUFFIX or (Path(name).exists() and name not in METHODS):
        return Method.load(name)
    return by_name(name)
