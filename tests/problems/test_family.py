"""Families: reproducible draws, train and test apart."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from ode2opt import Family, InputError, LinearModel, Logistic, Lpp, Quadratic, Softmax, solve
from ode2opt.data.sources import DataWarning
from ode2opt.problems.family import KINDS


def test_the_same_seed_gives_the_same_problem():
    family = Family.from_dataset("logistic", "digits")
    first, again, other = (family.sample(seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.A, again.A)
    assert not np.array_equal(first.A, other.A)
    rng = np.random.default_rng(3)
    np.testing.assert_array_equal(family.sample(rng).A, first.A)
    assert not np.array_equal(family.sample(rng).A, first.A)
    np.testing.assert_array_equal(family.sample([0, 1]).A, family.sample([0, 1]).A)


def test_rows_are_drawn_without_replacement_from_their_own_part():
    A = np.arange(100.0)[:, None]
    family = Family.from_arrays("leastsquares", A, np.zeros(100), size=30)
    train, test = family.sample(0).A[:, 0], family.sample(0, part="test").A[:, 0]
    assert len(set(train)) == len(set(test)) == 30
    assert max(train) < 60 <= min(test)


def test_options_and_kind_reach_the_problem():
    family = Family.from_dataset("lpp", "breast_cancer", p=6, l2=0.5, size=50)
    problem = family.sample(0)
    assert isinstance(problem, Lpp)
    assert (problem.p, problem.l2, problem.N) == (6, 0.5, 50)


def test_a_default_given_by_name_makes_no_other_family():
    A, b = np.eye(30), np.ones(30)
    plain, named, ridge = (
        Family.from_arrays("lpp", A, b, size=3, **options).fingerprint()
        for options in ({}, {"p": 4, "l2": 0.0}, {"l2": 0.1})
    )
    assert plain == named != ridge


def test_given_test_arrays_are_used(rng):
    A, b = rng.standard_normal((20, 2)), np.arange(20) % 2
    family = Family.from_arrays(
        "logistic", scipy.sparse.csr_array(A), b, size=5, test=(np.full((9, 2), 7.0), np.ones(9))
    )
    assert isinstance(family.sample(0), Logistic)
    np.testing.assert_array_equal(family.sample(0, part="test").A, 7)


def test_a_sampler_of_ones_own():
    family = Family.from_sampler(lambda rng: Quadratic(np.eye(2), rng.standard_normal(2)))
    np.testing.assert_array_equal(family.sample(1).b, family.sample(1).b)
    assert not np.array_equal(family.sample(1).b, family.sample(2).b)


def test_a_family_travels_to_another_process():
    family = Family.from_dataset("logistic", "breast_cancer")
    copy = pickle.loads(pickle.dumps(family))
    np.testing.assert_array_equal(copy.sample(5).A, family.sample(5).A)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="did you mean 'logistic'"):
        Family.from_dataset("logit", "digits")
    with pytest.raises(InputError, match="5000 rows cannot be drawn from 719"):
        Family.from_dataset("logistic", "digits", size=5000)
    with pytest.raises(InputError, match="0 rows cannot be drawn"):
        Family.from_dataset("logistic", "digits", size=0)
    with pytest.raises(InputError, match="did you mean 'test'"):
        Family.from_dataset("logistic", "digits").sample(0, part="tset")
    with pytest.raises(InputError, match="-1 is no seed"):
        Family.from_dataset("logistic", "digits").sample(-1)
    with pytest.raises(InputError, match="returned NoneType, not a Problem"):
        Family.from_sampler(lambda rng: None).sample(0)
    with pytest.raises(InputError, match="Train has 3 columns, test 2"):
        Family.from_arrays("logistic", np.eye(3), [0, 1, 1], size=1, test=(np.eye(2), [0, 1]))


@pytest.mark.parametrize("name", KINDS)
def test_every_loss_has_families_whose_rows_may_have_weights(name, rng):
    A, b, w = rng.standard_normal((60, 3)), np.arange(60) % 2, rng.random(60)
    test = (A + 1, b, w + 1)
    family = Family.from_arrays(name, A, b, size=20, weights=w, test=test, l2=0.1, intercept=True)
    problem, there = family.sample(0), family.sample(0, part="test")
    assert type(problem) is KINDS[name]
    assert solve(problem, tol=1e-8).success
    index = np.array([int(np.flatnonzero(np.all(row == A, axis=1))[0]) for row in problem.A])
    np.testing.assert_allclose(problem.weights, w[index] * 20 / w[index].sum())
    assert np.all(there.A.mean(axis=0) > problem.A.mean(axis=0))
    plain = Family.from_arrays(name, A, b, size=20, l2=0.1, intercept=True)
    assert plain.sample(0).weights is None
    assert plain.fingerprint() != family.fingerprint()


class Cosh(LinearModel):
    """loss = log cosh(z - b)."""

    def loss(self, z):
        return np.log(np.cosh(z - self.b))

    def slope(self, z):
        return np.tanh(z - self.b)

    def bend(self, z):
        return 1 / np.cosh(z - self.b) ** 2


def test_a_class_of_ones_own_makes_a_family(rng):
    A = rng.standard_normal((50, 3))
    family = Family.from_arrays(Cosh, A, A[:, 0], size=10, l2=0.1)
    assert family.name == "cosh"
    assert isinstance(family.sample(0), Cosh)
    assert solve(family.sample(0), tol=1e-9).success
    with pytest.raises(InputError, match="Quadratic is no linear model"):
        Family.from_arrays(Quadratic, A, A[:, 0], size=10)


def test_all_problems_of_a_family_have_the_same_classes():
    b = np.repeat([0, 1, 2], [96, 2, 2])
    family = Family.from_arrays("softmax", np.eye(100)[:, :4], b, size=5)
    assert {family.sample(seed).n for seed in range(5)} == {12}
    ten = Family.from_dataset("softmax", "digits").sample(0)
    assert isinstance(ten, Softmax)
    assert ten.classes == 10
    assert Family.from_dataset("logistic", "digits").sample(0).b.max() == 1


def test_a_size_that_does_not_fit_tells_what_was_held_back():
    A, b = np.eye(10), np.ones(10)
    with pytest.raises(InputError, match="from 4 rows: of 10 rows 4 were held back for test"):
        Family.from_arrays("lpp", A, b, size=5)
    with pytest.raises(InputError, match=r"from 4 rows\."):
        Family.from_arrays("lpp", A, b, size=5, test=(A[:4], b[:4]))


def test_test_problems_that_must_repeat_are_warned_of():
    A, b = np.eye(400)[:, :3], np.ones(400)
    with pytest.warns(DataWarning, match="only 1 different one of 160 rows"):
        Family.from_arrays("lpp", A, b, size=160)
    with pytest.warns(DataWarning, match="only 4 different ones of 3 rows can be drawn from 4"):
        Family.from_arrays("lpp", A[:10], b[:10], size=3)
    Family.from_arrays("lpp", A, b, size=159)  # without a warning


def test_words_are_kept_in_the_order_of_their_numbers(tmp_path):
    path = tmp_path / "data.csv"
    kinds = ["red", "green", "blue"] * 20
    path.write_text("p,w,kind\n" + "".join(f"{i},{i % 3},{k}\n" for i, k in enumerate(kinds)))
    family = Family.from_dataset("softmax", path, weights="w", split="paper")
    assert family.words == ("blue", "green", "red")
    problem = family.sample(0)
    assert problem.classes == 3
    assert problem.weights is not None
    with pytest.raises(InputError, match="digits has no weights"):
        Family.from_dataset("softmax", "digits", weights="w")
