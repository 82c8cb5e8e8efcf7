"""Results of work items, kept by content: the same work is never done twice in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ode2opt.base.errors import InputError
from ode2opt.base.storage import write_atomically
from ode2opt.study.reproduction.plan import Effort, Item

PACKAGES = ("numpy", "scipy", "jax", "equinox", "diffrax", "optax")
PACKAGE = Path(__file__).parents[2]
NUMERICS = (
    "base",
    "data",
    "problems",
    "penalties",
    "coefficients",
    "paper",
    "proofs",
    "solvers",
    "learning",
    "executor",
    "kernels",
    "study/benchmark.py",
    "study/tuned.py",
    "study/reproduction/cells.py",
    "study/reproduction/contraction.py",
    "study/reproduction/plan.py",
)
"""The folders and files whose source decides the numbers of a study."""
WRITTEN = ("results.json", "cache", "tables", "figures", "report.html")
"""What a study writes into its folder in addition to study.json."""
Identity = dict[str, Any]


def identity_of(effort: Effort) -> Identity:
    """Return what decides every number of a study, the data apart."""
    return {
        "ode2opt": version("ode2opt"),
        "code": code_hash(),
        "effort": effort.as_dict(),
        "packages": {name: version(name) for name in PACKAGES},
    }


@cache
def code_hash(package: Path = PACKAGE) -> str:
    """Return a hash of the source that decides results; how they are shown is no part of it."""
    digest = hashlib.sha256()
    for path in sorted(path for name in NUMERICS for path in _sources(package / name)):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(path: Path) -> list[Path]:
    return [path] if path.suffix else list(path.rglob("*.py"))


def claim(folder: Path, identity: Identity) -> None:
    """Make the folder this study's own."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --out names a folder.")
    file = folder / "study.json"
    if not file.exists():
        if found := [name for name in WRITTEN if (folder / name).exists()]:
            raise InputError(f"{folder} holds {found[0]} of something else: name another --out.")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(file, identity)
        return
    found = read_json(file)
    if not isinstance(found, dict):
        raise InputError(f"{file} is damaged: name another --out.")
    for name, words in _WORDS.items():
        if found.get(name) != identity[name]:
            was, now = (_short(one.get(name)) for one in (found, identity))
            raise InputError(
                f"{folder} was made with {words} ({was} there, {now} here), and results are not "
                f"mixed: name another --out."
            )


_WORDS = {
    "ode2opt": "another version of ode2opt",
    "effort": "other settings",
    "code": "other numerical code of ode2opt",
    "packages": "other packages",
}


def _short(value: Any) -> str:
    if isinstance(value, dict) and "mark" in value:
        return value["mark"] or "the whole study"
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return str(value)[:12]


@dataclass(frozen=True)
class Store:
    """The cache of one study."""

    folder: Path
    identity: Identity
    fingerprints: Mapping[tuple[str, str], str]

    def key(self, item: Item) -> str:
        """Return the hash of all that decides an item's result."""
        parts = [self.identity, list(item), self.fingerprints[item.problem, item.dataset]]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def file(self, item: Item) -> Path:
        """Return the file of an item's result."""
        return self.folder / f"{self.key(item)}.json"

    def run(self, item: Item) -> Path:
        """Return the folder of a training run."""
        return self.folder / f"{self.key(item)}.run"

    def knows(self, item: Item) -> bool:
        """Whether an item is done."""
        return (item.problem, item.dataset) in self.fingerprints and self.file(item).is_file()

    def load(self, item: Item) -> dict[str, Any] | None:
        """Return an item's result; None if it is not done."""
        return read_json(self.file(item)) if self.knows(item) else None

    def save(self, item: Item, result: dict[str, Any]) -> None:
        """Write an item's result."""
        self.folder.mkdir(exist_ok=True)
        write_json(self.file(item), {"item": list(item)} | result)


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; None if it cannot be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def write_json(path: Path, document: Any, *, strict: bool = False) -> None:
    """Write a JSON file."""
    text = json.dumps(document, indent=1 if strict else None, allow_nan=not strict) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()))
