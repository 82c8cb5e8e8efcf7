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

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array, is_dask
from ode2opt.problems.categories import Category
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts import Block, Engine, Parts

NUMBER = 8  # bytes
UNKNOWN = 1 << 24  # bytes of a block whose rows nobody has counted, about


@dataclass(frozen=True)
class Chunk:
    """Rows of a Dask array or DataFrame, not computed yet."""

    name: str
    block: Delayed
    bytes: int

    def read(self) -> Block:
        return self.block.compute(scheduler="synchronous")


def problem_of(
    kind: type[LinearModel],
    X: Any,
    b: Any,
    *,
    weights: Any = None,
    offset: Any = None,
    engine: Engine | None = None,
    **options: Any,
) -> Parts:
    """Return the problem of a Dask array or DataFrame; ``kind(X, b, ...)`` comes here.

    Args:
        kind: the class of the loss.
        X: a Dask array of rows x columns, or a Dask DataFrame of numbers.
        b: targets: a Dask array or Series in the same blocks, an array, or the name of a column.
        weights, offset: of the rows, like b.
        engine: by default the workers of the Dask client at hand, else threads of this process.
        options: of the loss.
    """
    if engine is None:
        engine = _at_hand()
    return Parts(kind, chunks(X, b, weights, offset), engine=engine, **options)


def _at_hand() -> Engine | None:
    from ode2opt.integrations.dask.workers import Cluster

    try:
        return Cluster(distributed.get_client())
    except ValueError:  # there is none
        return None


def chunks(X: Any, b: Any, weights: Any = None, offset: Any = None) -> list[Chunk]:
    """Return the parts of an array or a DataFrame with what belongs to its rows."""
    if isinstance(b, str):
        X, b = _without(X, b)
    blocks, sizes = _rows(X)
    given = {"b": b, "weights": weights, "offset": offset}
    beside = {
        name: _beside(values, X, name, len(blocks))
        for name, values in given.items()
        if values is not None
    }
    return [
        Chunk(
            f"Block {i + 1} of {len(blocks)}",
            delayed(_block, pure=False)(
                rows, **{name: values[i] for name, values in beside.items()}
            ),
            sizes[i],
        )
        for i, rows in enumerate(blocks)
    ]


def _without(X: Any, label: str) -> tuple[Any, Any]:
    """Return a DataFrame without its label column, and that column."""
    names = list(getattr(X, "columns", []))
    if label not in names:
        raise InputError(f"There is no column '{label}': the columns are {names!s:.100}.")
    return X.drop(columns=[label]), X[label]


def _rows(X: Any) -> tuple[Sequence[Delayed], Sequence[int]]:
    """Return the blocks of rows, and about how many bytes each has."""
    if not isinstance(X, dask.array.Array):
        return X.to_delayed(), [UNKNOWN] * X.npartitions
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
    blocks = np.ravel(np.asarray(values.to_delayed(), dtype=object)).tolist()
    if len(blocks) != count:
        raise InputError(f"{name} comes in {len(blocks)} blocks, but the rows of A in {count}.")
    return blocks


def _counted(*arrays: Any) -> bool:
    """Whether these are Dask arrays whose rows are known."""
    return all(isinstance(one, dask.array.Array) and not math.isnan(one.shape[0]) for one in arrays)


def _block(rows: Any, b: Any, weights: Any = None, offset: Any = None) -> Block:
    beside = _vector(b), _vector(weights), _vector(offset)
    if not hasattr(rows, "columns"):
        return Block(rows, *beside)
    worded = [name for name in rows.columns if _has_words(rows[name])]
    numbers = rows.drop(columns=worded)
    names = list(map(str, numbers.columns))
    categories = {str(name): _category(rows[name]) for name in worded}
    return Block(_numbers(numbers), *beside, names, categories=categories)


def _has_words(column: Any) -> bool:
    """Whether a column is of strings, or of a category of strings."""
    from pandas.api import types

    kind = column.dtype
    inside = column.cat.categories if isinstance(kind, types.CategoricalDtype) else column
    return bool(types.is_string_dtype(inside.dtype))


def _category(column: Any) -> Category:
    missing = int(column.isna().sum())
    if missing:
        raise InputError(f"{missing} cells of column '{column.name}' are missing.")
    codes, words = column.factorize()
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"Column '{column.name}' has numbers among its words, or other things.")
    return Category(codes.astype(np.int32), tuple(words))


def _numbers(frame: Any) -> np.ndarray:
    for name, kind in frame.dtypes.items():
        if getattr(kind, "kind", "O") not in "fiub":
            raise InputError(f"Column '{name}' is {kind}: neither numbers nor words.")
    return frame.to_numpy(dtype=np.float64)


def _vector(values: Any) -> Array:
    return values if values is None else np.asarray(values)
