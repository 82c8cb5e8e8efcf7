"""The same problem is solved the same way: again, and in an odd container."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import eigsh

from ode2opt import Logistic, Quadratic, solve

N, n = 60, 12


def dense():
    rng = np.random.default_rng(3)
    return rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.5)


A, B = dense(), (np.random.default_rng(4).random(N) < 0.5).astype(float)


def plain():
    return scipy.sparse.csr_array(A)


def out_of_order():
    """Each row backwards."""
    rows = plain()
    place = np.concatenate([np.arange(q - 1, p - 1, -1) for p, q in pairwise(rows.indptr)])
    parts = rows.data[place], rows.indices[place], rows.indptr
    return scipy.sparse.csr_array(parts, shape=rows.shape)


def twice():
    """Each entry as two halves, one after the other."""
    rows = plain()
    parts = np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr
    return scipy.sparse.csr_array(parts, shape=rows.shape)


def told_in_order():
    rows = twice()
    rows.has_sorted_indices = rows.has_canonical_format = True
    return rows


def unaligned(values):
    room = np.empty(values.nbytes + 1, np.uint8)
    found = room[1:].view(values.dtype).reshape(values.shape)
    found[...] = values
    assert not found.flags.aligned
    return found


def every_second(values):
    return np.repeat(values, 2, axis=0)[::2]


def not_to_be_written(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def with_data(change):
    def made():
        rows = plain()
        rows.data = change(rows.data)
        return rows

    return made


def with_long_indices():
    rows = plain()
    parts = rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return scipy.sparse.csr_array(parts, shape=rows.shape)


SPARSE = {
    "out of order": out_of_order,
    "twice": twice,
    "flags that are wrong": told_in_order,
    "unaligned": with_data(unaligned),
    "strided": with_data(every_second),
    "read-only": with_data(not_to_be_written),
    "long indices": with_long_indices,
    "by columns": lambda: plain().tocsc(),
    "coordinates": lambda: plain().tocoo(),
}


def run(matrix, b=B, method="nag-restart"):
    result = solve(Logistic(matrix, b, l2=1e-3), method=method, tol=1e-8, max_iter=300)
    return result.oracle_calls, result.x.tobytes()


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_matrix_in_an_odd_container_is_solved_like_a_plain_one(name):
    expected = run(plain())
    for method in ("nag-restart", "auto"):
        assert run(SPARSE[name](), method=method) == run(plain(), method=method)
    assert run(SPARSE[name]()) == expected


@pytest.mark.parametrize("name", SPARSE)
def test_the_users_matrix_is_left_as_it_is(name):
    matrix = SPARSE[name]()
    before = [part.copy() for part in (matrix.data, matrix.tocsr().indices)]
    run(matrix, method="auto")
    for part, copy in zip((matrix.data, matrix.tocsr().indices), before, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.parametrize("made", [out_of_order, twice])
@pytest.mark.parametrize("method", ["nag-restart", "auto"])
def test_a_problem_is_solved_the_same_way_after_scipy_has_put_its_matrix_in_order(made, method):
    """SciPy does it in place when it is asked for a maximum."""
    matrix = made()
    problem = Logistic(matrix, B, l2=1e-3)
    first = solve(problem, method=method, tol=1e-8, max_iter=300)
    matrix.max()
    assert matrix.has_sorted_indices
    again = solve(problem, method=method, tol=1e-8, max_iter=300)
    assert (again.oracle_calls, again.x.tobytes()) == (first.oracle_calls, first.x.tobytes())


def test_the_diagonal_of_the_hessian_knows_entries_that_are_given_in_two_halves():
    x = np.full(n, 0.1)
    z = A @ x
    bend = np.exp(-z) / (1 + np.exp(-z)) ** 2
    for made in (twice, told_in_order):
        found = Logistic(made(), B).hessian_diagonal(x)
        np.testing.assert_allclose(found, (A * A).T @ bend / N, rtol=1e-12)


@pytest.mark.parametrize("method", ["nag-restart", "auto"])
def test_a_dense_matrix_that_begins_at_any_byte_is_solved_like_another(method):
    """One that another process has sent may."""
    assert run(unaligned(A), unaligned(B), method) == run(A, B, method)


@pytest.mark.parametrize("seed", [11, 34, 389, 647, 955])
def test_finding_the_step_constant_takes_the_same_calls_each_time(seed):
    """Of a matrix of low rank Lanczos runs out of directions, and takes random ones."""
    if "rng" not in inspect.signature(eigsh).parameters:
        pytest.skip("this SciPy takes its random numbers from where the last call left them")
    rng = np.random.default_rng(seed)
    rank, size = int(rng.integers(1, 4)), int(rng.integers(9, 60))
    rows = rng.standard_normal((rank, size)) * (rng.random((rank, size)) < 0.3)
    problem = Quadratic(rows.T @ rows, np.ones(size))
    found = [problem.scale(np.zeros(size)) for _ in range(50)]
    assert len({(one.oracle_calls, one.L) for one in found}) == 1
