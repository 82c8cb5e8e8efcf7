"""What a shell offers for the values of arguments; with no offer it completes names of files."""

from __future__ import annotations

from collections.abc import Iterable


def problem_names(incomplete: str) -> list[str]:
    """Offer the names of problems."""
    from ode2opt.problems.family import KINDS

    return _beginning(KINDS, incomplete)


def dataset_names(incomplete: str) -> list[str]:
    """Offer the named datasets."""
    from ode2opt.problems import DATASETS

    return _beginning(DATASETS, incomplete)


def method_names(incomplete: str) -> list[str]:
    """Offer the built-in and the learned methods."""
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.library import learned_names

    return _beginning([*METHODS, *learned_names()], incomplete)


def learned_method_names(incomplete: str) -> list[str]:
    """Offer the learned methods that come with the package."""
    from ode2opt.solvers.library import learned_names

    return _beginning(learned_names(), incomplete)


def listed_method_names(incomplete: str) -> list[str]:
    """Offer a built-in method at the end of a list with commas."""
    from ode2opt.solvers import METHODS

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _beginning([*METHODS, "memory"], last)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
