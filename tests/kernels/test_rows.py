"""Kernels against NumPy's form of the same problems, finite differences and closed forms."""

import os
import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

pytest.importorskip("numba")
from written_losses import LOSSES as WRITTEN

from ode2opt import (
    InputError,
    LinearModel,
    Logistic,
    Lpp,
    Softmax,
    kernels,
    solve,
    threads,
)
from ode2opt.base import threads as pool
from ode2opt.base.threads import one_thread
from ode2opt.executor import LocalExecutor
from ode2opt.kernels import rows

LOSSES = {name: (one.kind, one.options) for name, one in WRITTEN.items() if one.kind != Softmax}
CLASSES = {f"{count} classes": (Softmax, {"classes": count}) for count in (2, 3, 10, 30)}
EVERY = LOSSES | CLASSES
N, COLUMNS = 1003, 37  # no multiple of any block


def made(loss, dtype=np.float64, N=N, n=COLUMNS, everything=True, order="C"):
    """A problem with weights, offset and intercept, and a point."""
    rng = np.random.default_rng(N + n)
    kind, options = EVERY[loss]
    A = (rng.standard_normal((N, n)) / np.sqrt(n + 1)).astype(dtype, order=order)
    b = (np.arange(N) % options["classes"] if loss in CLASSES else rng.integers(0, 2, N)).astype(
        dtype
    )
    if everything:
        offset = {} if loss in CLASSES else {"offset": 0.3 * rng.standard_normal(N)}
        options = {**options, **offset, "weights": rng.random(N), "intercept": True, "l2": 0.01}
    problem = kind(A, b.astype(dtype), **options)
    return problem, rng.standard_normal(problem.n).astype(dtype)


def assert_near(found, expected, tolerance):
    """Relative to the largest number; infinite and undefined ones stand at the same places."""
    found, expected = np.atleast_1d(found), np.atleast_1d(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    size = np.max(np.abs(expected[finite]), initial=0.0)
    assert np.max(np.abs(found[finite] - expected[finite]), initial=0.0) <= tolerance * size


def everything_of(problem, x, v):
    with np.errstate(all="ignore"):
        value, g = problem.value_and_gradient(x)
        problem._last_bend = None
        return value, g, problem.gradient(x), problem.hvp(x, v)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 3e-6)])
@pytest.mark.parametrize(
    ("loss", "everything", "order"),
    [*product(EVERY, [True, False], "C"), *product(LOSSES, [True], "F")],
)
def test_kernels_return_what_numpy_returns(
    loss, everything, order, dtype, tolerance, numpy_form, passes
):
    problem, x = made(loss, dtype, everything=everything, order=order)
    assert problem.A.flags[order]
    v = np.cos(np.arange(problem.n)).astype(dtype)
    found = everything_of(problem, x, v)
    count = 2 if loss in CLASSES else 3  # products with the Hessian of classes have no kernel
    assert passes == [np.dtype(dtype).name] * count
    for one, other in zip(found, numpy_form(lambda: everything_of(problem, x, v)), strict=True):
        assert_near(one, other, tolerance)
    assert len(passes) == count


@pytest.mark.parametrize("loss", EVERY)
def test_gradients_are_differences_of_values(loss):
    problem, x = made(loss)
    v = np.sin(1 + np.arange(problem.n))
    step = 1e-5
    ahead, behind = problem.value(x + step * v), problem.value(x - step * v)  # NumPy's
    assert problem.value_and_gradient(x)[1] @ v == pytest.approx(
        (ahead - behind) / (2 * step), rel=1e-7
    )


def test_logistic_scores_have_the_digits_of_the_closed_form():
    """One row each, so that no sum hides an error: from 0 to where exp has no digits left."""
    z = np.concatenate([np.linspace(-40, 40, 401), [-745.0, -700, 700, 745, 1e-300, -1e-300]])
    for label in (0.0, 1.0):
        s = 1 - 2 * label
        for score in z:
            problem = Logistic(np.array([[score]]), np.array([label]))
            value, g = problem.value_and_gradient(np.ones(1))
            assert value == pytest.approx(np.logaddexp(0, s * score), rel=1e-14, abs=1e-320)
            tail = np.exp(-abs(score))
            slope = (1 if s * score > 0 else tail) / (1 + tail)
            assert g[0] == pytest.approx(s * slope * score, rel=1e-14, abs=1e-320)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("score", [1e4, -1e4, 1e300, np.inf, -np.inf, np.nan, 5e-324, 0.0])
