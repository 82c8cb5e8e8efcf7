"""Check a proof about an optimisation method in exact arithmetic. Standard library only.

    python check_proof.py proof.json

prints the theorem in words and exits with 0, or says in one sentence why there is none and exits
with 1. This file imports nothing of the package that wrote the proof: copy it, read it, run it.

The method is y_0 = x_0 and, with g_k the gradient of f at y_k and L = 1 (divide the steps by L),

    y_{k+1} = y_k + m_k (y_k - y_{k-1}) - p_k g_k + q_k g_{k-1},    m_0 = q_0 = 0.

M is the last point with multipliers. Each of the following is at most 0 for a convex function f
with 1-Lipschitz gradients and a minimiser x*, f* = f(x*). They are multiplied by numbers w_k, v_k,
s_k, r_k >= 0:

    w_k:  f_k - f* + <g_k, x* - y_k> + |g_k|^2/2        v_k:  f* - f_k + |g_k|^2/2
    s_k:  f_k - f_{k-1} + <g_k, y_{k-1} - y_k> + |g_k - g_{k-1}|^2/2
    r_k:  f_{k-1} - f_k + <g_{k-1}, y_k - y_{k-1}> + |g_k - g_{k-1}|^2/2

("star": "convex" leaves out |g_k|^2/2 in w_k and v_k: plain convexity.) With s_k = n_k + r_k,
n_0 = 0 and n_{k+1} = n_k + w_k - v_k the sum of all of them has A = n_{M+1} times f_M - f*, no
other value of f, and a quadratic form S in the vectors: A (f_M - f*) + S <= 0. Any tau with

    tau |x_0 - x*|^2 + S + terminal >= 0

gives A (f_M - f*) <= tau |x_0 - x*|^2 + terminal. The gradients g_M, ..., g_0 are eliminated one
after another: what a form is at least, over one of its vectors, is a form of the others (its Schur
complement). Three vectors are left each time, y_k - x*, y_k - y_{k-1} and g_{k-1}.

"horizon": A = 1 and terminal = 0 (|g_M|^2/2 for "convex"). "tail": the method goes on as OGM (eta
= 2) or as Nesterov's method (eta = 1) with theta_{k+1} = theta_k + 1/2. Then A = eta theta^2,
terminal = A |g_M|^2/2 - |z - x*|^2/2, z = theta' y_{M+1} - (theta' - 1)(y_M - g_M) and theta' =
theta + 1/2: the potential A_k (f_k - |g_k|^2/2 - f*) + |z_{k+1} - x*|^2/2 is at most
tau |x_0 - x*|^2 at M and does not rise from there on. ("convex" adds |g_k|^2/8 to it, since
theta'^2 - theta' = theta^2 - 1/4 is not theta^2 and f_k - |g_k|^2/2 - f* may be negative.)

No fraction of the file has more than 400 digits above or below its line, and neither has any n_k:
so the work is in proportion to the rows, of which there are at most 1,000.
"""

from __future__ import annotations

import json
import re
import sys
import time
from fractions import Fraction
from typing import Any

MOST_BYTES = 8_000_000  # of a file
MOST_ROWS = 1000
MOST_DIGITS = 400  # of a numerator or denominator, in the file and of each n_k
GRID = 1 << 96  # forms are rounded down to multiples of 1/GRID, which keeps the numbers short
LARGEST = 1 << 1024  # a form beyond this proves nothing of use
NUMBER = re.compile(rf"-?[0-9]{{1,{MOST_DIGITS}}}(/[0-9]{{1,{MOST_DIGITS}}})?")
ETA = {"ogm": 2, "nag": 1}
FIELDS = ("objective", "tail", "star", "theta", "rows", "w", "v", "r")
Form = list[list[Fraction]]
Triple = tuple[Fraction, Fraction, Fraction]
X, D, G, H = range(4)  # y_k - x*, y_k - y_{k-1}, g_{k-1}, g_k


class Refused(Exception):  # noqa: N818  (it is an answer)
    """Why there is no proof, in one sentence."""


