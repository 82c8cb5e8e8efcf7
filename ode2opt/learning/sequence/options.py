"""Options of the target "sequence"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ode2opt.base.errors import InputError
from ode2opt.learning.options import SHARE, Options, Range, ReadWith, option, override
from ode2opt.solvers.metric import METRIC_KINDS

SEQUENCE_METRICS = ("auto", "none", *METRIC_KINDS)
REFERENCES = ("auto", "start", "path")
STARTS = ("paper", "learned")
TABLE_KINDS = ("spline", "proved")
SEQUENCE_SCALES = ("family",)
TAILS = ("nag", "ogm")
SEQUENCE_PANEL = "Of a sequence"


@dataclass(frozen=True, kw_only=True)
class SequenceOptions(Options):
    """What a sequence is learned with; with ``steps=0`` it is the instant method.

    The other options are those of :class:`Options`.

    Attributes:
        steps: updates of the parameters; 0 or more, 100 by default.
        coefficients: how the table is made: "spline" (the default), or "proved", inside the
            corrected Theorem 2.
        scale: "family": the table is divided by one curvature for all problems.
        metric: the preconditioner: "auto" (the default) chooses on training problems, "none",
            "diagonal", "spectral" or "lowrank".
        batch: problems of a step; 1 or more, 8 by default.
        horizon: iterations after which a problem is given up; 1 or more, 150 by default.
        penalty: the coefficient rho of P; 0 or more, 0.1 by default.
        keep: "best": a sequence goes back to its best point.
        reference: where the preconditioner measures curvature: "start", "path", or "auto" (the
            default), which tries both.
        start: "paper" (the default), or "learned" from solutions.
        knots: of the table's spline; 2 or more, 9 by default.
        margin: of linear stability in the penalty P; in [0, 1), 0 by default.
        certified: learn inside what can be proved: the worst case over all smooth convex functions
            stays below this many times Nesterov's own, 1 or more. None (the default) proves
            nothing.
        tail: what follows a certified table for ever: "nag" (the default), whose proof a solve
            checks while it takes longer steps, or "ogm", with the steps that are proved.
    """

    target: ClassVar[str] = "sequence"
    panel: ClassVar[str] = SEQUENCE_PANEL

    steps: int = override("steps", 100, range=Range(0, whole=True))
    coefficients: str = override("coefficients", "spline", choices=TABLE_KINDS)
    scale: str = override("scale", "family", choices=SEQUENCE_SCALES)
    metric: str = override("metric", "auto", choices=SEQUENCE_METRICS)
    batch: int = override("batch", 8)
    horizon: int = override("horizon", 150)
    penalty: float = override("penalty", 0.1, range=Range(0))
    keep: str = override("keep", "best", choices=("best",))
    reference: str = option(
        "auto", "Where the metric looks at curvature.", SEQUENCE_PANEL, choices=REFERENCES,
        needs=ReadWith("metric", ("auto", *METRIC_KINDS)),
    )  # fmt: skip
    start: str = option(
        "paper",
        "Of a sequence: the paper's, or learned from solutions.",
        SEQUENCE_PANEL,
        choices=STARTS,
    )
    knots: int = option(
        9, "Of the spline of a sequence.", SEQUENCE_PANEL, range=Range(2, whole=True)
    )
    margin: float = option(0.0, "Of linear stability, in a sequence's penalty P.", SEQUENCE_PANEL,
                           range=SHARE)  # fmt: skip
    certified: float | None = option(
        None,
        "Learn a proved table: at most this many times Nesterov's worst case, 1 or more.",
        SEQUENCE_PANEL,
        range=Range(1),
    )
    tail: str = option(
        "nag", "What follows a certified table: Nesterov's method or OGM.", SEQUENCE_PANEL,
        choices=TAILS,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.certified is None and self.tail != TAILS[0]:
            raise InputError(f"tail {self.tail} is for a certified table: give certified as well.")
        if self.certified is not None and self.coefficients != TABLE_KINDS[0]:
            raise InputError(
                f"certified learns a table of its own, and {self.coefficients} is another: give "
                f"one of certified and coefficients."
            )

    def _rate(self) -> float:
        return 5e-2
