"""L-BFGS with any preconditioner, stopped on the Euclidean gradient norm like every other method.

With H_0 = s M, M the preconditioner, and the last corrections as the rows of S and Y, the direction
is -H g in the compact form of Byrd, Nocedal and Schnabel (docs/mathematics.md, section 11): four
products of a 2m x n matrix with a vector a step, nothing that grows, and one product with M.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from ode2opt.base.ended import Ended
from ode2opt.base.lapack import dtrtrs
from ode2opt.solvers.objective import Evaluated
from ode2opt.solvers.oracle import Oracle, Outcome, Watch
from ode2opt.solvers.stages.line_search import Standstill, Trial, search
from ode2opt.solvers.stages.stage import Stage

CORRECTIONS = 10
Product = Callable[[np.ndarray], np.ndarray]


class Lbfgs(Stage):
    """Plain L-BFGS."""

    name = "lbfgs"

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        oracle.log("L-BFGS")
        return lbfgs(oracle, point)


class PreconditionedLbfgs(Stage):
    """L-BFGS with a given preconditioner."""

    name = "metric-lbfgs"

    def __init__(
        self, description: str, product: Product, watch: Watch | None, first: float = 1.0
    ) -> None:
        super().__init__(watch)
        self.description, self.product, self.first = description, product, first

    def run(self, oracle: Oracle, point: Evaluated) -> Outcome:
        """Minimise from an evaluated point."""
        oracle.log(self.description)
        return lbfgs(oracle, point, self.product, self.first)


def lbfgs(
    oracle: Oracle, here: Evaluated, metric: Product | None = None, first: float | None = None
) -> Outcome:
    """Minimise from an evaluated point until a watch ends the stage or no step helps."""
    corrections, standstill = Corrections(oracle.problem.n), Standstill()
    scaled = here.g if metric is None else metric(here.g)
    if first is None and metric is not None:
        first = 1.0
    while True:
        direction = corrections.direction(here.g, scaled)
        longest = 1.0 / max(here.norm, 1e-300) if first is None else first
        found = step(oracle, here, direction, longest if corrections.empty else 1.0)
        if found is None and not corrections.empty:
            corrections.clear()
            continue
        if found is None or standstill(found.value, found.norm):
            return Outcome(Ended.LINE_SEARCH, here)
        new_scaled = found.g if metric is None else metric(found.g)
        corrections.add(found.x - here.x, found.g - here.g, new_scaled - scaled)
        here, scaled = found, new_scaled
        if (outcome := oracle.judge(here)) is not None:
            return outcome


def step(oracle: Oracle, here: Evaluated, direction: np.ndarray, first: float) -> Evaluated | None:
    """Return the evaluated point of an accepted step along a direction, None if there is none."""
    slope = float(direction @ here.g)
    if not -math.inf < slope < 0:  # rounding has spoilt the direction
        return None
    tried = here

    def at(length: float) -> Trial:
        nonlocal tried
        tried = oracle.evaluate(here.x + length * direction)
        return Trial(length, tried.value, float(tried.g @ direction))

    found = search(Trial(0.0, here.value, slope), first, at, oracle.rounding)
    return None if found is None else tried


@cache
def _rings(most: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the rows of s by age: while the ring fills, and by where the oldest is after that."""
    slots = 2 * np.arange(most)
    filling = [slots[:m] for m in range(most + 1)]
    return filling, [np.roll(slots, -first) for first in range(most)]


class Corrections:
    """The last steps s and changes z = M y of the preconditioned gradient, in a ring of rows.

    s_i . y_j (of which i <= j counts) and z_i . y_j are kept in order of age.
    """

    def __init__(self, n: int, most: int = CORRECTIONS) -> None:
        self.most = most
        self._rows = np.zeros((2 * most, n))  # s and z of slot i in rows 2i and 2i + 1
        self._young, self._orders = _rings(most)
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self._filled = self._first = 0
        self._sy = np.zeros((self.most, self.most), order="F")
        self._zy = np.zeros((self.most, self.most))
        self._scale = 1.0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to go by."""
        return not self._filled

    @property
    def _order(self) -> np.ndarray:
        """The rows of s by age, the oldest first."""
        full = self._filled == self.most
        return self._orders[self._first] if full else self._young[self._filled]

    def add(self, s: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
        """Take note of a step; one without positive curvature is left out."""
        sy, zy = float(s @ y), float(z @ y)
        if not (0 < sy < math.inf and 0 < zy < math.inf):
            return
        if self._filled == self.most:  # the oldest goes
            slot, m = 2 * self._first, self.most - 1
            self._first = (self._first + 1) % self.most
            for products in (self._sy, self._zy):
                products[:-1, :-1] = products[1:, 1:]
        else:
            slot, m = 2 * self._filled, self._filled
            self._filled += 1
        self._rows[slot], self._rows[slot + 1] = s, z
        against, order = self._rows[: 2 * self._filled] @ y, self._order
        self._sy[: m + 1, m] = against[order]
        self._zy[: m + 1, m] = self._zy[m, : m + 1] = against[order + 1]
        self._scale = sy / zy

    def direction(self, g: np.ndarray, scaled: np.ndarray) -> np.ndarray:
        """Return -H g for the gradient g and M g."""
        if self.empty:
            return -scaled
        m, order, gamma = self._filled, self._order, self._scale
        rows = self._rows[: 2 * m]
        along = rows @ g
        R = self._sy[:m, :m]
        p, _ = dtrtrs(R, along[order])
        q = R.diagonal() * p + gamma * (self._zy[:m, :m] @ p - along[order + 1])
        q, _ = dtrtrs(R, q, trans=1)
        weights = np.empty(2 * m)
        weights[order], weights[order + 1] = -q, gamma * p
        result = weights @ rows
        result -= gamma * scaled
        return result
