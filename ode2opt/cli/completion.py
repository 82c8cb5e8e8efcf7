"""What a shell offers for the values of arguments; without an offer it completes names of files."""

from __future__ import annotations

from collections.abc import Iterable


def problem_names(incomplete: str) -> list[str]:
    """Return the names of problems that begin in a way."""
    from ode2opt.problems.family import KINDS

    return _beginning(KINDS, incomplete)


def dataset_names(incomplete: str) -> list[str]:
    """Return the named datasets that begin in a way."""
    from ode2opt.problems import DATASETS

    return _beginning(DATASETS, incomplete)


def method_names(incomplete: str) -> list[str]:
    """Return the built-in and learned methods that begin in a way."""
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.library import learned_names

    return _beginning([*METHODS, *learned_names()], incomplete)


def learned_method_names(incomplete: str) -> list[str]:
    """Return the learned methods of the package that begin in a way."""
    from ode2opt.solvers.library import learned_names

    return _beginning(learned_names(), incomplete)


def listed_method_names(incomplete: str) -> list[str]:
    """Return a list of methods, separated by commas, with its last name completed."""
    from ode2opt.solvers import METHODS

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _beginning([*METHODS, "memory"], last)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
