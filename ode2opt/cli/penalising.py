"""The penalty that ``ode2opt solve``, ``train`` and ``certify`` add, from their options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from ode2opt.base.errors import InputError
from ode2opt.cli.from_options import opt

if TYPE_CHECKING:
    import numpy as np

    from ode2opt import Family
    from ode2opt.penalties import Penalty

PANEL = "Penalty and limits"


def _weight(flag: str, metavar: str, text: str) -> Any:
    return opt(text, flag, metavar=metavar, rich_help_panel=PANEL)


Weight = float | None


@dataclass(frozen=True)
class L1Penalty:
    """The weight of |x|_1, and the share of it that is on absolute values, not on squares."""

    l1: Annotated[
        Weight,
        _weight(
            "--l1", "W", "Add W |x|_1: many coefficients become 0; an intercept is left alone."
        ),
    ] = None
    l1_ratio: Annotated[
        Weight,
        _weight(
            "--l1-ratio",
            "R",
            "Of --l1 W: add W (R |x|_1 + (1 - R)/2 |x|^2), an elastic net; 1 by default.",
        ),
    ] = None

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
    """The same with limits: the least and the largest coefficient, or both as a box."""

    lower: Annotated[
        Weight,
        _weight("--lower", "A", "No coefficient below A, such as 0; an intercept is left alone."),
    ] = None
    upper: Annotated[
        Weight, _weight("--upper", "B", "No coefficient above B; an intercept is left alone.")
    ] = None
    box: Annotated[
        tuple[float, float] | None,
        _weight("--box", "A B", "Short for --lower A --upper B, such as --box 0 1."),
    ] = None

    def __post_init__(self) -> None:
        if self.box is not None:
            if self.lower is not None or self.upper is not None:
                raise InputError(
                    "--box A B is short for --lower A --upper B: give one form of them."
                )
            for name, limit in (("lower", self.box[0]), ("upper", self.box[1]), ("box", None)):
                object.__setattr__(self, name, limit)
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
