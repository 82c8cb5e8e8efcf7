"""Files that are written whole or not at all."""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError
from ode2opt.base.schema import LONGEST_TEXT, parse

UNFINISHED = (".ode2opt-", ".tmp")  # how the name of a file begins and ends until it is whole
ABANDONED_AFTER = 3600.0  # seconds without a change; a writer locks its file at once


if sys.platform == "win32":

    def _lock(handle: int) -> None:
        """Do nothing: a file that is open cannot be removed."""

    def _unlink_if_free(file: Path) -> None:
        os.unlink(file)

else:
    import fcntl

    def _lock(handle: int) -> None:
        """Mark a file as being written, until it is closed or the process ends."""
        with suppress(OSError):  # where nothing can be locked, nothing is swept
            fcntl.flock(handle, fcntl.LOCK_EX)

    def _unlink_if_free(file: Path) -> None:
        with file.open("r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(file)


def real_path(path: str | Path) -> Path:
    """Return where a file is or will be, links followed."""
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        raise InputError(f"{path} is a link that leads back to itself: name another one.")
    return real


def write_atomically(path: Path, write: Callable[[Any], Any]) -> None:
    """Replace a file in one step: a crash leaves what was there.

    The new file is written beside the old one, flushed to the disk, then renamed. A link keeps
    pointing where it points; a pipe or a device is written to as it is.
    """
    path = real_path(path)
    try:
        if path.exists() and not path.is_file():
            whole = io.BytesIO()  # archives seek, which devices only pretend to
            write(whole)
            with path.open("wb") as stream:
                stream.write(whole.getbuffer())
        else:
            _replace(path, write)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _replace(path: Path, write: Callable[[Any], Any]) -> None:
    prefix, suffix = UNFINISHED
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=suffix)
    try:
        with os.fdopen(handle, "wb") as stream:
            _lock(handle)
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def sweep(folder: Path) -> None:
    """Remove the unfinished files of writers that were killed."""
    for file in folder.glob("*".join(UNFINISHED)):
        file.unlink(missing_ok=True)


def sweep_abandoned(folder: Path) -> None:
    """Remove the unfinished files of killed writers from a folder that others may write to."""
    latest = time.time() - ABANDONED_AFTER
    for file in folder.glob("*".join(UNFINISHED)):
        with suppress(OSError):  # it is in use, somebody else's, or gone
            about = file.lstat()
            if stat.S_ISREG(about.st_mode) and about.st_mtime < latest:
                _unlink_if_free(file)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_folder_of(path: str | Path) -> None:
    """Refuse a file whose folder is missing."""
    folder = real_path(path).parent
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder} to write {Path(path).name} into.")


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        if path.stat().st_size > LONGEST_TEXT:
            raise InputError(f"{path} is too large for what it should be.")
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from None
