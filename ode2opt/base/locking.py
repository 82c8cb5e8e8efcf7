"""One process at a time: locks on files and folders, by the library filelock.

A lock is the operating system's own, on a file that is made for it; that of a folder is ``.lock``
in it. It ends with the process, however that ends: what a killed one leaves blocks nobody.
"""

from __future__ import annotations

import errno
import os
import warnings
from contextlib import suppress
from pathlib import Path

from ode2opt.base.errors import Ode2OptError

NAME = ".lock"
NO_LOCKS_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
RETRY_SECONDS = 0.02  # until a lock that is held is tried again


class FileLock:
    """Holds a lock until it is released, or the process ends."""

    def __init__(self, path: Path, busy: str, wait: float = 0.0) -> None:
        import filelock  # 10 ms, and most solves lock nothing

        self._path = path
        self._lock = filelock.FileLock(
            path,
            timeout=max(wait, 0.0),  # one below 0 would wait for ever
            poll_interval=RETRY_SECONDS,
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
