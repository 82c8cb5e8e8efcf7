"""Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ode2opt.errors import InputError, MissingDependencyError
from ode2opt.problems.files.table import Table, as_numbers, label_column


def read_parquet(path: Path, label: str | None) -> Table:
    """Read a Parquet file of numeric columns with one label column."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet files need pyarrow: pip install pyarrow.") from None
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from None
    keep = [j for j, name in enumerate(table.column_names) if name != "__index_level_0__"]
    names = [table.column_names[j] for j in keep]
    target = label_column(names, label, path)
    features = [j for j in range(len(names)) if j != target]
    if not features:
        raise InputError(f"{path} has a label column but no features.")
    types = pyarrow.types
    for j in features:
        kind = table.column(keep[j]).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise InputError(f"{path}: column '{names[j]}' is {kind}, not a number.")
    columns = [table.column(keep[j]).to_numpy().astype(np.float64) for j in features]
    labels = as_numbers(table.column(keep[target]).to_numpy(), path)
    return Table(np.stack(columns, axis=1), labels, [names[j] for j in features])
