"""scikit-learn's own tests with our estimators in the place of its own (some minutes).

``sklearn_own/expected_failures.toml`` lists, by reason, the tests that are expected to fail. A test
outside the list that fails, and one on the list that passes, are both errors.
"""

import fnmatch
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sklearn

HERE = Path(__file__).parent / "sklearn_own"
MODULES = (
    "linear_model.tests.test_logistic",
    "linear_model.tests.test_coordinate_descent",
    "linear_model.tests.test_sparse_coordinate_descent",
    "linear_model.tests.test_ridge",
    "linear_model.tests.test_huber",
    "linear_model._glm.tests.test_glm",
    "svm.tests.test_svm",
    "svm.tests.test_sparse",
)


def expected():
    """Return (reason, pattern, whether it may pass) of all tests that are expected to fail."""
    reasons = tomllib.loads((HERE / "expected_failures.toml").read_text())["reasons"]
    return [
        (entry["reason"], pattern, entry.get("may_pass", False))
        for entry in reasons
        for pattern in entry["tests"]
    ]


def outcomes(module, folder):
    """Run one of scikit-learn's test modules in a process of its own; return how tests went."""
    file = folder / "outcomes.json"
    path = os.pathsep.join([str(HERE), str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")])
    plugins = ["-p", "our_classes", "-p", "no:cacheprovider"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, "--pyargs", f"sklearn.{module}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path, "OUTCOMES": str(file)},
        capture_output=True,
        check=False,
        timeout=900,
    )
    return json.loads(file.read_text())


def matches(name, pattern):
    """Whether a test is meant by a pattern, in which only * stands for anything."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("module", MODULES)
def test_scikit_learns_own_tests_pass_but_for_those_listed(module, tmp_path):
    if sklearn.__version__.split(".")[:2] != ["1", "9"]:
        pytest.skip("the list is for scikit-learn 1.9")
    found = outcomes(module, tmp_path)
    mine = [entry for entry in expected() if entry[1].startswith(module.split(".")[-1] + "::")]
    listed, surely = [p for _, p, _ in mine], [p for _, p, may_pass in mine if not may_pass]
    failed = {name for name, outcome in found.items() if outcome == "failed"}
    known = {name for name in found if any(matches(name, pattern) for pattern in listed)}
    sure = {name for name in found if any(matches(name, pattern) for pattern in surely)}
    passed = {name for name, outcome in found.items() if outcome == "passed"}
    assert len(passed) >= 5
    assert sorted(failed - known) == [], "fail and are not on the list"
    assert sorted(passed & sure) == [], "pass and are on the list"
    gone = [p for p in listed if not any(matches(name, p) for name in found)]
    assert gone == [], "are on the list and not among the tests"


def test_the_list_of_expected_failures_gives_reasons():
    found = expected()
    assert all(len(reason) > 20 for reason, _, _ in found)
    assert len({pattern for _, pattern, _ in found}) == len(found)
    modules = {module.split(".")[-1] for module in MODULES}
    assert {pattern.split("::")[0] for _, pattern, _ in found} <= modules
