"""The named datasets, their splits, and a user's own files (docs/mathematics.md, section 9)."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from ode2opt.base.arrays import is_sparse
from ode2opt.base.errors import InputError, unknown_name
from ode2opt.data.files import DataTable, ReadKeywords, ReadOptions, errors_naming, raw_table
from ode2opt.data.files.columns import DEFAULT_OPTIONS
from ode2opt.data.named_data import DATASETS, DatasetSpec
from ode2opt.data.preparing import (
    DataRows,
    TrainAndTest,
    largest_entries,
    quicker_layout,
    rows_of,
    scaled,
    split_at,
)
from ode2opt.data.sources import DownloadBar

SPLITS = ("paper", "shuffled")
SHUFFLE_SEED = 0
FILE_TRAIN_SHARE = 0.6  # of the rows of a user's file


@dataclass(frozen=True)
class Dataset:
    """Train and test rows, scaled and ready, with the size of the problems drawn from them.

    Attributes:
        name: of the dataset, or the path of a file.
        split: "paper" or "shuffled".
        train: the rows to learn from.
        test: the rows to test with.
        size: how many rows a problem has by default.
        notes: sentences about how a file was read.
    """

    name: str
    split: str
    train: DataRows
    test: DataRows
    size: int
    notes: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """The number of columns."""
        return int(self.train.A.shape[1])


def load_dataset(
    name: str | os.PathLike[str],
    *,
    split: str | None = None,
    binary: bool | None = True,
    classes: bool = False,
    progress: DownloadBar | None = None,
    reading: ReadOptions | None = None,
    **keywords: Unpack[ReadKeywords],
) -> Dataset:
    """Load a named dataset or a user's file, split and scaled.

    Columns are divided by their largest absolute value. ``paper`` splits by the order of the
    file (or the given files) and scales train and test each by its own maxima, as the paper
    does; ``shuffled`` deals the rows out at random (fixed seed) and scales both by train's.

    Args:
        name: a name of ``DATASETS`` or a path to a LIBSVM, CSV, NPZ or Parquet file.
        split: "paper" or "shuffled"; by default the paper's for named data, shuffled for files.
        binary: map two label values to {0, 1}; False keeps a file's labels as they are; None
            maps them where there are just two.
        classes: instead count the label values from 0; of digits these are the ten.
        progress: what a download reports to.
        reading: how a file is read, see :class:`ode2opt.data.files.ReadOptions`; None (the
            default) takes the keywords alone. Means of missing cells are those of the train rows.
        **keywords: likewise: ``label``, ``weights``, ``missing``, ``drop``, ``columns`` and
            ``decimal``, as in :func:`read_table`.

    Raises:
        InputError: the name or the split is unknown, or the file cannot be read as asked.
        DataUnavailableError: a named dataset is not on this machine and cannot be fetched.

    Examples:
        >>> ode2opt.load_dataset("digits").train.A.shape
        (1078, 64)
    """
    try:
        name = os.fspath(name)
    except TypeError:
        raise InputError(f"A dataset is a name or a path, not {name!r}.") from None
    if split is not None and split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    notes: tuple[str, ...] = ()
    options = ReadOptions.of(reading, **keywords)
    if name in DATASETS:
        _refuse_options(name, options)
        spec = DATASETS[name]
        read = spec.read_classes if classes and spec.read_classes else spec.read
        train, test = read(spec, progress)
        _check_sizes(name, spec, train, test)
        size = spec.size
    elif _looks_like_path(name):
        split = split or "shuffled"
        table = _file_table(name, options, split)
        notes = table.notes
        train, test = _parts_of_file(rows_of(table, name, binary, classes), name)
        size = max(1, int(len(train) * 0.5))
        size = min(size, len(test))
    else:
        raise unknown_name("dataset", name, DATASETS)
    split = split or "paper"
    if split == "shuffled":
        train, test = _shuffled(train, test)
    train, test = _scaled(train, test, together=split == "shuffled")
    return Dataset(name, split, train, test, size, notes)


def describe(data: Dataset) -> dict[str, str | int | float]:
    """Return a dataset's facts: sizes, storage, share of ones, density, and where it comes from."""
    facts: dict[str, str | int | float] = {
        "name": data.name,
        "split": data.split,
        "columns": data.n,
        "rows_a_problem": data.size,
        "storage": "sparse" if is_sparse(data.train.A) else "dense",
    }
    for part, rows in (("train", data.train), ("test", data.test)):
        entries = rows.A.nnz if is_sparse(rows.A) else np.count_nonzero(rows.A)
        facts[f"{part}_rows"] = len(rows)
        facts[f"{part}_share_of_ones"] = float(np.mean(rows.b))
        facts[f"{part}_density"] = float(entries) / (len(rows) * data.n)
    if data.name in DATASETS:
        facts["place"] = DATASETS[data.name].place()
    return facts


def _refuse_options(name: str, options: ReadOptions) -> None:
    """Refuse what is for files of a user's own."""
    if options.label is not None:
        raise InputError(f"{name} knows its labels: a label column is for files of your own.")
    if options.weights is not None:
        raise InputError(f"{name} has no weights: a column of them is for files of your own.")
    if options != DEFAULT_OPTIONS:
        raise InputError(
            f"{name} is read as it is: missing, drop, columns and decimal are for files of your "
            f"own."
        )


def _looks_like_path(name: str) -> bool:
    return Path(name).exists() or os.sep in name or "." in name


def _file_table(name: str, asked: ReadOptions, split: str) -> DataTable:
    """Read a file; missing cells are filled with the means of the training rows."""
    with errors_naming(name):
        raw = raw_table(name, asked).without_missing(asked.missing)
        train = np.zeros(len(raw), dtype=bool)
        first = round(FILE_TRAIN_SHARE * len(raw))
        train[_order(len(raw))[:first] if split == "shuffled" else slice(first)] = True
        return raw.whole(asked.missing, train).in_numbers()


def _order(rows: int) -> np.ndarray:
    """Return all rows in a random order, the same each time."""
    return np.random.default_rng(SHUFFLE_SEED).permutation(rows)


def _parts_of_file(rows: DataRows, name: str) -> TrainAndTest:
    if len(rows) < 4:
        raise InputError(f"{name} has {len(rows)} rows: too few for training and test problems.")
    return split_at(rows, round(FILE_TRAIN_SHARE * len(rows)))


def _check_sizes(name: str, spec: DatasetSpec, train: DataRows, test: DataRows) -> None:
    found = (int(train.A.shape[1]), len(train), len(test))
    due = (spec.n, spec.n_train, spec.n_test)
    if found != due:
        raise InputError(
            f"{name} should have {due[0]} columns, {due[1]:,} training and {due[2]:,} test rows, "
            f"but has {found[0]}, {found[1]:,} and {found[2]:,}: is the file cut off?"
        )


def _shuffled(train: DataRows, test: DataRows) -> TrainAndTest:
    """Split all rows again at random, into parts of the same sizes."""
    whole = train.then(test)
    return split_at(whole.take(_order(len(whole))), len(train))


def _scaled(train: DataRows, test: DataRows, together: bool) -> TrainAndTest:
    size = largest_entries(train.A)
    other = size if together else largest_entries(test.A)
    return (
        replace(train, A=quicker_layout(scaled(train.A, size))),
        replace(test, A=quicker_layout(scaled(test.A, other))),
    )
