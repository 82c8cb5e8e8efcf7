"""Training in a page: Algorithm 2 on the problems that it is given, and nothing else.

    theta <- theta - eta d/dtheta [ T + rho (P + Q) ],    a few fresh problems a step

``ode2opt.learn`` makes the same steps, with held-out problems, checkpoints and a certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from ode2opt.base.errors import InputError
from ode2opt.base.precision import double
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.stopm import Batch, StoPM
from ode2opt.paper.stopping_time import FlowInstance, Rules
from ode2opt.problems.base import Problem


@double
def train(
    coefficients: Coefficients, problems: Iterable[Problem], *, steps: int, batch: int = 2,
    tol: float = 3e-4, penalty: float = 10.0, rules: Rules | None = None,
    optimizer: optax.GradientTransformation | None = None, learn_alpha: bool = False,
) -> tuple[Coefficients, list[Batch]]:  # fmt: skip
    """Return learned coefficients, and what each step saw.

    Each step takes the next ``batch`` of the problems; ``tol`` is the gradient norm that T waits
    for, ``penalty`` is rho, and ``rules`` say how T, P and Q are measured, if not as usual.

    Examples:
        >>> from ode2opt.paper import Default
        >>> fresh = (family.sample([0, i]) for i in range(1000))
        >>> learned, seen = train(Default(C=1.0), fresh, steps=2, tol=1e-2)
        >>> seen[-1].reached
        2
    """
    learnable = jax.tree.map(eqx.is_inexact_array, coefficients)
    if not learn_alpha:
        learnable = eqx.tree_at(lambda c: c.alpha, learnable, False)
    rules = Rules(jnp.asarray(tol), safety=1.2) if rules is None else rules
    optimizer = optax.adam(3e-2) if optimizer is None else optimizer
    stopm = StoPM(coefficients, learnable, rules, optimizer, penalty=penalty)
    state, seen, source = stopm.start, [], iter(problems)
    for step in range(steps):
        instances = [FlowInstance.of(problem) for problem in islice(source, batch)]
        if len(instances) < batch:
            raise InputError(f"The problems ended in step {step}: {steps} x {batch} are due.")
        state, found = stopm.step(state, instances)
        seen.append(found)
    return stopm.learned(state), seen
