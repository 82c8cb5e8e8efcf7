"""Linear models whose rows are evaluated by compiled kernels (extra ``fast``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.kernels.classes import can_run_classes, classes_in_one_pass
from ode2opt.kernels.row_loss import Loss, RowLoss
from ode2opt.kernels.rows import can_run, is_worth_it, one_pass

if TYPE_CHECKING:
    from ode2opt.problems.linear_model import LinearModel

TRIED = np.array([-2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0])  # scores
AGREED = {8: 1e-8, 4: 1e-3}  # relative, by the bytes of a number
_checked: set[type] = set()


def kernel_of(problem: LinearModel) -> Loss | RowLoss | None:
    """Return what the class itself says of its loss, where a kernel can evaluate it."""
    if not is_worth_it(problem.A):
        return None
    own = vars(type(problem))
    kernel = own.get("kernel", own.get("row_loss"))
    if kernel is None or (isinstance(kernel, Loss) and kernel.compiled is None):
        return None
    if problem.width > 1:
        return kernel if can_run_classes(problem.A, problem.width) else None
    return kernel if can_run(kernel, problem.A) else None


def evaluated(problem: LinearModel, x: Array) -> tuple[Any, np.ndarray] | None:
    """Return the sum of losses and the gradient of their mean; None where there is no kernel."""
    kernel = kernel_of(problem)
    if kernel is None:
        return None
    if isinstance(kernel, RowLoss) and type(problem) not in _checked:
        _check(problem, kernel)
        _checked.add(type(problem))
    A, b = problem.A, problem.b
    rows: dict[str, Any] = {"weights": problem.weights, "intercept": problem.intercept}
    if problem.width > 1:
        done = classes_in_one_pass(A, x, b, problem.width, **rows)
    else:
        parameter = _parameter(problem, kernel)
        done = one_pass(kernel, A, x, b, parameter=parameter, offset=problem.offset, **rows)
    return None if done is None else (done[0], done[1] / problem.N)


def _parameter(problem: LinearModel, kernel: Loss | RowLoss) -> float:
    return float(getattr(problem, kernel.parameter)) if kernel.parameter else 0.0


def _check(problem: LinearModel, kernel: RowLoss) -> None:
    """Compare loss and slope of some rows with what the methods of the class return."""
    count, dtype = min(len(TRIED), problem.N), problem.b.dtype
    scores = np.resize(TRIED, problem.N).astype(dtype)
    tried, b, parameter = scores[:count], problem.b[:count], _parameter(problem, kernel)
    done = one_pass(kernel, np.eye(count, dtype=dtype), tried, b, parameter=parameter)
    assert done is not None
    with np.errstate(all="ignore"):
        losses, slopes = problem.loss_and_slope(scores)
    near = AGREED[dtype.itemsize]
    for what, found, expected in (
        ("loss", done[0], np.sum(losses[:count])),
        ("slope", done[1], slopes[:count]),
    ):
        if not np.allclose(found, expected, rtol=near, atol=near, equal_nan=True):
            raise InputError(
                f"The kernel of {type(problem).__name__} has another {what} than its methods: "
                f"{found} in place of {expected} at the scores {tried}."
            )
