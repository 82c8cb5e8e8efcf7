"""One process at a time: locks on files and folders.

A lock is the system's own (``flock``; on Windows a locked byte) on a file of its own; that of a
folder is ``.lock`` in it. It ends with the process, however that ends: what a killed one leaves
blocks nobody.
"""

from __future__ import annotations

import errno
import os
import time
import warnings
import weakref
from contextlib import suppress
from pathlib import Path

from ode2opt.errors import Ode2OptError

NAME = ".lock"
HELD_ERRORS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
NO_LOCKS_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
RETRY_SECONDS = 0.02  # until a lock that is held is tried again


class FileLock:
    """Holds a lock until it is released, or the process ends.

    Args:
        path: the lock's own file, which is made and taken away.
        busy: what is said where another process, or another part of this one, keeps it.
        wait: seconds to wait for it.

    Raises:
        Ode2OptError: it is still held by another one.
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path, busy: str, wait: float = 0.0) -> None:
        self._path = path
        self._close = weakref.finalize(self, os.close, _locked(path, busy, wait))

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the lock back; its file goes first, while nobody else can have it."""
        if self._close.alive:
            with suppress(OSError):  # the folder has gone, or the system keeps open files
                os.unlink(self._path)
            self._close()


class FolderLock(FileLock):
    """Holds a folder; one that is held already is refused at once.

    Args:
        folder: an existing folder; the lock is the file ``.lock`` in it.

    Raises:
        Ode2OptError: another process, or another part of this one, holds it.
        OSError: the file cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        busy = f"{folder} is in use by another process: wait for its end, or name another --out."
        super().__init__(folder / NAME, busy)


def _locked(path: Path, busy: str, wait: float) -> int:
    """Return a handle of the file with the lock on it."""
    end = time.monotonic() + wait
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            held = not _try_lock(handle, path)
            if not held and _is_there(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # another one has it, or its last holder has just taken the file away
        if held and time.monotonic() >= end:
            raise Ode2OptError(busy)
        if held:
            time.sleep(RETRY_SECONDS)


def _is_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(handle: int, path: Path) -> bool:
    """Return whether the lock could be had; where a system has none, a warning says so."""
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in HELD_ERRORS:
            return False
        if error.errno not in NO_LOCKS_ERRORS:
            raise
        warnings.warn(
            f"{path.parent} cannot be locked here ({error.strerror}): see to it that no other "
            f"process uses it.",
            stacklevel=2,
        )
    return True


if os.name == "nt":
    import msvcrt

    def _lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]

else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
