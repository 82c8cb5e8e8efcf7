"""The penalty that ``ode2opt solve``, ``train`` and ``certify`` add, from their options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ode2opt.base.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from ode2opt import Family
    from ode2opt.penalties import Penalty

PANEL = "Penalty and limits"


def _option(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, show_default=False, rich_help_panel=PANEL)


L1Option = Annotated[
    float | None,
    _option("--l1", "W", "Add W |x|_1: many coefficients become 0; an intercept is left alone."),
]
RatioOption = Annotated[
    float | None,
    _option(
        "--l1-ratio",
        "R",
        "Of --l1 W: add W (R |x|_1 + (1 - R)/2 |x|^2), an elastic net; 1 by default.",
    ),
]
LowerOption = Annotated[
    float | None,
    _option("--lower", "A", "No coefficient below A, such as 0; an intercept is left alone."),
]
UpperOption = Annotated[
    float | None,
    _option("--upper", "B", "No coefficient above B; an intercept is left alone."),
]
BoxOption = Annotated[
    tuple[float, float] | None,
    _option("--box", "A B", "Short for --lower A --upper B, such as --box 0 1."),
]


@dataclass(frozen=True)
class L1Penalty:
    """The weight of |x|_1, and the share of it that is on absolute values, not on squares."""

    l1: L1Option = None
    l1_ratio: RatioOption = None

    def __post_init__(self) -> None:
        if self.l1 is not None and not 0 <= self.l1 < math.inf:
            raise InputError(f"--l1 is {self.l1:g}: it must be zero or a positive number.")
        if self.l1_ratio is not None and self.l1 is None:
            raise InputError("--l1-ratio says how --l1 W is shared out: give --l1, too.")
        if self.l1_ratio is not None and not 0 <= self.l1_ratio <= 1:
            raise InputError(f"--l1-ratio is {self.l1_ratio:g}: it must be between 0 and 1.")

    def penalty(self, sizes: np.ndarray | None = None) -> Penalty | None:
        """Return the penalty; None where nothing was asked for."""
        from ode2opt.penalties import L1, ElasticNet

        if self.l1 is None:
            return None
        return L1(self.l1) if self.l1_ratio is None else ElasticNet(self.l1, self.l1_ratio)

    def family(self, family: Family) -> Family:
        """Return a family with the penalty added to each problem; as it is where there is none."""
        found = self.penalty()
        return family if found is None else family.with_penalty(found)

    def about(self) -> dict[str, Any]:
        """Return what was asked for by name, without what was not."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Penalising(L1Penalty):
    """The same with limits: the least and the largest coefficient."""

    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lower", "upper"):
            if math.isnan(getattr(self, name) or 0.0):
                raise InputError(f"--{name} is nan: it must be a number.")
        low, high = self._limits()
        if low > high or low == math.inf or high == -math.inf:
            raise InputError(f"No number lies between --lower {low:g} and --upper {high:g}.")

    def _limits(self) -> tuple[float, float]:
        lower = -math.inf if self.lower is None else self.lower
        return lower, math.inf if self.upper is None else self.upper

    def penalty(self, sizes: np.ndarray | None = None) -> Penalty | None:
        """Return the penalty; limits are for columns that were divided by ``sizes``."""
        from ode2opt.penalties import Box

        found = super().penalty(sizes)
        if self.lower is None and self.upper is None:
            return found
        box = Box(*(limit if sizes is None else limit * sizes for limit in self._limits()))
        return box if found is None else found + box


def limits_of(
    lower: float | None, upper: float | None, box: tuple[float, float] | None
) -> tuple[float | None, float | None]:
    """Return the least and the largest coefficient; None where nothing was asked for."""
    if box is None:
        return lower, upper
    if lower is not None or upper is not None:
        raise InputError("--box A B is short for --lower A --upper B: give one form of them.")
    return box


def method_for(penalised: bool, method: str, memory: object) -> Any:
    """Return the method of a solve; with a penalty it must be one for penalties."""
    from ode2opt.cli.options import load_method
    from ode2opt.solvers import METHODS
    from ode2opt.solvers.composite.methods import PENALISED, penalised_method

    chosen = method if method in PENALISED else load_method(method)
    if penalised:
        penalised_method(chosen, memory)
    elif method in PENALISED and method not in METHODS:
        raise InputError(f"The method {method} is for penalties: see --l1, --lower and --upper.")
    return chosen
