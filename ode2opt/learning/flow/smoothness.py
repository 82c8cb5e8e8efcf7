"""(L0, L1)-smoothness: gradient norms against curvatures along methods (the paper's figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ode2opt.problems import Family, Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.solvers import solve

if TYPE_CHECKING:
    from ode2opt.dynamics.estimators import L0L1

METHODS = ("gd", "nag", "igahd", "eigac-c1")
STEPS, EVERY = 300, 30


def scatter(problem: Problem, steps: int = STEPS, every: int = EVERY) -> dict[str, np.ndarray]:
    """Return for each of the paper's four methods the points (|g(x_k)|, lambda_max(x_k)).

    Points are taken every 30 of 300 iterations, the start included; an array of shape (points, 2).
    """
    found: dict[str, np.ndarray] = {}
    for method in METHODS:
        points: list[tuple[float, float]] = []

        def look(progress, points=points):  # type: ignore[no-untyped-def]
            if progress.iteration % every == 0:
                points.append((progress.grad_norm, largest_curvature(problem, progress.x)[0]))

        solve(
            problem, problem.start(), method=method, tol=1e-12, max_iter=steps, handover="none",
            callback=look,
        )  # fmt: skip
        found[method] = np.array(points)
    return found


def fit_l0l1(family: Family, instances: int = 4, seed: int = 0) -> L0L1:
    """Return the (L0, L1) estimator above all points seen on training problems of a family."""
    from ode2opt.dynamics.estimators import L0L1

    problems = (family.sample([seed, i], part="train") for i in range(instances))
    points = np.concatenate([p for problem in problems for p in scatter(problem).values()])
    return L0L1.fit(points[:, 0], points[:, 1])
