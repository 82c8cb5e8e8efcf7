"""What one StoPM step costs, in the gradients that the method itself would need.

lpp with 1,024 rows and 123 columns (a5a where its files are, else random rows of that shape), one
problem, tolerance 1e-4. The yardstick is (T - t0)/h plain gradients of the solver, timed in the
same process right beside each step; parts and compile time are printed separately.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.sparse

from ode2opt import Family, Problem
from ode2opt.base.precision import double
from ode2opt.learning import FlowOptions, SequenceOptions
from ode2opt.learning.flow.target import FlowTarget
from ode2opt.learning.protocol import TRAINING
from ode2opt.learning.sequence.background import MetricRecipe
from ode2opt.learning.sequence.solved_beforehand import SolvedBeforehand
from ode2opt.learning.sequence.target import SequenceTarget
from ode2opt.learning.stage import stopm_of
from ode2opt.paper import Global

EPS, ROUNDS = 1e-4, 15


def family() -> Family:
    """Return a5a as in the paper, or something of its shape."""
    if os.environ.get("ODE2OPT_DATA"):
        return Family.from_dataset("lpp", "a5a")
    rng = np.random.default_rng(0)
    A = scipy.sparse.random_array((4_000, 123), density=0.11, rng=rng, format="csr")
    A.data[:] = 1.0
    return Family.from_arrays("lpp", A, rng.integers(0, 2, 4_000).astype(float), size=1_024)


def seconds_of(work: Callable[[], Any]) -> float:
    """Return how long one call takes."""
    began = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - began


@double
def flow() -> float:
    """Print the ratio of a step of the flow's target and its parts; return the ratio."""
    options = FlowOptions(tol=EPS, batch=1)
    target = FlowTarget(family(), options)
    problem = target.problem(TRAINING, 0)
    one = target.instance(problem, TRAINING, 0)
    rules = target.rules
    stopm = stopm_of(target, options)
    forward = eqx.filter_jit(lambda rules: rules.stopping_time(target.start, one))
    flat = eqx.tree_at(lambda rules: rules.estimator, rules, Global(float(one.scale)))
    works: dict[str, Callable[[], Any]] = {
        "step": lambda: stopm.step(stopm.start, [one])[1],
        "forward": lambda: forward(rules),
        "forward without curvature": lambda: forward(flat),
    }
    compile_times = {name: seconds_of(work) for name, work in works.items()}
    count = int((float(forward(rules).T) - rules.t0) / rules.h)
    middle = in_gradients(works, problem, count)
    print(f"StoPM step, flow, (T - t0)/h = {count}: {middle['step']:.1f} times {count} gradients")
    print(f"  forward {middle['forward']:.1f}, of which curvature "
          f"{middle['forward'] - middle['forward without curvature']:.1f}; "
          f"backward and update {middle['step'] - middle['forward']:.1f}")  # fmt: skip
    print("  compile: " + ", ".join(f"{k} {v:.1f} s" for k, v in compile_times.items()))
    return middle["step"]


@double
def sequence() -> float:
    """Print the ratio of a step of the sequence's target, in its metric; return it."""
    options = SequenceOptions(tol=EPS, batch=1)
    source = family()
    known = SolvedBeforehand(source, options)
    target = SequenceTarget(source, options, MetricRecipe("spectral", "start"), known)
    problem = target.problem(TRAINING, 0)
    one = target.instance(problem, TRAINING, 0)
    stopm = stopm_of(target, options)
    forward = eqx.filter_jit(lambda: target.rules.stopping_time(target.start, one))
    works: dict[str, Callable[[], Any]] = {
        "step": lambda: stopm.step(stopm.start, [one])[1],
        "forward": forward,
    }
    compile_times = {name: seconds_of(work) for name, work in works.items()}
    found = forward()
    count = int(found.T) if found.reached else options.horizon
    middle = in_gradients(works, problem, count)
    print(f"StoPM step, sequence, T = {count}: {middle['step']:.1f} times {count} gradients")
    print(f"  forward {middle['forward']:.1f}, "
          f"backward and update {middle['step'] - middle['forward']:.1f}")  # fmt: skip
    print("  compile: " + ", ".join(f"{k} {v:.1f} s" for k, v in compile_times.items()))
    return middle["step"]


def in_gradients(
    works: dict[str, Callable[[], Any]], problem: Problem, count: int
) -> dict[str, float]:
    """Return what each work takes in ``count`` plain gradients, timed right beside it."""
    x0 = problem.start().x0

    def gradients() -> None:
        for _ in range(count):
            problem.gradient(x0)

    ratios: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        plain = seconds_of(gradients)
        for name, work in works.items():
            ratios[name].append(seconds_of(work) / plain)
    return {name: median(values) for name, values in ratios.items()}


def main() -> dict[str, float]:
    """Print both ratios with their parts; return them."""
    return {
        "stopm_flow_ratio": round(flow(), 2),
        "stopm_sequence_ratio": round(sequence(), 2),
    }


if __name__ == "__main__":
    main()
