"""What a user sees first: the names of the package, and things as the prompt shows them."""

import ast
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from public_names import modules, type_names

import ode2opt
from ode2opt import Guard, Method, Schedule
from ode2opt.solvers.metric import Metric

ROOT = Path(__file__).parents[1]
TABLE = Schedule(np.linspace(2, 0.5, 300), np.full(300, 0.25), np.linspace(1, 0.125, 300))
BASIS, _ = np.linalg.qr(np.vander(np.linspace(-1, 1, 5), 2))


def test_the_package_shows_its_public_names_and_nothing_else():
    script = "import ode2opt, ode2opt.cli, ode2opt.study; print(*dir(ode2opt))"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert set(shown.stdout.split()) == set(ode2opt.__all__)
    assert all(hasattr(ode2opt, name) for name in dir(ode2opt))
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        _ = ode2opt.sovle


def lazy_packages():
    """The packages that load some of their names when these are asked for."""
    root = files("ode2opt")
    for path in sorted(Path(str(root)).rglob("__init__.py")):
        if "def __getattr__" in path.read_text(encoding="utf-8"):
            yield ".".join(path.parent.relative_to(Path(str(root)).parent).parts)


@pytest.mark.filterwarnings("ignore:ode2opt.solvers.ProximalTable:DeprecationWarning")
@pytest.mark.parametrize("name", list(lazy_packages()))
def test_names_that_are_loaded_later_are_listed_before(name):
    script = f"import {name} as package; print(*dir(package))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "Error" not in done.stderr
    package = import_module(name)
    listed = done.stdout.splitlines()[0].split()
    assert listed == sorted(package.__all__)
    assert set(vars(package).get("_HOME") or package._LAZY) <= set(listed)
    assert all(hasattr(package, each) for each in listed)


def test_type_checkers_are_told_that_the_package_is_typed():
    assert files("ode2opt").joinpath("py.typed").is_file()


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (TABLE, "Schedule(300 iterations, a 0.5 to 2, c 0.25, d 0.125 to 1)"),
        (Schedule([0.5], [0.5], [1]), "Schedule(1 iteration, a 0.5, c 0.5, d 1)"),
        (
            Metric("diagonal", np.array([2.0, 0.5])),
            "Metric(diagonal, 2 variables, lengths 0.5 to 2)",
        ),
        (
            Metric("lowrank", np.ones(5), BASIS, np.array([-0.5, 2.0])),
            "Metric(lowrank, 5 variables, 2 directions, lengths 0.5 to 3)",
        ),
        (
            Method(TABLE, "logistic a5a", 3e-4),
            "Method(logistic a5a, tol 0.0003: EIGAC with a learned table of 300 iterations)",
        ),
        (
            Method(None, "lpp", 1e-6, "family", 1.0, guard=Guard(fallback="lbfgs")),
            "Method(lpp, tol 1e-06: L-BFGS)",
        ),
    ],
)
def test_a_prompt_shows_them_in_a_line(shown, words):
    assert repr(shown) == words


def imported():
    """What scripts beside the package take from it: file, module, name."""
    for folder in ("benchmarks", "docs", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ode2opt"):
                    yield from ((path.name, node.module, name.name) for name in node.names)


def is_there(module, name):
    found = import_module(module)
    if hasattr(found, name):
        return True
    return hasattr(found, "__path__") and find_spec(f"{module}.{name}") is not None


def test_scripts_import_what_the_package_has():
    assert [each for each in imported() if not is_there(*each[1:])] == []


TWICE = {
    "ElasticNet": ["integrations/sklearn/lasso.py", "penalties/separable.py"],
    "Table": ["coefficients/curves.py", "proofs/table.py"],
}
"""The penalty, and scikit-learn's estimator with it; coefficients at some times, and the numbers of
iterations: users know both names."""


def test_no_class_name_stands_twice():
    """A name has one meaning in the whole package."""
    homes = defaultdict(set)
    for name, path in type_names():
        homes[name].add(path)
    assert {name: sorted(paths) for name, paths in homes.items() if len(paths) > 1} == TWICE


@pytest.mark.parametrize("room", ["integrations", "learning"])
def test_a_constant_stands_once_in_its_room(room):
    homes = defaultdict(list)
    for path, tree in modules().items():
        if path.startswith(f"{room}/"):
            for name in _constants(tree):
                homes[name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def _constants(tree):
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Name) and each.id.isupper():
                    yield each.id
