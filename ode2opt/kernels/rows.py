"""Sums over the rows of a dense matrix in one pass, where a compiled kernel is worth it."""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module, metadata
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.base.threads import shared, thread_count
from ode2opt.kernels.row_loss import Loss, RowLoss

SWITCH = "ODE2OPT_KERNELS"
OLDEST = (0, 60)  # numba
# Smaller matrices are left to NumPy: the first kernel of a process takes 0.3 s, and 2.5 s where
# nothing is kept on disk yet, while a gradient gains 2 ms at this size. So are narrow ones, whose
# loops are short, and very wide ones. Measured by `python benchmarks/kernels.py` on an AMD EPYC
# (Zen 5).
FEWEST_BYTES = 64_000_000
# Fewest and most columns, by layout (by rows, by columns) and bytes of a number.
COLUMNS = {
    "C": {8: (10, 10_000), 4: (30, 10_000)},
    "F": {8: (30, 1_000), 4: (100, 500)},
}
# Rows whose sums are added up on their own, so that the result does not depend on the threads.
MOST_CHUNKS, LEAST_ROWS = 64, 64
# Rows that are worked on together shall be in the cache when they are needed again: of a matrix by
# rows in the first one, with the rows after them. Pieces of columns shall be long.
FIRST_CACHE, SECOND_CACHE = 25_600, 1 << 18  # bytes

_NUMPY_INSTEAD = {"descent": "descends", "table": "follows"}
_compiling = threading.Lock()
_known: set[tuple[Any, ...]] = set()
_limited: ContextVar[bool] = ContextVar("limited", default=False)


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
    """Whether a matrix is one that kernels are for; decided by its size and form alone."""
    return (
        isinstance(A, np.ndarray)
        and A.nbytes >= FEWEST_BYTES
        and A.dtype in (np.float64, np.float32)
        and A.flags.forc
        and _has_columns(A)
        and A.flags.aligned
        and available()
    )


def _has_columns(A: np.ndarray) -> bool:
    """Whether a matrix has neither too few columns nor too many for its layout."""
    fewest, most = COLUMNS["C" if A.flags.c_contiguous else "F"][A.itemsize]
    return bool(fewest <= A.shape[1] <= most)


def can_run(kind: Loss | RowLoss, A: Any) -> bool:
    """Whether a kernel takes the matrix and the loss: both are compiled now, if they are not
    yet.
    """
    return (
        is_worth_it(A) and kernel_for(A.dtype) is not None and compiled("losses", kind) is not None
    )


def one_pass(
    kind: Loss | RowLoss,
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
    """
    vectors = [b, weights, offset]
    same = all(v is None or goes_with(v, A, A.shape[0]) for v in vectors)
    if not (same and goes_with(x, A, A.shape[1] + intercept)):
        return None
    kernel, loss = kernel_for(A.dtype), compiled("losses", kind)
    if kernel is None or loss is None:
        return None
    nothing = np.empty(0, A.dtype)
    vectors = [nothing if v is None else np.ascontiguousarray(v) for v in vectors]
    (N, n), point = A.shape, np.ascontiguousarray(x)
    by_columns = not A.flags.c_contiguous
    block = _rows_together(n * A.itemsize, by_columns)
    chunk = max(LEAST_ROWS, -(-N // MOST_CHUNKS))
    chunk = -(-chunk // block) * block if chunk > block else chunk
    matrix = np.asarray(A.T if by_columns else A)
    sums = np.empty((-(-N // chunk), n + 2))
    shift = float(point[n]) if intercept else 0.0
    given = (matrix, by_columns, point[:n], shift, *vectors, loss.address, float(parameter))

    def work(first: int, last: int) -> None:
        kernel(*given, block, chunk, first, last, sums)

    shared(work, len(sums), thread_count(A.nbytes))
    total = sums.sum(axis=0)  # row after row
    return A.dtype.type(total[n + 1]), total[: n + intercept].astype(A.dtype)


def _rows_together(row: int, by_columns: bool) -> int:
    """Return how many rows of so many bytes are a block, a multiple of 8."""
    row = max(row, 1)
    if by_columns:
        return max(256, min(1024, 4 * SECOND_CACHE // row // 8 * 8))
    near, far = FIRST_CACHE // row // 8 * 8, SECOND_CACHE // row // 8 * 8
    return max(8, min(128, near if near >= 32 else far))


def goes_with(v: Any, A: np.ndarray, length: int) -> bool:
    """Whether an array is a vector of a length in the matrix's precision."""
    return isinstance(v, np.ndarray) and v.shape == (length,) and v.dtype == A.dtype


def kernel_for(dtype: np.dtype[Any], name: str = "rows") -> Any:
    """Return the pass over matrices of a precision; None where numba does not work."""
    return compiled(name, dtype)


def compiled(name: str, *key: Any) -> Any:
    """Return what ``compiled(*key)`` of the module ``compiled_name`` makes, once in a process.

    None where numba does not work, which is said once, and where it would have to be compiled
    first and there is no time for it.
    """
    with _compiling:
        if _limited.get() and (name, key) not in _known:
            return None
        found = _made(name, *key)
        _known.add((name, key))
        return found


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """Use no kernel that this process has not loaded yet, in this context."""
    token = _limited.set(True)
    try:
        yield
    finally:
        _limited.reset(token)


@cache
def _made(name: str, *key: Any) -> Any:
    try:
        return import_module(f"ode2opt.kernels.compiled_{name}").compiled(*key)
    except Exception as error:  # numba fails in many ways, with NumPy's version for one
        _warn(_failure(error, *key), _NUMPY_INSTEAD.get(name, "evaluates rows"))
        return None


def _failure(error: Exception, *key: Any) -> str:
    (kind,) = key if len(key) == 1 else (None,)
    if not isinstance(kind, Loss | RowLoss):
        return f"numba does not work ({type(error).__name__}: {error})"
    name = kind.compiled if isinstance(kind, Loss) else f"{kind.loss} or {kind.slope}"
    first = str(error).strip().partition("\n")[0]
    return f"numba cannot compile {name} ({type(error).__name__}: {first})"


def _warn(what: str, instead: str = "evaluates rows") -> None:
    warnings.warn(f"{what}: NumPy {instead} instead.", RuntimeWarning, stacklevel=2)


def kept_on_disk(compiler: Any, signature: Any, **options: Any) -> Callable[..., Any]:
    """Return a decorator that compiles and keeps the result on disk, where there is a folder."""

    def kept(function: Any) -> Any:
        try:
            return compiler(signature, cache=True, **options)(function)
        except (RuntimeError, OSError):  # no folder to write to
            _tell()
            return compiler(signature, **options)(function)

    return kept


@cache
def _tell() -> None:
    """Warn, once in a process, that nothing can be kept on disk."""
    warnings.warn(
        "Kernels are compiled in every process, as numba has no folder to keep them in: set "
        "NUMBA_CACHE_DIR to a folder that can be written to.",
        RuntimeWarning,
        stacklevel=2,
    )
