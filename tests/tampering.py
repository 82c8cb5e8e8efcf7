"""Proofs that somebody changed: in their numbers, their fields or their bytes."""

import copy
import json
from fractions import Fraction


def tampered(document, rng):
    """Return the text of a proof after one or more random changes."""
    changed = copy.deepcopy(document)
    for _ in range(int(rng.integers(1, 4))):
        CHANGES[int(rng.integers(len(CHANGES)))](changed, rng)
    text = json.dumps(changed)
    return damaged(text, rng) if rng.random() < 0.1 else text


def another(text, rng):
    """Return another fraction: scaled, shifted, negated, one digit changed, or something wild."""
    value = Fraction(text)
    near = 1 + Fraction(int(rng.integers(-50, 51)), int(10 ** rng.integers(2, 9)))
    wild = ("0", "1/0", "nan", "1e5", "-1", "9" * 500, "1/" + "7" * 390, str(10**300), " 1", "")
    choices = [
        lambda: str(value * near),
        lambda: str(value + Fraction(int(rng.integers(-9, 10)), 1000)),
        lambda: str(-value),
        lambda: str(value / 2),
        lambda: text.replace(str(rng.integers(10)), str(rng.integers(10)), 1),
        lambda: wild[int(rng.integers(len(wild)))],
    ]
    return choices[int(rng.choice(6, p=[0.4, 0.2, 0.05, 0.1, 0.15, 0.1]))]()


def number(document, rng):
    """Change a multiplier, or the same in all three lists."""
    name = "wvr"[int(rng.integers(3))]
    k = int(rng.integers(len(document[name])))
    document[name][k] = _safely(document[name][k], rng)


def row(document, rng):
    """Change a number of the table: the proof of one table for another."""
    one = document["rows"][int(rng.integers(len(document["rows"])))]
    j = int(rng.integers(3))
    one[j] = _safely(one[j], rng)


def balanced(document, rng):
    """Change w and v together, so that the values still cancel."""
    k, size = (
        int(rng.integers(min(len(document[n]) for n in "wv"))),
        Fraction(int(rng.integers(-100, 101)), 1000),
    )
    for name in "wv":
        try:
            document[name][k] = str(Fraction(document[name][k]) + size)
        except (ValueError, ZeroDivisionError):
            return


def raised(document, rng):
    """Raise r, which is always allowed: a weaker bound, still true."""
    k = int(rng.integers(1, len(document["r"]))) if len(document["r"]) > 1 else 0
    document["r"][k] = str(Fraction(int(rng.integers(0, 100)), 1000))


def field(document, rng):
    """Change what the proof is about."""
    name = ("objective", "tail", "star", "theta")[int(rng.integers(4))]
    values = {
        "objective": ["tail", "horizon", 1],
        "tail": ["ogm", "nag", None, ["ogm"]],
        "star": ["smooth", "convex", "sm"],
        "theta": ["1", "3", "0", "-5", "100", "1/3", None, 2.5],
    }[name]
    document[name] = values[int(rng.integers(len(values)))]


def length(document, rng):
    """Leave an entry out, or give one twice."""
    name = ("rows", "w", "v", "r")[int(rng.integers(4))]
    k = int(rng.integers(len(document[name])))
    if rng.random() < 0.5:
        del document[name][k]
    else:
        document[name].insert(k, copy.deepcopy(document[name][k]))
    if not document[name]:
        document[name].append("0")


def shortened(document, rng):
    """Leave out the last row with its multipliers: a true proof of something, or none."""
    for name in ("rows", "w", "v", "r"):
        if len(document[name]) > 1:
            del document[name][-1]


CHANGES = [number, number, row, row, balanced, balanced, raised, field, length, shortened]


def damaged(text, rng):
    """Change bytes of a text."""
    k = int(rng.integers(len(text)))
    return text[:k] + chr(int(rng.integers(32, 127))) * int(rng.integers(0, 3)) + text[k + 1 :]


def _safely(text, rng):
    try:
        return another(text, rng)
    except (ValueError, ZeroDivisionError, TypeError):
        return text
