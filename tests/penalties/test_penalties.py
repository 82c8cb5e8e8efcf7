"""Penalties: proxes against their definition and cvxpy, other arrays, and what is refused."""

import copy
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ode2opt import (
    L1,
    Box,
    ElasticNet,
    GroupL1,
    InputError,
    L1Ball,
    LeastSquares,
    NonNegative,
    Simplex,
    Softmax,
)
from ode2opt.penalties import ZERO

GROUPS = [[0, 3], [1], [2, 4, 5]]
PENALTIES = {
    "l1": L1(0.7),
    "l1 by column": L1([0.1, 0.0, 2.0, 0.5, 1.0, 0.3]),
    "elastic net": ElasticNet(0.9, 0.3),
    "group": GroupL1([0.5, 1.0, 0.7], GROUPS),
    "nonnegative": NonNegative(),
    "box": Box(-0.5, [0.3, np.inf, 0.0, 1.0, 2.0, -0.5]),
    "l1 in a box": L1(0.4) + Box(-0.2, 0.9),
    "simplex": Simplex(1.5),
    "l1 ball": L1Ball(1.2),
    "zero": ZERO,
}


def in_cvxpy(name, z):
    """The penalty as cvxpy has it: its value, and constraints."""
    import cvxpy as cp

    box = [z >= -0.5, z <= np.array([0.3, 1e6, 0.0, 1.0, 2.0, -0.5])]
    return {
        "l1": (0.7 * cp.norm1(z), []),
        "l1 by column": (np.array([0.1, 0.0, 2.0, 0.5, 1.0, 0.3]) @ cp.abs(z), []),
        "elastic net": (0.9 * (0.3 * cp.norm1(z) + 0.35 * cp.sum_squares(z)), []),
        "group": (
            sum(w * cp.norm2(z[g]) for w, g in zip([0.5, 1.0, 0.7], GROUPS, strict=True)),
            [],
        ),
        "nonnegative": (0, [z >= 0]),
        "box": (0, box),
        "l1 in a box": (0.4 * cp.norm1(z), [z >= -0.2, z <= 0.9]),
        "simplex": (0, [z >= 0, cp.sum(z) == 1.5]),
        "l1 ball": (0, [cp.norm1(z) <= 1.2]),
        "zero": (0, []),
    }[name]


@pytest.mark.parametrize("name", PENALTIES)
def test_a_prox_is_the_minimiser_that_cvxpy_finds(name):
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(3)
    for step in (0.1, 1.7):
        x = 2 * rng.standard_normal(6)
        z = cp.Variable(6)
        h, limits = in_cvxpy(name, z)
        cp.Problem(cp.Minimize(h + cp.sum_squares(z - x) / (2 * step)), limits).solve("CLARABEL")
        found = PENALTIES[name].prox(x, step)
        np.testing.assert_allclose(found, z.value, atol=2e-4)
        assert float(PENALTIES[name].value(found)) == pytest.approx(
            0.0 if isinstance(h, int) else h.value, abs=1e-3
        )


@pytest.mark.parametrize("name", PENALTIES)
@given(seed=st.integers(0, 2**32 - 1), size=st.floats(-8, 8))
def test_a_prox_is_firmly_nonexpansive_and_stays_in_the_domain(name, seed, size):
    """|P x - P y|^2 <= <P x - P y, x - y>: what every prox of a convex function does."""
    rng = np.random.default_rng(seed)
    penalty, (x, y) = PENALTIES[name], 10.0**size * rng.standard_normal((2, 6))
    p, q = penalty.prox(x, 0.8), penalty.prox(y, 0.8)
    assert np.isfinite(float(penalty.value(p)))
    assert (p - q) @ (p - q) <= (p - q) @ (x - y) + 1e-12 * (x @ x + y @ y + 1)
    assert penalty.project(x).shape == x.shape
    assert np.isfinite(float(penalty.value(penalty.project(x))))


