"""The little that array libraries do not agree on: sparse matrices, dtypes, validation, norms.

All that a solve divides by or compares passes through here, so that what is too large or too small
for a precision is handled in one place.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import array_api_compat
import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.base.lapack import axpy

Array = Any  # a NumPy, JAX or torch array; a matrix may also be a SciPy sparse one
Namespace = Any  # an array-API module
SQUARES = 1 << 16  # entries of a block whose squares are summed up at once


def is_sparse(A: Array) -> bool:
    """Whether ``A`` is a SciPy sparse matrix or array (asked without importing scipy.sparse)."""
    return hasattr(A, "tocsr") and hasattr(A, "nnz")


def library_of(values: Any) -> str:
    """Return the name of the package that the type of an object comes from."""
    return type(values).__module__.partition(".")[0]


def is_dask(values: Any) -> bool:
    """Whether this is a Dask array, Series or DataFrame (asked without importing dask)."""
    return library_of(values) == "dask"


def as_matrix(A: Array, name: str = "A") -> Array:
    """Return ``A`` as a floating-point matrix: dense ones as they are, sparse ones in CSR form."""
    return measured_matrix(A, name)[0]


def measured_matrix(A: Array, name: str = "A") -> tuple[Array, float]:
    """Return ``A`` as a floating-point matrix, and the sum of squares of its entries."""
    if is_sparse(A):
        refuse_unreal(A, name)
        A = A.tocsr()
        if A.dtype not in (np.float32, np.float64):
            A = A.astype(np.float64)
        A = _in_order(A)
    else:
        A = _aligned(as_floating(A, name))
    if A.ndim != 2:
        raise InputError(
            f"{name} must be a matrix (rows x columns), not of shape {tuple(A.shape)}."
        )
    if 0 in A.shape:
        raise InputError(
            f"{name} has {A.shape[0]} rows and {A.shape[1]} columns: there is nothing to fit."
        )
    squares = sum_of_squares(A)
    if not math.isfinite(squares) and (found := first_non_finite(A)) is not None:
        raise InputError(
            f"{name}[{found[0]}, {found[1]}] is {found[2]}: every entry must be finite."
        )
    return A, squares


def sum_of_squares(A: Array) -> float:
    """Return the sum of squares of a matrix's entries; infinity where it overflows.

    By blocks, so that nothing is copied and single precision loses no digits that matter.
    """
    data = A.data if is_sparse(A) else A
    if not isinstance(data, np.ndarray):
        xp = namespace(data)
        return float(xp.sum(data * data))
    contiguous = data.flags.c_contiguous or data.flags.f_contiguous
    rows = data.ravel(order="K") if contiguous else data
    step = max(1, SQUARES // (1 if contiguous else data.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = (rows[first : first + step].ravel() for first in range(0, len(rows), step))
        return sum((float(block @ block) for block in blocks), 0.0)


def _in_order(A: Array) -> Array:
    """Return a CSR matrix each row of which has every column at most once, in order.

    SciPy brings a matrix in order in place when it is asked for a maximum, say: then sums over its
    rows round in another way. One out of order is copied, whatever its own flags say. Indices are
    of 32 bits where these do: products take 2/3 of the time.
    """
    short = max(A.nnz, *A.shape) <= np.iinfo(np.int32).max
    indices = [one.astype(np.int32, copy=False) if short else one for one in (A.indices, A.indptr)]
    found = type(A)((np.require(A.data, requirements=["A", "C"]), *indices), shape=A.shape)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def _aligned(A: Array) -> Array:
    """Return an array that begins at a whole number of its entries' size in memory.

    One that came from another process may begin at any byte. Its products would be slower, and
    would round in another way.
    """
    return np.require(A, requirements="A") if isinstance(A, np.ndarray) else A


def as_vector(b: Array, like: Array, name: str, length: int) -> Array:
    """Return ``b`` as a finite vector of ``length`` in the array library and dtype of ``like``."""
    xp, like = namespace(like), like.data if is_sparse(like) else like
    refuse_unreal(b, name)
    try:
        b = detached(b)
        b = _aligned(xp.asarray(b, dtype=like.dtype))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}.") from None
    if tuple(b.shape) != (length,):
        raise InputError(
            f"{name} has shape {tuple(b.shape)}, but {length} number{'s' * (length != 1)} "
            f"in one dimension are needed."
        )
    bad = ~xp.isfinite(b)
    if bool(xp.any(bad)):
        index = int(np.flatnonzero(np.asarray(bad))[0])
        raise InputError(f"{name}[{index}] is {float(b[index])}: every entry must be finite.")
    return b


def as_raw_weights(weights: Array, like: Array) -> Array:
    """Return weights of the rows of ``like`` as they are: finite, and none of them negative."""
    found = as_vector(weights, like, "weights", like.shape[0])
    if bool(namespace(found).any(found < 0)):
        raise InputError("weights must not be negative.")
    return found


def as_weights(weights: Array, like: Array) -> Array:
    """Return weights of the rows of ``like`` with mean one."""
    found = as_raw_weights(weights, like)
    total = float(namespace(found).sum(found))
    if not 0 < total < float("inf"):
        raise InputError(f"weights sum to {total:g}: at least one must be positive.")
    return found * (len(found) / total)


def detached(x: Array) -> Array:
    """Return a torch tensor without its history, anything else as it is."""
    return x.detach() if hasattr(x, "detach") else x


def as_floating(A: Array, name: str) -> Array:
    """Return a dense array with a floating dtype; lists and integers become float64."""
    refuse_masked(A, name)
    if not array_api_compat.is_array_api_obj(A):
        try:
            A = np.asarray(A, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} must be an array of numbers: {error}.") from None
    A = detached(A)
    xp = namespace(A)
    if str(A.dtype).split(".")[-1] not in ("float32", "float64"):
        if not _is_real(xp, A.dtype):
            raise InputError(f"{name} must hold real numbers, not {A.dtype}.")
        A = xp.astype(A, xp.float64)
    return A


def refuse_masked(values: Any, name: str) -> None:
    """A masked array would lose its mask on the way, and what it hides would count."""
    some = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(one, np.ndarray) and hasattr(one, "mask") for one in some):
        raise InputError(
            f"{name} is a masked array, whose mask would be lost: fill it, as by .filled(0.0), or "
            f"leave out what is masked."
        )


def refuse_unreal(values: Array, name: str) -> None:
    """Complex numbers and masks have no place in a real problem."""
    refuse_masked(values, name)
    if isinstance(values, np.ndarray | list | tuple):
        found = np.iscomplexobj(values)
    else:
        found = "complex" in str(getattr(values, "dtype", ""))
    if found:
        raise InputError(f"{name} must hold real numbers, not complex ones.")


def as_number(value: Any, name: str) -> float:
    """Return an option as a float."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name} is {shown(value)}: it must be a number.")


