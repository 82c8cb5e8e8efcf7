"""256 logistic problems of a5a at once by the compiled solve, against a loop over scipy.

Both start at 0 and stop at the same gradient norm. The table is that of the method logistic-a5a,
which comes with the package; the problems are of rows that it has not seen. Stacking and compiling
are told apart. Problems that the table leaves unsolved are solved by `ode2opt.solve`, and count.
"""

from __future__ import annotations

import alone  # noqa: F401 - before numpy
import numpy as np
from overhead import seconds_of
from scipy.optimize import minimize

from ode2opt import Family, Method, solve
from ode2opt.integrations.jax import solve_all, stack
from ode2opt.problems import LinearModel
from ode2opt.solvers.methods import FOLDER, SUFFIX

COUNT, TOL, ROUNDS = 256, 3e-4, 5


def by_scipy(problem: LinearModel) -> np.ndarray:
    """Return scipy's answer; it stops as soon as an iterate's gradient norm is small enough."""
    last = np.inf

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal last
        value, g = problem.value_and_gradient(x)
        last = float(np.linalg.norm(g))
        return value, g

    def stop(x: np.ndarray) -> None:
        if last <= TOL:
            raise StopIteration

    options = {"gtol": 0.0, "ftol": 0.0, "maxiter": 10_000, "maxfun": 20_000}
    found = minimize(
        both, np.zeros(problem.n), jac=True, method="L-BFGS-B", callback=stop, options=options
    )
    return found.x


def by_us(method: Method, problems: list[LinearModel], batch: LinearModel) -> list[np.ndarray]:
    """Return our answers; what the table leaves is solved one by one."""
    found = solve_all(method, batch, np.zeros(batch.n))
    points = list(np.asarray(found.x))
    for i in np.flatnonzero(~np.asarray(found.success)):
        points[i] = solve(problems[i], points[i], tol=TOL).x
    return points


def main() -> dict[str, float]:
    """Print and return problems a second by us, in those by scipy."""
    family = Family.from_dataset("logistic", "a5a", split="shuffled")
    method = Method.load(FOLDER / f"logistic-a5a{SUFFIX}")
    problems = [family.sample(i, part="test") for i in range(COUNT)]
    batch = stack(problems)
    first = seconds_of(lambda: by_us(method, problems, batch))
    stacking, ours, theirs = (
        min(seconds_of(work) for _ in range(ROUNDS))
        for work in (
            lambda: stack(problems),
            lambda: by_us(method, problems, batch),
            lambda: [by_scipy(problem) for problem in problems],
        )
    )
    for points in (by_us(method, problems, batch), [by_scipy(problem) for problem in problems]):
        norms = [
            np.linalg.norm(problem.gradient(x)) for problem, x in zip(problems, points, strict=True)
        ]
        assert max(norms) <= 1.001 * TOL
    found = solve_all(method, batch, np.zeros(batch.n))
    print(f"{int(found.success.sum())} of {COUNT} by the table alone, ", end="")
    print(f"{np.mean(found.iterations):.1f} iterations")
    print(f"ours {COUNT / ours:.0f} a second, scipy's L-BFGS-B {COUNT / theirs:.0f}")
    print(f"beside: compiling {first - ours:.1f} s, stacking {stacking:.2f} s for all")
    print(f"jax_batch_ratio {theirs / ours:.1f}; with stacking {theirs / (ours + stacking):.1f}")
    return {"jax_batch_ratio": theirs / ours}


if __name__ == "__main__":
    main()
