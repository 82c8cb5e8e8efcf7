"""Write the table of what ``auto`` plans into its page, from the plan itself.

    python tools/plan_table.py            # write it
    python tools/plan_table.py --check    # exit with 1 where the page does not agree

Each row is a problem that stands for a kind; its stages are those of ``ode2opt.solvers.plan.plan``.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from ode2opt import LeastSquares, Logistic, Problem, Quadratic, Softmax, SquaredHinge
from ode2opt.solvers.costs import Costs
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.plan import plan
from ode2opt.solvers.stages.stage import Stage

PAGE = Path(__file__).parents[1] / "docs" / "first-solve.md"
MARK = re.compile(r"<!-- plan -->\n.*?<!-- end -->", re.DOTALL)


def rows(N: int, n: int, density: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix and labels 0 and 1.

    Args:
        N: rows.
        n: columns.
        density: share of the entries that are kept; below 1 the matrix is sparse.
    """
    rng = np.random.default_rng(0)
    b = rng.integers(0, 2, N).astype(float)
    if density < 1:
        return scipy.sparse.random_array((N, n), density=density, rng=rng, format="csr"), b
    return rng.standard_normal((N, n)), b


KINDS: dict[str, Callable[[], Problem]] = {
    "a linear model with many rows a column": lambda: Logistic(*rows(20_000, 60), l2=1e-3),
    "the same with few rows a column": lambda: Logistic(*rows(1_000, 150), l2=1e-3),
    "the same with few columns, where a Hessian is cheap": lambda: Logistic(*rows(500, 8)),
    "least squares": lambda: LeastSquares(*rows(20_000, 20)),
    "a squared hinge": lambda: SquaredHinge(*rows(20_000, 60), l2=1e-3),
    "a squared hinge of sparse rows, wider than tall": lambda: SquaredHinge(
        *rows(500, 6_000, 0.01), l2=1e-3
    ),
    "several classes": lambda: Softmax(rows(5_000, 40)[0], np.arange(5_000) % 4, l2=1e-3),
    "an intercept, and an l2 far above the curvature": lambda: Logistic(
        *rows(500, 8), l2=1e4, intercept=True
    ),
    "a linear model with more columns than rows": lambda: Logistic(*rows(200, 900), l2=1e-3),
    "a quadratic": lambda: Quadratic(np.eye(5), np.ones(5)),
    "any other function": lambda: Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=3),
}


def told(stage: Stage) -> str:
    """Return the first sentence of a stage's description, without its end.

    Args:
        stage: of a plan.
    """
    text = inspect.getdoc(type(stage)) or type(stage).__name__
    return text.split("\n\n")[0].replace("\n", " ").rstrip(".")


def table() -> str:
    """Return the table in Markdown."""
    lines = ["| problem | stages, one after the other |", "|---|---|"]
    for kind, make in KINDS.items():
        problem = make()
        stages = [told(stage) for stage in plan(Objective(problem), Costs(problem))]
        lines.append(f"| {kind} | {' → '.join(stages)} |")
    return "\n".join(lines)


def written(page: str) -> str:
    """Return the text of a page with its table made anew.

    Args:
        page: the text, with the marks ``<!-- plan -->`` and ``<!-- end -->``.
    """
    return MARK.sub(lambda _: f"<!-- plan -->\n\n{table()}\n\n<!-- end -->", page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or say whether it is up to date; returns the exit code.

    Args:
        arguments: those of the command line by default.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    check = parser.parse_args(arguments).check
    page = PAGE.read_text(encoding="utf-8")
    new = written(page)
    if check and new != page:
        print(f"{PAGE.name} has another plan than the code: run make tables.")
        return 1
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
