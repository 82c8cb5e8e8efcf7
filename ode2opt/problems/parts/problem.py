"""One problem of many parts: each a linear model on its own rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array, is_sparse, namespace
from ode2opt.base.display import Listing, one_line
from ode2opt.base.errors import InputError
from ode2opt.data.categories import column_names
from ode2opt.data.encoding import encoding_of
from ode2opt.executor import Executor, HeldItems, LocalExecutor
from ode2opt.problems.curvature import largest_eigenvalue
from ode2opt.problems.gram import Extent
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts.agreement import agreed, noted
from ode2opt.problems.parts.blocks import Block, Facts, FirstPass, RowsInMemory, RowSource
from ode2opt.problems.parts.part import Part, Terms
from ode2opt.problems.row_model import RowModel

NUMBER = 8  # bytes
LARGEST_SAMPLE = 1 << 30  # bytes of rows that are brought together
PartQuestion = Callable[[LinearModel, float], Any]
"""A function of a part's problem and share of all rows; on workers it must be picklable."""


class HeldRows:
    """The rows of a problem's parts, which an executor holds.

    Attributes:
        N: how many there are.
        columns: those of the matrix.
        sparse: whether only the entries that are not zero are kept.
        passes: how often parts were asked, all of them or those that a sample is from.
        held: the parts.
    """

    def __init__(self, held: HeldItems, facts: Mapping[int, Facts], terms: Terms) -> None:
        rows = [part.rows for part in facts.values()]
        self.N, self.columns, self.passes, self.held = sum(rows), terms.columns, 0, held
        held.change({i: Part(one.name, terms, one.rows / self.N).of for i, one in facts.items()})
        self.numbers, self._ends = list(facts), np.cumsum(rows)
        self._entries = sum(part.entries for part in facts.values())
        pairs = [part.pairs for part in facts.values() if part.pairs is not None]
        self.sparse = bool(pairs)
        self._pairs = sum(pairs) if pairs else None

    def entries(self) -> int:
        """Return how many entries are kept."""
        return self._entries

    def extent(self) -> Extent:
        """Return what the price of A^T W A depends on."""
        return Extent(self.N, self.columns, self._pairs)

    def total(self, question: PartQuestion) -> Any:
        """Return the sum of all parts' answers."""
        self.passes += 1
        return self.held.sum(partial(_asked, question))

    def ask(self, questions: Mapping[int, PartQuestion]) -> list[Any]:
        """Return the answers of some parts."""
        self.passes += 1
        asked = {i: partial(_asked, question) for i, question in questions.items()}
        return list(self.held.ask(asked).values())

    def ask_each(self, question: PartQuestion) -> list[Any]:
        """Return the answers of all parts with rows, in order."""
        return self.ask(dict.fromkeys(self.numbers, question))

    def largest_squares(self) -> np.ndarray:
        """Return the square of each column's largest entry, then 1 for an intercept."""
        return self._largest_squares.copy()

    @cached_property
    def _largest_squares(self) -> np.ndarray:
        return np.max(self.ask_each(_largest_squares), axis=0)

    def take(self, index: np.ndarray) -> LinearModel:
        """Return the problem of some of the rows, brought together here."""
        owner = np.searchsorted(self._ends, index, side="right")
        first = np.concatenate([[0], self._ends])
        asks = {
            self.numbers[k]: partial(_subset, index[owner == k] - first[k])
            for k in np.unique(owner)
        }
        joined = _joined(self.ask(asks))
        order = np.argsort(owner, kind="stable")
        if np.array_equal(order, np.arange(len(order))):
            return joined
        return joined.subset(np.argsort(order))


def _summed(name: str, *checks: str) -> Any:
    """Return a method: the sum over parts of their answers times their shares of the rows."""

    def method(self: Parts, *args: Any) -> Any:
        for check in checks:
            getattr(self, check)()
        return self._sum(name, *args)

    method.__name__, method.__doc__ = name, getattr(RowModel, name).__doc__
    return method


