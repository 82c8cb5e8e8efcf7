"""One problem of many parts: each a linear model on its own rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ode2opt.display import Listing, one_line
from ode2opt.errors import InputError
from ode2opt.problems._arrays import Array, is_sparse, namespace
from ode2opt.problems.categories import column_names
from ode2opt.problems.curvature import largest_eigenvalue
from ode2opt.problems.frames import encoding_of
from ode2opt.problems.gram import Extent
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts.agreement import agreed, noted
from ode2opt.problems.parts.blocks import Block, Facts, Given, Look, Part, Recipe, Source, Terms
from ode2opt.problems.parts.engines import Engine, Threads
from ode2opt.problems.row_model import RowModel

NUMBER = 8  # bytes
LARGEST_SAMPLE = 1 << 30  # bytes of rows that are brought together


class Parts(RowModel):
    """The mean of a loss over the rows of all parts, as one problem.

    It is the mean of the parts' means, each with its share of the rows: whatever is linear in these
    is asked of every part and added up. Solvers see the problem that one matrix with all rows would
    be, the same to rounding.

    Args:
        kind: the class of the loss, such as ``Logistic``.
        parts: of each part (A, b), or a :class:`Block` (with weights and offsets), or a
            :class:`Source` that is read where it is needed. A may be dense, sparse or a
            ``np.memmap``; all parts have the same columns. Parts without rows count for nothing.
        engine: who works on the parts; by default threads of this process.
        labels: whether labels, of any values, are to be counted from 0; these are
            ``label_values`` then.
        scale: whether columns are divided by their largest entries, which are then ``sizes``.
        options: of the loss, such as ``l2`` and ``intercept``.

    Attributes:
        words: those of columns of words, each of which is a column, after those of numbers.
        names: those of all columns, where they have some.
        encoding: how the columns of files or frames became those of the matrix, None of arrays.
        notes: sentences about what was done to files.

    Examples:
        >>> problem = Parts(Logistic, [(A[:500], b[:500]), (A[500:], b[500:])], l2=1e-3)
        >>> solve(problem).x
    """

    def __init__(
        self,
        kind: type[LinearModel],
        parts: Iterable[tuple[Array, Array] | Block | Source],
        *,
        engine: Engine | None = None,
        labels: bool = False,
        scale: bool = False,
        **options: Any,
    ) -> None:
        sources = _sources(parts)
        self.engine = Threads() if engine is None else engine
        facts = self.engine.describe(sources, Look(labels, not kind.binary, scale))
        terms = agreed(kind, options, facts, labels)
        made = {i: terms.made(part) for i, part in enumerate(facts) if part.rows}
        self._settle(terms, made, sources)
        self._like(_one_row(terms, next(part.dtype for part in facts if part.rows)))

    def _settle(self, terms: Terms, facts: Mapping[int, Facts], sources: Sequence[Source]) -> None:
        """Have the parts made, and keep what is known of their rows."""
        self.N = self.rows = sum(part.rows for part in facts.values())
        shares = {i: part.rows / self.N for i, part in facts.items()}
        self.engine.settle({i: Recipe(sources[i].name, terms, shares[i]) for i in facts})
        self.sizes, self.label_values, self.words = terms.sizes, terms.values, terms.words
        self.encoding = terms.encoding
        if terms.encoding is None and terms.names is not None:
            self.encoding = encoding_of(terms.names, terms.words)
        self.notes = noted([*facts.values()])
        self.names = None if terms.names is None else column_names(terms.names, terms.words)
        self.bytes = sum(part.bytes for part in facts.values())
        self._numbers = list(facts)
        ends = [sources[self._numbers[i]] for i in (0, -1)]
        self._first_and_last = tuple(end.name for end in ends if not isinstance(end, Given))
        self._ends = np.cumsum([part.rows for part in facts.values()])
        self._entries = sum(part.entries for part in facts.values())
        pairs = [part.pairs for part in facts.values() if part.pairs is not None]
        self._extent = Extent(self.N, terms.columns, sum(pairs) if pairs else None)

    def _like(self, model: LinearModel) -> None:
        """Take over what does not depend on the rows."""
        self._kind = model.kind
        self.l2, self.intercept, self.n, self.width = (
            model.l2,
            model.intercept,
            model.n,
            model.width,
        )
        self.quadratic, self.slope_bound = model.quadratic, model.slope_bound
        self.intercept_l2 = model.intercept_l2
        self.dtype, self.xp = model.dtype, namespace(np.empty(0))

    @property
    def kind(self) -> str:
        return self._kind

    def __repr__(self) -> str:
        return one_line("Parts", [("kind", self.kind), *self._about()])

    def _listing(self) -> Listing:
        return Listing(f"{self.kind} in parts", self._about())

    def _about(self) -> list[tuple[str, str]]:
        names = " ... ".join(dict.fromkeys(self._first_and_last))
        parts = f"{len(self._numbers):,}{f' ({names})' if names else ''}"
        return [*super()._about(), ("parts", parts), ("held by", type(self.engine).__name__)]

    @property
    def columns(self) -> int:
        return self._extent.columns

    @property
    def sparse(self) -> bool:
        return self._extent.pairs is not None

    def entries(self) -> int:
        return self._entries

    def extent(self) -> Extent:
        return self._extent

    def largest_sample(self) -> int:
        """Return how many rows may be brought together: they must fit into memory here."""
        return min(
            super().largest_sample(), LARGEST_SAMPLE * self.N // max(1, NUMBER * self._entries)
        )

    def _sum(self, name: str, *args: Any) -> Any:
        """Return the sum over parts of a method's answers times the parts' shares."""
        return self.engine.total(partial(_share_of, name, args))

    def value(self, x: Array) -> Array:
        return self._sum("value", x)

    def value_at_zero(self) -> float:
        return float(self._sum("value_at_zero"))

    def gradient(self, x: Array) -> Array:
        return self._sum("gradient", x)

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        return self._sum("value_and_gradient", x)

    def hvp(self, x: Array, v: Array) -> Array:
        return self._sum("hvp", x, v)

    def hessian(self, x: Array) -> Array:
        self._check_hessian_size()
        return self._sum("hessian", x)

    def hessian_bound(self) -> Array:
        self._check_hessian_size()
        self._check_slope_bound()
        return self._sum("hessian_bound")

    def gradient_rounding(self, x: Array, value: float | None = None) -> float:
        """Return the sum of the parts' bounds, and that of adding up their gradients."""
        return 2 * float(self._sum("gradient_rounding", x))

    def absolute_product(self, v: np.ndarray) -> np.ndarray:
        self._check_slope_bound()
        return self._sum("absolute_product", v)

    def class_hessians(self, x: Array, each: bool = True) -> Array:
        return self._sum("class_hessians", x, each)

    def hessian_diagonal(self, x: Array) -> Array:
        return self._sum("hessian_diagonal", x)

    def gradient_error(self, x: Array) -> float:
        return math.sqrt(self.engine.total(partial(_squared_error, x)))

    def largest_bend(self, x: Array) -> float:
        return max(self.ask_each(partial(_share_of, "largest_bend", (x,))))

    def largest_squares(self) -> np.ndarray:
        return self._largest_squares.copy()

    @cached_property
    def _largest_squares(self) -> np.ndarray:
        return np.max(self.ask_each(_largest_squares), axis=0)

    def ask_each(self, ask: Any) -> list[Any]:
        """Return what each part with rows answers, in order."""
        return list(self.engine.each(dict.fromkeys(self._numbers, ask)).values())

    def _gram_eigenvalue(self) -> tuple[float, int]:
        return largest_eigenvalue(partial(self._sum, "gram_product"), self.n, self.dtype)

    def subset(self, index: np.ndarray) -> LinearModel:
        """Return the problem of some of the rows, brought together here."""
        owner = np.searchsorted(self._ends, index, side="right")
        first = np.concatenate([[0], self._ends])
        asks = {
            self._numbers[k]: partial(_subset, index[owner == k] - first[k])
            for k in np.unique(owner)
        }
        found = self.engine.each(asks)
        joined = _joined([found[i] for i in asks])
        order = np.argsort(owner, kind="stable")
        if np.array_equal(order, np.arange(len(order))):
            return joined
        return joined.subset(np.argsort(order))


