"""What can go wrong, said in one sentence.

Every error that a user can cause or meet derives from :class:`Ode2OptError`. Its text names the
offending value and the way out; ``exit_code`` is what the command line returns for it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class Ode2OptError(Exception):
    """The work failed (exit code 1)."""

    exit_code = 1


class InputError(Ode2OptError, ValueError):
    """What was passed in is wrong (exit code 2)."""

    exit_code = 2


class DataUnavailableError(Ode2OptError, OSError):
    """A dataset is neither on this machine nor can it be fetched (exit code 1)."""


class MissingDependencyError(Ode2OptError, ImportError):
    """An optional package is needed; the text is the line that installs it (exit code 1)."""


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Turn the import error of an optional package into the line that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"This needs {error.name}: pip install 'ode2opt[{extra}]'."
        ) from None


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not in ``known``, with the nearest one if any is near."""
    known = sorted(known)
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(known)}."
    return InputError(f"Unknown {kind} '{name}': {hint}")