@pytest.mark.parametrize("name", PENALTIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_conjugate_is_that_of_fenchel_and_young(name, seed):
    """With p = prox(x, 1) and v = x - p, h(p) + h*(v) = v . p; elsewhere it is not less."""
    rng = np.random.default_rng(seed)
    penalty, x, z = PENALTIES[name], 3 * rng.standard_normal(6), rng.standard_normal(6)
    p = penalty.prox(x, 1.0)
    v = x - p
    scale = penalty.dual_scale(v)
    assert scale >= 1 - 1e-12
    inside = v * (1 - 1e-13)
    assert float(penalty.value(p)) + penalty.conjugate(inside) == pytest.approx(v @ p, abs=1e-9)
    z = penalty.prox(z, 0.5)
    assert float(penalty.value(z)) + penalty.conjugate(inside) >= v @ z - 1e-9


@pytest.mark.parametrize("name", PENALTIES)
def test_a_face_has_the_derivatives_of_the_penalty(name):
    """Slope and curvature on the free variables, against differences of values."""
    rng = np.random.default_rng(5)
    penalty = PENALTIES[name]
    for _ in range(5):
        x = penalty.prox(2 * rng.standard_normal(6), 0.6)
        face = penalty.curvature_set(x)
        if face.normal is not None or not face.free.any():
            continue
        d = np.where(face.free, rng.standard_normal(6), 0.0)
        d *= 1e-4 / max(1e-9, np.abs(d).max())
        ahead, here, back = (float(penalty.value(x + s * d)) for s in (1, 0, -1))
        if not np.isfinite(ahead + back):
            continue
        bend = np.sum(face.diagonal * d * d)
        if face.outer is not None:
            bend -= np.sum(np.bincount(face.labels, face.outer * d) ** 2)
        assert (ahead - back) / 2 == pytest.approx(face.slope @ d, abs=1e-9)
        assert ahead - 2 * here + back == pytest.approx(bend, abs=1e-11)


@pytest.mark.parametrize("name", PENALTIES)
def test_prox_and_value_are_the_same_on_jax_compiled_and_torch(name):
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    x = np.array([1.0, -2.0, 0.1, 0.4, -0.3, 3.0], dtype=np.float32)
    penalty = PENALTIES[name]
    p, h = penalty.prox(x.astype(float), 0.5), float(penalty.value(x.astype(float)))
    compiled = jax.jit(jax.vmap(lambda x: penalty.prox(x, 0.5)))(jax.numpy.asarray(x)[None])
    np.testing.assert_allclose(np.asarray(compiled)[0], p, atol=1e-6)
    np.testing.assert_allclose(penalty.prox(torch.asarray(x), 0.5).numpy(), p, atol=1e-6)
    values = [penalty.value(jax.numpy.asarray(x)), penalty.value(torch.asarray(x))]
    np.testing.assert_allclose([float(v) for v in values], h, rtol=1e-5)


@pytest.mark.parametrize("name", [k for k, p in PENALTIES.items() if p.separable])
def test_a_separable_penalty_takes_a_step_for_each_variable(name):
    x, steps = np.linspace(-2, 3, 6), np.linspace(0.1, 2, 6)
    together = PENALTIES[name].prox(x, steps)
    for j, step in enumerate(steps):
        assert together[j] == PENALTIES[name].prox(x, step)[j]


def test_an_intercept_is_left_alone_and_columns_are_counted_without_it():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((9, 2)), rng.integers(0, 3, 9).astype(float)
    plain = LeastSquares(A, b, intercept=True)
    x = np.array([3.0, -3.0, 5.0])
    for penalty in (L1(1.0), L1([1.0, 1.0]), L1([1.0, 1.0, 0.0])):
        np.testing.assert_array_equal(penalty.on(plain).prox(x, 1.0), [2, -2, 5])
    np.testing.assert_array_equal(L1([1.0, 1.0, 1.0]).on(plain).prox(x, 1.0), [2, -2, 4])
    np.testing.assert_array_equal(NonNegative().on(plain).prox(-x, 1.0), [0, 3, -5])
    np.testing.assert_array_equal(Simplex().on(plain).prox(x, 1.0), [1, 0, 5])
    group = GroupL1(5.0, [[0], [1]]).on(plain)
    np.testing.assert_array_equal(group.prox(x, 1.0), [0, 0, 5])
    assert list(group.curvature_set(np.array([0.0, 1.0, 2.0])).free) == [False, True, True]
    classes = Softmax(A, b, classes=3, intercept=True)
    found = L1([1.0, 2.0]).on(classes).prox(np.full(9, 3.0), 1.0)
    np.testing.assert_array_equal(found, [2, 2, 2, 1, 1, 1, 3, 3, 3])
    found = GroupL1(np.sqrt(27.0), [[0], [1]]).on(classes).prox(np.full(9, 3.0), 1.0)
    np.testing.assert_allclose(found, [0] * 6 + [3] * 3, atol=1e-12)


def test_the_critical_scale_is_where_zero_begins_to_be_the_solution():
    rng = np.random.default_rng(1)
    g = rng.standard_normal(6)
    for name in ("l1", "elastic net", "group", "l1 in a box"):
        c = PENALTIES[name].critical_scale(g)
        assert not np.any(PENALTIES[name].scaled(1.0001 * c).prox(-g, 1.0)), name
        assert np.any(PENALTIES[name].scaled(0.9999 * c).prox(-g, 1.0)), name
    assert Simplex().critical_scale(g) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: L1(-1), "weight is -1: it must be zero or a positive number"),
        (lambda: L1([1.0, np.nan]), r"weight\[1\] is nan"),
        (lambda: L1("much"), "it must be a number"),
        (lambda: L1([[1.0]]), "one number, or one a column"),
        (lambda: ElasticNet(1.0, 1.5), "l1_ratio is 1.5"),
        (lambda: Box(1, 0), "The box is empty: the lower limit is 1 and the upper one 0"),
        (lambda: Box([0, 1], [1, 0.5]), "limit of variable 1 is 1"),
        (lambda: Box(np.nan, 1), "lower is nan"),
        (lambda: Box([0, 0], [1, 1, 1]), "2 and 3 numbers"),
        (lambda: L1(1.0) + Box(-2, -1) + NonNegative(), "The box is empty"),
        (lambda: GroupL1(1.0, [[0, 1], [1]]), "Column 1 is in two groups"),
        (lambda: GroupL1(1.0, [[0], [2]]), "Column 1 is in no group"),
        (lambda: GroupL1(1.0, [[0], [-1]]), "columns are counted from 0"),
        (lambda: GroupL1(1.0, [[], [0]]), "A group has no columns: leave it out"),
        (lambda: L1(1.0) + Simplex(), r"L1 \+ Simplex has no prox that is known"),
        (lambda: GroupL1(1.0, [[0]]) + L1(1.0), r"GroupL1 \+ L1 has no prox"),
        (lambda: GroupL1(1.0, []), "groups must be lists"),
        (lambda: GroupL1([1.0, 2.0], [[0]]), "2 numbers for 1 group"),
        (lambda: GroupL1(-1.0, [[0]]), "weight is -1"),
        (lambda: Simplex(0), "radius is 0"),
        (lambda: Simplex().sized(1), "A simplex of one variable is one point"),
        (lambda: L1([1.0, 2.0]).sized(5), "2 numbers, but the problem has 5 variables"),
        (lambda: GroupL1(1.0, [[0, 1]]).sized(4, 1), "made for 2 variables, but 3 are"),
        (lambda: Box(0, 1).scaled(2.0), "has no weight"),
    ],
)
def test_what_is_wrong_with_a_penalty_is_said_in_a_sentence(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_penalties_add_up_by_sum():
    both = sum([L1(0.5), NonNegative()])
    np.testing.assert_allclose(both.prox(np.array([2.0, -1.0]), 1.0), [1.5, 0.0])
    with pytest.raises(TypeError):
        L1(1.0) + 1


@pytest.mark.parametrize("name", PENALTIES)
def test_zero_is_the_neutral_penalty(name):
    penalty, x, g = PENALTIES[name], np.array([1.0, -2.0]), np.array([1e-30, 3.0])
    found = [ZERO + penalty, penalty + ZERO, pickle.loads(pickle.dumps(ZERO)), copy.copy(ZERO)]
    assert all(map(operator.is_, found, [penalty, penalty, ZERO, ZERO]))
    assert ZERO.residual(x, g) is g
    assert ZERO.prox(x, 0.1) is x
    assert ZERO.value(x) == 0
