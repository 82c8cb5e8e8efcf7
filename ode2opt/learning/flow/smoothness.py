"""(L0, L1)-smoothness: gradient norms against curvatures along methods (the paper's figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ode2opt.problems import Family, Problem
from ode2opt.problems.curvature import largest_curvature
from ode2opt.solvers import solve

if TYPE_CHECKING:
    from ode2opt.paper.curvature import L0L1

SCATTER_METHODS = ("gd", "nag", "igahd", "eigac-c1")
SCATTER_STEPS, SCATTER_EVERY = 300, 30


def scatter(
    problem: Problem, steps: int = SCATTER_STEPS, every: int = SCATTER_EVERY
) -> dict[str, np.ndarray]:
    """Return points (|g(x_k)|, lambda_max(x_k)) along four methods (the paper's figure 2)."""
    found: dict[str, np.ndarray] = {}
    for method in SCATTER_METHODS:
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
    """Return the estimator L0 + L1 |g| that is above all points seen on training problems."""
    from ode2opt.paper.curvature import L0L1

    problems = (family.sample([seed, i], part="train") for i in range(instances))
    points = np.concatenate([p for problem in problems for p in scatter(problem).values()])
    return L0L1.fit(points[:, 0], points[:, 1])
