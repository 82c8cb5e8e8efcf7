"""What several test files do the same way."""

import subprocess
import sys

from ode2opt import solve


def visited(problem, x0, method, iterations):
    """The points of all iterations of a method that runs unwatched, 0 being the start."""
    points = []
    solve(
        problem, x0, method=method, tol=1e-15, max_iter=iterations, handover="none",
        callback=lambda progress: points.append(progress.x) and None,
    )  # fmt: skip
    return points


def said_without(module, code):
    """What an ImportError says when ``code`` runs in an interpreter that lacks a module."""
    script = (
        f"import sys; sys.modules['{module}'] = None\n"
        f"try:\n    {code}\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout
