"""Learning rows inside the cap: knots first, then every number, the barrier falling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ode2opt.learning.sequence.certified.descent import descend
from ode2opt.learning.sequence.certified.objective import BarrierObjective

BARRIERS = {"knots": (3.0, 1.0, 0.3), "rows": (0.3, 0.1, 0.03)}
"""The weights mu of the barrier, in iterations, of the phases one after another."""


class CertifiedStep(NamedTuple):
    """An accepted point of training.

    Attributes:
        rows: the learned rows, shape (K, 3).
        value: the objective, barrier included.
        ratio: the worst case in multiples of Nesterov's own, below the cap.
        mu: the weight of the barrier.
        phase: "knots" or "rows".
        stage: the number of the weight among all, from 0.
        last: whether it is the last point with this weight.
    """

    rows: np.ndarray
    value: float
    ratio: float
    mu: float
    phase: str
    stage: int
    last: bool


def has_room(objective: BarrierObjective) -> bool:
    """Whether the first rows are far enough below the cap for others to be learned."""
    found = objective.certified(objective.rows.first())
    return found is not None and found.ratio < objective.cap


def train_rows(
    objective: BarrierObjective,
    knots: int,
    steps: int,
    log: Callable[[str], None] = lambda _: None,
    learned: np.ndarray | None = None,
    stage: int = 0,
) -> Iterator[CertifiedStep]:
    """Yield the accepted points of training; each is certified."""
    rows = objective.rows
    phases = {"knots": rows.by_knots(knots), "rows": rows.each_alone()}
    plan = [(phase, mu) for phase, weights in BARRIERS.items() for mu in weights]
    learned = rows.first() if learned is None else learned
    for number, (phase, mu) in list(enumerate(plan))[stage:]:
        log(f"learning {phase} with the barrier {mu:g}")
        share = steps * (number + 1) // len(plan) - steps * number // len(plan)
        for step in _phase(objective, learned, phases[phase], mu, phase, share):
            learned = step.rows
            yield step._replace(stage=number)


def _phase(
    objective: BarrierObjective,
    first: np.ndarray,
    basis: np.ndarray,
    mu: float,
    phase: str,
    steps: int,
) -> Iterator[CertifiedStep]:
    """Yield the points of one weight of the barrier."""

    def rows_of(z: np.ndarray) -> np.ndarray:
        return first + (basis @ z).reshape(first.shape)

    def value_and_gradient(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(rows_of(z), mu)
        return value, basis.T @ slope.ravel()

    points = descend(value_and_gradient, np.zeros(basis.shape[1]), steps)
    waiting: CertifiedStep | None = None
    for z, value in points:
        if waiting is not None:
            yield waiting
        waiting = CertifiedStep(rows_of(z), value, objective.ratio, mu, phase, 0, last=False)
    if waiting is not None:
        yield waiting._replace(last=True)
