"""How well predictions fit rows: accuracy, log-loss, R², D²; by parts where rows are in parts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts.problem import Parts
from ode2opt.problems.predicting import COUNT, Prediction

TARGET_ROUNDING = 64 * np.finfo(np.float64).eps
"""Targets that differ by less than this share of their size are the same."""


@dataclass(frozen=True)
class Quality:
    """How well predictions fit; what does not apply is None.

    Attributes:
        rows: how many were predicted.
        accuracy: the part of rows whose class is right.
        log_loss: the mean of -log of the probability of the right class.
        r2: 1 - (sum of squared errors) / (that of the mean as prediction), for numbers.
        d2: the same with the Poisson deviance instead of squares, for counts.

    Rows count with their weights where they have some.
    """

    rows: int
    accuracy: float | None = None
    log_loss: float | None = None
    r2: float | None = None
    d2: float | None = None

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise InputError(f"its quality is of {self.rows} rows.")

    def summary(self) -> dict[str, Any]:
        """Return the measures that apply, for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        names = {"accuracy": "accuracy", "log_loss": "log-loss", "r2": "R²", "d2": "D²"}
        shown = [f"{names[k]} {v:.4f}" for k, v in self.summary().items() if k in names]
        return ", ".join(shown) or "no measure applies"


@dataclass(frozen=True)
class Tally:
    """Sums over rows that measures are made of; those of parts are merged.

    Attributes:
        rows: how many rows.
        weight: the sum of their weights.
        right: the weight of rows whose class is right.
        log_loss: the sum of -log of the probability of the right class.
        errors: the sum of squared errors.
        mean: the weighted mean of targets.
        spread: the sum of squared distances of targets from their mean.
        deviance: the Poisson deviance.
        entropy: the sum of b log b, of which the deviance of the mean is made.
    """

    rows: int
    weight: float
    right: float = math.nan
    log_loss: float = math.nan
    errors: float = math.nan
    mean: float = 0.0
    spread: float = 0.0
    deviance: float = math.nan
    entropy: float = 0.0
    """The sum of b log b, of which the deviance of the mean is made."""

    def merged(self, other: Tally) -> Tally:
        """Return the sums over the rows of both; spreads are merged around the common mean."""
        weight = self.weight + other.weight
        if not weight:
            return Tally(self.rows + other.rows, 0.0)
        step = other.mean - self.mean
        return Tally(
            rows=self.rows + other.rows,
            weight=weight,
            right=self.right + other.right,
            log_loss=self.log_loss + other.log_loss,
            errors=self.errors + other.errors,
            mean=self.mean + step * other.weight / weight,
            spread=self.spread + other.spread + step**2 * self.weight * other.weight / weight,
            deviance=self.deviance + other.deviance,
            entropy=self.entropy + other.entropy,
        )

    def quality(self) -> Quality:
        """Return the measures."""
        weight = self.weight
        rounding = weight * (TARGET_ROUNDING * self.mean) ** 2
        of_mean = weight * self.mean * math.log(self.mean) if self.mean > 0 else 0.0
        null, small = (
            2 * (self.entropy - of_mean),
            TARGET_ROUNDING * (abs(self.entropy) + abs(of_mean)),
        )
        return Quality(
            self.rows,
            accuracy=_known(self.right / weight) if weight else None,
            log_loss=_known(self.log_loss / weight) if weight else None,
            r2=_explained(self.errors, self.spread, rounding),
            d2=_explained(self.deviance, null, small),
        )


def _explained(left: float, whole: float, rounding: float) -> float | None:
    """Return the part that is explained; None where the targets are all the same."""
    return _known(1 - left / whole) if whole > rounding else None


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def tally(
    prediction: Prediction, scores: np.ndarray, b: np.ndarray, weights: np.ndarray | None = None
) -> Tally:
    """Return the sums for some rows."""
    w = np.ones(len(b)) if weights is None else np.asarray(weights, dtype=np.float64)
    b, total = np.asarray(b, dtype=np.float64), float(w.sum())
    if prediction.classes:
        log_loss = prediction.log_loss
        return Tally(
            len(b),
            total,
            right=float(w @ (prediction.chosen(scores) == b)),
            log_loss=math.nan if log_loss is None else float(w @ log_loss(scores, b)),
        )
    found = np.asarray(prediction.numbers(scores), dtype=np.float64)
    mean = float(w @ b) / total if total else 0.0
    counted = _deviance(found, b, w) if prediction is COUNT else {}
    with np.errstate(over="ignore", invalid="ignore"):
        return Tally(
            len(b),
            total,
            errors=float(w @ (found - b) ** 2),
            mean=mean,
            spread=float(w @ (b - mean) ** 2),
            **counted,
        )


def _deviance(found: np.ndarray, b: np.ndarray, w: np.ndarray) -> dict[str, float]:
    """Return the Poisson deviance, and the sum of b log b."""
    from scipy.special import xlogy

    with np.errstate(all="ignore"):
        deviance = 2 * (w @ (xlogy(b, b / found) - b + found))
    return {"deviance": float(deviance), "entropy": float(w @ xlogy(b, b))}


def merged(tallies: Iterable[Tally]) -> Tally:
    """Return the sums over the rows of all tallies."""
    return reduce(Tally.merged, tallies)


def quality_of_fit(problem: LinearModel | Parts, x: Array) -> Quality:
    """Return how well a point fits the rows of its problem."""
    ask = partial(_of_part, np.asarray(x))
    found = problem.ask_each(ask) if isinstance(problem, Parts) else [ask(problem, 1.0)]
    return merged(found).quality()


def _of_part(x: np.ndarray, model: LinearModel, _: float) -> Tally:
    return tally(model.prediction, np.asarray(model.scores(x)), model.b, model.weights)
