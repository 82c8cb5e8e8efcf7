"""Files that are either the old or the new ones, never half of either."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Any], Any]) -> None:
    """Write beside the file, flush to the disk, then rename: a crash leaves what was there.

    A link keeps pointing where it points; a pipe or a device is written to as it is.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            write(stream)
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
