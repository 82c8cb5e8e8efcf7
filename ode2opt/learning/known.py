"""Where what is known of a family comes from: a memory, or problems that are solved for it."""

from __future__ import annotations

from collections.abc import Callable

from ode2opt.learning.background import Background
from ode2opt.learning.options import Options
from ode2opt.learning.references import References
from ode2opt.learning.remembered import Remembered
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory


def known_of(
    family: Family, options: Options, memory: Memory | None, note: Callable[[str], None]
) -> Background:
    """Return what is known of a family; ``note`` is told where that takes a while."""
    if memory is not None:
        return Remembered(family, options, memory)
    note("solving problems to learn from")
    return References(family, options)
