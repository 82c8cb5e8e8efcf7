"""Parts from files: one a file, or one a row group of a large Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Unpack

from ode2opt.base.errors import InputError
from ode2opt.data.files import (
    ReadKeywords,
    ReadOptions,
    check_file,
    read_libsvm,
    read_parquet,
    reader_of,
)
from ode2opt.data.files.parquet import row_groups
from ode2opt.problems.parts.blocks import Block

LARGE = 1 << 26  # bytes: a Parquet file of more is read by row groups


@dataclass(frozen=True)
class FilePart:
    """A file, or a row group of one; it is read where it is needed."""

    path: Path
    asked: ReadOptions
    bytes: int
    group: int | None = None

    @property
    def name(self) -> str:
        return str(self.path) + ("" if self.group is None else f" (row group {self.group})")

    def read(self) -> Block:
        if self.group is not None:
            table = read_parquet(self.path, self.asked, self.group)
        else:
            check_file(self.path)
            table = reader_of(self.path)(self.path, self.asked)
        table = table.part(self.asked.missing)
        return Block(
            table.A,
            table.labels,
            table.weights,
            names=table.columns,
            grows=reader_of(self.path) is read_libsvm,
            categories=table.categories,
            place=table.place,
            encoding=table.encoding,
            notes=table.notes,
            holes=table.holes,
        )


def files_in_parts(
    where: str | Path, reading: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> list[FilePart]:
    """Return the parts of a folder, or of the files that a pattern like data/*.csv matches.

    Only Parquet files are looked into, for the sizes of their row groups. Files whose names begin
    with a dot or an underscore are left out of a folder.
    """
    folder = Path(where)
    found = folder.iterdir() if folder.is_dir() else map(Path, glob(str(where), recursive=True))
    paths = sorted(path for path in found if path.is_file() and path.name[0] not in "._")
    if not paths:
        raise InputError(f"There is no file in {where}." if folder.is_dir() else _no_match(where))
    readers = {reader_of(path): path for path in paths}
    if len(readers) > 1:
        one, other = list(readers.values())[:2]
        raise InputError(f"{one.name} and {other.name} are of different kinds: name one kind only.")
    options = ReadOptions.of(reading, **keywords)
    return [part for path in paths for part in _parts(path, options)]


def _no_match(where: str | Path) -> str:
    return f"No file matches {where}: the pattern must name at least one."


def _parts(path: Path, asked: ReadOptions) -> list[FilePart]:
    check_file(path)
    size = path.stat().st_size
    if reader_of(path) is read_parquet and size > LARGE:
        groups = row_groups(path)
        if len(groups) > 1:
            return [FilePart(path, asked, bytes, group) for group, bytes in enumerate(groups)]
    return [FilePart(path, asked, size)]
