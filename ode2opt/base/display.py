"""How objects show themselves: a line on a prompt, a small table in a notebook or on paper.

Names of columns, files and functions come from anywhere. All text is escaped here, once, before it
becomes HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.errors import printable

LEFT = 'style="text-align: left; vertical-align: top"'


class Listing(NamedTuple):
    """What a table shows.

    Attributes:
        title: a few words above the table.
        rows: a label and a text each.
    """

    title: str
    rows: Sequence[tuple[str, str]]


class Displayed:
    """Shows an object as a table in notebooks; a subclass says what is in it by ``_listing``."""

    def _listing(self) -> Listing:
        """Return what the table shows."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return html_table(self._listing())


def html_table(listing: Listing) -> str:
    """Return a table of two columns as HTML; nothing in it is taken for markup.

    Examples:
        >>> html_table(Listing("Result", [("x", "<b>")])).count("<b>")
        0
    """
    rows = "".join(
        f"<tr><th {LEFT}>{_cell(label)}</th><td {LEFT}>{_cell(text)}</td></tr>"
        for label, text in listing.rows
    )
    return (
        f'<table class="ode2opt"><thead><tr><th colspan="2" {LEFT}>{_cell(listing.title)}</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )


def text_table(listing: Listing) -> str:
    """Return a table of two columns as plain text, labels in a column of their own."""
    width = max((len(label) for label, _ in listing.rows), default=0)
    lines = [f"  {label:<{width}}  {_cut(text)}" for label, text in listing.rows]
    return "\n".join([_cut(listing.title), *lines])


def one_line(name: str, rows: Sequence[tuple[str, str]]) -> str:
    """Return the rows of a table in one line, the first without its label.

    Examples:
        >>> one_line("Logistic", [("size", "9 rows x 2 columns"), ("l2", "0.1")])
        'Logistic(9 rows x 2 columns, l2 = 0.1)'
    """
    (_, first), *rest = rows
    return _cut(f"{name}({', '.join([first, *(f'{label} = {text}' for label, text in rest)])})")


def _cell(text: str) -> str:
    return escape(_cut(text), quote=True)


def _cut(text: str, longest: int = 300) -> str:
    """Return printable text, shortened."""
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


def vector_words(x: np.ndarray, most: int = 4) -> str:
    """Return an array's shape, its norm and its first entries.

    Examples:
        >>> vector_words(np.array([3.0, 4.0]))
        '2 numbers, norm 5: 3, 4'
    """
    values = np.ravel(x)
    shape = " x ".join(f"{size:,}" for size in np.shape(x)) or "1"
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.linalg.norm(values.astype(np.float64)))
    first = ", ".join(f"{value:.4g}" for value in values[:most])
    more = ", ..." if len(values) > most else ""
    return f"{shape} number{'s' * (len(values) != 1)}, norm {norm:.4g}: {first}{more}"


def brief(value: Any) -> str:
    """Return plain values in a few words: {"a": 1} is "a 1".

    Examples:
        >>> brief({"calls": 7.25, "proved": True, "seeds": [0, 1]})
        'calls 7.25, proved yes, seeds 0 1'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {brief(part)}" for key, part in value.items())
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return " ".join(map(brief, value))
    return str(value)


def within(tree: Mapping[str, Any], *keys: str) -> Any:
    """Return what is at a path of keys in nested mappings; None where there is no such path.

    Examples:
        >>> within({"a": {"b": 1}}, "a", "b")
        1
    """
    found: Any = tree
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