@pytest.mark.parametrize("loss", [*LOSSES, "3 classes"])
def test_hostile_scores_are_treated_as_by_numpy(loss, score, dtype, numpy_form):
    kind, options = EVERY[loss]
    with np.errstate(all="ignore"):
        x = np.array([score, 0.5, -0.5, 1, 2, 3][: 2 * options.get("classes", 1)]).astype(dtype)
    A = np.array([[1.0, 0.25], [-1.0, 0.5], [0.5, 1.0], [1.0, -1.0]], dtype)
    problem = kind(A, np.array([0.0, 1.0, 1.0, 0.0], dtype), **options)

    def evaluated():
        with np.errstate(all="ignore"):
            return problem.value_and_gradient(x)

    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for one, other in zip(evaluated(), numpy_form(evaluated), strict=True):
        assert_near(one, other, tolerance)


@pytest.mark.parametrize("N", [0, 1, 63, 64, 65, 1500])
@pytest.mark.parametrize("n", [0, 1, 8, 19])
@pytest.mark.parametrize("order", ["C", "F"])
def test_few_rows_and_columns(N, n, order):
    A = np.asarray(np.random.default_rng(N).standard_normal((N, n)), order=order)
    b, x = np.ones(N), np.ones(n)
    found = rows.one_pass(Lpp.row_loss, A, x, b, parameter=2)
    r = A @ x - b
    assert found[0] == pytest.approx(r @ r / 2, rel=1e-13)
    np.testing.assert_allclose(found[1], A.T @ r, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("N", [1, 15, 16, 17, 64, 65])
@pytest.mark.parametrize("n", [1, 9])
def test_few_rows_and_columns_of_classes(N, n, numpy_form):
    problem, x = made("3 classes", N=N, n=n)
    found = problem.value_and_gradient(x)
    for one, due in zip(found, numpy_form(lambda: problem.value_and_gradient(x)), strict=True):
        assert_near(one, due, 1e-13)


def test_other_matrices_and_many_classes_are_left_to_numpy(passes, monkeypatch):
    problem, x = made("3 classes", everything=False)
    Softmax(np.asfortranarray(problem.A), problem.b).gradient(x)
    problem.gradient(x.astype(np.float32))
    many = Softmax(problem.A, np.arange(N) % 31)
    many.gradient(np.zeros(many.n))
    assert passes == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("loss", "order"), [("logistic", "C"), ("lpp", "F"), ("10 classes", "C")])
def test_the_number_of_threads_changes_no_bit(loss, order, dtype):
    problem, x = made(loss, dtype, N=5003, order=order)
    results = []
    for count in (1, 2, 4, 7):
        with threads(count):
            value, g = problem.value_and_gradient(x)
            results.append((value.tobytes(), g.tobytes(), problem.hvp(x, x).tobytes()))
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("loss", "method"), [("logistic", "auto"), ("logistic", "lbfgs"), ("3 classes", "auto")]
)
def test_the_number_of_threads_changes_no_bit_of_a_solve(loss, method):
    problem, _ = made(loss, N=5003)
    results = []
    for count in (1, 2, 4):
        with threads(count):
            found = solve(problem, method=method, tol=1e-8)
            results.append((found.x.tobytes(), found.fun, found.iterations))
    assert len(set(results)) == 1


