"""A^T W A by every way there is, against the plain product."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import torch

from ode2opt.problems import gram
from ode2opt.problems.gram import extent, weighted_gram


def made(N, n, density=1.0, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, n)) * (rng.random((N, n)) < density)
    return A.astype(dtype), rng.random(N).astype(dtype)


def plain(A, w):
    return A.T @ np.diag(w) @ A


SHAPES = {"small": (7, 3), "one column": (90, 1), "many blocks": (1100, 500), "wide": (20, 60)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sign", ["positive", "negative", "mixed", "zero", "few", "few mixed"])
def test_a_dense_gram_is_the_plain_product(shape, sign):
    A, w = made(*SHAPES[shape])
    few = w * (np.arange(len(w)) % 3 == 0)
    signs = {"positive": w, "negative": -w, "mixed": w - 0.5, "zero": 0 * w}
    w = (signs | {"few": few, "few mixed": few * np.sign(w - 0.5)})[sign]
    H = weighted_gram(A, w)
    np.testing.assert_allclose(H, plain(A, w), atol=1e-10)
    np.testing.assert_allclose(H, H.T, atol=1e-12)


@pytest.mark.parametrize("columns", [100, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weights", ["own", "alike", "few alike"])
def test_a_matrix_by_columns_has_the_same_gram(columns, dtype, weights):
    A, w = made(6000, columns, dtype=dtype)
    w = w if weights == "own" else np.full_like(w, 0.7)
    if weights == "few alike":
        w[::2] = 0
    expected = (A.T.astype(float) * w) @ A
    for B in (A, np.asfortranarray(A), np.repeat(A, 2, axis=1)[:, ::2]):
        H = weighted_gram(B, w)
        assert H.dtype == dtype
        np.testing.assert_allclose(H, expected, atol=40_000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("sign", [1.0, -1.0, 0.5, 0.1])
def test_a_sparse_gram_is_the_plain_product_either_way(stays, form, sign):
    A, w = made(1100, 300, density=0.01 if stays else 0.6)
    w = w - 0.5 if sign == 0.5 else w * (w < 0.1) if sign == 0.1 else sign * w
    B = form(A)
    assert extent(B).stays_sparse() is stays
    before = B.copy()
    H = weighted_gram(B, w)
    assert type(H) is np.ndarray
    np.testing.assert_allclose(H, plain(A, w), atol=1e-10)
    np.testing.assert_array_equal(B.toarray(), before.toarray())


@pytest.mark.parametrize("weights", [np.linspace(-1, 1, 1100), np.full(1100, 0.3)])
def test_scipys_public_product_gives_the_same(weights, monkeypatch):
    B = scipy.sparse.csr_array(made(1100, 300, density=0.01)[0])
    quick = weighted_gram(B, weights)
    monkeypatch.setattr(gram, "_row_products", lambda: None)
    np.testing.assert_allclose(weighted_gram(B, weights), quick, atol=1e-12)


@pytest.mark.parametrize("block", [1, 7, 500])
def test_blocks_of_sparse_rows_add_up(block, monkeypatch):
    A, w = made(300, 90, density=0.02)
    A[50:80] = 0  # empty rows
    monkeypatch.setattr(gram, "ROUTES", gram.GramRoutes(sparse_block=block))
    B = scipy.sparse.csr_array(A)
    assert extent(B).stays_sparse()
    np.testing.assert_allclose(weighted_gram(B, w), plain(A, w), atol=1e-12)


@pytest.mark.parametrize("density", [0.01, 0.6])
def test_entries_that_are_not_in_order_or_come_twice_are_added(density):
    A, w = made(400, 100, density)
    B = scipy.sparse.csr_array(A)
    twice = scipy.sparse.csr_array(
        (
            np.repeat(B.data / 2, 2)[::-1],
            np.repeat(B.indices, 2)[::-1],
            2 * (B.nnz - B.indptr[::-1]),
        ),
        shape=A.shape,
    )  # the rows in reverse, each entry as two halves
    np.testing.assert_allclose(twice.toarray(), A[::-1])
    np.testing.assert_allclose(weighted_gram(twice, w[::-1]), plain(A, w), atol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("library", [jnp.asarray, torch.asarray])
def test_other_libraries_give_the_same(library):
    A, w = made(60, 9)
    H = weighted_gram(library(A), library(w))
    assert type(H) is type(library(A))
    np.testing.assert_allclose(np.asarray(H), plain(A, w), atol=1e-12)


@pytest.mark.parametrize("density", [0.01, 0.6, 1.0])
def test_single_precision_stays_single(density):
    A, w = made(400, 100, density, np.float32)
    for B in (A, scipy.sparse.csr_array(A)):
        H = weighted_gram(B, w)
        assert H.dtype == np.float32
        np.testing.assert_allclose(H, plain(A.astype(float), w.astype(float)), atol=1e-3)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_memory_for_a_block_of_rows_is_enough(form):
    A, w = made(40_000, 60)
    B = form(A)
    tracemalloc.start()
    weighted_gram(B, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < A.nbytes / 2


def test_operations_are_counted_as_they_are_made():
    A, _ = made(50, 8)
    assert extent(A).flops() == 50 * 8 * 9
    sparse = scipy.sparse.csr_array(made(2000, 300, 0.01)[0])
    pairs = sum(len(sparse[[i]].indices) ** 2 for i in range(2000))
    assert extent(sparse).flops() == 2 * 4 * pairs
    full = scipy.sparse.csr_array(made(200, 30)[0])
    assert extent(full).flops() == extent(full.toarray()).flops()


def test_estimated_seconds_grow_with_the_work():
    small, large = (extent(made(N, 50)[0]).seconds() for N in (100, 200))
    assert large == pytest.approx(2 * small)
    sparse, dense = (scipy.sparse.csr_array(made(2000, 300, d)[0]) for d in (0.01, 0.6))
    assert extent(sparse).seconds() < extent(dense).seconds()
