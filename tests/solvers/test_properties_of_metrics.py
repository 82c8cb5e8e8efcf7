"""What holds for every metric: M = S Sᵀ is a metric, and all ways to use it are one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ode2opt import Quadratic
from ode2opt.solvers.metric import Metric, product


@st.composite
def metrics(draw):
    """Any kind, up to nine variables, with lengths between about 1e-3 and 1e3."""
    n = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["diagonal", "spectral", "lowrank"]))
    scale = 10.0 ** rng.uniform(-1.5, 1.5, n)
    if kind == "diagonal":
        return Metric(kind, scale)
    rank = n if kind == "spectral" else draw(st.integers(0, n))
    V, _ = np.linalg.qr(rng.standard_normal((n, n)))
    V = np.ascontiguousarray(V[:, :rank])
    return Metric(kind, scale, V, 10.0 ** rng.uniform(-1.5, 1.5, rank) - 1)


def matrix_of(metric, power=1.0):
    """S written out: diag(scale) (I + V diag(stretch) Vᵀ), its lengths to a power."""
    root = np.eye(metric.n)
    if metric.V is not None:
        root = root + metric.V @ np.diag((1 + metric.stretch) ** power - 1) @ metric.V.T
    return np.diag(metric.scale**power) @ root


def vectors(metric, seed, count):
    return np.random.default_rng(seed).standard_normal((count, metric.n))


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@given(metric=metrics(), seed=st.integers(0, 99))
def test_all_products_are_those_of_one_matrix(metric, seed):
    (g,) = vectors(metric, seed, 1)
    S, on = matrix_of(metric), metric.on(Quadratic(np.eye(metric.n), g))
    assert_near(metric.matrix(), S)
    assert_near(on.root(g), S @ g)
    assert_near(on.root_transposed(g), S.T @ g)
    assert_near(on(g), S @ S.T @ g)
    assert_near(product(metric.parts(), g), S @ S.T @ g)


@given(metric=metrics(), seed=st.integers(0, 99))
def test_a_metric_is_symmetric_and_leads_downhill(metric, seed):
    g, v = vectors(metric, seed, 2)
    M = metric.on(Quadratic(np.eye(metric.n), g))
    size = np.linalg.norm(M(g)) * np.linalg.norm(v) + np.linalg.norm(M(v)) * np.linalg.norm(g)
    assert abs(g @ M(v) - v @ M(g)) <= 1e-9 * size
    assert g @ M(g) > 0


@given(metric=metrics(), power=st.floats(0.05, 1.0))
def test_a_milder_metric_has_all_lengths_to_a_power(metric, power):
    milder = metric.milder(power)
    assert_near(milder.matrix(), matrix_of(metric, power))
    assert milder.kind == metric.kind
    assert metric.milder(1.0) is metric


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9), spread=st.floats(0, 6))
def test_the_inverse_of_a_hessian_makes_it_round(seed, n, spread):
    """All eigenvalues of Sᵀ H S are one, though those of H differ by up to a million."""
    V, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    H = (V * np.logspace(0, -spread, n)) @ V.T
    S = Metric.inverse_of((H + H.T) / 2).matrix()
    np.testing.assert_allclose(np.linalg.eigvalsh(S.T @ H @ S), 1.0, rtol=1e-8)


@given(metric=metrics())
def test_the_prompt_tells_the_lengths_of_its_kind(metric):
    lengths = metric.lengths()
    assert np.all(lengths > 0)
    assert np.all(np.diff(lengths) >= 0)
    if metric.kind == "diagonal":
        np.testing.assert_array_equal(lengths, np.sort(metric.scale))
    else:  # S is diag(scale) after a stretch: that of a direction is |S v|
        S = metric.matrix()
        assert_near(lengths, np.sort(np.linalg.norm(S @ metric.V, axis=0)) if len(lengths) else 0)
