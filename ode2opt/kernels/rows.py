"""Sums over the rows of a dense matrix in one pass, where a compiled kernel is worth it."""

from __future__ import annotations

import os
import re
import threading
import warnings
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from ode2opt.errors import InputError
from ode2opt.kernels.pool import shared, thread_count

SWITCH = "ODE2OPT_KERNELS"
OLDEST = (0, 60)  # numba
# Smaller matrices are left to NumPy: the first kernel of a process takes 0.3 s, and 2.5 s where
# nothing is kept on disk yet, while a gradient gains 2 ms at this size. So are narrow ones, whose
# loops are short, and very wide ones. Measured by `python benchmarks/kernels.py` on an AMD EPYC
# (Zen 5).
FEWEST_BYTES = 64_000_000
FEWEST_COLUMNS, MOST_COLUMNS = {8: 30, 4: 100}, 10_000  # by the bytes of a number
# Rows whose sums are added up on their own, so that the result does not depend on the threads.
MOST_CHUNKS, LEAST_ROWS = 64, 64
MOST_ROWS, BLOCK_BYTES = 128, 1 << 18  # worked on together: in the cache when needed again
KINDS = ("logistic", "power", "poisson", "huber", "squared_hinge", "product")

_compiling = threading.Lock()


def available() -> bool:
    """Return whether compiled kernels may be used: numba is there, and nobody switched them off.

    The environment variable ``ODE2OPT_KERNELS`` switches them off (0 or off) and on (1 or on, as
    without it).

    Raises:
        InputError: the variable has another value.

    Examples:
        >>> ode2opt.kernels.available()  # with the extra `fast`
        True
    """
    text = os.environ.get(SWITCH, "").strip().lower()
    if text not in ("", "0", "1", "off", "on"):
        raise InputError(f"{SWITCH} is {text!r}: it may be on (1) or off (0).")
    return text not in ("0", "off") and _is_installed()


@cache
def _is_installed() -> bool:
    """Whether numba is installed and new enough; says so once where it is too old."""
    try:
        version = metadata.version("numba")
    except metadata.PackageNotFoundError:
        return False
    if tuple(map(int, re.findall(r"\d+", version)[:2])) >= OLDEST:
        return True
    _warn(f"numba {version} is too old (the extra fast needs {OLDEST[0]}.{OLDEST[1]})")
    return False


def is_worth_it(A: Any) -> bool:
    """Whether a matrix is one that kernels are for; decided by its size and form alone.

    Args:
        A: any matrix.
    """
    return (
        isinstance(A, np.ndarray)
        and A.nbytes >= FEWEST_BYTES
        and A.dtype in (np.float64, np.float32)
        and FEWEST_COLUMNS[A.itemsize] <= A.shape[1] <= MOST_COLUMNS
        and A.flags.c_contiguous
        and A.flags.aligned
        and available()
    )


def one_pass(
    kind: str,
    A: np.ndarray,
    x: np.ndarray,
    b: np.ndarray,
    *,
    parameter: float = 0.0,
    weights: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    intercept: bool = False,
) -> tuple[Any, np.ndarray] | None:
    """Return sum_i w_i loss(z_i, b_i) and its gradient, z = A x + offset, with one pass over A.

    Losses are computed in float64, products and the sums of a few rows in the matrix's precision.

    Args:
        kind: one of ``KINDS``: a loss, or "product", whose slope is b z and whose loss is 0: with
            b for the bends it gives a Hessian times x.
        A: a dense matrix that ``is_worth_it``.
        x: the point, a number for each column, and one for the intercept.
        b: the targets.
        parameter: of the loss: the power, or Huber's delta.
        weights: of the rows; one each by default.
        offset: what is added to each score; nothing by default.
        intercept: whether the last number of x is added to every score.

    Returns:
        The sum and the gradient; None where there is no kernel, or an array is of another
        precision than the matrix.
    """
    vectors = [b, weights, offset]
    same = all(v is None or _goes_with(v, A, A.shape[0]) for v in vectors)
    if not (same and _goes_with(x, A, A.shape[1] + intercept)):
        return None
    if (kernel := _kernel(A.dtype)) is None:
        return None
    nothing = np.empty(0, A.dtype)
    vectors = [nothing if v is None else np.ascontiguousarray(v) for v in vectors]
    (N, n), point = A.shape, np.ascontiguousarray(x)
    chunk = max(LEAST_ROWS, -(-N // MOST_CHUNKS))
    block = max(8, min(MOST_ROWS, BLOCK_BYTES // (max(n, 1) * A.itemsize) // 8 * 8))
    sums = np.empty((-(-N // chunk), n + 2))
    shift = float(point[n]) if intercept else 0.0
    given = (np.asarray(A), point[:n], shift, *vectors, KINDS.index(kind), float(parameter))

    def work(first: int, last: int) -> None:
        kernel(*given, block, chunk, first, last, sums)

    shared(work, len(sums), thread_count(A.nbytes))
    total = sums.sum(axis=0)  # row after row
    return A.dtype.type(total[n + 1]), total[: n + intercept].astype(A.dtype)


def _goes_with(v: Any, A: np.ndarray, length: int) -> bool:
    return isinstance(v, np.ndarray) and v.shape == (length,) and v.dtype == A.dtype


def _kernel(dtype: np.dtype[Any]) -> Any:
    with _compiling:
        return _compiled(dtype)


@cache
def _compiled(dtype: np.dtype[Any]) -> Any:
    """Return the kernel for a precision, or None where numba does not work, which is said once."""
    try:
        from ode2opt.kernels.compiled import compiled

        return compiled(dtype)
    except Exception as error:  # numba fails in many ways, with NumPy's version for one
        _warn(f"numba does not work ({type(error).__name__}: {error})")
        return None


def _warn(what: str) -> None:
    warnings.warn(f"{what}: NumPy evaluates rows instead.", RuntimeWarning, stacklevel=2)