class Parts(RowModel):
    """The mean of a loss over the rows of all parts, as one problem.

    It is the mean of the parts' means, each with its share of the rows: whatever is linear in these
    is asked of every part and added up. Solvers see the problem that one matrix with all rows would
    be, the same to rounding.

    Args:
        kind: the class of the loss, such as ``Logistic``.
        parts: of each part (A, b), or a :class:`Block` (with weights and offsets), or a
            :class:`RowSource` that is read where it is needed. A may be dense, sparse or a
            ``np.memmap``; all parts have the same columns. Parts without rows count for nothing.
        executor: who holds the parts and works on them; by default threads of this process.
        labels: whether labels, of any values, are to be counted from 0; these are
            ``label_values`` then.
        scale: whether columns are divided by their largest entries, which are then ``sizes``.
        options: of the loss, such as ``l2`` and ``intercept``.

    Attributes:
        data: the rows as they are held.
        held: the parts, where the executor holds them.
        words: those of columns of words, each of which is a column, after those of numbers.
        names: those of all columns, where they have some.
        encoding: how the columns of files or frames became those of the matrix, None of arrays.
        notes: sentences about what was done to files.

    Examples:
        >>> problem = Parts(Logistic, [(A[:500], b[:500]), (A[500:], b[500:])], l2=1e-3)
        >>> solve(problem).x
    """

    data: HeldRows
    provides: frozenset[str] = frozenset()

    def __init__(
        self,
        kind: type[LinearModel],
        parts: Iterable[tuple[Array, Array] | Block | RowSource],
        *,
        executor: Executor | None = None,
        labels: bool = False,
        scale: bool = False,
        **options: Any,
    ) -> None:
        sources = _sources(parts)
        self.executor = LocalExecutor() if executor is None else executor
        held = self.executor.hold(FirstPass(labels, not kind.binary, scale).read, sources)
        known = held.ask(dict.fromkeys(range(len(sources)), attrgetter("facts"))).values()
        facts = list(known)
        terms = agreed(kind, options, facts, labels)
        full = {i: terms.with_words(part) for i, part in enumerate(facts) if part.rows}
        self.data = HeldRows(held, full, terms)
        self.held, self.N = held, self.data.N
        self.rows = self.N
        self.sizes, self.label_values, self.words = terms.sizes, terms.values, terms.words
        self.encoding = terms.encoding
        if terms.encoding is None and terms.names is not None:
            names, words = terms.names, terms.words
            self.encoding = encoding_of(len(names), names, words, named=True)
        self.notes = noted([*full.values()])
        self.names = None if terms.names is None else column_names(terms.names, terms.words)
        self.bytes = sum(part.bytes for part in full.values())
        ends = [sources[self.data.numbers[i]] for i in (0, -1)]
        self._first_and_last = tuple(end.name for end in ends if not isinstance(end, RowsInMemory))
        self._like(_one_row(terms, next(part.dtype for part in facts if part.rows)))

    def _like(self, model: LinearModel) -> None:
        """Take over what does not depend on the rows."""
        self._kind = model.kind
        for name in ("l2", "intercept", "intercept_l2", "n", "width", "quadratic", "slope_bound"):
            setattr(self, name, getattr(model, name))
        self.dtype, self.xp = model.dtype, namespace(np.empty(0))
        self.provides = super().provides

    @property
    def kind(self) -> str:
        return self._kind

    def __repr__(self) -> str:
        return one_line("Parts", [("kind", self.kind), *self._about()])

    def _listing(self) -> Listing:
        return Listing(f"{self.kind} in parts", self._about())

    def _about(self) -> list[tuple[str, str]]:
        names = " ... ".join(dict.fromkeys(self._first_and_last))
        parts = f"{len(self.data.numbers):,}{f' ({names})' if names else ''}"
        return [*super()._about(), ("parts", parts), ("held by", type(self.executor).__name__)]

    @property
    def passes(self) -> int:
        """How often parts were asked, all of them or those that a sample is from."""
        return self.data.passes

    def largest_sample(self) -> int:
        """Return how many rows may be brought together: they must fit into memory here."""
        fitting = LARGEST_SAMPLE * self.N // max(1, NUMBER * self.data.entries())
        return min(super().largest_sample(), fitting)

    def _sum(self, name: str, *args: Any) -> Any:
        """Return the sum over parts of a method's answers times the parts' shares."""
        return self.data.total(partial(_share_of, name, args))

    value = _summed("value")
    value_at_zero = _summed("value_at_zero")
    gradient = _summed("gradient")
    value_and_gradient = _summed("value_and_gradient")
    hvp = _summed("hvp")
    hessian = _summed("hessian", "_check_hessian_size")
    hessian_bound = _summed("hessian_bound", "_check_hessian_size", "_check_slope_bound")
    hessian_diagonal = _summed("hessian_diagonal")
    absolute_product = _summed("absolute_product", "_check_slope_bound")
    class_hessians = _summed("class_hessians")

    def gradient_rounding(self, x: Array, value: float | None = None) -> float:
        """Return the sum of the parts' bounds, and that of adding up their gradients."""
        return 2 * float(self._sum("gradient_rounding", x))

    def gradient_error(self, x: Array) -> float:
        return math.sqrt(self.data.total(partial(_squared_error, x)))

    def largest_bend(self, x: Array) -> float:
        return max(self.ask_each(partial(_share_of, "largest_bend", (x,))))

    def ask_each(self, question: PartQuestion) -> list[Any]:
        """Return ``question(problem, share)`` of each part with rows, in order.

        Args:
            question: a function of a part's problem and its share of all rows. It must be
                picklable where others hold the parts.
        """
        return self.data.ask_each(question)

    def _gram_eigenvalue(self) -> tuple[float, int]:
        return largest_eigenvalue(partial(self._sum, "gram_product"), self.n, self.dtype)

    def subset(self, index: np.ndarray) -> LinearModel:
        """Return the problem of some of the rows, brought together here."""
        return self.data.take(index)


