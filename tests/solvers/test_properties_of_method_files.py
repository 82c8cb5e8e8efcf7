"""What holds for every method file: it gives back what was saved, and lies are refused."""

import tempfile
from dataclasses import fields
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ode2opt import Guard, InputError, Method, Schedule
from ode2opt.solvers.method_file import Formula
from ode2opt.solvers.metric import Metric

TEXT = st.text(max_size=12)
POSITIVE = st.floats(1e-300, 1e300, allow_subnormal=False)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NOTES = st.dictionaries(TEXT, JSON, max_size=3)


def vectors(count, numbers=NUMBER):
    return st.lists(numbers, min_size=count, max_size=count).map(np.array)


@st.composite
def guards(draw, instant):
    return Guard(
        blowup=draw(st.floats(1.001, 1e9)), patience=draw(st.integers(1, 10**6)),
        fallback=draw(st.sampled_from(["lbfgs", "metric-lbfgs"] + ["nesterov"] * (not instant))),
        power=draw(st.floats(0.01, 1)),
        envelope=tuple(draw(st.lists(st.floats(1e-9, 1e9), max_size=4))),
    )  # fmt: skip


@st.composite
def metrics(draw, n):
    kind = draw(st.sampled_from(["diagonal", "spectral", "lowrank"]))
    scale = draw(vectors(n, st.floats(1e-60, 1e60)))
    if kind == "diagonal":
        return Metric(kind, scale)
    rank = n if kind == "spectral" else draw(st.integers(0, n))
    V, _ = np.linalg.qr(np.random.default_rng(draw(st.integers(0, 999))).standard_normal((n, n)))
    V = np.ascontiguousarray(V[:, :rank])
    stretch = draw(vectors(rank, st.floats(-0.999, 1e3)))
    return Metric(kind, scale, V, stretch.reshape(rank))


@st.composite
def formulas(draw):
    names = st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=8)
    return Formula(
        draw(TEXT), draw(NOTES), draw(st.dictionaries(names, vectors(3), max_size=3)),
        draw(POSITIVE), draw(POSITIVE),
    )  # fmt: skip


@st.composite
def methods(draw):
    n, K = draw(st.integers(1, 5)), draw(st.integers(0, 6))
    scale = draw(st.sampled_from(["instance", "product", "family"])) if K else "family"
    return Method(
        schedule=Schedule(*(draw(vectors(K)) for _ in "acd")) if K else None,
        family=draw(TEXT), tol=draw(POSITIVE), scale=scale,
        family_scale=draw(POSITIVE) if scale == "family" else draw(st.none() | POSITIVE),
        metric=draw(st.none() | metrics(n)), start=draw(st.none() | st.just("paper") | vectors(n)),
        guard=draw(guards(K == 0)), formula=draw(st.none() | formulas()),
        provenance=draw(NOTES), certificate=draw(NOTES), statistics=draw(NOTES),
    )  # fmt: skip


def assert_same(found, expected):
    """Every field of every part, bit for bit."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    elif isinstance(expected, Method | Schedule | Metric | Guard | Formula):
        for one in fields(expected):
            if not one.name.startswith("_"):
                assert_same(getattr(found, one.name), getattr(expected, one.name))
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    else:
        assert found == expected


@settings(max_examples=25)
@given(method=methods())
def test_a_file_gives_back_every_field_of_every_method(method):
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "1.safetensors", Path(folder) / "2.safetensors"
        method.save(first)
        again = Method.load(first)
        again.save(second)
        assert first.read_bytes() == second.read_bytes()
    assert_same(again, method)


@settings(max_examples=25)
@given(method=methods(), where=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_file_with_a_changed_byte_is_refused_in_words_or_still_a_method(method, where, byte):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.safetensors"
        method.save(path)
        content = bytearray(path.read_bytes())
        content[where % len(content)] = byte
        path.write_bytes(content)
        try:
            found, said = Method.load(path), ""
        except InputError as error:
            found, said = None, str(error)
    if found is None:
        assert str(path) in said
    else:
        assert found.horizon == (0 if found.schedule is None else len(found.schedule))
