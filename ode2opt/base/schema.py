"""What a file may say: dataclasses are the schema, their annotations the kinds of the fields.

One reader for the description of a method, a memory, a run and a checkpoint. JSON is parsed without
surprises (no key twice, no infinities, no endless nesting, text that can be written again), then
each field is read into its kind; ranges are checked by the dataclass itself.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from ode2opt.base.errors import InputError, shown

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Bounds:
    """What JSON in a file has at most.

    Attributes:
        text: characters of a description: an envelope of 100,000 numbers, and far more.
        document: bytes of an object that is stored as an array, such as names of columns.
        depth: of objects and lists in each other.
        whole_number: one that still fits a float.
    """

    text: int = 2**22
    document: int = 2**28
    depth: int = 32
    whole_number: int = 10**300


BOUNDS = Bounds()
_WORDS = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text",
    dict: "an object", list: "a list",
}  # fmt: skip


def parse(text: str | bytes, longest: int = BOUNDS.text) -> dict[str, Any]:
    """Return the JSON object that a text is."""
    if len(text) > longest:
        raise InputError(f"it is {len(text):,} characters long, more than can be meant.")
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except RecursionError:
        raise InputError("it is nested too deeply.") from None
    except InputError:
        raise
    except ValueError as error:  # JSON, Unicode, or an integer of too many digits
        raise InputError(f"it is no JSON: {error!s:.80}.") from None
    if not isinstance(found, dict):
        raise InputError("it is not a JSON object.")
    _check_plain(found)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f"it has {shown(twice)} twice.")
    return found


def _constant(name: str) -> float:
    raise InputError(f"it holds {name}, which is no number.")


def _check_plain(value: Any, depth: int = 0) -> None:
    """Refuse what JSON allows and nothing can use: depth, numbers beyond floats, broken text."""
    if isinstance(value, dict | list):
        if depth > BOUNDS.depth:
            raise InputError("it is nested too deeply.")
        for each in value.values() if isinstance(value, dict) else value:
            _check_plain(each, depth + 1)
        if isinstance(value, dict):
            for key in value:
                _check_text(key)
    elif isinstance(value, str):
        _check_text(value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InputError("it holds a number that is too large.")
    elif type(value) is int and abs(value) > BOUNDS.whole_number:
        raise InputError(f"it holds {shown(value)}, a number that is too large.")


def _check_text(text: str) -> None:
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError("it holds text that is no Unicode.")


def read(kind: type[Kind], document: Mapping[str, Any]) -> Kind:
    """Return the dataclass that a JSON object describes."""
    return _record(kind, document, "")


def _record(kind: type[Kind], document: Mapping[str, Any], inside: str) -> Kind:
    hints, own = _fields(kind)  # type: ignore[arg-type]
    for name in document:
        if name not in own:
            raise InputError(f"its {inside}has no setting {_name(name)}." if inside
                             else f"it has a field {_name(name)} that nothing reads.")  # fmt: skip
    for name, each in own.items():
        if name not in document and each.default is MISSING and each.default_factory is MISSING:
            raise InputError(f"its {inside}has no {name}." if inside else f"it has no {name}.")
    values = {
        name: _value(hints[name], document[name], f"{inside}{name}")
        for name in own
        if name in document
    }
    return kind(**values)


@cache
def _fields(kind: type) -> tuple[dict[str, Any], dict[str, Field[Any]]]:
    """Return the annotations and the fields of a dataclass: looked up once, not for each record."""
    return get_type_hints(kind), {each.name: each for each in fields(kind) if each.init}


def _value(hint: Any, value: Any, name: str) -> Any:
    """Return a field in the kind of its annotation."""
    if hint is Any:
        return value
    if hint in _WORDS:
        return _of(hint, value, name)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in inner:
            return None
        return _value(next(each for each in inner if each is not type(None)), value, name)
    if is_dataclass(hint):
        return _record(hint, _of(dict, value, name), f"{name} ")  # type: ignore[arg-type]
    if origin is tuple:
        return tuple(_value(inner[0], each, name) for each in _of(list, value, name))
    if origin in (dict, Mapping):
        return {k: _value(inner[1], each, name) for k, each in _of(dict, value, name).items()}
    return _of(hint, value, name)


def _of(kind: type, value: Any, name: str) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise InputError(f"its {name} is {shown(value)}, not {_WORDS[kind]}.")
    return value


def _name(name: str) -> str:
    return shown(name)[1:-1]
