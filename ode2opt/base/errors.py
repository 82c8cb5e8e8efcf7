"""What can go wrong, said in one sentence.

Every error that a user can cause or meet derives from :class:`Ode2OptError`. Its text names the
offending value and the way out; ``exit_code`` is what the command line returns for it. Such a text
may quote a file: it is made printable and short here, once for all.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any


def printable(text: str) -> str:
    """Return text in which control characters are spelled out, so that no terminal obeys them.

    Examples:
        >>> printable("two" + chr(10) + "lines")
        'two lines'
    """
    if text.isprintable():
        return text
    return "".join(map(_spelled, text))


def _spelled(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character.isspace() else character.encode("unicode_escape").decode()


def sentence(text: str, longest: int = 300, beginning: int = 200, cut: str = " ... ") -> str:
    """Return printable text of at most 300 characters, the middle of a longer one left out.

    The end of a sentence has the way out.
    """
    text = printable(text[: longest**2])
    if len(text) <= longest:
        return text
    return text[:beginning] + cut + text[beginning + len(cut) - longest :]


def shown(value: Any, most: int = 40) -> str:
    """Return a value for a sentence, cut to a readable length."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return printable(text if len(text) <= most else text[:most] + "...")


def many(count: int, what: str) -> str:
    """Return a count of things in words.

    Examples:
        >>> many(1, "solve"), many(2000, "solve")
        ('1 solve', '2,000 solves')
    """
    return f"{count:,} {what}{'s' * (count != 1)}"


class Ode2OptError(Exception):
    """The work failed (exit code 1).

    Args:
        text: one sentence: what is wrong, and the way out. It is made printable and cut.
    """

    exit_code = 1

    def __init__(self, text: str = "") -> None:
        super().__init__(sentence(str(text)))


class InputError(Ode2OptError, ValueError):
    """What was passed in is wrong (exit code 2)."""

    exit_code = 2


class DataUnavailableError(Ode2OptError, OSError):
    """A dataset is neither on this machine nor can it be fetched (exit code 1)."""


class MissingDependencyError(Ode2OptError, ImportError):
    """An optional package is needed; the text is the line that installs it (exit code 1)."""


class WorkersLostError(Ode2OptError):
    """The workers of a cluster that held the rows are gone (exit code 1)."""


class DivergedError(Ode2OptError, ArithmeticError):
    """Steps were too long, and the gradient is no longer finite (exit code 1)."""


def installing(extra: str) -> str:
    """Return the lines that install an extra, of a released package and in a clone."""
    return f"pip install 'ode2opt[{extra}]' (in a clone: pip install -e '.[{extra}]')"


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Turn the import error of an optional package into the line that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"This needs {error.name}: {installing(extra)}.") from None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not known, with the nearest one if any is near.

    Examples:
        >>> print(unknown_name("method", "lbgfs", ["auto", "lbfgs"]))
        Unknown method 'lbgfs': did you mean 'lbfgs'?
    """
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(known)}."
    return InputError(f"Unknown {kind} '{name}': {hint}")
