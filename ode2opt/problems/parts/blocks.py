"""The rows of a part as they come, and what is found out about them when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ode2opt.base.arrays import (
    Array,
    as_matrix,
    as_raw_weights,
    as_vector,
    is_sparse,
    refuse_masked,
)
from ode2opt.base.errors import InputError
from ode2opt.data.categories import Category, Words
from ode2opt.data.encoding import TableEncoding
from ode2opt.data.preparing import Place, check_finite, largest_entries
from ode2opt.data.table import Holes
from ode2opt.problems.gram import extent

FEW = 5  # label values that an error lists


@dataclass(frozen=True)
class Block:
    """Rows as they come."""

    A: Array
    b: Array
    weights: Array = None
    offset: Array = None
    names: Sequence[str] | None = None
    grows: bool = False
    categories: Mapping[str, Category] = field(default_factory=dict)
    place: Place | None = None
    encoding: TableEncoding | None = None
    notes: tuple[str, ...] = ()
    holes: Holes | None = None

    def __len__(self) -> int:
        return int(self.A.shape[0])

    def bytes(self) -> int:
        """Return the memory that the matrix takes; one that stays in its file takes none."""
        if isinstance(self.A, np.memmap):
            return 0
        if is_sparse(self.A):
            return int(self.A.data.nbytes + self.A.indices.nbytes + self.A.indptr.nbytes)
        return int(self.A.nbytes)


@runtime_checkable
class RowSource(Protocol):
    """Where the rows of a part come from. It may be read several times, on several machines."""

    @property
    def name(self) -> str:
        """The name of the part in errors."""

    @property
    def bytes(self) -> int:
        """About how large the rows are."""

    def read(self) -> Block:
        """Return the rows."""


@dataclass(frozen=True)
class RowsInMemory:
    """Rows that are in memory already, or mapped into it."""

    name: str
    block: Block

    @property
    def bytes(self) -> int:
        """The memory that the rows take."""
        return self.block.bytes()

    def read(self) -> Block:
        """Return the rows."""
        return self.block


@dataclass(frozen=True)
class Facts:
    """What has to be known of a part before its problem can be made."""

    name: str
    rows: int
    columns: int
    bytes: int
    grows: bool
    names: tuple[str, ...] | None = None
    dtype: Any = None
    pairs: float | None = None
    entries: int = 0
    weight: float = 0.0
    weighted: bool = False
    shifted: bool = False
    values: tuple[Any, ...] = ()
    top: float = 0.0
    sizes: np.ndarray | None = None
    words: Words = field(default_factory=dict)
    encoding: TableEncoding | None = None
    notes: tuple[str, ...] = ()
    totals: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class LoadedRows:
    """The rows of a part as they were read.

    Attributes:
        source: where they come from.
        facts: what is known of them.
        block: the rows; None where they will be read again.
    """

    source: RowSource
    facts: Facts
    block: Block | None

    @property
    def bytes(self) -> int:
        """The memory that the rows take."""
        return 0 if self.block is None else self.facts.bytes

    def released(self) -> LoadedRows:
        """Return the same without rows; rows that were in memory before stay."""
        return self if isinstance(self.source, RowsInMemory) else replace(self, block=None)


@dataclass(frozen=True)
class FirstPass:
    """What the first pass over all parts finds out."""

    labels: bool = False
    many: bool = False
    scale: bool = False

    def read(self, source: RowSource) -> LoadedRows:
        """Read a part and check its rows."""
        with naming(source.name):
            block = source.read()
            names = None if block.names is None else tuple(block.names)
            shape: tuple[int, ...] = getattr(block.A, "shape", ())
            if len(shape) == 2 and shape[0] == 0:
                facts = Facts(source.name, 0, int(shape[1]), 0, block.grows, names)
                return LoadedRows(source, facts, block)
            block = _checked(block, self.labels)
            return LoadedRows(source, self._facts(source.name, block, names), block)

    def _facts(self, name: str, block: Block, names: tuple[str, ...] | None) -> Facts:
        A, weights = block.A, block.weights
        return Facts(
            name=name,
            rows=len(block),
            columns=int(A.shape[1]),
            bytes=block.bytes(),
            grows=block.grows,
            names=names,
            dtype=A.dtype,
            pairs=extent(A).pairs,
            entries=int(A.nnz) if is_sparse(A) else A.shape[0] * A.shape[1],
            weight=float(len(block) if weights is None else np.sum(weights)),
            weighted=weights is not None,
            shifted=block.offset is not None,
            values=self._values(block.b) if self.labels else (),
            top=0.0 if self.labels else float(np.max(block.b)),
            sizes=largest_entries(A) if self.scale else None,
            words={name: column.words for name, column in block.categories.items()},
            encoding=block.encoding,
            notes=block.notes,
            totals=None if block.holes is None else block.holes.totals(A),
        )

    def _values(self, labels: np.ndarray) -> tuple[Any, ...]:
        """Return the labels; where two are expected, enough of them to show that there are more."""
        return tuple(np.unique(labels)[: None if self.many else FEW + 1].tolist())


def _checked(block: Block, labels: bool) -> Block:
    """Return rows of finite numbers; labels that are to be mapped may be words."""
    if block.place is not None:
        check_finite(block.A, "rows", block.names, block.place)
    A = as_matrix(block.A)
    N = A.shape[0]
    refuse_masked(block.b, "b")
    b = np.asarray(block.b)
    if not labels or b.dtype.kind in "fiub":
        b = as_vector(b, A, "b", N)
    elif b.shape != (N,):
        raise InputError(f"b has shape {b.shape}, but {N} labels are needed.")
    weights = None if block.weights is None else as_raw_weights(block.weights, A)
    offset = None if block.offset is None else as_vector(block.offset, A, "offset", N)
    return replace(block, A=A, b=b, weights=weights, offset=offset)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of a part before the sentence of an error."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if name in text else f"{name}: {text}") from None
