"""ISHD and EIGAC, each written once, in array terms: for NumPy, JAX and torch alike.

    ISHD, the inertial system with Hessian-driven damping (docs/mathematics.md, section 1):
        x' = v - beta g,   v' = -(alpha/t) x' + (beta' - gamma) g
    EIGAC, its explicit Euler discretisation with u = h v (section 2):
        e = u - a g,   x <- x + e,   u <- u - d e - c g

``solvers.eigac`` and ``integrations.torch`` have the iteration a second time, in place, 1.3 to 3.3
times as fast; the export to C has it in C.
"""

from __future__ import annotations

from typing import NamedTuple

from ode2opt.base.arrays import Array


class State(NamedTuple):
    """A state of the inertial system in its first-order form: x and v = x' + beta g."""

    x: Array
    v: Array


def ishd(
    v: Array, g: Array, damping: Array, beta: Array, gamma: Array, dbeta: Array
) -> tuple[Array, Array]:
    """Return (x', v'); ``damping`` is alpha/t, ``dbeta`` is beta'."""
    moved = v - beta * g
    return moved, -damping * moved + (dbeta - gamma) * g


def eigac_step(u: Array, g: Array, a: Array, c: Array, d: Array) -> tuple[Array, Array]:
    """Return the move e = u - a g of an iteration and the next velocity u - d e - c g."""
    e = eigac_move(u, g, a)
    return e, eigac_velocity(e, g, a, c, d)


def eigac_move(u: Array, g: Array, a: Array) -> Array:
    """Return e = u - a g, by which x moves."""
    return u - a * g


def eigac_velocity(e: Array, g: Array, a: Array, c: Array, d: Array) -> Array:
    """Return the velocity u - d e - c g, in the form of the solver, with the same rounding."""
    return (1 - d) * e + (a - c) * g
