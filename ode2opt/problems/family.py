"""A family: a distribution of problems of one kind, to learn from and to test on."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ode2opt.base.arrays import Array, as_matrix, as_vector, as_weights, is_sparse
from ode2opt.base.display import Displayed, Listing, brief, one_line
from ode2opt.base.errors import InputError, many, unknown_name
from ode2opt.data.datasets import load_dataset
from ode2opt.data.files import ReadKeywords, ReadOptions
from ode2opt.data.preparing import DataRows
from ode2opt.data.sources import DataWarning, DownloadBar
from ode2opt.problems.base import Problem
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.logistic import Logistic
from ode2opt.problems.losses import Huber, LeastSquares, Lpp, Poisson, SquaredHinge
from ode2opt.problems.softmax import Softmax

KINDS: dict[str, type[LinearModel]] = {
    "logistic": Logistic,
    "lpp": Lpp,
    "leastsquares": LeastSquares,
    "poisson": Poisson,
    "huber": Huber,
    "squaredhinge": SquaredHinge,
    "softmax": Softmax,
}
PARTS = ("train", "test")
FEW_PROBLEMS = 100  # fewer different problems than this repeat in a benchmark
COUNTED_UP_TO = 4  # rows in, or left out of, a problem: with more there are always FEW_PROBLEMS


@dataclass(frozen=True)
class Fold:
    """One of several stretches of the rows, in the file's order; or all the others.

    Attributes:
        index: which stretch, from 0.
        count: how many stretches there are.
        others: whether all rows outside the stretch are meant; False by default.
    """

    index: int
    count: int
    others: bool = False


class HasProx(Protocol):
    """What is added to the problems of a family: an :class:`ode2opt.Penalty`."""

    def value(self, x: Array) -> Array:
        """Return h(x)."""

    def prox(self, x: Array, step: Any) -> Array:
        """Return the minimiser of h(z) + |z - x|^2 / (2 step)."""


Seed = int | Sequence[int] | np.random.Generator
Sampler = Callable[[np.random.Generator, str], Problem]


def kind_of(problem: str | type[LinearModel]) -> type[LinearModel]:
    """Return the class of a problem."""
    if isinstance(problem, type):
        if not issubclass(problem, LinearModel):
            raise InputError(f"{problem.__name__} is no linear model: families are made of these.")
        return problem
    if problem not in KINDS:
        raise unknown_name("problem", str(problem), KINDS)
    return KINDS[problem]


def _name_of(problem: str | type[LinearModel]) -> str:
    return problem if isinstance(problem, str) else problem.__name__.lower()


class Family(Displayed):
    """Problems drawn at random; make one with ``from_dataset``, ``from_arrays``, ``from_sampler``.

    ``sample(seed)`` returns the same problem for the same seed on every machine with the same
    NumPy stream (``numpy.random.default_rng``).

    Args:
        name: of the family, for reports.
        sampler: makes a problem from a random generator and "train" or "test".
        size: the number of rows of a problem, where it is made of rows.
        split: how train and test rows were told apart, for reports.

    Attributes:
        notes: sentences about how a file was read.
        penalty: what is added to each of its problems; None, the default, for nothing.
    """

    def __init__(
        self, name: str, sampler: Sampler, size: int | None = None, split: str | None = None
    ) -> None:
        self.name, self.split = name, split
        self.size = None if size is None else int(size)
        self.notes: tuple[str, ...] = ()
        self.penalty: HasProx | None = None
        self._sampler = sampler

    def __repr__(self) -> str:
        return one_line("Family", self._about())

    def _listing(self) -> Listing:
        return Listing("Family of problems", self._about())

    def _about(self) -> list[tuple[str, str]]:
        rows = [("problems", self.name)]
        if self.size is not None:
            rows.append(("rows a problem", f"{self.size:,}"))
        sampler = self._sampler
        if isinstance(sampler, _RowSampler):
            train, test = (len(sampler.rows[part]) for part in PARTS)
            columns = many(sampler.rows["train"].A.shape[1], "column")
            rows.append(("drawn from", f"{train:,} + {test:,} rows (train + test), {columns}"))
            rows += [(name, brief(value)) for name, value in sampler.options.items()]
        else:
            rows.append(("drawn by", str(getattr(sampler, "__name__", type(sampler).__name__))))
        if self.penalty is not None:
            rows.append(("penalty", repr(self.penalty)))
        return rows if self.split is None else [*rows, ("split", self.split)]

    def sample(
        self, rng: Seed, part: str = "train", *, block: bool = False, fold: Fold | None = None
    ) -> Problem:
        """Return one problem.

        Args:
            rng: a seed, a list of seeds, or a generator (which moves on).
            part: "train", or "test" for the rows that training never sees.
            block: take rows that follow each other instead of rows at random: in an ordered file
                a sub-population of its own. A sampler of your own knows no blocks and no folds.
            fold: take rows at random from a fold only, at most all it has.

        Raises:
            InputError: the part is unknown, ``rng`` is no seed, or a sampler of your own returned
                something else than a problem.
        """
        if part not in PARTS:
            raise unknown_name("part", part, PARTS)
        try:
            generator = np.random.default_rng(rng)
        except (TypeError, ValueError) as error:
            raise InputError(f"{rng!r} is no seed: {error}.") from None
        if isinstance(self._sampler, _RowSampler):
            if block:
                return self._sampler.block(generator, part)
            if fold is not None:
                return self._sampler.fold(generator, part, fold)
        problem = self._sampler(generator, part)
        if not isinstance(problem, Problem):
            raise InputError(f"The sampler returned {type(problem).__name__}, not a Problem.")
        return problem

    def with_penalty(self, penalty: HasProx) -> Family:
        """Return the same family, each problem with a penalty or a constraint added to it.

        Args:
            penalty: an :class:`ode2opt.Penalty`, the same for all problems.

        Raises:
            InputError: it has no prox.

        Examples:
            >>> from ode2opt import L1
            >>> family = Family.from_dataset("logistic", "digits").with_penalty(L1(0.01))
        """
        if isinstance(penalty, type) or not hasattr(penalty, "prox"):
            raise InputError(f"{penalty!r} is no penalty: give one such as ode2opt.L1(0.01).")
        family = copy(self)
        family.penalty = penalty
        return family

    @property
    def words(self) -> tuple[str, ...]:
        """Labels that were no numbers, in the order of the numbers they have become."""
        known = isinstance(self._sampler, _RowSampler)
        return self._sampler.rows["train"].words if known else ()  # type: ignore[attr-defined]

    @property
    def train_rows(self) -> int | None:
        """How many rows training problems are drawn from; None for a sampler of your own."""
        known = isinstance(self._sampler, _RowSampler)
        return len(self._sampler.rows["train"]) if known else None  # type: ignore[attr-defined]

    def fingerprint(self) -> str | None:
        """Return a hash of what problems are made of; None for a sampler of your own."""
        return self._sampler.fingerprint() if isinstance(self._sampler, _RowSampler) else None

    @classmethod
    def from_dataset(
        cls,
        problem: str | type[LinearModel],
        dataset: str | os.PathLike[str],
        *,
        split: str | None = None,
        size: int | None = None,
        progress: DownloadBar | None = None,
        reading: ReadOptions | None = None,
        **options: Any,
    ) -> Family:
        """Make problems of ``size`` rows drawn without replacement from a dataset.

        Args:
            problem: a name of ``ode2opt.problems.KINDS``: "logistic", "lpp", "leastsquares",
                "poisson", "huber", "squaredhinge" or "softmax"; or a class of your own.
            dataset: a name or a file; see :func:`ode2opt.problems.load_dataset`.
            split: "paper" or "shuffled".
            size: rows a problem; by default the paper's (1,024, covtype 10,240).
            progress: what a download reports to.
            reading: how a file is read, see :class:`ode2opt.data.files.ReadOptions`; None (the
                default) takes the keywords alone.
            **options: likewise: ``label``, ``weights``, ``missing``, ``drop``, ``columns`` and
                ``decimal``, as in :func:`ode2opt.problems.read_table`. All others are passed to
                the problem (``l2``, ``p``, ``intercept``).

        Raises:
            InputError: a name is unknown, the file cannot be read as asked, or has too few rows.

        Examples:
            >>> family = Family.from_dataset("logistic", "digits", size=100, l2=1e-3)
            >>> family.sample(0).N
            100
        """
        kind = kind_of(problem)
        data = load_dataset(
            dataset,
            split=split,
            binary=kind.binary,
            classes=kind.counted,
            progress=progress,
            reading=ReadOptions.of(reading, **_taken(options, ReadKeywords.__annotations__)),
        )
        rows = {"train": data.train, "test": data.test}
        size = data.size if size is None else size
        sampler = _RowSampler(kind, rows, size, options)
        family = cls(f"{_name_of(problem)} {data.name}", sampler, size, data.split)
        family.notes = data.notes
        return family

    @classmethod
    def from_arrays(
        cls,
        problem: str | type[LinearModel],
        A: Array,
        b: Array,
        *,
        size: int,
        weights: Array = None,
        test: tuple[Array, ...] | None = None,
        **options: Any,
    ) -> Family:
        """Make problems of ``size`` rows drawn without replacement from arrays, taken as they are.

        Args:
            problem: a name of ``ode2opt.problems.KINDS``, or a class (a subclass of
                :class:`LinearModel`).
            A: N x n matrix of rows, dense or sparse.
            b: N targets.
            size: rows a problem.
            weights: of the rows, if they have any.
            test: (A, b) or (A, b, weights) of the test problems; by default the last 40% of the
                rows are held back for these.
            **options: passed to the problem (``l2``, ``p``, ``intercept``).

        Raises:
            InputError: shapes do not fit, or there are fewer than ``size`` rows.
        """
        whole, held_back = _as_rows("A", A, b, weights), 0
        if test is None:
            cut = int(0.6 * len(whole))
            held_back = len(whole) - cut
            rows = {"train": whole.take(slice(0, cut)), "test": whole.take(slice(cut, None))}
        else:
            if len(test) not in (2, 3):
                raise InputError("test must be (A, b) or (A, b, weights).")
            rows = {"train": whole, "test": _as_rows("the test matrix", *test)}
            columns = [part.A.shape[1] for part in rows.values()]
            if columns[0] != columns[1]:
                raise InputError(f"Train has {columns[0]} columns, test {columns[1]}.")
        sampler = _RowSampler(kind_of(problem), rows, size, options, held_back)
        return cls(_name_of(problem), sampler, size)

    @classmethod
    def from_sampler(cls, sampler: Callable[[np.random.Generator], Problem]) -> Family:
        """Make problems by a function of your own; test problems are fresh draws.

        To learn from it, return problems that are made of arrays (``Logistic``, ``Lpp``,
        ``LeastSquares``, ``Quadratic``, a subclass of your own): what is compiled for one serves
        all. Each ``FunctionProblem`` is compiled anew, which takes seconds a problem.

        Args:
            sampler: makes a problem from a NumPy random generator.
        """

        def draw(rng: np.random.Generator, part: str) -> Problem:
            return sampler(rng)

        draw.__name__ = str(getattr(sampler, "__name__", type(sampler).__name__))
        return cls("sampler", draw)


def _taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Take options of some names out of a dictionary."""
    return {name: options.pop(name) for name in names if name in options}