class ExactProof:
    """The numbers of a proof's JSON document, checked for their form alone.

    Attributes:
        tail: None, "ogm" or "nag".
        star: "smooth" or "convex".
        theta: where the tail stands at the last point; 0 without a tail.
        rows: the steps (m, p, q).
        w: the multipliers w_k.
        v: the multipliers v_k.
        r: the multipliers r_k.
    """

    def __init__(self, document: Any) -> None:
        _check_fields(document)
        objective = _one_of(document, "objective", ("tail", "horizon"))
        self.star = _one_of(document, "star", ("smooth", "convex"))
        self.tail: str | None = None
        self.theta = Fraction(0)
        if objective == "tail":
            self.tail, self.theta = _tail(document, self.star)
        elif (document["tail"], document["theta"]) != (None, None):
            raise Refused("tail and theta must be null where the objective is horizon.")
        rows = _list(document["rows"], "rows")
        self.rows = [_row(row, k) for k, row in enumerate(rows)]
        points = len(rows) + (self.tail is None)
        self.w, self.v, self.r = (_numbers(document[name], name, points) for name in "wvr")
        if self.rows[0][0] or self.rows[0][2]:
            raise Refused("The first row has a momentum: its m and q must be 0.")

    @property
    def last(self) -> int:
        """M, the index of the last point with multipliers."""
        return len(self.w) - 1

    @property
    def weight(self) -> Fraction:
        """A, what the last value is weighed with."""
        return Fraction(1) if self.tail is None else ETA[self.tail] * self.theta**2


def read(text: str) -> ExactProof:
    """Return the proof in a JSON text, whose numbers are texts such as "3/7"."""
    bare: Any = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), _no_bare_number)
    try:
        document = json.loads(text, object_pairs_hook=_without_twins, **bare)
    except (ValueError, RecursionError) as error:
        raise Refused(f"The text is not JSON: {_short(error)}.") from None
    return ExactProof(document)


def bound(proof: ExactProof) -> Fraction:
    """Return tau, exactly; refuse multipliers that prove nothing."""
    s, total = _between(proof)
    if total != proof.weight:
        raise Refused("The values of f do not cancel: the multipliers w and v do not sum to A.")
    form: Form = []
    for k in range(proof.last, -1, -1):
        stage = _stage(proof, k, s[k])
        if k == proof.last:
            _add_terminal(stage, proof)
        else:
            _add_next(stage, form, proof.rows[k])
        if k == 0:
            stage = [[stage[i][j] for j in (X, H)] for i in (X, H)]
        form = _rounded_down(_eliminated(stage, k), k)
    return max(-form[0][0], Fraction(0))


def _between(proof: ExactProof) -> tuple[list[Fraction], Fraction]:
    """Return s_0..s_M and the weight of the last value."""
    n, s = Fraction(0), []
    for k, (w, v, r) in enumerate(zip(proof.w, proof.v, proof.r)):  # noqa: B905
        for name, value in (("w", w), ("v", v), ("r", r), ("s", n + r)):
            if value < 0:
                raise Refused(f"The multiplier {name}_{k} is negative.")
        if k == 0 and r:
            raise Refused("The multiplier r_0 must be 0: there is no point before the first.")
        s.append(n + r)
        n += w - v
        if max(abs(n.numerator), n.denominator) >= 10**MOST_DIGITS:
            raise Refused(f"The multipliers up to point {k} sum to more than {MOST_DIGITS} digits.")
    return s, n


def _stage(proof: ExactProof, k: int, s: Fraction) -> Form:
    """Return the quadratic form of the inequalities at point k, over X, D, G, H."""
    w, v, r = proof.w[k], proof.v[k], proof.r[k]
    form = [[Fraction(0)] * 4 for _ in range(4)]
    _add(form, X, H, -w)
    if proof.star == "smooth":
        _add(form, H, H, (w + v) / 2)
    _add(form, D, H, -s)
    _add(form, D, G, r)
    for i, j, sign in ((H, H, 1), (G, G, 1), (G, H, -2)):
        _add(form, i, j, sign * (s + r) / 2)
    return form


def _add(form: Form, i: int, j: int, value: Fraction) -> None:
    """Add value <u_i, u_j> to a form."""
    form[i][j] += value / 2
    form[j][i] += value / 2


def _add_terminal(form: Form, proof: ExactProof) -> None:
    """Add what remains to be paid at the last point."""
    if proof.tail is None:
        _add(form, H, H, Fraction(int(proof.star == "convex"), 2))
        return
    _add(form, H, H, proof.weight / 2 - Fraction(int(proof.star == "convex"), 8))
    m, p, q = proof.rows[-1]
    after = proof.theta + Fraction(1, 2)
    z = [Fraction(1), after * m, after * q, after - 1 - after * p]
    for i in range(4):
        for j in range(4):
            form[i][j] -= z[i] * z[j] / 2