def as_positive(value: Any, name: str) -> float:
    """Return an option as a positive, finite float."""
    number = as_number(value, name)
    if not 0 < number < float("inf"):
        raise InputError(f"{name} is {number:g}: it must be a positive number.")
    return number


def as_ridge(l2: Any) -> float:
    """Return the weight of l2/2 |x|^2."""
    weight = as_number(l2, "l2")
    if not 0 <= weight < float("inf"):
        raise InputError(f"l2 is {l2}: it must be zero or a positive number.")
    return weight


def as_count(value: Any, name: str, least: int = 1) -> int:
    """Return an option as a whole number of at least ``least``."""
    number = as_number(value, name)
    if not number.is_integer() or number < least:
        raise InputError(f"{name} is {value}: it must be a whole number, {least} or more.")
    return int(number)


def _is_real(xp: Namespace, dtype: Any) -> bool:
    return bool(xp.isdtype(dtype, ("bool", "integral", "real floating")))


def namespace(A: Array) -> Namespace:
    """Return the array-API module of ``A``; a sparse matrix works with NumPy vectors."""
    if type(A) is np.ndarray or isinstance(A, np.ndarray | np.generic) or is_sparse(A):
        return numpy_namespace()
    return array_api_compat.array_namespace(A)


@cache
def numpy_namespace() -> Namespace:
    """Return NumPy as an array-API module: itself from 2.1 on, else array_api_compat's form of it.

    That form loads every part of NumPy, which takes longer than to load NumPy.
    """
    return np if hasattr(np, "unstack") else array_api_compat.array_namespace(np.empty(0))


def epsilon(xp: Namespace, dtype: Any) -> float:
    """Return the distance from 1 to the next number of ``dtype``."""
    return float(xp.finfo(dtype).eps)


def copy(x: Array) -> Array:
    """Return a copy of a dense array that may be overwritten."""
    return namespace(x).asarray(x, copy=True)


def plus(x: Array, y: Array, into: Array | None) -> Array:
    """Return x + y; of NumPy's arrays in the vector ``into``, which may be one of them."""
    return np.add(x, y, out=into) if isinstance(x, np.ndarray) else x + y


def plus_multiple(y: Array, a: float, x: Array) -> Array:
    """Return y + a x; of NumPy's arrays in y, in one pass."""
    return axpy(y.dtype)(x, y, a=a) if isinstance(y, np.ndarray) else y + a * x


def first_non_finite(A: Array) -> tuple[int, int, float] | None:
    """Return row, column and value of a matrix's first NaN or infinity, None if it has none."""
    if is_sparse(A):
        A = A.tocsr()
        if math.isfinite(float(np.sum(A.data))):
            return None
        bad = np.flatnonzero(~np.isfinite(A.data))
        if not len(bad):
            return None
        row = int(np.searchsorted(A.indptr, bad[0], side="right")) - 1
        return row, int(A.indices[bad[0]]), float(A.data[bad[0]])
    xp = namespace(A)
    if math.isfinite(float(xp.sum(A))) or bool(xp.all(xp.isfinite(A))):  # a sum is one pass
        return None
    row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(np.asarray(A))))
    return row, column, float(A[row, column])


SMALLEST_CURVATURE = 1e-290  # that a step can be divided by: its inverse is finite
SMALLEST_SQUARE = 1e-30  # squares of single precision below it may have lost digits


def norm(g: Array) -> float:
    """Return the Euclidean norm; infinity or NaN only where an entry or the norm itself is such.

    The squares may overflow or vanish where the norm does not. Then the entries are first divided
    by a power of two close to the largest one. Such a division is exact where nothing underflows:
    for NumPy arrays norm(2**k g) is 2**k norm(g) to the last bit, on every machine.
    """
    square = float(g @ g)
    if SMALLEST_SQUARE < square < math.inf:
        return math.sqrt(square)
    g = np.asarray(g)
    largest = float(np.max(np.abs(g), initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    _, exponent = math.frexp(largest)
    # Two factors, as 2**exponent or its inverse may be out of the range of the precision.
    one, other = 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)
    scaled = g / one / other
    return math.sqrt(float(scaled @ scaled)) * one * other


def usable(curvature: float) -> float:
    """Return a curvature that a step can be divided by: one where the given one tells nothing."""
    return curvature if SMALLEST_CURVATURE < curvature < math.inf else 1.0
