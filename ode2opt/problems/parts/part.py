"""A part as a problem of its own: what all parts agree on, and the rows of one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, as_vector
from ode2opt.base.errors import InputError
from ode2opt.data.categories import Words, one_hot, stays_dense, width
from ode2opt.data.encoding import TableEncoding
from ode2opt.data.preparing import scaled
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts.blocks import Block, Facts, LoadedRows, RowSource, naming

NUMBER, INDEX = 8, 4  # bytes


@dataclass(frozen=True)
class Terms:
    """What all parts agree on; with it a part's rows become a problem.

    Attributes:
        kind: the class of the loss.
        options: of the loss.
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

    def with_words(self, part: Facts) -> Facts:
        """Return a part's facts after its words have become columns."""
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
    """The problem of a part's rows, and its share of all rows.

    Attributes:
        name: what errors call it.
        terms: what all parts agree on.
        share: of all rows, between 0 and 1.
        model: the problem; None where its rows are read again at each question.
        source: where they are read again.
    """

    name: str
    terms: Terms
    share: float
    model: LinearModel | None = None
    source: RowSource | None = None

    @property
    def bytes(self) -> int:
        """About how much memory the problem takes."""
        if self.model is None:
            return 0
        return Block(self.model.A, self.model.b).bytes() + 2 * NUMBER * self.model.N

    def of(self, rows: LoadedRows) -> Part:
        """Return the part with the problem of its rows or, if they are not held, their source."""
        if rows.block is None:
            return replace(self, source=rows.source)
        return replace(self, model=self._model(rows.block))

    def read_again(self) -> LinearModel:
        """Return the problem of rows that are not held."""
        assert self.source is not None
        try:
            return self._model(self.source.read())
        except OSError as error:
            raise InputError(f"{self.name} could not be read again: {error}") from None

    def _model(self, block: Block) -> LinearModel:
        with naming(self.name):
            return self.terms.model(block)
