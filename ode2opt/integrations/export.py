"""A method's table for other languages: a C header with an example, JSON, CSV."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ode2opt.base.ended import Ended
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
CODES = (
    ("CONVERGED", Ended.CONVERGED, "nothing: x is the solution"),
    ("HORIZON_OVER", Ended.HORIZON, "go on from x with another solver; if often, learn anew"),
    ("BLEW_UP", Ended.BLOWUP, "the same: this problem is not one of the family"),
    ("NOT_FINITE", Ended.NON_FINITE, "look at the data; if they are right, go on from x"),
    ("STOPPED", Ended.CALLBACK, "what your callback meant by it"),
)
"""The codes 0, 1, ... of C: their names, why it ended, and what to do."""
REFUSED = (
    ("WRONG_N", "the method is for another number of variables",
     "export a method for this n; x and work are untouched"),
    ("WRONG_SCALE", "there is no curvature to divide the table by",
     "give a finite scale{}; x is untouched"),
)  # fmt: skip
"""The codes -1 and -2: their names, the messages, and what to do."""


def to_c(method: Method, name: str) -> dict[str, str]:
    """Return a C header with the method, and an example program.

    The header has the table, the preconditioner, and a loop that calls back for gradients and has
    the guard's blow-up test; C99, no allocation (docs/tutorials/production.md). That of a table
    with a prox has the proxes of l1, box and simplex.
    """
    lower = "ode2opt_" + re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    guard, penalised = method.guard, method.proximal is not None
    words = {
        "FILE": f"{lower}.h",
        "EXAMPLE": f"{lower}_example.c",
        "WORDS": _comment(method.words),
        "FAMILY": _comment(method.family),
        "VERSION": version("ode2opt"),
        "TRAINED": TRAINED[method.start_rule],
        "UPPER": lower.upper(),
        "LOWER": lower,
        "HORIZON": str(method.horizon),
        "TOL": repr(method.tol),
        "BLOWUP": repr(float(guard.blowup)),
        "FAMILY_SCALE": repr(float(method.family_scale or 0.0)),
        "COUNT": str(len(guard.envelope)),
        "ENVELOPE": ",\n".join(f"    {float(v)!r}" for v in (*guard.envelope, 0.0)),
        "TABLE": ",\n".join(f"    {{{', '.join(map(repr, row))}}}" for row in _rows(method)[1]),
        **_ends(lower.upper(), penalised),
    }
    if not penalised:
        words |= _smooth_words(method, lower)
    words["COMMON"] = _filled("common.h", words)
    header, example = (
        ("proximal.h", "proximal_example.c") if penalised else ("method.h", "example.c")
    )
    return {words["FILE"]: _filled(header, words), words["EXAMPLE"]: _filled(example, words)}


def to_json(method: Method) -> str:
    """Return all that the method's file has, in one JSON document."""
    _rows(method)
    arrays, about = method.described()
    document = about | {"arrays": {name: values.tolist() for name, values in arrays.items()}}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def to_csv(method: Method) -> str:
    """Return the table alone as CSV: k, a, c and d, for curvature 1; with a prox k, m, p, q and
    w.
    """
    names, rows = _rows(method)
    lines = (",".join(map(repr, (k, *row))) for k, row in enumerate(rows))
    return "\n".join([",".join(("k", *names)), *lines]) + "\n"


def _rows(method: Method) -> tuple[list[str], list[tuple[float, ...]]]:
    """Return the columns' names and the rows of the table, which a method must have."""
    table = method.table() if method.proximal is None else method.proximal
    return table.names(), list(table.rows())


def _ends(upper: str, penalised: bool) -> dict[str, str]:
    """Return the enum of C and its messages, made from the one list of how things end."""
    ends = [
        (name, code, todo, one.value[0].lower() + one.value[1:-1])
        for code, (name, one, todo) in enumerate(CODES)
    ]
    for code, (name, message, todo) in enumerate(REFUSED, 1):
        if name != "WRONG_N" or not penalised:  # a prox takes any number of variables
            ends.append((name, -code, todo.format("" if penalised else ", or product"), message))
    small = "residual" if penalised else "gradient norm"
    return {
        "CODES": "\n".join(
            f"    {upper}_{name} = {code}, /* {todo} */" for name, code, todo, _ in ends
        ),
        "MESSAGES": "\n".join(
            f'    case {upper}_{name}: return "{message.replace("gradient norm", small)}";'
            for name, _, _, message in ends
        ),
    }


def _smooth_words(method: Method, lower: str) -> dict[str, str]:
    """Return what only the header of a table without a prox has: its metric, scale and start."""
    metric = method.metric
    first = method.start if isinstance(method.start, np.ndarray) else None
    n = metric.n if metric is not None else 0 if first is None else len(first)
    arrays, product = _metric(metric, lower)
    if first is not None:
        arrays[f"{lower}_first[{n}]"] = first
    parts = () if metric is None else metric.parts()  # a matrix has no directions
    return {
        "N": str(n),
        "VARIABLES": str(n or "any number of"),
        "COLUMNS": str(n or 20),  # variables of the example
        "DIRECTIONS": str(0 if len(parts) < 2 or parts[2] is None else len(parts[2])),
        "SCALE": SCALES[method.scale],
        "RULE": RULES[method.scale].format(upper=lower.upper()),
        "ARRAYS": "".join(map(_array, arrays, arrays.values())),
        "METRIC": "\n".join(f"    {line}" for line in product),
        "START": "0.0" if first is None else f"{lower}_first[i]",
    }


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


def _numbers(values: np.ndarray, a_line: int = 4) -> str:
    plain = [repr(value) for value in values.tolist()]
    lines = (plain[first : first + a_line] for first in range(0, len(plain), a_line))
    return ",\n".join("    " + ", ".join(line) for line in lines)


def _comment(text: str) -> str:
    """Return text of a file in characters that mean nothing in a comment of C."""
    return re.sub(r"[^A-Za-z0-9 .,:;_()=-]", "_", text)


def _filled(file: str, words: dict[str, str]) -> str:
    template = (TEMPLATES / file).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda found: words[found[1]], template)
