"""Families: reproducible draws, train and test apart."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from ode2opt import Family, InputError, Logistic, Lpp, Quadratic


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
    A, b = np.eye(10), np.ones(10)
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
