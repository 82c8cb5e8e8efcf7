"""Files that are either the old or the new ones, never half of either; arrays with a description.

Reading a file of arrays executes nothing from it: safetensors, and JSON for the description.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.errors import InputError


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


def save_tensors(
    path: str | Path, key: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> None:
    """Write float64 arrays and a description under ``key``, atomically."""
    from safetensors.numpy import save

    blob = save(
        {
            name: np.ascontiguousarray(values, dtype=np.float64).reshape(np.shape(values))
            for name, values in arrays.items()
        },
        metadata={key: json.dumps(about, allow_nan=False)},
    )
    write_atomically(Path(path), lambda stream: stream.write(blob))


def load_tensors(
    path: str | Path, key: str, version: int, what: str
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; ``what`` it should be is for the messages."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.exists():
        raise InputError(f"There is no {what} file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is not a file.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(key)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError, OverflowError, AttributeError) as error:
        raise InputError(f"{path} is damaged or no {what} file: {error!s:.100}.") from None
    if text is None:
        raise InputError(f"{path} is a safetensors file, but not one of a {what}.")
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict):
        raise InputError(f"{path} is damaged: its description is not a JSON object.")
    if about.get("version") != version:
        found = repr(about.get("version"))[:20]
        raise InputError(f"{path} has format version {found}; this ode2opt reads {version}.")
    return arrays, about


def taken(fields: Mapping[str, Any], key: str, kind: type | None = None) -> Any:
    """Return a field that must be there and of its kind."""
    if key not in fields:
        raise InputError(f"it has no {key}.")
    value = fields[key]
    if kind is float and type(value) is int:
        value = float(value)
    if kind is not None and type(value) is not kind:
        raise InputError(f"its {key} is {value!r:.40}, not of the kind {kind.__name__}.")
    return value
