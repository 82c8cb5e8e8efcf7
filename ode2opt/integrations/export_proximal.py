"""What the C templates of a table with a prox are filled with."""

from __future__ import annotations

from ode2opt.proofs.table import Table
from ode2opt.solvers.method_file import Method


def proximal_words(method: Method, table: Table, lower: str) -> dict[str, str]:
    """Return what the placeholders stand for that only a table with a prox has."""
    rows = (", ".join(map(repr, row)) for row in table.rows())
    envelope = [repr(float(value)) for value in (*method.guard.envelope, 0.0)]  # never empty
    return {
        "FILE": f"{lower}.h",
        "EXAMPLE": f"{lower}_example.c",
        "HORIZON": str(len(table)),
        "TOL": repr(method.tol),
        "BLOWUP": repr(float(method.guard.blowup)),
        "FAMILY_SCALE": repr(float(method.family_scale or 0.0)),
        "COUNT": str(len(method.guard.envelope)),
        "TABLE": ",\n".join(f"    {{{row}}}" for row in rows),
        "ENVELOPE": ",\n".join(f"    {value}" for value in envelope),
    }
