"""A method's table for other languages: a C header with an example, JSON, CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ode2opt.integrations.export_proximal import proximal_words
from ode2opt.proofs.table import Table
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.metric import Metric

TEMPLATES = Path(__file__).parent / "c"
RULES = {"family": "{upper}_FAMILY_SCALE", "product": "-1.0", "instance": "0.0", "paper": "0.0"}
SCALES = {
    "family": "the curvature of its family",
    "product": "that of <M g, H M g>/<M g, g>",
    "instance": "the largest curvature at the start, which who calls must give",
    "paper": "the paper's step constant L, which who calls must give",
}
TRAINED = {
    "zero": "x = 0",
    "learned": "a learned point",
    "paper": "x = v - g(v)/L, with 1/n in each place of v, and L the smaller of 4 times the\n"
    " * largest curvature at v and, for rows A, of the largest eigenvalue of A^T A / N plus l2",
}
WIDTH = 4  # numbers a line
COLUMNS = 20  # variables of the example where the method takes any number
NOT_IN_COMMENTS = re.compile(r"[^A-Za-z0-9 .,:;_()=-]")


def to_c(method: Method, name: str) -> dict[str, str]:
    """Return a C header with the method, and an example program.

    The header has the table, the preconditioner, and a loop that calls back for gradients and has
    the guard's blow-up test; C99, no allocation (docs/tutorials/production.md). That of a table
    with a prox has the proxes of l1, box and simplex.
    """
    files = ("method.h", "example.c")
    if method.proximal is None:
        words = _words(method, name)
    else:
        files, lower = ("proximal.h", "proximal_example.c"), _lower(name)
        words = _about(method, lower) | proximal_words(method, method.proximal, lower)
    header, example = (_filled(file, words) for file in files)
    return {words["FILE"]: header, words["EXAMPLE"]: example}


def to_json(method: Method) -> str:
    """Return all that the method's file has, in one JSON document."""
    if method.proximal is None:
        method.table()
    arrays, about = method.described()
    document = about | {"arrays": {name: values.tolist() for name, values in arrays.items()}}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def to_csv(method: Method) -> str:
    """Return the table alone as CSV: k, a, c and d, for curvature 1; with a prox k, m, p, q and
    w.
    """
    if method.proximal is not None:
        numbers = (",".join(map(repr, (k, *row))) for k, row in enumerate(method.proximal.rows()))
        return "\n".join([",".join(("k", *Table.names())), *numbers]) + "\n"
    rows = (",".join(map(repr, (k, *row))) for k, row in enumerate(method.table().rows()))
    return "\n".join(["k,a,c,d", *rows]) + "\n"


def _words(method: Method, name: str) -> dict[str, str]:
    """Return what the templates' placeholders stand for."""
    lower = _lower(name)
    upper, metric = lower.upper(), method.metric
    first = method.start if isinstance(method.start, np.ndarray) else None
    n = metric.n if metric is not None else 0 if first is None else len(first)
    arrays, product = _metric(metric, lower)
    if first is not None:
        arrays[f"{lower}_first[{n}]"] = first
    table = ",\n".join(f"    {{{a!r}, {c!r}, {d!r}}}" for a, c, d in method.table().rows())
    return _about(method, lower) | {
        "FILE": f"{lower}.h",
        "EXAMPLE": f"{lower}_example.c",
        "N": str(n),
        "VARIABLES": str(n or "any number of"),
        "COLUMNS": str(n or COLUMNS),
        "HORIZON": str(method.horizon),
        "DIRECTIONS": str(_directions(metric)),
        "TOL": repr(method.tol),
        "BLOWUP": repr(float(method.guard.blowup)),
        "FAMILY_SCALE": repr(float(method.family_scale or 0.0)),
        "SCALE": SCALES[method.scale],
        "RULE": RULES[method.scale].format(upper=upper),
        "TABLE": table,
        "ARRAYS": "".join(map(_array, arrays, arrays.values())),
        "METRIC": "\n".join(f"    {line}" for line in product),
        "START": "0.0" if first is None else f"{lower}_first[i]",
    }


def _lower(name: str) -> str:
    """Return what names in C begin with."""
    return "ode2opt_" + re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _about(method: Method, lower: str) -> dict[str, str]:
    """Return what all templates say of a method."""
    return {
        "WORDS": _comment(method.words),
        "FAMILY": _comment(method.family),
        "VERSION": version("ode2opt"),
        "TRAINED": TRAINED[method.start_rule],
        "UPPER": lower.upper(),
        "LOWER": lower,
    }


def _directions(metric: Metric | None) -> int:
    """Return how many directions the header's preconditioner has; a matrix has none."""
    parts = () if metric is None else metric.parts()
    return 0 if len(parts) < 2 or parts[2] is None else len(parts[2])


def _metric(metric: Metric | None, lower: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the metric's arrays by their declaration, and the lines that make p = M g of them."""
    loop = "for (i = 0; i < n; i++) "
    head = ["size_t i;", "(void)rest;"]
    if metric is None:
        return {}, [*head, f"{loop}p[i] = g[i];"]
    parts = metric.parts()
    if len(parts) == 1:
        M = np.asarray(parts[0])
        lines = [*head, f"{loop}p[i] = {lower}_dot(n, {lower}_M[i], g);"]
        return {f"{lower}_M[{metric.n}][{metric.n}]": M}, lines
    arrays = {f"{lower}_scale[{metric.n}]": metric.scale}
    if metric.V is None or metric.stretch is None:
        return arrays, [*head, f"{loop}p[i] = {lower}_scale[i] * ({lower}_scale[i] * g[i]);"]
    arrays[f"{lower}_V[{metric.V.shape[1]}][{metric.n}]"] = metric.V.T  # by directions
    arrays[f"{lower}_stretch[{metric.V.shape[1]}]"] = metric.stretch
    return arrays, [
        "size_t i, j;",
        "int twice;",
        f"{loop}p[i] = {lower}_scale[i] * g[i];",
        "for (twice = 0; twice < 2; twice++) { /* p <- p + V diag(stretch) V^T p */",
        f"    for (j = 0; j < {metric.V.shape[1]}; j++)",
        f"        rest[j] = {lower}_stretch[j] * {lower}_dot(n, {lower}_V[j], p);",
        f"    for (j = 0; j < {metric.V.shape[1]}; j++)",
        f"        {loop}p[i] += {lower}_V[j][i] * rest[j];",
        "}",
        f"{loop}p[i] *= {lower}_scale[i];",
    ]


def _array(declared: str, values: np.ndarray) -> str:
    """Return a constant array in C; numbers are written so that they are read as they are."""
    rows = [_numbers(row) for row in np.atleast_2d(values)]
    inner = ",\n".join(f"{{\n{row}}}" for row in rows) if values.ndim == 2 else rows[0]
    return f"\nstatic const double {declared} = {{\n{inner}\n}};\n"


def _numbers(values: np.ndarray) -> str:
    plain = [repr(value) for value in values.tolist()]
    lines = (plain[first : first + WIDTH] for first in range(0, len(plain), WIDTH))
    return ",\n".join("    " + ", ".join(line) for line in lines)


def _comment(text: str) -> str:
    """Return text of a file in characters that mean nothing in a comment of C."""
    return NOT_IN_COMMENTS.sub("_", text)


def _filled(file: str, words: Mapping[str, str]) -> str:
    template = (TEMPLATES / file).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda found: words[found.group(1)], template)
