"""Options of the sequence's target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ode2opt.learning.options import SHARE, Options, Range, again, option
from ode2opt.solvers.metric import METRIC_KINDS

METRICS = ("auto", "none", *METRIC_KINDS)
REFERENCES = ("auto", "start", "path")
STARTS = ("paper", "learned")
TABLES = ("spline",)
SCALES = ("family",)
PANEL = "Of a sequence"


@dataclass(frozen=True, kw_only=True)
class SequenceOptions(Options):
    """What a sequence is learned with; without steps it is the instant method."""

    target: ClassVar[str] = "sequence"
    panel: ClassVar[str] = PANEL

    steps: int = again("steps", 100, range=Range(0, whole=True))
    coefficients: str = again("coefficients", "spline", choices=TABLES)
    scale: str = again("scale", "family", choices=SCALES)
    metric: str = again("metric", "auto", choices=METRICS)
    batch: int = again("batch", 8)
    horizon: int = again("horizon", 150)
    penalty: float = again("penalty", 0.1, range=Range(0))
    reference: str = option(
        "auto", "Where the metric looks at curvature.", PANEL, choices=REFERENCES
    )
    start: str = option(
        "paper", "Of a sequence: the paper's, or learned from solutions.", PANEL, choices=STARTS
    )
    knots: int = option(9, "Of the spline of a sequence.", PANEL, range=Range(2, whole=True))
    margin: float = option(0.0, "Of linear stability, in a sequence's penalty P.", PANEL,
                           range=SHARE)  # fmt: skip

    def _rate(self) -> float:
        return 5e-2
