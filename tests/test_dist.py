"""The wheel in an empty environment, with core dependencies only and outside of the clone."""

import json
import os
import re
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive
ROOT = Path(__file__).parents[1]
LARGEST = 5_000_000  # bytes of a wheel
COMPLETE = {  # what the tests and tools of a source distribution read
    "Makefile", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md", "CITATION.cff",
    ".github/workflows/checks.yml", "tools/shipped_methods.py", "benchmarks/history.jsonl",
    "tests/test_dist.py", "docs/index.md",
}  # fmt: skip
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ESTIMATOR = """
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from ode2opt.integrations.sklearn import LogisticRegression
X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
print(LogisticRegression(C=0.1).fit(X, y).score(X, y) > 0.97)
"""
SHIPPED = """
import numpy as np
from ode2opt import Logistic, solve
rng = np.random.default_rng(0)
A = (rng.random((1024, 123)) < 0.11).astype(float)
b = (A @ rng.standard_normal(123) + rng.standard_normal(1024) > 0).astype(float)
result = solve(Logistic(A, b), method="logistic-a5a", tol=3e-4)
print(result.success, result.method)
"""
NO_JAX = """
import importlib.util
print(*(importlib.util.find_spec(name) for name in ("jax", "torch", "optax", "matplotlib")))
"""


def built(folder):
    """Source distribution and wheel, the wheel made from the former."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An environment with the wheel, and where its distributions are."""
    folder = tmp_path_factory.mktemp("dist")
    ask = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "hatchling", "-d", folder]
    if subprocess.run(ask, capture_output=True).returncode and not os.environ.get("CI"):
        pytest.skip("needs a package index")
    source, wheel = built(folder / "made")
    venv.create(folder / "empty", with_pip=True)
    python = folder / "empty" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    return source, wheel, python


def said(python, folder, *arguments):
    """What a program prints there; nothing of this environment is within its reach."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ODE2OPT"))}
    done = subprocess.run(
        [python, "-I", *arguments], cwd=folder, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_is_small_and_the_source_complete(place):
    source, wheel, _ = place
    assert wheel.stat().st_size < LARGEST
    with tarfile.open(source) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert COMPLETE <= names


def test_only_core_dependencies_are_there(place, tmp_path):
    assert said(place[2], tmp_path, "-c", NO_JAX) == "None None None None"


def test_the_readmes_example_of_a_memory_runs(place, tmp_path):
    """The one before it learns, which needs an extra; what it imports for both is in the core."""
    first, second = FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))[:2]
    assert " learn(" in first
    assert "Memory()" in second
    assert said(place[2], tmp_path, "-c", "from ode2opt import Family, solve\n" + second)


def test_an_estimator_is_fitted(place, tmp_path):
    assert said(place[2], tmp_path, "-c", ESTIMATOR) == "True"


def test_a_learned_method_is_there_by_its_name(place, tmp_path):
    assert said(place[2], tmp_path, "-c", SHIPPED).startswith("True ")
    program = "from ode2opt.cli import main; main()"
    listed = said(place[2], tmp_path, "-c", program, "methods", "list", "--json", "-")
    assert len(json.loads(listed)) == 12


def test_what_is_missing_is_named(place, tmp_path):
    done = subprocess.run(
        [place[2].parent / "ode2opt", "train", "logistic", "digits"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'ode2opt[learn]' (in a clone: pip install -e '.[learn]')" in done.stderr
