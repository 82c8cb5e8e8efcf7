"""The named datasets, their splits, and a user's own files (docs/mathematics.md, section 9)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ode2opt.errors import InputError, unknown_name
from ode2opt.problems import synthetic
from ode2opt.problems._arrays import is_sparse
from ode2opt.problems.files import (
    Asked,
    DataTable,
    Names,
    asked_for,
    naming,
    raw_table,
    read_csv,
    read_libsvm,
    table_of,
)
from ode2opt.problems.files.columns import USUAL
from ode2opt.problems.files.missing import settled
from ode2opt.problems.preparing import (
    Rows,
    binary_labels,
    check_finite,
    check_weights,
    class_labels,
    label_words,
    largest_entries,
    numeric_targets,
    quicker_layout,
    scaled,
)
from ode2opt.problems.sources import (
    COVTYPE_TEXT,
    DownloadBar,
    as_known,
    cache_folder,
    find_file,
    local_folder,
    obtain_file,
)

SPLITS = ("paper", "shuffled")
SHUFFLE_SEED = 0
COVTYPE_CLASS = 2  # LIBSVM's binary covtype: this class against the other six
FILE_TRAIN_SHARE = 0.6
FILE_SIZE_SHARE = 0.5


@dataclass(frozen=True)
class Dataset:
    """Train and test rows, scaled and ready, with the size of the problems drawn from them."""

    name: str
    split: str
    train: Rows
    test: Rows
    size: int
    notes: tuple[str, ...] = ()
    """Sentences about how a file was read."""

    @property
    def n(self) -> int:
        """The number of columns."""
        return int(self.train.A.shape[1])


@dataclass(frozen=True)
class Spec:
    """What is known of a named dataset before it is loaded."""

    n: int
    n_train: int
    n_test: int
    size: int
    origin: str
    read: Callable[[DownloadBar | None], tuple[Rows, Rows]]
    files: tuple[str, ...] = ()
    need_all: bool = True
    read_classes: Callable[[DownloadBar | None], tuple[Rows, Rows]] | None = None

    def place(self) -> str:
        """Say where the data would come from now."""
        if not self.files:
            return "made here" if self.origin == "synthetic" else "bundled"
        found = [find_file(name) for name in self.files]
        places = {str(path.parent) for path in found if path is not None}
        at_hand = all(found) if self.need_all else any(found)
        if not at_hand:
            return "to be fetched"
        cached = {str(cache_folder()): "cache", str(local_folder()): "ODE2OPT_DATA"}
        return ", ".join(sorted(cached.get(place, "cache") for place in places))


def load_dataset(
    name: str | os.PathLike[str],
    *,
    split: str | None = None,
    binary: bool | None = True,
    classes: bool = False,
    label: str | int | None = None,
    weights: str | int | None = None,
    missing: str = "error",
    drop: Names = (),
    columns: Names = (),
    decimal: str | None = None,
    progress: DownloadBar | None = None,
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
        label: the label column of a file.
        weights: the column of a file that holds the weights of its rows.
        missing, drop, columns, decimal: how a file is read, see :func:`read_table`. Means of
            missing cells are those of the train rows.
        progress: what a download reports to.
    """
    try:
        name = os.fspath(name)
    except TypeError:
        raise InputError(f"A dataset is a name or a path, not {name!r}.") from None
    if split is not None and split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    notes: tuple[str, ...] = ()
    if name in DATASETS:
        if label is not None:
            raise InputError(f"{name} knows its labels: a label column is for files of your own.")
        if weights is not None:
            raise InputError(f"{name} has no weights: a column of them is for files of your own.")
        if missing != "error" or drop or columns or decimal:
            raise InputError(
                f"{name} is read as it is: missing, drop, columns and decimal are for files of "
                f"your own."
            )
        spec = DATASETS[name]
        train, test = (spec.read_classes if classes and spec.read_classes else spec.read)(progress)
        _check_sizes(name, spec, train, test)
        size = spec.size
    elif _looks_like_path(name):
        split = split or "shuffled"
        table = _file_table(name, asked_for(label, weights, missing, drop, columns, decimal), split)
        notes = table.notes
        train, test = _parts_of_file(rows_of(table, name, binary, classes), name)
        size = max(1, int(len(train) * FILE_SIZE_SHARE))
        size = min(size, len(test))
    else:
        raise unknown_name("dataset", name, DATASETS)
    split = split or "paper"
    if split == "shuffled":
        train, test = _shuffled(train, test)
    train, test = _scaled(train, test, together=split == "shuffled")
    return Dataset(name, split, train, test, size, notes)


