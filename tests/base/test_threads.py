"""Small solves have one BLAS thread, and everybody gets back what they had."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from ode2opt import Logistic, Memory, Problem, Quadratic, Softmax, solve
from ode2opt.base import threads as limits
from ode2opt.base.threads import one_blas_thread

rng = np.random.default_rng(0)
A, b = rng.standard_normal((60, 4)), np.arange(60) % 2
SMALL = {
    "logistic": Logistic(A, b, l2=0.1),
    "softmax": Softmax(A, np.arange(60) % 3, l2=0.1),
    "quadratic": Quadratic(np.diag([1.0, 2, 3]), np.ones(3)),
}


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """BLAS with two threads, whatever the environment says."""
    import scipy.linalg  # noqa: F401

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has no threads")
        yield
        assert blas_threads() == {2}


def seen_in_a_solve(problem, **options):
    seen = []
    solve(problem, callback=lambda _: seen.append(blas_threads()), **options)
    assert seen
    return {count for counts in seen for count in counts}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("method", ["auto", "lbfgs", "nag"])
def test_a_small_solve_has_one_thread(name, method):
    assert seen_in_a_solve(SMALL[name], method=method, max_iter=20) == {1}
    assert blas_threads() == {2}


def test_a_small_solve_with_a_memory_has_one_thread():
    assert seen_in_a_solve(SMALL["logistic"], memory=Memory()) == {1}


@pytest.mark.parametrize("limit", [{"SMALL_ENTRIES": 239}, {"SMALL_SIDE": 3}])
def test_a_larger_solve_has_all_threads(limit, monkeypatch):
    for name, value in limit.items():
        monkeypatch.setattr(limits, name, value)
    assert seen_in_a_solve(SMALL["logistic"]) == {2}


def test_a_function_of_the_user_has_all_threads():
    problem = Problem.from_function(lambda x: x @ x, lambda x: 2 * x, n=3)
    assert seen_in_a_solve(problem, x0=np.ones(3)) == {2}


def test_threads_come_back_after_an_error():
    def fail(_):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        solve(SMALL["logistic"], callback=fail)
    assert blas_threads() == {2}


def test_a_solve_inside_a_solve_leaves_the_outer_one_with_one_thread():
    seen = []

    def inner(_):
        solve(SMALL["quadratic"])
        seen.append(blas_threads())

    solve(SMALL["logistic"], callback=inner)
    assert seen[0] == {1}


def test_the_last_user_restores_what_the_first_one_found():
    first, second, third = one_blas_thread(), one_blas_thread(), one_blas_thread()
    with first:
        with second:
            third.__enter__()
        assert blas_threads() == {1}
    assert blas_threads() == {1}, "the third solve is half done"
    third.__exit__(None, None, None)
    assert blas_threads() == {2}


def in_a_thread(function):
    """What a function returns in a thread of its own."""
    found = []
    worker = threading.Thread(target=lambda: found.append(function()), daemon=True)
    worker.start()
    worker.join()
    return found[0]


def test_a_small_solve_in_another_thread_has_one_thread():
    assert seen_in_a_solve(SMALL["logistic"]) == {1}  # here first
    assert in_a_thread(lambda: seen_in_a_solve(SMALL["logistic"])) == {1}
    assert blas_threads() == {2}


def test_a_number_can_be_set_in_another_thread_after_a_solve():
    solve(SMALL["logistic"])

    def limited():
        with ThreadpoolController().limit(limits=1, user_api="blas"):
            return blas_threads()

    assert in_a_thread(limited) == {1}
    assert blas_threads() == {2}


@pytest.mark.parametrize("method", ["auto", "nag-restart"])
def test_a_solve_is_the_same_in_every_thread_bit_for_bit(method):
    """Rows are many enough that BLAS would share their products."""
    numbers = np.random.default_rng(1)
    rows, labels = numbers.standard_normal((460, 210)), np.arange(460) % 2
    problem = Logistic(rows, labels, l2=1e-3)

    def once():
        result = solve(problem, method=method, tol=1e-9, max_iter=100)
        return result.oracle_calls, result.x.tobytes()

    here = once()
    assert in_a_thread(once) == here
    with ThreadPoolExecutor(3) as pool:
        assert {each.result() for each in [pool.submit(once) for _ in range(12)]} == {here}


def test_solves_in_many_threads_agree_and_leave_the_threads_as_they_were():
    alone = solve(SMALL["logistic"], tol=1e-10).x
    found = []
    workers = [
        threading.Thread(
            target=lambda: found.extend(solve(SMALL["logistic"], tol=1e-10).x for _ in range(5)),
            daemon=True,
        )
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 20
    np.testing.assert_allclose(found, np.tile(alone, (20, 1)), atol=1e-9)


def test_a_number_that_the_user_set_is_what_comes_back():
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before


LOADS_LATER = """
import numpy as np
from threadpoolctl import threadpool_info
from ode2opt import Quadratic, solve

def counts():
    return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

import scipy.linalg
seen = []
solve(Quadratic(np.diag([1.0, 2, 3]), np.ones(3)), callback=lambda _: seen.append(counts()))
assert set(seen[0]) == {1}, seen
assert set(counts()) == {2}, counts()
"""


def test_scipy_linalg_that_is_imported_later_brings_no_other_library():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", LOADS_LATER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
