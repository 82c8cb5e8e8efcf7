"""The paper's protocol: its training as printed, as defaults of the flow's options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ode2opt.learning.flow.options import FlowOptions
from ode2opt.learning.options import override

EPOCHS = 60
PROBLEMS_AN_EPOCH = 6
"""The paper does not say how many; a5a has 6,414 training rows, six problems of 1,024."""
STABLE_C = 3.956
"""The largest C, to three digits, that meets the paper's stability condition; it prints C = 4."""


def _as_printed(name: str, default: Any) -> Any:
    return override(name, default, FlowOptions)


@dataclass(frozen=True, kw_only=True)
class PaperOptions(FlowOptions):
    """What the paper trains with ("Implementation details and the training process").

    Two networks of width 50 with SoftPlus(20 z)/20, alpha learned with them; SGD with learning
    rate 0.001 and momentum 0.9, constant and without clipping; rho = 0.1 throughout, P and Q with
    their units, P along the segment from the flow to the interpolated sequence; one problem a
    step, of rows drawn at random; coefficients divided by the paper's L; the last point is kept.

    Not as printed: training starts at C = 3.956, because the printed C = 4 violates the paper's
    stability condition at t0. Not in the print: how many problems an epoch has (six here, so that
    60 epochs are 360 steps), how the networks start (inner layers at random, the last fitted to
    the printed curves), how the flow is integrated (Heun's method, see ``substeps``).
    """

    protocol: ClassVar[str] = "paper"

    steps: int = _as_printed("steps", EPOCHS * PROBLEMS_AN_EPOCH)
    coefficients: str = _as_printed("coefficients", "neural")
    scale: str = _as_printed("scale", "paper")
    batch: int = _as_printed("batch", 1)
    blocks: bool = _as_printed("blocks", False)
    optimizer: str = _as_printed("optimizer", "sgd")
    lr: float | None = _as_printed("lr", 1e-3)
    momentum: float = _as_printed("momentum", 0.9)
    decay: str = _as_printed("decay", "constant")
    clip: float | None = _as_printed("clip", None)
    penalty: float = _as_printed("penalty", 0.1)
    penalty_growth: float = _as_printed("penalty_growth", 1.0)
    units: str = _as_printed("units", "printed")
    learn_alpha: bool = _as_printed("learn_alpha", True)
    C: float = _as_printed("C", STABLE_C)
    safety: float = _as_printed("safety", 1.0)
    keep: str = _as_printed("keep", "last")
