"""Options of a training run: what both targets read, and how an option is declared.

An option is one field of a dataclass: its default, what it means, what it may be, and where the
help of ``ode2opt train`` shows it. Documentation, checks and command line are made from that.
Nothing here needs JAX.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import as_count, as_number

OPTIMIZERS = ("adam", "adamw", "sgd")
DECAYS = ("constant", "cosine", "exponential")

FIRST = "The five that matter"
PROBLEMS = "The problems"
LEARNED = "What is learned"
UPDATES = "The updates of the parameters"
JUDGING = "Validation"


class Range(NamedTuple):
    """Which numbers an option may be, from ``low`` to ``high``; ``ends`` says which are outside."""

    low: float
    high: float = math.inf
    ends: str = "[)"
    whole: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse a number outside, naming it and the range."""
        if self.whole:
            as_count(value, name, least=int(self.low))
            return
        number = as_number(value, name)
        above = self.low < number if self.ends[0] == "(" else self.low <= number
        below = number < self.high if self.ends[1] == ")" else number <= self.high
        if not (above and below):
            raise InputError(f"{name} is {number:g}: it must be {self.words}.")

    @property
    def words(self) -> str:
        """The range as a sentence has it."""
        if self == POSITIVE:
            return "a positive number"
        if self.whole:
            return f"a whole number, {self.low:g} or more"
        low = f"{'above' if self.ends[0] == '(' else 'at least'} {self.low:g}"
        if self.high == math.inf:
            return f"{low}, and finite"
        return f"{low} and {'below' if self.ends[1] == ')' else 'at most'} {self.high:g}"


POSITIVE = Range(0, ends="()")
SHARE = Range(0, 1)
COUNT = Range(1, whole=True)


class About(NamedTuple):
    """What an option says of itself.

    Attributes:
        help: what it is, in one line.
        panel: the group of ``ode2opt train --help`` that shows it; None is for Python only.
        choices: what it may be, of a name.
        range: what it may be, of a number.
    """

    help: str
    panel: str | None
    choices: Collection[str] | None = None
    range: Range | None = None


def option(
    default: Any,
    help: str,
    panel: str | None,
    *,
    choices: Collection[str] | None = None,
    range: Range | None = None,
) -> Any:
    """Declare an option as a field of a dataclass; see :class:`About`."""
    return _field(default, About(help, panel, choices, range))


def again(name: str, default: Any, **changes: Any) -> Any:
    """Declare an option of :class:`Options` with a target's own default, and other changes."""
    return _field(default, declared(Options)[name]._replace(**changes))


def _field(default: Any, about: About) -> Any:
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, kw_only=True)
class Options(ABC):
    """What a run of either target is made with; a target's own options are in its subclass.

    Attributes:
        target: the target's name.
        panel: where the help of ``ode2opt train`` shows its own options.
    """

    target: ClassVar[str]
    panel: ClassVar[str]

    tol: float = option(3e-4, "Gradient norm to reach.", FIRST, range=POSITIVE)
    steps: int = option(
        MISSING,
        "Updates of the parameters; with 0 a sequence is an instant method, in seconds.",
        FIRST,
        range=COUNT,
    )
    coefficients: str = option(MISSING, "The kind of coefficients.", LEARNED)
    scale: str = option(
        MISSING, "Divide by each instance's curvature, or by the family's.", LEARNED
    )
    metric: str = option(MISSING, "Of a sequence: auto chooses on training problems.", LEARNED)
    batch: int = option(MISSING, "Problems a step.", PROBLEMS, range=COUNT)
    horizon: int = option(MISSING, "Iterations until a problem is given up.", PROBLEMS, range=COUNT)
    seed: int = option(0, "Drives which problems are drawn.", PROBLEMS, range=Range(0, whole=True))
    blocks: bool = option(True, "Every second problem of rows that follow each other.", PROBLEMS)
    optimizer: str = option("adam", "sgd is the paper's.", UPDATES, choices=OPTIMIZERS)
    lr: float | None = option(
        None,
        "Step size; 0.03 by default, 0.001 for neural coefficients and sgd, 0.05 for a sequence.",
        UPDATES,
        range=POSITIVE,
    )
    momentum: float = option(0.9, "Of sgd.", UPDATES, range=SHARE)
    decay: str = option("cosine", "How the step size falls.", UPDATES, choices=DECAYS)
    clip: float = option(3.0, "Largest norm of a problem's gradient.", UPDATES, range=POSITIVE)
    penalty: float = option(MISSING, "The coefficient rho of P + Q.", UPDATES, range=POSITIVE)
    penalty_growth: float = option(
        1.1, "Its growth while validation finds a violation; 1 keeps it.", UPDATES, range=Range(1)
    )
    validate_every: int = option(10, "Steps between validations.", JUDGING, range=COUNT)
    validation: int = option(8, "Held-out training problems.", JUDGING, range=COUNT)
    patience: int = option(
        8, "Validations without progress until training stops.", JUDGING, range=COUNT
    )

    def __post_init__(self) -> None:
        for name, about in declared(type(self)).items():
            value = getattr(self, name)
            if about.choices is not None and value not in about.choices:
                raise unknown_name(name, str(value), about.choices)
            if about.range is not None and value is not None:
                about.range.check(name, value)

    @property
    def learning_rate(self) -> float:
        """The step size: as given, or what suits optimiser and target."""
        return self._rate() if self.lr is None else self.lr

    @abstractmethod
    def _rate(self) -> float:
        """Return the step size that suits optimiser and target."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, the target's name among them."""
        return {"target": self.target} | asdict(self)


def declared(kind: type[Any]) -> dict[str, About]:
    """Return what the options of a target say of themselves, by name."""
    return {each.name: each.metadata["about"] for each in fields(kind)}
