"""The files of a method, a memory, a model and a checkpoint: arrays and one description in JSON.

All are safetensors files. Reading one executes nothing from it: its header is bounded before the
package sees it, its description is read field by field (:mod:`ode2opt.base.schema`), each array is
taken by what needs it, and none may be left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.base.schema import BOUNDS, parse
from ode2opt.base.storage import check_folder_of, write_atomically

Made = TypeVar("Made")


class Arrays(dict[str, np.ndarray]):
    """The arrays of a file by name; what is taken is no longer in it."""

    def take(self, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Take an array of finite numbers."""
        if name not in self:
            raise InputError(f"it has no {name}.")
        values = self.pop(name)
        if shape is not None and values.shape != shape:
            raise InputError(f"its {name} has the shape {values.shape}, not {shape}.")
        if not np.all(np.isfinite(values)):
            raise InputError(f"its {name} is not made of finite numbers.")
        return values

    def document(self, name: str) -> dict[str, Any]:
        """Take the JSON object that :func:`as_document` has made an array of."""
        if (values := self.take(name)).ndim != 1:
            raise InputError(f"its {name} has the shape {values.shape}, not of a text.")
        try:
            return parse(values.tobytes(), BOUNDS.document)
        except InputError as error:
            raise InputError(f"its {name} is damaged: {error}") from None

    def check_all_taken(self) -> None:
        """Refuse arrays that nothing has read."""
        for name in self:
            raise InputError(f"it has an array {shown(name)} that nothing reads.")


def as_document(document: Mapping[str, Any]) -> np.ndarray:
    """Return a JSON object as an array of bytes, for what is too long for a description."""
    text = json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    if len(text) > BOUNDS.document:
        raise InputError(f"The names of columns take {len(text):,} bytes: too many for a file.")
    return np.frombuffer(text, dtype=np.uint8)


@dataclass(frozen=True)
class Record:
    """A kind of file.

    Attributes:
        what: what such a file holds, in a word.
        key: the name of the description in the file.
        version: of the format; it is a field of the description, too.
        documents: names of arrays that are of bytes; all others are float64. None takes arrays of
            any type.
    """

    what: str
    key: str
    version: int | None = None
    documents: tuple[str, ...] | None = ()

    def write(
        self, path: str | Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]
    ) -> None:
        """Write a file atomically: a crash or a full disk leaves what was there."""
        check_folder_of(path)
        if self.documents is not None:
            arrays = {
                name: np.asarray(values, dtype=np.uint8 if name in self.documents else np.float64)
                for name, values in arrays.items()
            }
        blob = self.packed(arrays, about)
        write_atomically(Path(path), lambda stream: stream.write(blob))

    def packed(self, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> bytes:
        """Return the content of a file."""
        from safetensors.numpy import save

        text = json.dumps(about, allow_nan=False)
        if len(text) > BOUNDS.text:
            raise InputError(
                f"The description of a {self.what} has {len(text):,} characters: too many."
            )
        whole = {  # reshaped, since a single number would become an array of one
            name: np.ascontiguousarray(values).reshape(np.shape(values))
            for name, values in arrays.items()
        }
        return save(whole, metadata={self.key: text})

    def read(self, path: str | Path, make: Callable[[Arrays, dict[str, Any]], Made]) -> Made:
        """Return what ``make`` makes of the arrays and the description of a file, checked."""
        arrays, about = self.opened(path)
        try:
            made = make(arrays, about)
            arrays.check_all_taken()
            return made
        except InputError as error:
            raise InputError(f"{path} is no valid {self.what}: {error}") from None

    def opened(self, path: str | Path) -> tuple[Arrays, dict[str, Any]]:
        """Return the arrays of a file and its description."""
        from safetensors import safe_open

        path = Path(path)
        self._check_header(path)
        try:
            with safe_open(path, framework="numpy") as file:
                texts = file.metadata() or {}
                arrays = Arrays({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except Exception as error:  # the package and NumPy raise what they like
            raise InputError(f"{path} is damaged or no {self.what} file: {error!s:.100}.") from None
        if self.key not in texts:
            kinds = [kind.what for kind in (METHOD, MEMORY, MODEL) if kind.key in texts]
            found = f" (it is one of a {kinds[0]})" if kinds else ""
            raise InputError(f"{path} is a safetensors file, but not one of a {self.what}{found}.")
        try:
            about = parse(texts[self.key])
        except InputError as error:
            raise InputError(f"The description in {path} is damaged: {error}") from None
        self._check_types(path, arrays)
        if about.get("version") != self.version:
            found = shown(about.get("version"), 20)
            raise InputError(
                f"{path} has format version {found}; this ode2opt reads {self.version}."
            )
        return arrays, about

    def _check_types(self, path: Path, arrays: Arrays) -> None:
        for name, values in arrays.items():
            if self.documents is not None and values.dtype != (
                np.uint8 if name in self.documents else np.float64
            ):
                raise InputError(
                    f"{path} is no valid {self.what}: its {name} is of {values.dtype}."
                )

    def is_at(self, path: Path) -> bool:
        """Whether a file is one of this kind; reads no array."""
        from safetensors import SafetensorError, safe_open

        try:
            self._check_header(path)
            with safe_open(path, framework="numpy") as file:
                return self.key in (file.metadata() or {})
        except (InputError, SafetensorError):
            return False

    def _check_header(self, path: Path) -> None:
        """Refuse what is no file, and a header whose tables would fill the memory."""
        if not path.exists():
            raise InputError(f"There is no {self.what} file {path}.")
        if not path.is_file():
            raise InputError(f"{path} is not a file.")
        try:
            with path.open("rb") as stream:
                length = int.from_bytes(stream.read(8), "little")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        if length > 4 * BOUNDS.text:  # bytes: a description with all its characters escaped
            raise InputError(
                f"{path} is damaged or no {self.what} file: it is not a safetensors file."
            )


METHOD = Record("method", "ode2opt", 3)
MEMORY = Record("memory", "ode2opt-memory", 1)
MODEL = Record("model", "ode2opt-model", 1, documents=("table",))
CHECKPOINT = Record("checkpoint", "position", documents=None)