def describe(data: Dataset) -> dict[str, str | int | float]:
    """Return a dataset's facts as loaded."""
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


def _looks_like_path(name: str) -> bool:
    return Path(name).exists() or os.sep in name or "." in name


def _file_table(name: str, asked: Asked, split: str) -> DataTable:
    """Read a file; means of missing cells are those of the rows that will be train's."""
    with naming(name):
        raw = settled(raw_table(name, asked), asked.missing)
        train = np.zeros(len(raw), dtype=bool)
        first = round(FILE_TRAIN_SHARE * len(raw))
        train[_order(len(raw))[:first] if split == "shuffled" else slice(first)] = True
        return table_of(raw, asked.missing, train).in_numbers()


def _order(rows: int) -> np.ndarray:
    """Return all rows in the order in which they are dealt out."""
    return np.random.default_rng(SHUFFLE_SEED).permutation(rows)


def _parts_of_file(rows: Rows, name: str) -> tuple[Rows, Rows]:
    if len(rows) < 4:
        raise InputError(f"{name} has {len(rows)} rows: too few for training and test problems.")
    return _cut(rows, round(FILE_TRAIN_SHARE * len(rows)))


def rows_of(table: DataTable, where: str, binary: bool | None, classes: bool = False) -> Rows:
    """Return a table's rows with checked features, labels and weights."""
    check_finite(table.A, where, table.columns, table.place)
    if table.weights is not None:
        check_weights(table.weights, where, table.place)
    if binary is None:
        binary = len(np.unique(table.labels)) == 2
    mapped = class_labels if classes else binary_labels if binary else numeric_targets
    b = mapped(table.labels, where, table.place)
    return Rows(table.A, b, table.weights, label_words(table.labels))


def _cut(rows: Rows, first: int) -> tuple[Rows, Rows]:
    return rows.take(slice(0, first)), rows.take(slice(first, None))


def _check_sizes(name: str, spec: Spec, train: Rows, test: Rows) -> None:
    found = (int(train.A.shape[1]), len(train), len(test))
    due = (spec.n, spec.n_train, spec.n_test)
    if found != due:
        raise InputError(
            f"{name} should have {due[0]} columns, {due[1]:,} training and {due[2]:,} test rows, "
            f"but has {found[0]}, {found[1]:,} and {found[2]:,}: is the file cut off?"
        )


