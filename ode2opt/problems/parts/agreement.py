"""What parts must have in common; an error names the part that differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ode2opt.base.errors import InputError, shown
from ode2opt.data.categories import Words, all_words, width
from ode2opt.data.encoding import TableEncoding, with_fills, with_words
from ode2opt.data.preparing import MORE_CLASSES
from ode2opt.data.table import means
from ode2opt.problems.linear_model import LinearModel
from ode2opt.problems.parts.blocks import Facts
from ode2opt.problems.parts.part import Terms

FEW = 4  # notes that are said of single parts


def agreed(
    kind: type[LinearModel], options: dict[str, Any], facts: Sequence[Facts], labels: bool
) -> Terms:
    """Return what all parts agree on."""
    full = [part for part in facts if part.rows]
    if not full:
        raise InputError(f"None of the {len(facts)} parts has a row: there is nothing to fit.")
    _alike(full, lambda part: ", ".join(map(shown, sorted(part.words))) or "none", "words in {}")
    columns = _columns(facts)
    words = all_words([part.words for part in full], sum(part.rows for part in full))
    _alike(full, _first_index, "indices from {}")
    _alike(full, lambda part: part.dtype, "numbers of {}")
    _alike(full, lambda part: "dense" if part.pairs is None else "sparse", "a {} matrix")
    _alike(full, lambda part: "weights" if part.weighted else "no weights", "{}")
    _alike(full, lambda part: "offsets" if part.shifted else "no offsets", "{}")
    fills = _fills(full, columns)
    values = _label_values(full, two=kind.binary) if labels else ()
    top = len(values) - 1 if labels else max(part.top for part in full)
    weight = sum(part.weight for part in full)
    if not 0 < weight < float("inf"):
        raise InputError(f"weights sum to {weight:g}: at least one must be positive.")
    return Terms(
        kind=kind,
        options=kind.agreed(options, top),
        columns=width(columns, words),
        values=values,
        sizes=_sizes(full, columns, width(0, words)),
        weight=sum(part.rows for part in full) / weight,
        names=full[0].names,
        words=words,
        encoding=_encoding(full, columns, words, fills),
        fills=fills,
    )


def _first_index(part: Facts) -> str:
    """Return the first index of the columns in a LIBSVM file; other parts have 1, as most files."""
    return "0" if part.encoding is not None and part.encoding.zero_based else "1"


def noted(facts: Sequence[Facts]) -> tuple[str, ...]:
    """Return sentences about parts: one that is true of all once, else the first few."""
    notes = [note for part in facts for note in part.notes]
    common = [note for note in dict.fromkeys(notes) if notes.count(note) == len(facts)]
    own = [f"{part.name}: {note}" for part in facts for note in part.notes if note not in common]
    more = [f"And {len(own) - FEW:,} more such notes on other parts."] * (len(own) > FEW)
    return (*common, *own[:FEW], *more)


def _fills(facts: Sequence[Facts], columns: int) -> np.ndarray | None:
    """Return the means of columns over all parts; None where missing cells are not filled."""
    if any(part.totals is None for part in facts):
        return None
    sums, counts = np.zeros((2, columns))
    for part in facts:
        assert part.totals is not None
        sums[: part.columns] += part.totals[0]
        counts[: part.columns] += part.totals[1]
        counts[part.columns :] += part.rows  # zeros that nobody wrote down
    names = facts[0].names
    return means(sums, counts, lambda j: f"column {j}" if names is None else f"column '{names[j]}'")


def _encoding(
    facts: Sequence[Facts], columns: int, words: Words, fills: np.ndarray | None
) -> TableEncoding | None:
    """Return how the columns of files became those of the matrix; None where rows are no files'."""
    if any(part.encoding is None for part in facts):
        return None
    first = facts[0].encoding
    assert first is not None
    if fills is not None:
        first = with_fills(first, fills)
    return with_words(first, words, width(columns, words))


def _columns(facts: Sequence[Facts]) -> int:
    """Return how many columns there are; only files that leave zeros out may have fewer."""
    first = next((part for part in facts if part.rows), facts[0])
    for part in facts:
        if part.columns != first.columns and not part.grows:
            raise InputError(
                f"{part.name} has {part.columns} columns, but {first.name} has {first.columns}: "
                f"all parts must have the same."
            )
        if part.names != first.names and None not in (part.names, first.names):
            raise _other_names(part, first)
    return max(part.columns for part in facts)


def _other_names(part: Facts, first: Facts) -> InputError:
    assert part.names is not None
    assert first.names is not None
    pairs = enumerate(zip(part.names, first.names, strict=True))
    at, (found, due) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    return InputError(
        f"{part.name}: column {at} is {shown(found)}, but in {first.name} it is {shown(due)}: all "
        f"parts must have the same columns in the same order."
    )


def _alike(facts: Sequence[Facts], what: Callable[[Facts], Any], words: str) -> None:
    first = facts[0]
    for part in facts:
        if what(part) != what(first):
            found, due = words.format(what(part)), words.format(what(first))
            raise InputError(
                f"{part.name} has {found}, but {first.name} has {due}: all parts must be alike."
            )


def _label_values(facts: Sequence[Facts], two: bool) -> tuple[Any, ...]:
    """Return the labels in order; where two are expected, an error names a part with a third."""
    seen: set[Any] = set()
    for part in sorted(facts, key=lambda part: len(part.values)):
        kinds = {isinstance(value, str) for value in (*seen, *part.values)}
        if len(kinds) > 1:
            raise InputError(f"{part.name}: labels are words in some parts, numbers in others.")
        seen |= set(part.values)
        if two and len(seen) > 2:
            told = ", ".join(str(value) for value in sorted(seen)[:5])
            raise InputError(
                f"{part.name}: a binary problem needs two label values, but with this part there "
                f"are {len(seen)} ({told}): {MORE_CLASSES}."
            )
    if len(seen) < 2:
        (only,) = seen
        raise InputError(f"There must be two label values or more, but in all parts it is {only}.")
    return tuple(sorted(seen))


def _sizes(facts: Sequence[Facts], columns: int, words: int) -> np.ndarray | None:
    """Return the largest entries of columns over all parts, 1 for those of zeros and of words."""
    if facts[0].sizes is None:
        return None
    largest = np.zeros(columns)
    for part in facts:
        assert part.sizes is not None
        np.maximum(largest[: part.columns], part.sizes, out=largest[: part.columns])
    return np.append(np.where(largest == 0, 1.0, largest), np.ones(words))
