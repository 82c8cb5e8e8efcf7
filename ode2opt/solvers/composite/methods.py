"""The methods of a solve with a penalty, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ode2opt.base.arrays import Array
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError, shown, unknown_name
from ode2opt.penalties import L1Ball, Simplex
from ode2opt.problems.quadratic import Quadratic
from ode2opt.problems.row_model import RowModel
from ode2opt.solvers.built_in import METHODS, BuiltIn, Policy
from ode2opt.solvers.composite.fista import Fista, for_ever
from ode2opt.solvers.composite.quadratic_models import LARGEST_MATRIX
from ode2opt.solvers.composite.rows import ProximalNewton
from ode2opt.solvers.library import learned_names, method_of
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.oracle import Oracle, Stop
from ode2opt.solvers.stages.stage import Stage
from ode2opt.solvers.supervisor import Supervisor, first_alone


def _in_stages(summary: str, plan: Callable[[Oracle], Sequence[Stage]], faces: bool) -> BuiltIn:
    """Return a method: the stages of a plan, then FISTA, which needs no trust."""

    def minimise(oracle: Oracle, x: Array, L: float, policy: Policy) -> None:
        start = oracle.begin(oracle.objective.first_point(x))
        stages = [*plan(oracle), Fista(for_ever, faces=faces)]
        if policy is None:
            first_alone(oracle, start, stages)
        relay = Supervisor(oracle, start)
        for stage in stages:
            relay.run(stage)
        raise Stop(Ended.STALLED)

    return BuiltIn(summary, False, minimise)


def plan(oracle: Oracle) -> list[Stage]:
    """Return the stages before FISTA: proximal Newton where the problem has a cheap model."""
    problem = oracle.problem
    quadratic = isinstance(problem, Quadratic) and problem.n <= LARGEST_MATRIX
    rows = isinstance(problem, RowModel) and problem.width == 1
    penalty = oracle.penalty
    known = isinstance(penalty, Simplex | L1Ball) or penalty.pieces() is not None
    return [ProximalNewton()] if known and (rows or quadratic) else []


PENALISED: dict[str, BuiltIn] = {
    "auto": _in_stages(
        "proximal Newton on rows and quadratics, then FISTA with Newton steps on faces", plan, True
    ),
    "fista": _in_stages("FISTA with backtracking and restart", lambda oracle: [], False),
}


def penalised_method(
    method: Any, memory: object = None, options: object = None
) -> BuiltIn | Method:
    """Return the method of a solve with a penalty."""
    if memory is not None:
        raise InputError("A memory knows nothing of penalties: leave out one of them.")
    if options is not None:
        raise InputError("options are for solves without a penalty: leave out one of them.")
    if isinstance(method, str) and method in PENALISED:
        return PENALISED[method]
    found = method_of(method) if isinstance(method, Path | Method) else None
    if isinstance(found, Method) and found.proximal is not None:
        return found
    if isinstance(method, str) and method not in {*METHODS, *learned_names()}:
        raise unknown_name("method", method, PENALISED)
    raise InputError(
        f"The method {shown(method)} is for smooth functions: with a penalty use "
        f"{', '.join(repr(name) for name in PENALISED)}, or one learned for it."
    )
