"""A learned method as the certificate sees it: its schedule on f(S .), with scales and starts.

S is the root of the preconditioner: M = S S^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.problems.base import Problem
from ode2opt.problems.transformed import Transformed
from ode2opt.proofs.certificate import Certificate, uncertified
from ode2opt.solvers import Method

LARGEST_PRECONDITIONER = 2_000  # variables for which S is made a matrix


class PreconditionedProblems(NamedTuple):
    """Problems in the variables of a method's preconditioner.

    Attributes:
        problems: the functions f(S .).
        scales: the curvature that the table is divided by, for each.
        starts: the start points in the new variables, S^-1 x0.
    """

    problems: list[Problem]
    scales: list[float]
    starts: list[np.ndarray]


def no_table(method: Method, instances: int = 0) -> Certificate:
    """Return the certificate of an instant method: the guard's promise alone."""
    return uncertified(
        "learned",
        instances,
        f"There is no table to certify: the method is {method.words} from the start, and where "
        f"that makes no progress the guard hands over to a method that converges for every convex "
        f"function (within iteration limit and rounding).",
    )


def in_metric(
    method: Method, problems: Sequence[Problem], starts: Sequence[Any]
) -> PreconditionedProblems:
    """Return problems as a method's table meets them."""
    hosts = [np.asarray(x0) for x0 in starts]
    scales = [method.scale_of(p, x0) for p, x0 in zip(problems, hosts, strict=True)]
    if method.metric is None:
        return PreconditionedProblems(list(problems), scales, hosts)
    if method.metric.n > LARGEST_PRECONDITIONER:
        raise InputError(
            f"A metric of {method.metric.n:,} variables is too large to be certified "
            f"(at most {LARGEST_PRECONDITIONER:,}); the guard's promise does not depend on it."
        )
    S = method.metric.matrix()
    points = [np.linalg.solve(S, x0) for x0 in hosts]
    return PreconditionedProblems([Transformed(problem, S) for problem in problems], scales, points)
