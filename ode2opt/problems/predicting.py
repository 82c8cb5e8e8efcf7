"""What the scores of a fitted linear model predict: a class, probabilities, or a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Scores = np.ndarray
"""N scores, or N x K where each class (or target) has its own."""


@dataclass(frozen=True)
class Prediction:
    """How scores are read; a loss names its own as ``LinearModel.prediction``.

    Attributes:
        classes: whether scores predict classes: by the sign of one score, or the largest of
            several.
        probabilities: gives the N x K probabilities of classes; None where the loss has none.
        log_loss: gives -log of the probability of each row's class, counted from 0.
        mean: gives the number that is predicted; None is the score itself.
    """

    classes: bool = False
    probabilities: Callable[[Scores], np.ndarray] | None = None
    log_loss: Callable[[Scores, np.ndarray], np.ndarray] | None = None
    mean: Callable[[Scores], np.ndarray] | None = None

    def chosen(self, scores: Scores) -> np.ndarray:
        """Return each row's class: by the sign of one score, or the largest of several."""
        return (scores > 0).astype(int) if scores.ndim == 1 else np.argmax(scores, axis=1)

    def numbers(self, scores: Scores) -> np.ndarray:
        """Return what is predicted where there are no classes."""
        return scores if self.mean is None else self.mean(scores)


def _two_probabilities(scores: Scores) -> np.ndarray:
    from scipy.special import expit

    return np.column_stack([expit(-scores), expit(scores)])


def _two_log_loss(scores: Scores, labels: np.ndarray) -> np.ndarray:
    return np.logaddexp(0, np.where(labels > 0, -scores, scores))


def _probabilities(scores: Scores) -> np.ndarray:
    from scipy.special import softmax

    return softmax(scores, axis=1)


def _log_loss(scores: Scores, labels: np.ndarray) -> np.ndarray:
    from scipy.special import log_softmax

    return -log_softmax(scores, axis=1)[np.arange(len(scores)), labels.astype(int)]


def _exp(scores: Scores) -> np.ndarray:
    with np.errstate(over="ignore"):  # a mean beyond the largest number is infinity
        return np.exp(scores)


NUMBER = Prediction()
COUNT = Prediction(mean=_exp)
CLASS = Prediction(classes=True)
TWO_CLASSES = Prediction(True, _two_probabilities, _two_log_loss)
MANY_CLASSES = Prediction(True, _probabilities, _log_loss)
