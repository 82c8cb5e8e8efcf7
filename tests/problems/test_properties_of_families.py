"""What holds for every family: which rows a problem is made of, and that seeds decide it."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

from ode2opt import Family
from ode2opt.problems.family import KINDS, Fold

pytestmark = pytest.mark.filterwarnings("ignore:Test problems must repeat")


@st.composite
def families(draw):
    """A family of numbered rows, the number being the first column; and how many rows it has."""
    count = draw(st.integers(3, 60))
    cut = int(0.6 * count)
    size = draw(st.integers(1, min(cut, count - cut)))
    kind, l2 = draw(st.sampled_from([*KINDS])), draw(st.sampled_from([0.0, 0.5]))
    A = np.column_stack([np.arange(1.0, count + 1), np.ones(count)])
    b = np.arange(count) % 2.0
    given_matrix = scipy.sparse.csr_array(A) if draw(st.booleans()) else A
    return Family.from_arrays(kind, given_matrix, b, size=size, l2=l2), count


SEEDS = st.integers(0, 2**32 - 1) | st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=4)


def rows_of(problem):
    """The numbers of a problem's rows."""
    A = problem.A
    return (A.toarray() if scipy.sparse.issparse(A) else A)[:, 0].astype(int) - 1


@given(families(), SEEDS, st.sampled_from(["train", "test"]))
def test_a_problem_has_its_size_in_rows_of_its_part_each_once(case, seed, part):
    family, count = case
    rows = rows_of(family.sample(seed, part=part))
    assert len(rows) == len(set(rows)) == family.size
    cut = int(0.6 * count)
    assert set(rows) <= set(range(cut) if part == "train" else range(cut, count))
    assert family.train_rows == cut


@given(families(), SEEDS)
def test_a_row_keeps_its_label_and_a_seed_its_problem(case, seed):
    family, _ = case
    first, again = family.sample(seed), family.sample(seed)
    np.testing.assert_array_equal(rows_of(first), rows_of(again))
    x = np.repeat([1e-3, -0.1], first.width) * (np.arange(first.n) + 1)
    assert first.value(x) == again.value(x)
    labels = rows_of(first) % 2
    dense = np.column_stack([rows_of(first) + 1.0, np.ones(family.size)])
    classes = {"classes": first.classes} if first.counted else {}
    same = type(first)(dense, labels.astype(float), l2=first.l2, **classes)
    np.testing.assert_allclose(first.value(x), same.value(x), rtol=1e-12)
    np.testing.assert_allclose(first.gradient(x), same.gradient(x), rtol=1e-10, atol=1e-12)


@given(families(), SEEDS)
def test_a_block_is_made_of_rows_that_follow_each_other(case, seed):
    family, _ = case
    rows = rows_of(family.sample(seed, block=True))
    np.testing.assert_array_equal(rows, rows[0] + np.arange(family.size))


@given(families(), SEEDS, st.integers(2, 5), st.data())
def test_a_fold_and_the_others_share_no_row(case, seed, count, data):
    family, _ = case
    assume(family.train_rows >= count)
    index = data.draw(st.integers(0, count - 1))
    inside, outside = (
        rows_of(family.sample(seed, fold=Fold(index, count, others))) for others in (False, True)
    )
    assert not set(inside) & set(outside)
    stretch = family.train_rows // count + (index < family.train_rows % count)
    assert len(set(inside)) == min(family.size, stretch)
    assert max(inside) - min(inside) < stretch


@given(families(), families())
def test_a_fingerprint_tells_families_of_other_rows_or_options_apart(one, other):
    a, b = (family.sample(0) for family, _ in (one, other))
    alike = (
        type(a) is type(b)
        and one[1] == other[1]
        and a.l2 == b.l2
        and scipy.sparse.issparse(a.A) == scipy.sparse.issparse(b.A)
    )
    assert (one[0].fingerprint() == other[0].fingerprint()) == alike
