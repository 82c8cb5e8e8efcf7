"""What work on a problem costs: what ``auto`` plans with.

Prices are in evaluations of value and gradient. They come from measured times of the parts
(``ode2opt.base.machine``); nothing is timed in a solve, so that the same problem is always
solved in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, repeat
from typing import Any

from ode2opt.base.machine import NUMPY, form_in_use, measured_times
from ode2opt.kernels.coordinate import is_compiled
from ode2opt.problems.base import LARGEST_DENSE_HESSIAN, Problem
from ode2opt.problems.gram import Extent

NANO = 1e-9


@dataclass(frozen=True)
class MeasuredTimes:
    """Times of the parts of a solve on one core, in nanoseconds, and counts that were chosen.

    The times are those of ``ode2opt/base/measured_times.json``.

    Attributes:
        entry: value and gradient together, an entry of a dense matrix.
        cached_entry: the same for a matrix of at most ``cached`` entries, which stays in the cache.
        sparse_entry: the same for an entry of a sparse matrix.
        row: value and gradient, beside the entries of a row.
        further: one more score of a row, in times of an entry.
        cube, square: a factorisation, by n^3 and n^2.
        solve: a solve with the factor, by n^2.
        correction: a step of L-BFGS beside its evaluation, by n.
        evaluation, forming: what of an evaluation and of a Hessian does not depend on size.
        flop: an operation of a problem that is no linear model.
        first_steps, further_steps: of L-BFGS on a first subsample, and on each larger one, about.
        products: with the Hessian in a Newton step by conjugate gradients, about.
        move: of a variable in coordinate descent, which NumPy takes beside its row.
    """

    entry: float
    cached_entry: float
    sparse_entry: float
    row: float
    further: float
    cube: float
    square: float
    solve: float
    correction: float
    evaluation: float
    forming: float
    flop: float = 0.5
    cached: int = 1 << 19
    first_steps: int = 30
    further_steps: int = 4
    products: int = 60
    move: float = 2_000.0


@cache
def times_of(form: str) -> MeasuredTimes:
    """Return the set of times of a form."""
    times: dict[str, Any] = {**measured_times("solving", form)}
    return MeasuredTimes(**times)


class Costs:
    """Prices of the parts of a solve, on ``m`` of the problem's rows (all by default)."""

    def __init__(self, problem: Problem, count_calls: bool = False) -> None:
        self.count_calls, self.times = count_calls, times_of(form_in_use(problem))
        self.problem, self.n, self.rows = problem, problem.n, problem.rows or 1
        self.model: Any = problem if "rows" in problem.provides else None

    def hessian(self, m: int | None = None) -> float:
        """Return the price of a Hessian, formed and factorised, in evaluations that use it."""
        price = self.hessian_seconds(m) / self.preconditioned_seconds()
        if not self.count_calls:
            return price
        return max(price, self._share(m) * self.hessian_calls)

    @cached_property
    def hessian_calls(self) -> float:
        """Of how many gradients a Hessian of all rows has the operations."""
        return self.problem.hessian_flops() / self.problem.gradient_flops()

    def hessian_of(self, rows: Extent) -> float:
        """Return the price of a Hessian of given rows, in evaluations that use it."""
        return self._formed(rows.seconds()) / self.preconditioned_seconds()

    def subsamples(self, sizes: Sequence[int]) -> float:
        """Return the price of solving subsamples of so many rows, one after the other."""
        seconds = sum(self.hessian_seconds(m) for m in sizes)
        for steps, m in zip(
            chain([self.times.first_steps], repeat(self.times.further_steps)), sizes, strict=False
        ):
            seconds += steps * self.evaluation_seconds(m)
        return seconds / self.preconditioned_seconds()

    def model_work(self, moves: int, face: int) -> float:
        """Return the price of work in a quadratic model, in evaluations."""
        times = self.times
        price = moves * self._move
        if face:
            price += times.forming + times.cube * face**3 + times.square * face**2
        return NANO * price / self._evaluation

    @cached_property
    def _move(self) -> float:
        times = self.times
        each = times.cached_entry if self.n**2 < times.cached else times.entry
        return each * self.n + (0.0 if is_compiled(self.n) else times.move)

    def newton_by_cholesky(self) -> bool:
        """Whether a Newton step is cheaper with the whole Hessian than by products."""
        if self.n > LARGEST_DENSE_HESSIAN:
            return False
        return self.hessian_seconds() < self.times.products * self.evaluation_seconds()

    def evaluation_seconds(self, m: int | None = None) -> float:
        """Return seconds of value and gradient, with what a step of L-BFGS costs beside them."""
        return self._evaluation if m is None else self._evaluated(m)

    @cached_property
    def _evaluation(self) -> float:
        return self._evaluated(None)

    def _evaluated(self, m: int | None) -> float:
        share, model = self._share(m), self.model
        times = self.times if m is None else times_of(NUMPY)  # some rows: too small for kernels
        own = times.evaluation + times.correction * self.n
        if model is None:
            return NANO * (own + times.flop * self.problem.gradient_flops())
        entries = share * self._entries
        each = times.cached_entry if entries < times.cached else times.entry
        if self.sparse:
            each = times.sparse_entry
        each *= 1 + times.further * (model.width - 1)
        rows = times.row * share * self.rows * model.width
        return NANO * (own + each * entries + rows)

    @cached_property
    def sparse(self) -> bool:
        """Whether a linear model keeps few entries of its matrix."""
        return bool(self.model.sparse)

    @cached_property
    def _entries(self) -> float:
        return self.model.entries() if self.sparse else self.rows * self.n / self.model.width

    def preconditioned_seconds(self) -> float:
        """Return seconds of one evaluation with a product by a dense preconditioner."""
        return self.evaluation_seconds() + NANO * self.times.solve * self.n**2

    def hessian_seconds(self, m: int | None = None) -> float:
        """Return seconds of a Hessian, formed and factorised."""
        forming = NANO * self.times.square * self.n**2
        if self.model is not None:
            forming = self._share(m) * self._gram_seconds
        elif self.hessian_calls >= self.n:
            forming = self.n * self.evaluation_seconds()
        return self._formed(forming)

    @cached_property
    def _gram_seconds(self) -> float:
        """All products A^T W A of a Hessian."""
        assert self.model is not None
        return self.model.grams() * self.model.extent().seconds()

    def _formed(self, forming: float) -> float:
        times = self.times
        return forming + NANO * (times.forming + times.cube * self.n**3 + times.square * self.n**2)

    def _share(self, m: int | None) -> float:
        return 1.0 if m is None else m / self.rows
