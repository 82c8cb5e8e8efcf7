"""Fits and predictions on Dask arrays and frames: rows stay where they are, in their blocks."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, is_dask
from ode2opt.base.errors import InputError, needing


def rows_in_parts(estimator: Any, X: Any, *beside: Any) -> tuple[Any, ...]:
    """Return Dask arrays of rows and of what belongs to them; sets ``n_features_in_``.

    The rows of a frame's partitions are counted, which is a pass over it.
    """
    name = type(estimator).__name__
    if estimator._dask_lacks is not None:
        raise InputError(
            f"{name} does not take Dask's arrays, because {estimator._dask_lacks}: give it NumPy's."
        )
    if X.ndim != 2:
        raise InputError(f"X must be a matrix (rows x columns), not of shape {X.shape}.")
    if hasattr(X, "columns"):
        estimator.feature_names_in_ = np.array(list(map(str, X.columns)), dtype=object)
    found = tuple(_as_array(values) for values in (X, *beside))
    estimator.n_features_in_ = int(found[0].shape[1])
    return found


def labels_in_parts(estimator: Any, X: Any, y: Any) -> Any:
    """Return labels counted from 0, not computed yet; sets ``classes_``."""
    with needing("dask"):
        import dask.array

    if not is_dask(y):
        y = dask.array.from_array(np.asarray(y), chunks=(X.chunks[0],))
    estimator.classes_ = np.asarray(dask.array.unique(y).compute())
    return y.map_blocks(_counted, estimator.classes_, dtype=np.float64)


def _counted(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.searchsorted(classes, labels).astype(np.float64)


def class_counts(labels: Any, weights: Any, classes: int) -> np.ndarray:
    """Return how many rows each class has, or the sum of their weights: one pass."""
    with needing("dask"):
        import dask.array

    of_rows = labels.map_blocks(np.ones_like, dtype=np.float64) if weights is None else weights
    sums = [dask.array.sum(dask.array.where(labels == k, of_rows, 0.0)) for k in range(classes)]
    return np.array(dask.compute(*sums))


def taken(values: np.ndarray, labels: Any) -> Any:
    """Return the value of each row's label, not computed yet."""
    return labels.map_blocks(_taken, values, dtype=values.dtype)


def _taken(labels: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values[labels.astype(np.intp)]


def _as_array(values: Any) -> Any:
    if values is None or not is_dask(values):
        return values
    if hasattr(values, "to_dask_array"):
        return _of_partitions(values)
    if any(math.isnan(size) for size in values.shape):
        return values.compute_chunk_sizes()
    return values


def _of_partitions(frame: Any) -> Any:
    """Return the array of a frame or series, a block for each partition, whose rows are counted."""
    with needing("dask"):
        import dask.array
        from dask.delayed import delayed

        from ode2opt.integrations.dask.arrays import partitions

    parts, like = partitions(frame), frame._meta.to_numpy()
    sizes = dask.compute(*(delayed(len)(part) for part in parts))
    blocks = [
        dask.array.from_delayed(
            delayed(np.asarray)(part), shape=(size, *like.shape[1:]), dtype=like.dtype
        )
        for part, size in zip(parts, sizes, strict=True)
    ]
    return dask.array.concatenate(blocks)


def lazily(estimator: Any, name: str, X: Any) -> Array:
    """Return what a method answers for each block of rows, as a Dask array not computed yet."""
    with needing("dask"):
        import dask.array
        from dask.delayed import delayed

        from ode2opt.integrations.dask.arrays import partitions

    if hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
        parts, sizes = X.to_delayed(), X.chunks[0]
    else:
        parts, sizes = partitions(X), (math.nan,) * X.npartitions
    two = _answer_of_two_rows(estimator, name)
    method = delayed(getattr(estimator, name), pure=False)
    blocks = [
        dask.array.from_delayed(method(rows), shape=(size, *two.shape[1:]), dtype=two.dtype)
        for rows, size in zip(np.ravel(parts), sizes, strict=True)
    ]
    return dask.array.concatenate(blocks)


def _answer_of_two_rows(estimator: Any, name: str) -> np.ndarray:
    """Return what a method answers for two rows of zeros, for the shape and the type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these have no names
        return np.asarray(getattr(estimator, name)(np.zeros((2, estimator.n_features_in_))))