def test_the_size_says_how_many_threads_there_are(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(pool, "cpu_count", lambda: 8)
    pool._most_threads.cache_clear()
    try:
        least = pool.BYTES_A_THREAD
        sizes = (0, least, 2 * least - 1, 2 * least, 7 * least, 100 * least, 1 << 40)
        assert [pool.thread_count(size) for size in sizes] == [1, 1, 1, 2, 7, 8, 8]
        monkeypatch.setenv("ODE2OPT_THREADS", "3")
        assert pool.thread_count(0) == 3
        with threads(5):
            assert pool.thread_count(0) == 5
    finally:
        pool._most_threads.cache_clear()


@pytest.mark.parametrize(
    ("told", "most"), [("1", 1), ("3,2", 3), ("99", 8), ("0", 8), ("", 8), ("many", 8)]
)
def test_a_limit_of_openmp_holds_for_kernels(told, most, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    monkeypatch.setattr(pool, "cpu_count", lambda: 8)
    pool._most_threads.cache_clear()
    try:
        assert pool.thread_count(1 << 40) == most
    finally:
        pool._most_threads.cache_clear()


def test_several_at_work_have_one_thread_each(monkeypatch):
    monkeypatch.setattr(pool, "_most_threads", lambda: 8)
    executor = LocalExecutor(threads=2)
    assert list(executor.in_threads(pool.thread_count, [1 << 40] * 3)) == [1, 1, 1]
    assert pool.thread_count(1 << 40) == 8
    with one_thread():
        assert pool.thread_count(1 << 40) == 1


def test_a_solve_that_kernels_carry_has_one_blas_thread(numpy_form):
    problem, _ = made("logistic")
    problem.entries = lambda: 1 << 40
    seen = []

    def solved():
        solve(problem, callback=lambda _: seen.append(counts()), max_iter=3, tol=1e-12)

    def counts():
        pools = ThreadpoolController().select(user_api="blas").info()
        return {each["num_threads"] for each in pools}

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if counts() != {2}:
            pytest.skip("this BLAS has no threads")
        solved()
        assert seen[-1] == {1}
        numpy_form(solved)
        assert seen[-1] == {2}


def test_read_only_and_strided_arrays_are_taken_as_they_are(numpy_form, passes):
    problem, x = made("logistic")
    expected = problem.value_and_gradient(x)
    for array in (problem.A, problem.b, problem.weights):
        array.flags.writeable = False
    problem.offset = np.repeat(problem.offset, 2)[::2]
    found = problem.value_and_gradient(x)
    assert len(passes) == 2
    assert found[0] == expected[0]
    np.testing.assert_array_equal(found[1], expected[1])


def test_other_arrays_and_losses_are_left_to_numpy(passes):
    class Steeper(Logistic):
        def slope(self, z):
            return 2 * super().slope(z)

    problem, x = made("logistic", everything=False)
    by_neither = Logistic(np.repeat(problem.A, 2, axis=1)[:, ::2], problem.b)
    assert not by_neither.A.flags.forc
    by_neither.gradient(x)
    Steeper(problem.A, problem.b).gradient(x)
    problem.gradient(x.astype(np.float32))
    assert passes == []
    assert LinearModel.kernel is None


def test_small_matrices_are_left_to_numpy(passes, monkeypatch):
    monkeypatch.undo()
    problem, x = made("logistic")
    problem.gradient(x)
    assert passes == []
    assert not rows.is_worth_it(np.zeros((2_000_000, 9)))
    assert not rows.is_worth_it(np.zeros((79_999, 100)))
    assert not rows.is_worth_it(np.zeros((600_000, 29), np.float32))
    assert not rows.is_worth_it(np.zeros((8_000, 1_001), order="F"))
    assert not rows.is_worth_it(np.zeros((400_000, 29), order="F"))
    assert rows.is_worth_it(np.zeros((80_000, 100))) == kernels.available()
    assert rows.is_worth_it(np.zeros((80_000, 100), order="F")) == kernels.available()


def test_a_solve_ends_at_the_same_point(numpy_form):
    problem, _ = made("logistic")
    found = solve(problem, tol=1e-9)
    assert found.success
    np.testing.assert_allclose(found.x, numpy_form(lambda: solve(problem, tol=1e-9)).x, atol=1e-6)


@pytest.mark.parametrize("text", ["0", "off", " OFF "])
def test_the_switch_turns_kernels_off(text, monkeypatch):
    assert kernels.available()
    monkeypatch.setenv("ODE2OPT_KERNELS", text)
    assert not kernels.available()


@pytest.mark.parametrize(
    ("name", "text"),
    [("ODE2OPT_KERNELS", "yes"), ("ODE2OPT_THREADS", "0"), ("ODE2OPT_THREADS", "x")],
)
def test_a_variable_that_says_nothing_is_refused(name, text, monkeypatch):
    monkeypatch.setenv(name, text)
    problem, x = made("logistic")
    with pytest.raises(InputError, match=name):
        problem.gradient(x)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
def test_a_number_of_threads_that_is_none_is_refused(count):
    with pytest.raises(InputError, match="threads is"), threads(count):
        pass


def test_an_old_or_broken_numba_is_told_once(monkeypatch, numpy_form):
    monkeypatch.setattr(rows.metadata, "version", lambda _: "0.59.1")
    rows._is_installed.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="too old"):
            assert not kernels.available()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not kernels.available()
    finally:
        monkeypatch.undo()
        rows._is_installed.cache_clear()


def test_numba_that_cannot_be_imported_leaves_numpy_in_place(monkeypatch, numpy_form):
    problem, x = made("logistic")
    expected = numpy_form(lambda: problem.gradient(x))
    monkeypatch.setitem(sys.modules, "ode2opt.kernels.compiled_rows", None)
    rows._made.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="numba does not work"):
            found = problem.gradient(x)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(problem.gradient(x), expected)
    finally:
        rows._made.cache_clear()


