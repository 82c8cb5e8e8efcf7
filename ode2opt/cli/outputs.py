"""What a command may write to; it is checked before the work begins.

An output never replaces an input of the same command, by whatever name: links, other spellings and
files of a folder or a pattern are the same file. It replaces an existing file only if the same
option wrote that one, if it is empty, or with ``--overwrite``.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import combinations
from pathlib import Path
from typing import Annotated

from ode2opt.base.errors import InputError
from ode2opt.base.storage import check_folder_of, real_path
from ode2opt.cli.from_options import opt

Recogniser = Callable[[Path], bool]
"""Whether a file is an earlier output of one kind; False where that cannot be told."""

OverwriteOption = Annotated[
    bool,
    opt(
        "Replace files that this command has not written; inputs are never replaced.", "--overwrite"
    ),
]


def unknown(path: Path) -> bool:
    """Recognise no file: for outputs that carry no mark."""
    return False


def read_before(path: Path) -> bool:
    """Recognise every file: for files that the command reads, and so checks, before the work."""
    return True


def json_with(*fields: str, longest: int = 1 << 26) -> Recogniser:
    """Return a recogniser of JSON objects, or lists of them; ``longest`` is in bytes."""

    def recognise(path: Path) -> bool:
        if path.stat().st_size > longest:
            return False
        document = json.loads(path.read_bytes())
        first = document[0] if isinstance(document, list) and document else document
        return isinstance(first, dict) and all(field in first for field in fields)

    return recognise


def npz_with(*arrays: str) -> Recogniser:
    """Return a recogniser of NPZ files."""

    def recognise(path: Path) -> bool:
        with zipfile.ZipFile(path) as archive:
            return {f"{name}.npy" for name in arrays} <= set(archive.namelist())

    return recognise


def text_with(mark: str, within: int = 4096) -> Recogniser:
    """Return a recogniser of texts that have a mark within their first bytes."""

    def recognise(path: Path) -> bool:
        with path.open("rb") as stream:
            return mark.encode() in stream.read(within)

    return recognise


def any_of(*recognisers: Recogniser) -> Recogniser:
    """Return a recogniser of what one of several recognises."""
    return lambda path: any(_recognised(one, path) for one in recognisers)


PAGE = text_with('<meta name="generator" content="ode2opt">')
"""Recognises a page that :class:`ode2opt.study.page.Page` has written."""


@dataclass(frozen=True)
class Output:
    """A file that a command is going to write.

    Attributes:
        option: what the user knows it by, such as "--out".
        path: where; None or "-" where no file is written.
        ours: recognises a file that the same option has written before.
    """

    option: str
    path: str | Path | None
    ours: Recogniser

    @property
    def file(self) -> Path | None:
        """The file that is written; None for a pipe, a device or no file."""
        if self.path is None or str(self.path) == "-":
            return None
        file = Path(self.path)
        return None if file.exists() and not file.is_file() and not file.is_dir() else file


def check_outputs(
    outputs: Sequence[Output], inputs: Iterable[str | Path | None] = (), overwrite: bool = False
) -> None:
    """Refuse outputs that would replace something else, or cannot be written.

    Examples:
        >>> check_outputs([Output("--json", "result.json", json_with("status"))], ["data.csv"])
    """
    read = [file for given in inputs if given is not None for file in input_files(given)]
    written = [(one, file) for one in outputs if (file := one.file) is not None]
    for one, file in written:
        same = next((source for source in read if _same(file, source)), None)
        if same is not None:
            raise InputError(f"{one.option} {file} is the input {same}: name another file.")
    for (one, file), (other, second) in combinations(written, 2):
        if _same(file, second):
            raise InputError(
                f"{one.option} {file} and {other.option} {second} are the same file: name another "
                f"one."
            )
    for one, file in written:
        check_writable(file)
        if not (overwrite or _replaceable(file, one.ours)):
            raise InputError(
                f"{one.option} {file} exists and was not written by this command: name another "
                f"file, or add --overwrite."
            )


def input_files(where: str | Path) -> Iterator[Path]:
    """Give the files that a path, a folder or a pattern stands for."""
    path = Path(where)
    if path.is_dir():
        yield from (file for file in path.iterdir() if file.is_file())
    elif path.exists() or not has_magic(str(where)):
        yield path
    else:
        yield from map(Path, glob(str(where), recursive=True))


def dataset_files(name: str) -> list[str | Path]:
    """Return the files behind the name of a dataset; a user's file is itself."""
    from ode2opt.data.sources import find_file
    from ode2opt.problems import DATASETS

    if name not in DATASETS:
        return [name]
    return [found for file in DATASETS[name].files if (found := find_file(file)) is not None]


def method_file(name: str) -> Path:
    """Return the file of a method."""
    from ode2opt.solvers.methods import FOLDER, SUFFIX, learned_names

    known = name in learned_names() and not Path(name).exists()
    return FOLDER / f"{name}{SUFFIX}" if known else Path(name)


def check_writable(path: Path) -> None:
    """Refuse a file whose folder is missing, read-only or full."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")
    check_folder_of(path)
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written: it is read-only.")
    _try_writing(real_path(path).parent, path)


def check_folder(path: Path) -> None:
    """Refuse a folder for outputs that can neither be made nor be written to."""
    real_path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; --out names a folder.")
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    if not there.is_dir():
        raise InputError(f"{path} cannot be made: {there} is a file.")
    _try_writing(there, path)


def _try_writing(folder: Path, what: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            stream.write(bytes(4096))  # a block: the disk may be full
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise InputError(f"{what} cannot be written: {error.strerror}.") from None


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file, or would be.

    For files that do not exist yet the names decide. Names that differ only in case, or in how
    accents are encoded, are one file on some systems.
    """
    if one.exists() and other.exists():
        return os.path.samefile(one, other)
    return not one.exists() and not other.exists() and _spelled(one) == _spelled(other)


def _spelled(path: Path) -> str:
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def _replaceable(file: Path, ours: Recogniser) -> bool:
    return not file.exists() or file.stat().st_size == 0 or _recognised(ours, file)


def _recognised(ours: Recogniser, file: Path) -> bool:
    try:
        return ours(file)
    except (OSError, ValueError, RecursionError, InputError, zipfile.BadZipFile, csv.Error):
        return False
