"""config.json: what the result of a run depends on, written and read. Nothing here needs JAX."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError
from ode2opt.base.schema import read
from ode2opt.base.storage import read_object
from ode2opt.learning.options import Options
from ode2opt.learning.registry import read_options
from ode2opt.problems.family import Family
from ode2opt.solvers import Memory

CONFIG = "config.json"
SECTIONS = ("options", "family", "versions")  # by which a configuration is known
LAYOUT = 2  # of run directories: a target's own options, restarts among the steps


@dataclass(frozen=True)
class FamilyInfo:
    """What a configuration says of the problems.

    Attributes:
        name: the family's name.
        split: how train and test rows are told apart.
        size: rows of a problem.
        hash: of the data; None for problems of a sampler of the user's own.
    """

    name: str
    split: str | None
    size: int | None
    hash: str | None


@dataclass(frozen=True)
class MemoryInfo:
    """What a configuration says of the memory that a run began with.

    Attributes:
        solves: how many solves it had seen.
        looks: how many of them it had learned curvature from.
        hash: of its preconditioner and mean solution.
    """

    solves: int
    looks: int
    hash: str


@dataclass(frozen=True)
class OwnInfo:
    """What a configuration says of coefficients and penalties that are no plain options.

    Attributes:
        coefficients: the name of the module's class; None for coefficients by name.
        penalties: the names of all penalties.
        hash: of the arrays in both.
    """

    coefficients: str | None
    penalties: str
    hash: str


@dataclass(frozen=True)
class Config:
    """The content of config.json, checked.

    Attributes:
        layout: the version of the folder's layout.
        options: of the run, the target's name among them.
        family: the problems.
        versions: of the packages that decide what is learned.
        memory: what the run began with, None for none.
        own: what is known of coefficients and penalties of the user's own, None for none.
    """

    layout: int
    options: dict[str, Any]
    family: FamilyInfo
    versions: dict[str, str]
    memory: MemoryInfo | None = None
    own: OwnInfo | None = None

    def __post_init__(self) -> None:
        read_options(self.options)


def configuration(
    family: Family,
    options: Options,
    memory: Memory | None = None,
    own: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the content of ``config.json``: what the result of a run depends on."""
    packages = ("ode2opt", "jax", "equinox", "optax", "numpy")
    remembered = {} if memory is None else {"memory": _memory_identity(memory)}
    given = {} if own is None else {"own": dict(own)}
    return given | remembered | {
        "layout": LAYOUT,
        "options": options.as_dict(),
        "family": {
            "name": family.name, "split": family.split, "size": family.size,
            "hash": _family_hash(family),
        },
        "versions": {name: version(name) for name in packages},
    }  # fmt: skip


def _family_hash(family: Family) -> str | None:
    """Return the hash of a family's data, and of its penalty where it has one."""
    data = family.fingerprint()
    if family.penalty is None:
        return data
    return hashlib.sha256(f"{data} {family.penalty!r}".encode()).hexdigest()


def _memory_identity(memory: Memory) -> dict[str, Any]:
    """Return the counts of a memory and a hash of what it has learned."""
    method = memory.method()
    metric = method.metric
    parts = [] if metric is None else [metric.scale, metric.V, metric.stretch]
    digest = hashlib.sha256()
    for array in (method.start, *parts):
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return dict(method.provenance["memory"]) | {"hash": digest.hexdigest()}


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the configuration of the run in a folder, with every field checked."""
    file = Path(path) / CONFIG
    if not file.is_file():
        raise InputError(
            f"There is nothing to resume in {path}: it has no config.json; start without --resume."
        )
    document = read_object(file)
    if not all(isinstance(document.get(name), dict) for name in SECTIONS):
        raise InputError(f"{file} is not of a run of ode2opt: name another folder.")
    if document.get("layout") != LAYOUT:
        raise InputError(
            f"{path} is a run of an older layout, which cannot be gone on with: start anew, with "
            f"another --out."
        )
    try:
        return asdict(read(Config, document))
    except InputError as error:
        was = document["versions"].get("ode2opt")
        if was != version("ode2opt"):
            raise InputError(f"{file} is of ode2opt {was!r:.20}: go on with that.") from None
        raise InputError(f"{file} is damaged: {error}") from None
