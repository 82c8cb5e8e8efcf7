"""Reading a file of which some rows are held back from a fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.problems.files import (
    DataTable,
    EncodedRows,
    errors_naming,
    raw_table,
    read_options,
    table_of,
)
from ode2opt.problems.files.encoded import encoded_rows
from ode2opt.problems.files.missing import apply_missing_policy


def read_split(
    path: str | Path, held_back: Callable[[np.ndarray], np.ndarray], **reading: Any
) -> tuple[DataTable, EncodedRows]:
    """Read a file and hold rows back.

    What is learned from rows, words and means for missing cells, is learned from the others alone.
    A word that only rows held back have counts as none of the words.

    Args:
        path: a file of any kind.
        held_back: gives a mask of the rows to hold back, for their labels.
        **reading: the options of :func:`ode2opt.problems.read_table`.

    Returns:
        The rows to fit to, and those held back as the encoding of the first ones has them.
    """
    asked = read_options(**reading)
    with errors_naming(path):
        raw = apply_missing_policy(raw_table(path, asked), asked.missing)
        assert raw.labels is not None
        held = held_back(raw.labels)
        table = table_of(raw.take(~held).with_own_words(), asked.missing).in_numbers()
        assert table.encoding is not None
        return table, encoded_rows(raw.take(held), table.encoding, "zero", str(path))
