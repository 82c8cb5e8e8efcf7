"""The optimiser of training and how its step size falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optax

from ode2opt.learning.options import Options

FINAL_SHARE = 0.01  # of the step size, at the end of an exponential decay
FIRST_STEPS = 10  # in which the step size of the decay theorem hardly falls


def step_sizes(options: Options) -> Callable[[Any], Any]:
    """Return the step size as a function of the step k, counted from 0.

    The decay "theorem" is lr (1 + k/10)^-p with 1/2 < p <= 1. The sum of these over all k is
    infinite and that of their squares finite, as the convergence of StoPM asks
    (docs/mathematics.md, section 17).
    """
    lr, steps = options.learning_rate, options.steps
    schedules: dict[str, Callable[[Any], Any]] = {
        "constant": optax.constant_schedule(lr),
        "cosine": optax.cosine_decay_schedule(lr, steps),
        "exponential": optax.exponential_decay(lr, steps, FINAL_SHARE),
        "theorem": lambda k: lr * (1 + k / FIRST_STEPS) ** -options.decay_power,
    }
    return schedules[options.decay]


def optimizer_of(options: Options) -> Any:
    """Return the optimiser that the options name."""
    sizes = step_sizes(options)
    return {
        "sgd": lambda: optax.sgd(sizes, momentum=options.momentum),
        "adam": lambda: optax.adam(sizes),
        "adamw": lambda: optax.adamw(sizes),
    }[options.optimizer]()
