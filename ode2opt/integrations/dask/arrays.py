"""Problems of Dask arrays and DataFrames: a part for each block of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array
import distributed
import numpy as np
from dask.delayed import Delayed, delayed

from ode2opt.base.arrays import Array, is_dask
from ode2opt.base.errors import InputError
from ode2opt.data.frames import frame_rows, has_words, taken_out
from ode2opt.executor import Executor
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts import Block, Parts

NUMBER = 8  # bytes
UNKNOWN = 1 << 24  # bytes, about, of a block whose number of rows is not known


@dataclass(frozen=True)
class Chunk:
    """Rows of a Dask array or DataFrame that are not computed yet."""

    name: str
    block: Delayed
    bytes: int

    def read(self) -> Block:
        """Compute the rows in this thread."""
        return self.block.compute(scheduler="synchronous")


def from_dask(
    kind: type[LinearModel],
    X: Any,
    b: Any,
    *,
    weights: Any = None,
    offset: Any = None,
    executor: Executor | None = None,
    **options: Any,
) -> Parts:
    """Return the problem of a Dask array or DataFrame.

    ``Logistic(X, b, ...)``, or another linear model, calls it where X is Dask's.

    Examples:
        >>> import dask.array as da
        >>> problem = from_dask(Logistic, da.from_array(X, chunks=(20, -1)), y, l2=0.1)
        >>> type(problem).__name__, problem.kind, problem.N
        ('Parts', 'Logistic', 60)
    """
    if executor is None:
        executor = _of_current_client()
    labels = _are_words(X[b] if isinstance(b, str) and b in _names(X) else b)
    if labels and not (kind.binary or kind.counted):
        raise InputError(f"{kind.__name__} needs numbers as targets, but the labels are words.")
    return Parts(kind, chunks(X, b, weights, offset), executor=executor, labels=labels, **options)


def _names(X: Any) -> list[Any]:
    return list(getattr(X, "columns", []))


def _are_words(labels: Any) -> bool:
    """Whether labels are words, as far as can be told before they are computed."""
    if not is_dask(labels):
        return has_words(labels)
    kind = getattr(labels.dtype, "kind", "O")
    return kind in "OSU"


def _of_current_client() -> Executor | None:
    from ode2opt.integrations.dask.executor import DaskExecutor

    try:
        return DaskExecutor(distributed.get_client())
    except ValueError:  # there is none
        return None


def chunks(X: Any, b: Any, weights: Any = None, offset: Any = None) -> list[Chunk]:
    """Return the blocks of an array or a DataFrame, each with its targets, weights and offsets.

    Columns of the DataFrame that are given by name are taken from each block where it is read.
    """
    given = {"b": b, "weights": weights, "offset": offset}
    named = {name: values for name, values in given.items() if isinstance(values, str)}
    taken_out(X, **named)  # an error where there is no such column
    blocks, sizes = _rows(X)
    beside = {
        name: _beside(values, X, name, len(blocks))
        for name, values in given.items()
        if values is not None and name not in named
    }
    return [
        Chunk(
            f"Block {i + 1} of {len(blocks)}",
            delayed(_block, pure=False)(
                rows, **named, **{name: values[i] for name, values in beside.items()}
            ),
            sizes[i],
        )
        for i, rows in enumerate(blocks)
    ]


def partitions(frame: Any) -> Sequence[Delayed]:
    """Return the partitions of a DataFrame or Series, as many as it says that it has.

    Dask makes fewer of a file's partitions where few of its columns are read: then these would not
    be those of other columns of the same file.
    """
    found = frame.to_delayed()
    return found if len(found) == frame.npartitions else frame.to_delayed(optimize_graph=False)


def _rows(X: Any) -> tuple[Sequence[Delayed], Sequence[int]]:
    """Return the blocks of rows, and about how many bytes each has."""
    if not isinstance(X, dask.array.Array):
        return partitions(X), [UNKNOWN] * X.npartitions
    if X.ndim != 2:
        raise InputError(f"A must be a matrix (rows x columns), not of shape {X.shape}.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    sizes = [UNKNOWN if math.isnan(N) else NUMBER * N * X.shape[1] for N in X.chunks[0]]
    return X.to_delayed().ravel(), sizes


def _beside(values: Any, X: Any, name: str, count: int) -> Sequence[Delayed]:
    """Return what belongs to the rows, in the blocks of the rows."""
    if not is_dask(values):
        values = np.asarray(values)
        if values.ndim != 1 or not _counted(X) or len(values) != X.shape[0]:
            raise InputError(
                f"{name} has shape {values.shape} and A {X.shape}: give it as a Dask array in the "
                f"same blocks of rows."
            )
        values = dask.array.from_array(values, chunks=(X.chunks[0],))
    elif isinstance(values, dask.array.Array) and values.ndim == 1 and _counted(X, values):
        if values.shape[0] != X.shape[0]:
            raise InputError(f"{name} has {values.shape[0]} numbers, but A has {X.shape[0]} rows.")
        values = values.rechunk((X.chunks[0],))
    whole = hasattr(values, "npartitions") and not isinstance(values, dask.array.Array)
    made = partitions(values) if whole else values.to_delayed()
    blocks = np.ravel(np.asarray(made, dtype=object)).tolist()
    if len(blocks) != count:
        raise InputError(f"{name} comes in {len(blocks)} blocks, but the rows of A in {count}.")
    return blocks


def _counted(*arrays: Any) -> bool:
    """Whether these are Dask arrays whose rows are known."""
    return all(isinstance(one, dask.array.Array) and not math.isnan(one.shape[0]) for one in arrays)


def _block(rows: Any, b: Any, weights: Any = None, offset: Any = None) -> Block:
    if not hasattr(rows, "columns"):
        return Block(rows, _vector(b), _vector(weights), _vector(offset))
    rows, beside = taken_out(rows, b=b, weights=weights, offset=offset)
    found = frame_rows(rows)
    b, weights, offset = map(_vector, beside)
    return Block(found.A, b, weights, offset, found.columns, categories=found.categories)


def _vector(values: Any) -> Array:
    return values if values is None else np.asarray(values)
