"""BLAS and LAPACK without the rest of SciPy: first solves import nothing; SciPy works after it."""

import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from ode2opt.base import lapack

FIRST_SOLVE = """
import sys
import numpy as np
import ode2opt

rng = np.random.default_rng(0)
A = rng.standard_normal((200, 5))
{problem}
before = set(sys.modules)
result = ode2opt.solve(problem, tol=1e-4)
assert result.success
assert set(sys.modules) == before, sorted(set(sys.modules) - before)
assert "scipy.linalg" not in sys.modules
"""
PROBLEMS = {
    "logistic": "problem = ode2opt.Logistic(A, A[:, 0] > 0.3, l2=1e-2)",
    "least squares": "problem = ode2opt.LeastSquares(A, A[:, 0], l2=1e-2)",
    "softmax": "problem = ode2opt.Softmax(A, np.arange(200) % 3, l2=1e-2)",
    "float32": "problem = ode2opt.Huber(A.astype(np.float32), A[:, 0], l2=1.0)",
}

SCIPY_AFTER = """
import ode2opt.base.lapack as ours
import numpy as np
import scipy.linalg
import scipy.sparse.linalg

assert scipy.linalg.lapack.dpotrf is ours.dpotrf
assert scipy.linalg.blas.dsyrk is ours.syrk(np.dtype("float64"))
H = np.array([[4.0, 1.0], [1.0, 3.0]])
found = scipy.linalg.cho_solve(scipy.linalg.cho_factor(H), H)
np.testing.assert_allclose(found, np.eye(2), atol=1e-14)
"""


def run(source):
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_first_solve_imports_nothing(name):
    run(FIRST_SOLVE.format(problem=PROBLEMS[name]))


def test_scipy_uses_the_same_routines_afterwards():
    run(SCIPY_AFTER)


def test_where_the_extension_is_missing_or_broken_the_public_module_serves(monkeypatch, tmp_path):
    import scipy.linalg

    name = "scipy.linalg._missing"
    assert lapack._routines(name, "scipy.linalg.lapack") is scipy.linalg.lapack
    (tmp_path / "linalg").mkdir()
    (tmp_path / "linalg" / "_missing.py").write_text("raise ImportError('no library')")
    found = ModuleSpec("scipy", None, is_package=True)
    found.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(lapack, "find_spec", lambda _: found)
    assert lapack._routines(name, "scipy.linalg.lapack") is scipy.linalg.lapack
    assert name not in sys.modules