def _sources(parts: Iterable[tuple[Array, Array] | Block | Source]) -> list[Source]:
    found = list(parts)
    if not found:
        raise InputError("There are no parts: give at least one.")
    return [_source(part, f"Part {i} of {len(found)}") for i, part in enumerate(found, 1)]


def _source(part: Any, name: str) -> Source:
    if isinstance(part, Source):
        return part
    if isinstance(part, tuple | list) and len(part) == 2:
        part = Block(*part)
    if isinstance(part, Block):
        return Given(name, part)
    raise InputError(f"{name} must be (A, b), a Block or a Source, not {type(part).__name__}.")


def _one_row(terms: Terms, dtype: Any) -> LinearModel:
    """Return a problem of one row of zeros, which knows all but the rows."""
    row = Block(np.zeros((1, terms.columns), dtype=dtype), np.zeros(1))
    return replace(terms, values=(), sizes=None, words={}).model(row)


def _share_of(name: str, args: tuple[Any, ...], part: Part) -> Any:
    answer = getattr(part.model, name)(*args)
    if isinstance(answer, tuple):
        return tuple(part.share * one for one in answer)
    return part.share * answer


def _squared_error(x: Array, part: Part) -> float:
    return (part.share * part.model.gradient_error(x)) ** 2


def _largest_squares(part: Part) -> np.ndarray:
    return part.model.largest_squares()


def _subset(index: np.ndarray, part: Part) -> LinearModel:
    return part.model.subset(index)


def _joined(models: Sequence[LinearModel]) -> LinearModel:
    """Return the problem of the rows of several."""
    joined = copy.copy(models[0])
    for name in joined.arrays:
        values = [getattr(model, name) for model in models]
        if values[0] is not None:
            setattr(joined, name, _stacked(values))
    joined._set(joined.A, joined.b)
    return joined


def _stacked(values: Sequence[Array]) -> Array:
    if not is_sparse(values[0]):
        return np.concatenate(values)
    from scipy.sparse import vstack

    return vstack(values, format="csr")