def _as_rows(name: str, A: Array, b: Array, weights: Array = None) -> DataRows:
    A = as_matrix(A, name)
    N = A.shape[0]
    given = None if weights is None else as_weights(weights, A)
    return DataRows(A, as_vector(b, A, "b", N), given)


class _RowSampler:
    """Draws rows without replacement and makes a problem of them."""

    def __init__(
        self,
        kind: type[LinearModel],
        rows: dict[str, DataRows],
        size: int,
        options: dict[str, Any],
        held_back: int = 0,
    ) -> None:
        fewest = min(len(part) for part in rows.values())
        if size != int(size) or not 1 <= size <= fewest:
            why = ""
            if held_back:
                total = sum(len(part) for part in rows.values())
                why = f": of {total} rows {held_back} were held back for test problems"
            raise InputError(f"A problem of {size} rows cannot be drawn from {fewest} rows{why}.")
        if kind.counted and "classes" not in options:
            options = options | {"classes": max(2, _classes(rows))}
        self.kind, self.rows, self.size, self.options = kind, rows, size, options
        _warn_of_repetition(len(rows["test"]), size)

    def fingerprint(self) -> str:
        """Return a hash of kind, options and all rows; an option left out is its default."""
        defaults = {name: p.default for name, p in inspect.signature(self.kind).parameters.items()}
        given = sorted(set(self.options.items()) - set(defaults.items()))
        digest = hashlib.sha256(f"{self.kind.__name__} {given}".encode())
        for part in PARTS:
            A, b, weights = self.rows[part].A, self.rows[part].b, self.rows[part].weights
            arrays = (A.data, A.indices, A.indptr) if is_sparse(A) else (A,)
            for array in (*arrays, b, *([] if weights is None else [weights])):
                digest.update(np.ascontiguousarray(np.asarray(array)).tobytes())
        return digest.hexdigest()

    def __call__(self, rng: np.random.Generator, part: str) -> Problem:
        return self._problem(part, rng.choice(len(self.rows[part]), self.size, replace=False))

    def block(self, rng: np.random.Generator, part: str) -> Problem:
        """Make a problem of rows that follow each other, wherever they begin."""
        first = int(rng.integers(len(self.rows[part]) - self.size + 1))
        return self._problem(part, np.arange(first, first + self.size))

    def fold(self, rng: np.random.Generator, part: str, fold: Fold) -> Problem:
        """Make a problem of rows of a fold."""
        stretches = np.array_split(np.arange(len(self.rows[part])), fold.count)
        rows = stretches[fold.index]
        if fold.others:
            rows = np.concatenate(stretches[: fold.index] + stretches[fold.index + 1 :])
        return self._problem(part, rng.choice(rows, min(self.size, len(rows)), replace=False))

    def _problem(self, part: str, index: np.ndarray) -> Problem:
        chosen = self.rows[part].take(index)
        weighing: dict[str, Any] = {} if chosen.weights is None else {"weights": chosen.weights}
        return self.kind(chosen.A, chosen.b, **weighing, **self.options)


def _classes(rows: dict[str, DataRows]) -> int:
    """Return the number of classes of all rows together; labels count from 0."""
    return max(int(np.max(np.asarray(part.b))) for part in rows.values()) + 1


def _warn_of_repetition(rows: int, size: int) -> None:
    """Warn where so few different test problems can be drawn that a benchmark repeats them."""
    few = int(min(size, rows - size))
    different = math.comb(rows, few) if few <= COUNTED_UP_TO else FEW_PROBLEMS
    if different < FEW_PROBLEMS:
        warnings.warn(
            f"Test problems must repeat: only {many(different, 'different one')} of {size} rows "
            f"can be drawn from {many(rows, 'row')}; give more rows, or a smaller size.",
            DataWarning,
            stacklevel=4,
        )