SCRIPT = """
import os, sys
import numpy as np
from ode2opt import Logistic, solve
from ode2opt.kernels import available
A = np.random.default_rng(0).standard_normal((80_000, 100))
problem = Logistic(A, (A[:, 0] > 0).astype(float), l2=0.1)
value, g = problem.value_and_gradient(np.full(100, 0.1))
print(available(), "numba" in sys.modules, repr(float(value)), repr(float(g @ g)))
"""


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,  # a fork that waits for threads it has not would wait for ever
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_without_kernels_numba_is_not_even_imported():
    without = run(SCRIPT, ODE2OPT_KERNELS="off")
    with_them = run(SCRIPT, ODE2OPT_KERNELS="on", ODE2OPT_THREADS="2")
    assert without[:2] == ["False", "False"]
    assert with_them[:2] == ["True", "True"]
    for one, other in zip(without[2:], with_them[2:], strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-13)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_makes_threads_of_its_own():
    fork = """
import ode2opt.base.threads as pool
assert list(pool._pools) == [1], pool._pools  # the gradient above had two threads by itself
x = np.full(100, 0.1)
first, solved = problem.gradient(x), solve(problem).x
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
else:
    same = np.array_equal(problem.gradient(x), first) and np.array_equal(solve(problem).x, solved)
    os._exit(int(not same))
"""
    script = "import warnings\nwarnings.simplefilter('ignore', DeprecationWarning)\n"
    cores = "import ode2opt.base.threads\node2opt.base.threads.cpu_count = lambda: 2\n"
    run(script + cores + SCRIPT + fork, ODE2OPT_KERNELS="on", OMP_NUM_THREADS="2")


def test_a_folder_that_cannot_be_written_to_is_told_and_kernels_work(monkeypatch):
    from ode2opt.kernels import compiled_rows

    compile_it = compiled_rows.njit

    def without_folder(*signature, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_it(*signature, **options)

    monkeypatch.setattr(compiled_rows, "njit", without_folder)
    rows._tell.cache_clear()
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR"):
        kernel = compiled_rows.compiled(np.dtype(np.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows.kept_on_disk(without_folder, "f8(f8)")(lambda x: x)
    monkeypatch.setattr(rows, "kernel_for", lambda _: kernel)
    found = rows.one_pass(Lpp.row_loss, np.eye(3), np.ones(3), np.zeros(3), parameter=2)
    assert found[0] == 1.5
