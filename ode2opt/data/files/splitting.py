"""Reading a file of which some rows are held back from a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ode2opt.data.files import (
    DataTable,
    EncodedRows,
    errors_naming,
    raw_table,
    table_of,
)
from ode2opt.data.files.columns import DEFAULT_OPTIONS, ReadOptions
from ode2opt.data.files.encoded import encoded_rows
from ode2opt.data.files.missing import apply_missing_policy


def read_split(
    path: str | Path,
    held_back: Callable[[np.ndarray], np.ndarray],
    reading: ReadOptions = DEFAULT_OPTIONS,
) -> tuple[DataTable, EncodedRows]:
    """Read a file and hold rows back.

    What is learned from rows, words and means for missing cells, is learned from the others alone.
    A word that only rows held back have counts as none of the words.
    """
    with errors_naming(path):
        raw = apply_missing_policy(raw_table(path, reading), reading.missing)
        assert raw.labels is not None
        held = held_back(raw.labels)
        table = table_of(raw.take(~held).with_own_words(), reading.missing).in_numbers()
        assert table.encoding is not None
        others = replace(raw.take(held), notes=())  # the table's notes are about the whole file
        return table, encoded_rows(others, table.encoding, "zero", str(path))
