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

from ode2opt.base.arrays import as_count, as_number
from ode2opt.base.errors import InputError, unknown_name

OPTIMIZERS = ("adam", "adamw", "sgd")
DECAYS = ("constant", "cosine", "exponential", "theorem")
KEPT = ("best", "last")

MAIN_PANEL = "The five that matter"
PROBLEMS_PANEL = "The problems"
LEARNED_PANEL = "What is learned"
UPDATES_PANEL = "The updates of the parameters"
VALIDATION_PANEL = "Validation"
WORK_PANEL = "Who works on it"


class Range(NamedTuple):
    """The numbers that an option may be.

    Attributes:
        low: the lower end.
        high: the upper end, infinity by default.
        ends: two brackets as in mathematics; "[" or "]" includes an end, "(" or ")" does not.
        whole: whether only whole numbers are allowed; then ``low`` is the smallest of them and
            ``high`` and ``ends`` are not read. False by default.

    Examples:
        >>> Range(0, 1, "(]").words
        'above 0 and at most 1'
    """

    low: float
    high: float = math.inf
    ends: str = "[)"
    whole: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse a number outside the range."""
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
        """The range in words, to follow "it must be"."""
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


class ReadWith(NamedTuple):
    """Another option, and the values of it with which an option is read.

    Attributes:
        name: the other option's name.
        values: the values.
    """

    name: str
    values: tuple[str, ...]


class OptionInfo(NamedTuple):
    """What an option says of itself: the source of its help, its check and its place in the help.

    Attributes:
        help: what it is, in one line.
        panel: the group of ``ode2opt train --help`` that shows it; None is for Python only.
        choices: the names that it may be; None for a number.
        range: the numbers that it may be; None for a name or a switch.
        limit: whether None or infinity stands for no limit; ``none`` on the command line.
        needs: with which values of another option it is read; None where it always is.
        further: names that it may be in Python alone.
    """

    help: str
    panel: str | None
    choices: Collection[str] | None = None
    range: Range | None = None
    limit: bool = False
    needs: ReadWith | None = None
    further: Collection[str] = ()


def option(
    default: Any,
    help: str,
    panel: str | None,
    *,
    choices: Collection[str] | None = None,
    range: Range | None = None,
    limit: bool = False,
    needs: ReadWith | None = None,
) -> Any:
    """Declare an option as a field of a dataclass."""
    return _field(default, OptionInfo(help, panel, choices, range, limit, needs))


def override(name: str, default: Any, kind: type[Options] | None = None, **changes: Any) -> Any:
    """Declare an option again, with another default."""
    return _field(default, declared(kind or Options)[name]._replace(**changes))


def _field(default: Any, about: OptionInfo) -> Any:
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True, kw_only=True)
class Options(ABC):
    """What a training run is made with; each target adds its own options in a subclass.

    ``FlowOptions`` and ``SequenceOptions`` give the defaults that are missing here. All options
    are checked on construction; the ranges are those of ``ode2opt train --help``.

    Attributes:
        target: the target's name.
        panel: the group of the help that shows the target's own options.
        protocol: the name of the defaults: "ours", or "paper" (:class:`PaperOptions`).
        tol: the gradient norm to reach, with a penalty the residual; positive, 3e-4 by default.
        steps: updates of the parameters; 1 or more (a sequence: 0 makes an instant method).
        coefficients: the kind of coefficients or of table that is learned, a name.
        scale: divide by the curvature of each "instance", by one of the "family", or by the
            "paper"'s step constant L of each problem.
        metric: the preconditioner of a sequence; "auto" chooses on training problems.
        batch: problems of one step; 1 or more.
        horizon: iterations after which a problem is given up; 1 or more.
        seed: drives which problems are drawn; 0 or more, 0 by default.
        blocks: whether every second problem is made of rows that follow each other in the file;
            True by default.
        optimizer: "adam" (the default), "adamw" or "sgd" (the paper's).
        lr: the step size; None (the default) takes 0.03, or 0.001 for neural coefficients and sgd,
            or 0.05 for a sequence.
        momentum: of sgd; in [0, 1), 0.9 by default.
        decay: how the step size falls: "constant", "cosine" (the default), "exponential" or
            "theorem", as the convergence of StoPM asks (docs/mathematics.md, section 17).
        decay_power: p of the decay "theorem", lr (1 + k/10)^-p; in (1/2, 1], 0.75 by default.
        clip: the largest norm of one problem's gradient; positive, 3 by default. None or infinity
            is no limit.
        penalty: the coefficient rho of P + Q (docs/mathematics.md, section 7); positive.
        penalty_growth: factor on it after each validation that finds a violation; at least 1,
            1.1 by default.
        validate_every: steps between validations; 1 or more, 10 by default.
        validation: held-out training problems of a validation; 1 or more, 8 by default.
        patience: validations without progress after which training stops; 1 or more, 8 by default.
        keep: which point becomes the method: the "best" by validation (the default), or the "last"
            that was validated; training then goes on to the last step.
    """

    target: ClassVar[str]
    panel: ClassVar[str]
    protocol: ClassVar[str] = "ours"

    tol: float = option(
        3e-4, "Gradient norm to reach; with a penalty, the residual.", MAIN_PANEL, range=POSITIVE
    )
    steps: int = option(
        MISSING,
        "Updates of the parameters; with 0 a sequence is an instant method, in seconds.",
        MAIN_PANEL,
        range=COUNT,
    )
    coefficients: str = option(MISSING, "The kind of coefficients.", LEARNED_PANEL)
    scale: str = option(
        MISSING,
        "Divide by each instance's curvature, the family's, or the paper's L.",
        LEARNED_PANEL,
    )
    metric: str = option(
        MISSING, "Of a sequence: auto chooses on training problems.", LEARNED_PANEL
    )
    batch: int = option(MISSING, "Problems a step.", PROBLEMS_PANEL, range=COUNT)
    horizon: int = option(
        MISSING, "Iterations until a problem is given up.", PROBLEMS_PANEL, range=COUNT
    )
    seed: int = option(
        0, "Drives which problems are drawn.", PROBLEMS_PANEL, range=Range(0, whole=True)
    )
    blocks: bool = option(
        True, "Every second problem of rows that follow each other.", PROBLEMS_PANEL
    )
    optimizer: str = option("adam", "sgd is the paper's.", UPDATES_PANEL, choices=OPTIMIZERS)
    lr: float | None = option(
        None,
        "Step size; 0.03 by default, 0.001 for neural coefficients and sgd, 0.05 for a sequence.",
        UPDATES_PANEL,
        range=POSITIVE,
    )
    momentum: float = option(
        0.9, "Of sgd.", UPDATES_PANEL, range=SHARE, needs=ReadWith("optimizer", ("sgd",))
    )
    decay: str = option(
        "cosine",
        "How the step size falls; theorem: so that StoPM's convergence theorem applies.",
        UPDATES_PANEL,
        choices=DECAYS,
    )
    decay_power: float = option(
        0.75,
        "Of --decay theorem: step size lr (1 + k/10)^-power; above 1/2, at most 1.",
        UPDATES_PANEL,
        range=Range(0.5, 1, "(]"),
        needs=ReadWith("decay", ("theorem",)),
    )
    clip: float | None = option(
        3.0,
        "Largest norm of a problem's gradient, or none.",
        UPDATES_PANEL,
        range=POSITIVE,
        limit=True,
    )
    penalty: float = option(MISSING, "The coefficient rho of P + Q.", UPDATES_PANEL, range=POSITIVE)
    penalty_growth: float = option(
        1.1,
        "Its growth while validation finds a violation; 1 keeps it.",
        UPDATES_PANEL,
        range=Range(1),
    )
    validate_every: int = option(10, "Steps between validations.", VALIDATION_PANEL, range=COUNT)
    validation: int = option(8, "Held-out training problems.", VALIDATION_PANEL, range=COUNT)
    patience: int = option(
        8,
        "Validations without progress until training stops.",
        VALIDATION_PANEL,
        range=COUNT,
        needs=ReadWith("keep", ("best",)),
    )
    keep: str = option(
        "best",
        "Which point becomes the method: the best by validation, or the last.",
        VALIDATION_PANEL,
        choices=KEPT,
    )

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def learning_rate(self) -> float:
        """The step size: as given, or what suits optimiser and target."""
        return self._rate() if self.lr is None else self.lr

    @abstractmethod
    def _rate(self) -> float:
        """Return the step size that suits optimiser and target."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the target's name and, if not ours, the protocol's."""
        names = {"target": self.target}
        if self.protocol != Options.protocol:
            names["protocol"] = self.protocol
        return names | asdict(self)


def declared(kind: type[Any]) -> dict[str, OptionInfo]:
    """Return what the options of a dataclass say of themselves."""
    found = {each.name: each.metadata.get("about") for each in fields(kind)}
    return {name: about for name, about in found.items() if about is not None}


def check_declared(options: Any) -> None:
    """Refuse an option that is none of its choices, or outside its range."""
    for name, about in declared(type(options)).items():
        if about.limit and getattr(options, name) == math.inf:
            object.__setattr__(options, name, None)
        value = getattr(options, name)
        if about.choices is not None and value not in (*about.choices, *about.further):
            raise unknown_name(name, str(value), about.choices)
        if about.range is not None and value is not None:
            about.range.check(name, value)


def check_read(options: Options, reads: Collection[str] | None, kind: str) -> None:
    """Refuse an option that is not at its default and that nothing in a run reads."""
    for each in fields(options):
        name, needs = each.name, each.metadata["about"].needs
        if getattr(options, name) == each.default:
            continue
        if reads is not None and name not in reads:
            raise InputError(f"{name} is not read by {kind}: leave it out.")
        if needs is not None and (now := getattr(options, needs.name)) not in needs.values:
            raise InputError(
                f"{name} is for {needs.name} {', '.join(needs.values)}, and {needs.name} is {now}: "
                f"leave {name} out."
            )
