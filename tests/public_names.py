"""What the package defines, read from its source: nothing is imported, so optional parts count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "ode2opt"
SECTION = re.compile(r"^(Args|Attributes):\n((?: +\S.*\n|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}\*{0,2}(\w+)(?: \([^)]*\))?: \S", re.MULTILINE)
FIELDS = re.compile(r"dataclass|NamedTuple|TypedDict|Module")
HELP = re.compile(r"Option\(|Argument\(|\w+Option\b|\w+Argument\b|typer\.Context")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Named:
    """A public function, method or class: its room, its place, what it takes and documents."""

    room: str
    place: str
    takes: frozenset[str]
    documented: frozenset[str]

    @property
    def is_class(self) -> bool:
        return self.place.split(".")[-1].split(" ")[-1][0].isupper()

    @property
    def missing(self) -> frozenset[str]:
        return self.takes - self.documented

    @property
    def gone(self) -> frozenset[str]:
        """What a function documents and does not take; a class documents attributes besides."""
        return frozenset() if self.is_class else self.documented - self.takes


@cache
def modules() -> dict[str, ast.Module]:
    """The syntax trees of the package by path."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


def type_names() -> Iterator[tuple[str, str]]:
    """Every class and every alias of a type, with the module that defines it."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield node.name, path
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", name) and "TypeVar" not in ast.dump(node):
                    yield name, path


def public() -> Iterator[Named]:
    """The public functions, methods and classes of public modules that take arguments."""
    for path, tree in modules().items():
        parts = Path(path).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        room = parts[0] if len(parts) > 1 else "ode2opt"
        for place, takes, documented in _named(tree):
            if takes:
                yield Named(room, f"{path}: {place}", frozenset(takes), frozenset(documented))


def _named(tree: ast.Module) -> Iterator[tuple[str, set[str], set[str]]]:
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node.name, _arguments(node), documented(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, *_of_class(node)
            for method in _methods(node):
                if not method.name.startswith("_") and not _documented_by_base(node, method.name):
                    yield f"{node.name}.{method.name}", _arguments(method), documented(method)


def documented(node: Function | ast.ClassDef) -> set[str]:
    """The names under Args and Attributes of a docstring."""
    text = (ast.get_docstring(node) or "") + "\n"
    return {name for match in SECTION.finditer(text) for name in ENTRY.findall(match[2])}


def _arguments(node: Function) -> set[str]:
    """What a function takes; the options of a command document themselves in its help."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    if any(re.search(r"property|overload|\.setter", each) for each in decorators):
        return set()
    given = node.args
    all_ = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    taken = [each for each in all_ if each and not each.arg.startswith("_")]
    silent = [each for each in taken if not HELP.search(_text(each))]
    return {each.arg for each in silent} - {"self", "cls"}


def _text(argument: ast.arg) -> str:
    return ast.unparse(argument.annotation) if argument.annotation else ""


def _of_class(node: ast.ClassDef) -> tuple[set[str], set[str]]:
    """What a class takes: the arguments of its constructor, or its fields."""
    found = documented(node)
    for method in _methods(node):
        if method.name == "__init__":
            return _arguments(method), found | documented(method)
    made = [*node.decorator_list, *node.bases]
    if not any(FIELDS.search(ast.unparse(each)) for each in made):
        return set(), found
    return {name for each in node.body if (name := _field(each))}, found


def _field(node: ast.stmt) -> str | None:
    """The name of a field that a constructor takes."""
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
        return None
    hidden = node.target.id.startswith("_") or "ClassVar" in ast.unparse(node.annotation)
    made_later = node.value is not None and "init=False" in ast.unparse(node.value)
    return None if hidden or made_later else node.target.id


def _methods(node: ast.ClassDef) -> list[Function]:
    return [each for each in node.body if isinstance(each, Function)]


@cache
def _classes() -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in modules().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def _documented_by_base(node: ast.ClassDef, name: str) -> bool:
    """Whether a class above defines the method and documents all that it takes there."""
    for base in node.bases:
        words = re.match(r"[\w.]+", ast.unparse(base))
        for above in _classes().get(words[0].split(".")[-1] if words else "", []):
            if above is node:
                continue
            own = [method for method in _methods(above) if method.name == name]
            if own and _arguments(own[0]) <= documented(own[0]):
                return True
            if _documented_by_base(above, name):
                return True
    return False
