"""The derivative of a flow's end through its event, against the independent adjoint."""

import equinox as eqx
import numpy as np
import pytest
from adjoint import Adjoint, Curves

from ode2opt import Logistic, Lpp
from ode2opt.paper import Default, DefaultCoefficients, flow, to_jax

pytestmark = pytest.mark.usefixtures("x64")

EPS, SCALE, X0 = 1e-2, 2.0, np.ones(4)


def stopping_time(coefficients, problem):
    options = {"rtol": 1e-10, "atol": 1e-12, "max_steps": 4096}
    return flow(coefficients, problem, X0, t1=80.0, until=EPS, scale=SCALE, **options).t


@pytest.mark.parametrize("kind", [Logistic, pytest.param(Lpp, marks=pytest.mark.exhaustive)])
def test_automatic_differentiation_agrees_with_the_adjoint(kind):
    rng = np.random.default_rng(3)
    problem = kind(rng.standard_normal((30, 4)), rng.integers(0, 2, 30).astype(float), l2=0.05)
    C = 0.8
    formula = DefaultCoefficients(C)
    curves = [formula.beta, formula.gamma, formula.dbeta]
    by_C = [lambda t, curve=curve: curve(t) / C for curve in curves]  # C is a factor of all three
    adjoint = Adjoint(
        problem, None, Curves(formula.alpha, *curves, *by_C), X0, SCALE, EPS, formula.h, 1.0, 1.0
    )
    slope = eqx.filter_grad(stopping_time)(Default(C), to_jax(problem)).C
    assert float(slope) == pytest.approx(adjoint.dT(), rel=1e-5)