def _add_next(form: Form, P: Form, row: Triple) -> None:
    """Add P, a form of X, D, G at the next point, written in X, D, G, H at this one."""
    m, p, q = row
    one, zero = Fraction(1), Fraction(0)
    E = [[one, m, q, -p], [zero, m, q, -p], [zero, zero, zero, one]]
    PE = [[sum(P[i][l] * E[l][j] for l in range(3)) for j in range(4)] for i in range(3)]  # noqa: E741
    for i in range(4):
        for j in range(i, 4):
            value = sum(E[l][i] * PE[l][j] for l in range(3))  # noqa: E741
            form[i][j] += value
            if i != j:
                form[j][i] += value


def _eliminated(form: Form, k: int) -> Form:
    """Return what a form is at least over its last vector: the Schur complement."""
    n = len(form) - 1
    pivot, row = form[n][n], form[n][:n]
    if pivot < 0 or (pivot == 0 and any(row)):
        raise Refused(f"The multipliers prove nothing: the form is not bounded below in g_{k}.")
    if pivot == 0:
        return [line[:n] for line in form[:n]]
    return [[form[i][j] - row[i] * row[j] / pivot for j in range(n)] for i in range(n)]


def _rounded_down(form: Form, k: int) -> Form:
    """Return a form of short numbers that is nowhere above: itself, or multiples of 1/GRID.

    Rounding an entry down changes it by less than 1/GRID, three by three entries change a form by
    less than 3/GRID times the sum of the squares; as much is taken off the diagonal.
    """
    entries = [x for line in form for x in line]
    if any(abs(x) > LARGEST for x in entries):
        raise Refused(f"The bound grows beyond any use at point {k}.")
    if all(x.denominator <= GRID for x in entries):
        return form
    n = len(form)
    below = [[(x.numerator * GRID) // x.denominator for x in line] for line in form]
    return [[Fraction(below[i][j] - 3 * (i == j), GRID) for j in range(n)] for i in range(n)]


def ratio(proof: ExactProof, tau: Fraction) -> Fraction:
    """Return the bound at the last point divided by Nesterov's own, L R^2 / (2 t^2).

    t is theta, or (M + 2)/2 without a tail, which is Nesterov's after as many steps.
    """
    t = Fraction(proof.last + 2, 2) if proof.tail is None else proof.theta
    return 2 * tau * t**2 / proof.weight


def statement(proof: ExactProof, tau: Fraction) -> str:
    """Return the theorem in words; decimals are rounded up."""
    M, smooth = proof.last, proof.star == "smooth"
    value = "f(y_k - g_k/L)" if smooth else "f(y_k) - |g_k|^2/(2L)"
    times = _up(ratio(proof, tau))
    if smooth:
        functions = "For every L-smooth convex function f with a minimiser x*"
    else:
        functions = (
            "For every convex function f with a minimiser x* along whose run the inequalities "
            "between neighbours hold (for an L-smooth one they do, and a run can check them)"
        )
    if proof.tail is None:
        at, last = ("f(y_N)" if smooth else "f(y_N) - |g_N|^2/(2L)"), f"N = {M} steps"
        text = f"{functions}, after {last} {at} - f* <= {_up(tau)} L |x0 - x*|^2"
        if not smooth and not any(proof.v):
            text += "; any point z may take the place of x*, so that no minimiser is needed"
        return f"{text}: at most {times} times Nesterov's bound."
    name = {"ogm": "OGM", "nag": "Nesterov's method"}[proof.tail]
    return (
        f"{functions}, and every k >= {M}: {value} - f* <= {times} L |x0 - x*|^2 / (2 t_k^2), "
        f"where t_k = {_down(proof.theta)} + (k - {M})/2: at most {times} times Nesterov's bound. "
        f"The table's rows, {len(proof.rows)} of them, are followed by those of {name}."
    )


def _up(x: Fraction, digits: int = 6) -> str:
    """Return a fraction in decimals, rounded up to some digits."""
    if x == 0:
        return "0"
    exponent = len(str(x.numerator)) - len(str(x.denominator))
    places = digits - exponent
    scaled = x * Fraction(10) ** places
    above = -((-scaled.numerator) // scaled.denominator)
    return _decimal(above, places)


def _down(x: Fraction, places: int = 6) -> str:
    """Return a positive fraction as it is where that is short, else in decimals rounded down."""
    text = str(x)
    return text if len(text) <= 12 else _decimal(x.numerator * 10**places // x.denominator, places)


def _decimal(integer: int, places: int) -> str:
    """Return integer / 10^places in words, without a float's limits."""
    digits = str(integer)
    if places > 0:
        digits = digits.rjust(places + 1, "0")
        whole, part = digits[:-places], digits[-places:].rstrip("0")
        return f"{whole}.{part}" if part else whole
    return digits + "0" * -places if places > -12 else f"{digits}e{-places}"


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that has a name twice: readers would differ in which counts."""
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise Refused("A field stands twice in the document.")
    return dict(pairs)


def _no_bare_number(text: str) -> Any:
    raise Refused(f'The number {_short(text)} is not a fraction in quotes, as "3/4".')


def _check_fields(document: Any) -> None:
    if not isinstance(document, dict):
        raise Refused("The document is not an object with the fields of a proof.")
    for name in FIELDS:
        if name not in document:
            raise Refused(f"The field {name!r} is missing.")
    for name in document:
        if name not in FIELDS:
            raise Refused(f"The field {_short(name)} has no meaning in a proof.")


def _tail(document: dict[str, Any], star: str) -> tuple[str, Fraction]:
    """Return which method goes on after the table, and where it stands."""
    tail, theta = _one_of(document, "tail", tuple(ETA)), _number(document["theta"], "theta")
    if theta < 1:
        raise Refused("theta is below 1.")
    if tail == "ogm" and star == "convex":
        raise Refused("The tail ogm has no proof by plain convexity.")
    return tail, theta


def _one_of(document: dict[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    value = document[name]
    if not isinstance(value, str) or value not in allowed:
        raise Refused(f"{name} is {_short(value)}; it must be {' or '.join(allowed)}.")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_ROWS:
        raise Refused(f"{name} is not a list of 1 to {MOST_ROWS} entries.")
    return value


def _numbers(value: Any, name: str, count: int) -> list[Fraction]:
    found = _list(value, name)
    if len(found) != count:
        raise Refused(f"{name} has {len(found)} entries where the rows ask for {count}.")
    return [_number(x, f"{name}_{k}") for k, x in enumerate(found)]


def _row(row: Any, k: int) -> Triple:
    if not isinstance(row, list) or len(row) != 3:
        raise Refused(f"Row {k} is not a list of three fractions m, p, q.")
    m, p, q = (_number(x, f"Row {k}") for x in row)
    return m, p, q


def _number(text: Any, name: str) -> Fraction:
    if not isinstance(text, str) or not NUMBER.fullmatch(text):
        raise Refused(
            f'{name} is {_short(text)}: a fraction in quotes as "3/4" is due, '
            f"of at most {MOST_DIGITS} digits."
        )
    top, _, bottom = text.partition("/")
    if bottom and not int(bottom):
        raise Refused(f"{name} has the denominator 0.")
    return Fraction(int(top), int(bottom or 1))


def _short(value: Any) -> str:
    """Return a value for a sentence, on one line and cut to a readable length."""
    text = str(value) if isinstance(value, (str, Exception)) else f"a {type(value).__name__}"
    text = "".join(c if c.isprintable() else " " for c in text[:40])
    return repr(text) if isinstance(value, str) else text


def main(arguments: list[str]) -> int:
    """Check the file that is named; returns the exit code."""
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print("Usage: python check_proof.py proof.json", file=sys.stderr)
        return 2
    started = time.perf_counter()
    try:
        try:
            with open(arguments[0], "rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise Refused(f"The file cannot be read: {error.strerror}.") from None
        if len(content) > MOST_BYTES:
            raise Refused(f"The file has more than {MOST_BYTES} bytes.")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused("The file is not text in UTF-8.") from None
        proof = read(text)
        tau = bound(proof)
    except Refused as refusal:
        print(f"Not proved: {refusal}", file=sys.stderr)
        return 1
    print(statement(proof, tau))
    print(f"Proved in exact arithmetic, {time.perf_counter() - started:.1f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
