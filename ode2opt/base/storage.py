"""Files that are written whole or not at all, and arrays with a description.

Reading a file of arrays executes nothing from it: safetensors, and JSON for the description.
"""

from __future__ import annotations

import io
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.base.schema import LONGEST_TEXT, parse

LONGEST_HEADER = 4 * LONGEST_TEXT  # bytes: a description with all its characters escaped
LARGEST_DOCUMENT = 2**28  # bytes of a JSON document that is stored as an array
METHOD, MEMORY, MODEL = "ode2opt", "ode2opt-memory", "ode2opt-model"
"""What the description of each kind of file is called."""
_KINDS = {METHOD: "method", MEMORY: "memory", MODEL: "model"}

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


def save_tensors(
    path: str | Path, key: str, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> None:
    """Write arrays and a description into a safetensors file, atomically."""
    from safetensors.numpy import save

    check_folder_of(path)
    text = json.dumps(about, allow_nan=False)
    if len(text) > LONGEST_TEXT:
        raise InputError(f"The description of {path} has {len(text):,} characters: too many.")
    blob = save({name: _storable(values) for name, values in arrays.items()}, metadata={key: text})
    write_atomically(Path(path), lambda stream: stream.write(blob))


def _storable(values: np.ndarray) -> np.ndarray:
    kind = np.uint8 if values.dtype == np.uint8 else np.float64
    return np.ascontiguousarray(values, dtype=kind).reshape(np.shape(values))


def as_document(document: Mapping[str, Any]) -> np.ndarray:
    """Return a JSON object as an array of bytes, for what is too long for a description."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    if len(text) > LARGEST_DOCUMENT:
        raise InputError(f"The names of columns take {len(text):,} bytes: too many for a file.")
    return np.frombuffer(text, dtype=np.uint8)


def read_document(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, Any]:
    """Return the JSON object that :func:`as_document` has made an array of."""
    if name not in arrays:
        raise InputError(f"it has no {name}.")
    if arrays[name].ndim != 1:
        raise InputError(f"its {name} has the shape {arrays[name].shape}, not of a text.")
    try:
        return parse(arrays[name].tobytes(), LARGEST_DOCUMENT)
    except InputError as error:
        raise InputError(f"its {name} is damaged: {error}") from None


def load_tensors(
    path: str | Path, key: str, version: int, what: str, documents: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote."""
    arrays, about = read_tensors(path, key, what)
    for name, values in arrays.items():
        if values.dtype != (np.uint8 if name in documents else np.float64):
            raise InputError(f"{path} is no valid {what}: its {name} is of {values.dtype}.")
    if about.get("version") != version:
        found = shown(about.get("version"), 20)
        raise InputError(f"{path} has format version {found}; this ode2opt reads {version}.")
    return arrays, about


def read_tensors(
    path: str | Path, key: str, what: str
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the description of a safetensors file with arrays of any type."""
    from safetensors import safe_open

    path = Path(path)
    _check_header(path, what)
    try:
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except Exception as error:  # the package and NumPy raise what they like
        raise InputError(f"{path} is damaged or no {what} file: {error!s:.100}.") from None
    if key not in texts:
        kinds = [kind for known, kind in _KINDS.items() if known in texts]
        found = f" (it is one of a {kinds[0]})" if kinds else ""
        raise InputError(f"{path} is a safetensors file, but not one of a {what}{found}.")
    try:
        return arrays, parse(texts[key])
    except InputError as error:
        raise InputError(f"The description in {path} is damaged: {error}") from None


def has_description(path: Path, key: str) -> bool:
    """Whether a file is a safetensors file with a description under ``key``; reads no array."""
    from safetensors import SafetensorError, safe_open

    try:
        _check_header(path, key)
        with safe_open(path, framework="numpy") as file:
            return key in (file.metadata() or {})
    except (InputError, SafetensorError):
        return False


def _check_header(path: Path, what: str) -> None:
    """Refuse what is no file, and a header whose tables would fill the memory."""
    if not path.exists():
        raise InputError(f"There is no {what} file {path}.")
    if not path.is_file():
        raise InputError(f"{path} is not a file.")
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    if length > LONGEST_HEADER:
        raise InputError(f"{path} is damaged or no {what} file: it is not a safetensors file.")


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


def expect(arrays: Mapping[str, np.ndarray], known: Callable[[str], bool]) -> None:
    """Refuse arrays that nothing would read."""
    for name in arrays:
        if not known(name):
            raise InputError(f"it has an array {shown(name)} that nothing reads.")


def finite(
    arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return an array of a file, checked."""
    if name not in arrays:
        raise InputError(f"it has no {name}.")
    values = arrays[name]
    if shape is not None and values.shape != shape:
        raise InputError(f"its {name} has the shape {values.shape}, not {shape}.")
    if not np.all(np.isfinite(values)):
        raise InputError(f"its {name} is not made of finite numbers.")
    return values
