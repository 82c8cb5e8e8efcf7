"""Plain and compressed files as streams; refuses what is damaged or unpacks to too much."""

from __future__ import annotations

import bz2
import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any, cast

from ode2opt.base.errors import InputError

PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
MOST_TIMES = 100  # its own size that a file may unpack to


def is_packed(path: Path) -> bool:
    """Whether the name says that a file is compressed."""
    return path.suffix.lower() in PACKED


def largest_content(path: Path, always_allowed: int = 2**24) -> int:
    """Return how many bytes a file may unpack to: what holds more was made to fill the memory."""
    return MOST_TIMES * path.stat().st_size + always_allowed


def check_content(path: Path, size: int) -> None:
    """Refuse a file that says that it holds far more than its own size."""
    if size > largest_content(path):
        raise InputError(
            f"{path} unpacks to more than {MOST_TIMES} times its size: if it is meant, save it "
            f"without compression."
        )


def check_columns(count: int, path: Path, always_allowed: int = 2**21) -> None:
    """Refuse more columns than a file of this size can mean: each costs memory in a solve.

    A file of more bytes than are always allowed may have as many columns as bytes.
    """
    if count > max(always_allowed, path.stat().st_size):
        raise InputError(f"{path} has an index of {count:,}: more columns than can be meant.")


class _Content(io.RawIOBase):
    """The bytes of a file; errors of reading become an InputError."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        opened = PACKED.get(path.suffix.lower(), open)
        try:
            self._stream: Any = opened(path, "rb")
        except OSError as error:
            raise self._unreadable(error) from None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise self._unreadable(error) from None
        self._read += len(data)
        if is_packed(self._path):
            check_content(self._path, self._read)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()

    def _unreadable(self, error: Exception) -> InputError:
        return InputError(f"{self._path} cannot be read: {error!s:.80}.")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a plain or compressed file for reading bytes."""
    return io.BufferedReader(_Content(path), 2**16)


def open_text(path: Path, errors: str = "strict") -> IO[str]:
    """Open a plain or compressed file for reading UTF-8 text, without a byte-order mark."""
    stream = cast(io.BufferedReader, open_bytes(path))
    return io.TextIOWrapper(stream, encoding="utf-8-sig", errors=errors, newline="")