def _shuffled(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    """Deal all rows out again at random, in the same numbers."""
    whole = train.then(test)
    return _cut(whole.take(_order(len(whole))), len(train))


def _scaled(train: Rows, test: Rows, together: bool) -> tuple[Rows, Rows]:
    size = largest_entries(train.A)
    other = size if together else largest_entries(test.A)
    return (
        replace(train, A=quicker_layout(scaled(train.A, size))),
        replace(test, A=quicker_layout(scaled(test.A, other))),
    )


# How each named dataset is read -----------------------------------------------------------------


def _libsvm(name: str, n: int, progress: DownloadBar | None) -> Rows:
    path = obtain_file(name, progress)
    return rows_of(_libsvm_table(path, n), str(path), binary=True)


def _libsvm_table(path: Path, n: int) -> DataTable:
    return table_of(read_libsvm(path, USUAL, n), USUAL.missing)


def _two_files(name: str, n: int) -> Callable[[DownloadBar | None], tuple[Rows, Rows]]:
    return lambda progress: (_libsvm(name, n, progress), _libsvm(name + ".t", n, progress))


def _one_file(name: str, n: int, first: int) -> Callable[[DownloadBar | None], tuple[Rows, Rows]]:
    return lambda progress: _cut(_libsvm(name, n, progress), first)


def _bundled(
    name: str, first: int, classes: int
) -> Callable[[DownloadBar | None], tuple[Rows, Rows]]:
    """Rows of scikit-learn's; labels are counted modulo some classes."""

    def read(progress: DownloadBar | None) -> tuple[Rows, Rows]:
        from sklearn import datasets

        data = getattr(datasets, f"load_{name}")()
        return _cut(Rows(data.data, (data.target % classes).astype(np.float64)), first)

    return read


COVTYPE_FILES = ("covtype", "covtype.libsvm.binary", "covtype.libsvm.binary.bz2")


def _covtype(
    rows: int | None, first: int, files: tuple[str, ...]
) -> Callable[[DownloadBar | None], tuple[Rows, Rows]]:
    """The first ``rows`` of covtype (all if None): from a LIBSVM file, or the original text."""

    def read(progress: DownloadBar | None) -> tuple[Rows, Rows]:
        path = next(filter(None, map(find_file, files)), None)
        if path is not None:
            whole = rows_of(_libsvm_table(as_known(path), 54), str(path), binary=True)
        else:
            whole = _covtype_text(obtain_file(COVTYPE_TEXT, progress))
        return _cut(whole.take(slice(0, rows)), first)

    return read


def _covtype_text(path: Path) -> Rows:
    """Read the original text: seven classes, of which one is set against the others."""
    table = table_of(read_csv(path, Asked(label="-1")), USUAL.missing)
    whole = rows_of(table, str(path), binary=False)
    return Rows(whole.A, (whole.b != COVTYPE_CLASS).astype(np.float64))


DATASETS: dict[str, Spec] = {
    "mushrooms": Spec(
        112, 3_200, 4_924, 1_024, "LIBSVM", _one_file("mushrooms", 112, 3_200), ("mushrooms",)
    ),
    "a5a": Spec(123, 6_414, 26_147, 1_024, "LIBSVM", _two_files("a5a", 123), ("a5a", "a5a.t")),
    "w3a": Spec(300, 4_912, 44_837, 1_024, "LIBSVM", _two_files("w3a", 300), ("w3a", "w3a.t")),
    "phishing": Spec(
        68, 8_192, 2_863, 1_024, "LIBSVM", _one_file("phishing", 68, 8_192), ("phishing",)
    ),
    "covtype": Spec(
        n=54,
        n_train=102_400,
        n_test=478_612,
        size=10_240,
        origin="LIBSVM",
        read=_covtype(None, 102_400, COVTYPE_FILES),
        files=(*COVTYPE_FILES, COVTYPE_TEXT),
        need_all=False,
    ),
    "covtype20k": Spec(
        n=54,
        n_train=12_000,
        n_test=8_000,
        size=2_048,
        origin="LIBSVM",
        read=_covtype(20_000, 12_000, ("covtype20k", *COVTYPE_FILES)),
        files=("covtype20k", *COVTYPE_FILES, COVTYPE_TEXT),
        need_all=False,
    ),
    "separable": Spec(
        101, 20_480, 20_480, 1_024, "synthetic", lambda progress: synthetic.separable(20_480)
    ),
    "digits": Spec(
        n=64,
        n_train=1_078,
        n_test=719,
        size=512,
        origin="scikit-learn",
        read=_bundled("digits", 1_078, 2),
        read_classes=_bundled("digits", 1_078, 10),
    ),
    "breast_cancer": Spec(30, 341, 228, 171, "scikit-learn", _bundled("breast_cancer", 341, 2)),
}