def _sources(parts: Iterable[tuple[Array, Array] | Block | RowSource]) -> list[RowSource]:
    found = list(parts)
    if not found:
        raise InputError("There are no parts: give at least one.")
    return [_source(part, f"Part {i} of {len(found)}") for i, part in enumerate(found, 1)]


def _source(part: Any, name: str) -> RowSource:
    if isinstance(part, RowSource):
        return part
    if isinstance(part, tuple | list) and len(part) == 2:
        part = Block(*part)
    if isinstance(part, Block):
        return RowsInMemory(name, part)
    raise InputError(f"{name} must be (A, b), a Block or a RowSource, not {type(part).__name__}.")


def _one_row(terms: Terms, dtype: Any) -> LinearModel:
    """Return a problem of one row of zeros, which knows all but the rows."""
    row = Block(np.zeros((1, terms.columns), dtype=dtype), np.zeros(1))
    return replace(terms, values=(), sizes=None, words={}).model(row)


def _asked(question: PartQuestion, part: Part) -> Any:
    """Ask a part; overflows in its answer raise no warning, as in a solve."""
    model = part.read_again() if part.model is None else part.model
    with np.errstate(over="ignore", invalid="ignore"):
        return question(model, part.share)


def _share_of(name: str, args: tuple[Any, ...], model: LinearModel, share: float) -> Any:
    answer = getattr(model, name)(*args)
    if isinstance(answer, tuple):
        return tuple(share * one for one in answer)
    return share * answer


def _squared_error(x: Array, model: LinearModel, share: float) -> float:
    return (share * model.gradient_error(x)) ** 2


def _largest_squares(model: LinearModel, _: float) -> np.ndarray:
    return model.data.largest_squares()


def _subset(index: np.ndarray, model: LinearModel, _: float) -> LinearModel:
    return model.subset(index)


def _joined(models: Sequence[LinearModel]) -> LinearModel:
    """Return one problem with the rows of several."""
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
