"""CSV for others: no cell is taken for a formula by the program that opens it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Annotated, Any

from ode2opt.cli.from_options import opt
from ode2opt.data.files.cells import is_number

FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # what a formula begins with (OWASP, "CSV Injection")

RawOption = Annotated[
    bool,
    opt(
        "Write texts in CSV as they are: by default those that begin as a formula (= + - @) get a "
        "' in front.",
        "--raw",
    ),
]


def csv_of(rows: Iterable[Iterable[Any]], raw: bool = False) -> bytes:
    """Return rows as CSV in UTF-8."""
    text = io.StringIO()
    told = rows if raw else (map(_harmless, row) for row in rows)
    csv.writer(text, lineterminator="\n").writerows(told)
    return text.getvalue().encode()


def _harmless(cell: Any) -> Any:
    formula = isinstance(cell, str) and cell.startswith(FORMULA) and not is_number(cell)
    return f"'{cell}" if formula else cell
