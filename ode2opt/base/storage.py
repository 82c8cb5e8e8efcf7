"""Files that are written whole or not at all, and by one process at a time.

A lock is the operating system's own (by the library filelock), on a file that is made for it; that
of a folder is ``.lock`` in it. It ends with the process, however that ends: what a killed one
leaves blocks nobody.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.schema import BOUNDS, parse

UNFINISHED = (".ode2opt-", ".tmp")  # how the name of a file begins and ends until it is whole


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


def sweep_abandoned(folder: Path, seconds_unchanged: float = 3600.0) -> None:
    """Remove the unfinished files of killed writers from a folder that others may write to.

    A writer locks its file at once: one that is free and has not changed for an hour has none.
    """
    latest = time.time() - seconds_unchanged
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
        if path.stat().st_size > BOUNDS.text:
            raise InputError(f"{path} is too large for what it should be.")
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from None


NAME = ".lock"
NO_LOCKS_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class FileLock:
    """Holds a lock until it is released, or the process ends."""

    def __init__(self, path: Path, busy: str, wait: float = 0.0, retry: float = 0.02) -> None:
        """Wait for a lock, in seconds; one that is held is tried again after ``retry``."""
        import filelock  # 10 ms, and most solves lock nothing

        self._path = path
        self._lock = filelock.FileLock(
            path,
            timeout=max(wait, 0.0),  # one below 0 would wait for ever
            poll_interval=retry,
            thread_local=False,  # another thread may release it
            fallback_to_soft=False,  # a mark in the file would outlive a killed process
        )
        try:
            self._lock.acquire()
        except filelock.Timeout:
            raise Ode2OptError(busy) from None
        except OSError as error:
            if error.errno not in NO_LOCKS_ERRORS:
                raise
            warnings.warn(
                f"{path.parent} cannot be locked here ({error.strerror}): see to it that no other "
                f"process uses it.",
                stacklevel=2,
            )

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the lock back; its file goes first, while nobody else can have it."""
        if self._lock.is_locked:
            with suppress(OSError):  # the folder has gone, or the system keeps open files
                os.unlink(self._path)
            self._lock.release()


class FolderLock(FileLock):
    """Holds a folder; one that is held already is refused at once."""

    def __init__(self, folder: Path) -> None:
        busy = f"{folder} is in use by another process: wait for its end, or name another --out."
        super().__init__(folder / NAME, busy)
