"""Sequences that are learned inside the corrected Theorem 2."""

import equinox as eqx
import numpy as np
import pytest

from ode2opt import Family, Schedule, learn
from ode2opt.base.precision import jax_precision
from ode2opt.learning.sequence.proved_table import ProvedTable
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.table import two_step_rows
from ode2opt.proofs.theorem import Member
from ode2opt.study.prove import prove


def some(seed, K=24, size=3.0):
    rng = np.random.default_rng(seed)
    with jax_precision():
        values = (size * rng.standard_normal(5), size * rng.standard_normal(5))
        return eqx.tree_at(lambda c: (c.level, c.share), ProvedTable(5, K), values)


def schedule_of(table):
    with jax_precision():
        return Schedule(*(np.asarray(row) for row in table()))


@pytest.mark.parametrize("seed", range(3))
def test_tables_are_members_of_the_theorem_whatever_is_learned(seed):
    table = some(seed)
    with jax_precision():
        member = Member(*map(np.asarray, table.eta_and_t()))  # checks the inequalities
    rows = two_step_rows(schedule_of(table))
    np.testing.assert_allclose(rows, member.rows()[:-1], atol=1e-12)
    last = np.append(rows, [[0.0, 1.0, 0.0]], axis=0)  # f(y - g/L)
    assert worst_case(last).tau <= member.bounds()[len(rows)] * (1 + 1e-6)


@pytest.mark.exhaustive
def test_training_learns_one():
    """Few steps on synthetic problems; the table that comes out is proved."""
    family = Family.from_dataset("logistic", "separable")
    method = learn(
        family, target="sequence", coefficients="proved", steps=4, horizon=40, batch=2,
        validation=2, tol=1e-3, metric="none", seed=0,
    )  # fmt: skip
    assert method.schedule is not None
    assert prove(method.schedule).found.ratio < 2
