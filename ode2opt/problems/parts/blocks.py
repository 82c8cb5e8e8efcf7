"""The rows of a part: as they come, what is to be known of them, and as a problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array, as_matrix, as_raw_weights, as_vector, is_sparse
from ode2opt.problems.categories import Category, Words, one_hot, stays_dense, width
from ode2opt.problems.encoding import TableEncoding
from ode2opt.problems.files.missing import Holes
from ode2opt.problems.gram import extent
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.preparing import Place, check_finite, largest_entries, scaled

FEW = 5  # label values that are told, and one more
NUMBER, INDEX = 8, 4  # bytes


@dataclass(frozen=True)
class Block:
    """Rows as they come: a matrix, targets (numbers, or words), weights and offsets of the rows.

    Attributes:
        names: those of the columns, where they have some.
        grows: whether columns beyond the last are zeros that nobody wrote down, as in LIBSVM text.
        categories: columns of words, which are not in A; each word will be a column.
        place: what errors call a row, by its number from 0.
        encoding: how the columns of a file became these.
        notes: sentences about what was done to a file.
        holes: cells of A that are to be replaced by the means of their columns over all parts.
    """

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
class Source(Protocol):
    """Where a part comes from; it may be read again, and on another machine."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def bytes(self) -> int:
        """About how large it is."""

    def read(self) -> Block:
        """Return its rows."""


@dataclass(frozen=True)
class Given:
    """A part that is in memory already, or mapped into it."""

    name: str
    block: Block

    @property
    def bytes(self) -> int:
        return self.block.bytes()

    def read(self) -> Block:
        return self.block


@dataclass(frozen=True)
class Facts:
    """What has to be known of a part before its problem can be made.

    Columns, sizes and entries are those of numbers; ``words`` come beside them. ``totals`` are the
    sums of columns and how many cells are not missing, where means are to replace those that are.
    """

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
class Look:
    """What is to be found out in the first pass.

    Attributes:
        labels: whether labels, of any values, are to be counted from 0.
        many: whether there may be more than two of them.
        scale: whether columns are to be divided by their largest entries.
    """

    labels: bool = False
    many: bool = False
    scale: bool = False

    def facts(self, source: Source) -> tuple[Block, Facts]:
        """Return a part's rows, checked, and its facts."""
        with naming(source.name):
            block = source.read()
            names = None if block.names is None else tuple(block.names)
            shape: tuple[int, ...] = getattr(block.A, "shape", ())
            if len(shape) == 2 and shape[0] == 0:
                return block, Facts(source.name, 0, int(shape[1]), 0, block.grows, names)
            block = _checked(block, self.labels)
            A, weights = block.A, block.weights
            return block, Facts(
                name=source.name,
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
        """Return the labels there are; where two are due, enough to tell that there are more."""
        return tuple(np.unique(labels)[: None if self.many else FEW + 1].tolist())


def _checked(block: Block, labels: bool) -> Block:
    """Return rows of finite numbers; labels that are to be mapped may be words."""
    if block.place is not None:
        check_finite(block.A, "rows", block.names, block.place)
    A = as_matrix(_aligned(block.A))
    N = A.shape[0]
    b = np.asarray(block.b)
    if not labels or b.dtype.kind in "fiub":
        b = as_vector(b, A, "b", N)
    elif b.shape != (N,):
        raise InputError(f"b has shape {b.shape}, but {N} labels are needed.")
    weights = None if block.weights is None else as_raw_weights(block.weights, A)
    offset = None if block.offset is None else as_vector(block.offset, A, "offset", N)
    return replace(block, A=A, b=b, weights=weights, offset=offset)


def _aligned(A: Array) -> Array:
    """Return a matrix where processors like it: one that has travelled may begin at any byte.

    There products would be slower, and would round in another way.
    """
    return np.require(A, requirements="A") if isinstance(A, np.ndarray) else A


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Say of an error in which part it was."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if name in text else f"{name}: {text}") from None


@dataclass(frozen=True)
class Terms:
    """What all parts agree on; with it a part's rows become a problem.

    Attributes:
        kind: the loss, with its ``options``.
        columns: those of the widest part, words included.
        values: the labels that are counted from 0, in order, where they are not numbers already.
        sizes: what columns are divided by.
        weight: what makes the mean weight of all rows one.
        names: those of the columns of numbers, where they have some.
        words: those in columns of words; each is a column, after those of numbers.
        encoding: how the columns of files became those of the matrix, where rows are of files.
        fills: what missing cells of each column are replaced by.
    """

    kind: type[LinearModel]
    options: dict[str, Any]
    columns: int
    values: tuple[Any, ...] = ()
    sizes: np.ndarray | None = None
    weight: float = 1.0
    names: tuple[str, ...] | None = None
    words: Words = field(default_factory=dict)
    encoding: TableEncoding | None = None
    fills: np.ndarray | None = None

    def made(self, part: Facts) -> Facts:
        """Return a part's facts as they are when words have become columns."""
        if not self.words:
            return part
        entries = part.columns + len(self.words)  # of a row
        if stays_dense(part.columns, self.words):
            whole = width(part.columns, self.words)
            return replace(part, entries=part.rows * whole, bytes=NUMBER * part.rows * whole)
        return replace(
            part,
            entries=part.rows * entries,
            bytes=(NUMBER + INDEX) * part.rows * entries,
            pairs=float(part.rows * entries**2),
        )

    def model(self, block: Block) -> LinearModel:
        """Return the problem of a part's rows."""
        b = block.b
        if self.values:
            places = np.searchsorted(np.array(self.values), b.astype(type(self.values[0])))
            b = places.astype(np.float64)
        shift = {} if block.offset is None else {"offset": block.offset}
        model = self.kind(self._matrix(block), b, **self.options, **shift)
        if block.weights is not None:
            model.weights = self.weight * as_vector(block.weights, model.A, "weights", model.N)
        return model

    def _matrix(self, block: Block) -> Array:
        A = block.A
        if self.fills is not None and block.holes is not None:
            A = block.holes.filled(A, self.fills)
        if self.words:
            A = one_hot(A, block.categories, self.words)
        elif A.shape[1] < self.columns:
            A = type(A)((A.data, A.indices, A.indptr), shape=(A.shape[0], self.columns))
        return A if self.sizes is None else scaled(A, self.sizes)


@dataclass(frozen=True)
class Part:
    """The problem of a part's rows, and its share of all rows."""

    model: LinearModel
    share: float


@dataclass(frozen=True)
class Recipe:
    """How a part is made of its rows, which may be read again."""

    name: str
    terms: Terms
    share: float

    def part(self, block: Block) -> Part:
        """Return the part."""
        with naming(self.name):
            return Part(self.terms.model(block), self.share)
