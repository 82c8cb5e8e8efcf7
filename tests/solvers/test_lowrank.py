"""A Hessian as diagonal plus low rank, against the Hessian."""

import numpy as np
import pytest

from ode2opt.solvers.lowrank import EXTRA, RANK, lowrank_metric, nystrom


def hessian(n, rank, rng, rest=0.0):
    """A few large directions in variables of any size."""
    V, _ = np.linalg.qr(rng.standard_normal((n, rank)))
    scales = 10 ** rng.uniform(-2, 2, n)
    H = (V * np.logspace(3, 0, rank)) @ V.T + rest * np.eye(n)
    return scales[:, None] * H * scales


def test_nystrom_is_exact_where_probes_see_all(rng):
    n, rank = 60, 5
    V, _ = np.linalg.qr(rng.standard_normal((n, rank)))
    w = np.array([9.0, 5.0, 3.0, 2.0, 1.0])
    H = (V * w) @ V.T
    probes, _ = np.linalg.qr(rng.standard_normal((n, 9)))
    found, vectors = nystrom(probes, H @ probes, rank)
    np.testing.assert_allclose(found, w, rtol=1e-7)
    np.testing.assert_allclose((vectors * found) @ vectors.T, H, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(rank), atol=1e-10)


@pytest.mark.parametrize("n", [3, 40, 300])
def test_in_the_metric_the_hessian_is_nearly_the_identity(n, rng):
    H = hessian(n, min(n, 20), rng, rest=1.0)
    floor = 1e-3 * H.diagonal()
    asked = []
    metric = lowrank_metric(H.diagonal(), floor, lambda v: asked.append(1) or H @ v)
    S = metric.matrix()
    before = np.linalg.cond(H + np.diag(floor))
    w = np.linalg.eigvalsh(S.T @ (H + np.diag(floor)) @ S)
    assert w[-1] / w[0] < min(30, before)
    assert 0.02 < w[0]
    assert w[-1] < 50
    assert len(asked) == min(RANK + EXTRA, n)


def test_it_is_the_same_every_time(rng):
    H = hessian(80, 20, rng, rest=1.0)
    one, two = (lowrank_metric(H.diagonal(), np.full(80, 1e-3), lambda v: H @ v) for _ in range(2))
    np.testing.assert_array_equal(one.matrix(), two.matrix())


def test_a_hessian_of_nothing_leaves_the_floor():
    metric = lowrank_metric(np.zeros(5), np.full(5, 4.0), lambda v: 0 * v)
    S = metric.matrix()
    np.testing.assert_allclose(S @ S.T, np.eye(5) / 4, rtol=1e-9)
