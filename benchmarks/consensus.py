"""Consensus ADMM for logistic regression, as a yardstick: how many rounds, and how much local work.

Each block of rows has its own x_i; a round minimises f_i(x) + rho/2 |x - z + u_i|^2 on every block
and averages (Boyd et al. 2011, section 7.1), with the penalty balanced by the residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ode2opt import Logistic, Parts, Problem, solve

BALANCE, CHANGE = 10.0, 2.0  # of residuals, and of the penalty where they are out of it
LOCAL = 1e-2  # gradient norm of a local solve, in that of the residuals
STEPS = 20  # of Newton's method in a local solve, at most
Local = Callable[[Any, np.ndarray, np.ndarray, float, float], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class Found:
    """Rounds, the mean gradients that a block computed in one, and where it ended."""

    rounds: int
    gradients: float
    grad_norm: float


def consensus(
    blocks: Sequence[Logistic], whole: Parts, local: Local, tol: float, most: int
) -> Found:
    """Minimise the mean of equal blocks plus l2/2 |z|^2; f_i have no penalty of their own."""
    x = np.zeros((len(blocks), whole.n))
    u, z, rho, spent, exact = np.zeros_like(x), np.zeros(whole.n), 1.0, 0.0, 1e-3
    rounds, norm = 0, np.inf
    while norm > tol and rounds < most:
        rounds += 1
        for i, block in enumerate(blocks):
            x[i], gradients = local(block, x[i], z - u[i], rho, exact)
            spent += gradients
        old, z = z, rho * (x + u).mean(axis=0) / (whole.l2 + rho)
        u += x - z
        norm = float(np.linalg.norm(whole.gradient(z)))
        primal, dual = np.sqrt(np.mean((x - z) ** 2)), rho * np.sqrt(np.mean((z - old) ** 2))
        exact = LOCAL * min(norm, exact / LOCAL)
        if primal > BALANCE * dual:
            rho, u = rho * CHANGE, u / CHANGE
        elif dual > BALANCE * primal:
            rho, u = rho / CHANGE, u * CHANGE
    return Found(rounds, spent / (rounds * len(blocks)), norm)


def by_newton(
    block: Any, x: np.ndarray, center: np.ndarray, rho: float, tol: float
) -> tuple[np.ndarray, float]:
    """Solve a block's problem by Newton's method; a Hessian counts its operations."""
    price = 1 + block.hessian_flops() / block.gradient_flops()
    for k in range(STEPS):
        g = block.gradient(x) + rho * (x - center)
        if np.linalg.norm(g) <= tol:
            return x, 1 + k * price
        x = x - cho_solve(cho_factor(block.hessian(x) + rho * np.eye(block.n)), g)
    return x, STEPS * price


def by_lbfgs(
    block: Any, x: np.ndarray, center: np.ndarray, rho: float, tol: float
) -> tuple[np.ndarray, float]:
    """Solve a block's problem by L-BFGS, where there are too many columns for a Hessian."""

    def value(y: np.ndarray) -> float:
        return float(block.value(y)) + 0.5 * rho * float((y - center) @ (y - center))

    local = Problem.from_function(
        value, lambda y: block.gradient(y) + rho * (y - center), n=block.n
    )
    found = solve(local, x, method="lbfgs", tol=tol)
    return np.asarray(found.x), found.oracle_calls
