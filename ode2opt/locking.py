"""One process at a time in a folder.

The lock is the system's own (``flock``; on Windows a locked byte) on the file ``.lock`` in the
folder. It ends with the process, however that ends: what a killed one leaves blocks nobody.
"""

from __future__ import annotations

import errno
import os
import warnings
import weakref
from contextlib import suppress
from pathlib import Path

from ode2opt.errors import Ode2OptError

NAME = ".lock"
HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
CANNOT = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class FolderLock:
    """Holds a folder until it is released, or the process ends.

    Raises:
        Ode2OptError: another process, or another run of this one, has it.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._close = weakref.finalize(self, os.close, _locked(self._path))

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the folder back; its file goes first, while nobody else can have it."""
        if self._close.alive:
            with suppress(OSError):  # the folder has gone, or the system keeps open files
                os.unlink(self._path)
            self._close()


def _locked(path: Path) -> int:
    """Return a handle of the file with the lock on it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if _try_lock(handle, path.parent) and _is_there(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its last holder has just taken the file away


def _is_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(handle: int, folder: Path) -> bool:
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in HELD:
            raise Ode2OptError(
                f"{folder} is in use by another process: wait for its end, or name another --out."
            ) from None
        if error.errno not in CANNOT:
            raise
        warnings.warn(
            f"{folder} cannot be locked here ({error.strerror}): see to it that no other process "
            f"uses it.",
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
