"""Follow a method along instances and certify it (docs/certificates.md says what that means)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ode2opt.base.arrays import Array, as_count, as_positive
from ode2opt.base.errors import InputError, Ode2OptError
from ode2opt.base.precision import double
from ode2opt.base.schedule import Schedule
from ode2opt.paper.coefficients import Coefficients
from ode2opt.paper.conditions import (
    Convergence,
    best_convergence,
    contraction,
    growth,
    linear_margin,
    stability_margin,
)
from ode2opt.paper.curvature import Estimator, PowerIteration, check_hvp
from ode2opt.paper.default import T0, H
from ode2opt.paper.ishd import eigac_step
from ode2opt.problems.base import Problem
from ode2opt.problems.jaxed import to_jax
from ode2opt.problems.minimiser import MinimiserCheck, check_minimiser
from ode2opt.proofs.bounds import FlowBound, flow_bound
from ode2opt.proofs.certificate import STRICT, Certificate, Condition, Proof, Trace
from ode2opt.proofs.chain import LONGEST, WorstCase, worst_case
from ode2opt.proofs.theorem import Theorem, theorem_of

ScheduleArrays = tuple[Array, Array, Array]
"""The tables a, c and d of a schedule, or one row of them."""

COLD_STEPS, CERTAIN_STEPS = 200, 50
FIRST = (80, 40, 20, 10, 5)  # iterations that a worst case is computed of, the first that works


@double
def certificate_of(
    method: Coefficients | Schedule,
    problems: Sequence[Problem],
    *,
    name: str = "method",
    scales: Sequence[float] | None = None,
    starts: Sequence[Array] | None = None,
    K: int = 500,
    h: float = H,
    t0: float = T0,
    estimator: Estimator | None = None,
    worst_case: int | None = None,
    proved: str | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Certificate:
    """Return the certificate of coefficients, or of a bare schedule, along problems.

    Example:
        >>> from ode2opt.paper import Default
        >>> certificate_of(Default(1.0), [problem], K=50).levels["flow"]
        True
    """
    K = as_count(K, "K")
    if not isinstance(method, Coefficients | Schedule):
        raise InputError(f"{method!r} is neither coefficients nor a schedule.")
    _check_instances(problems, scales, starts)
    estimator = PowerIteration(CERTAIN_STEPS, safety=1.01) if estimator is None else estimator
    schedule = method.schedule(h, t0, K) if isinstance(method, Coefficients) else method
    if len(schedule) < K:
        raise InputError(f"The schedule has {len(schedule)} iterations, fewer than K = {K}.")
    schedule = schedule.first(K)
    followed = [_followed(problem, i, scales, starts) for i, problem in enumerate(problems)]
    traces, margins = [], []
    for one in followed:
        if isinstance(estimator, PowerIteration):
            check_hvp(one.problem, "PowerIteration")
        trace, stability, linear = _follow(one, schedule, estimator)
        traces.append(trace)
        margins.append((stability, linear))
        advance()
    t = t0 + h * np.arange(K)
    conditions = {
        key: _condition(np.stack([pair[i] for pair in margins]), t)
        for i, key in enumerate(("stability", "linear"))
    }
    found = Certificate(
        name, len(problems), conditions, None, None, estimator.stated_error(),
        tuple(traces), (t0, t0 + K * h),
    )  # fmt: skip
    found = _with_proof(found, schedule, followed, worst_case, proved)
    return _with_flow(found, method, followed, h, K) if isinstance(method, Coefficients) else found


class _Followed(NamedTuple):
    """An instance with the scale and the start of a solve."""

    problem: Problem
    scale: float
    x0: np.ndarray
    minimiser: MinimiserCheck


def _followed(
    problem: Problem,
    i: int,
    scales: Sequence[float] | None,
    starts: Sequence[Array] | None,
) -> _Followed:
    scale = problem.start().L if scales is None else float(scales[i])
    x0 = problem.start().x0 if starts is None else starts[i]
    x0 = np.asarray(x0, dtype=np.float64)
    return _Followed(problem, scale, x0, check_minimiser(problem))


def _with_proof(
    found: Certificate,
    schedule: Schedule,
    followed: Sequence[_Followed],
    N: int | None,
    proved: str | None,
) -> Certificate:
    """Add what is proved of the sequence, and bounds on its first iterations."""
    minimisers = [one.minimiser for one in followed]
    share = curvature_share([one.problem for one in followed], [one.scale for one in followed])
    worst, notes = first_iterations(schedule, N)
    if proved is None:
        proof = sequence_proof(schedule, share, minimisers)
    else:
        proof = covered_proof("lmi", proved, share, minimisers)
    own = deciding_case(schedule, share)
    return replace(
        found, share=share, worst_case=worst, instances_case=own, proof=proof, notes=notes
    )


def _with_flow(
    found: Certificate, method: Coefficients, followed: Sequence[_Followed], h: float, K: int
) -> Certificate:
    """Add what Theorem 1 says of the flow."""
    t0, t1 = found.times
    fine = np.linspace(t0, t1, 4 * K + 1)  # four times an iteration
    flow, smooth = best_convergence(method, fine), method.smooth
    pair = (flow.kappa, flow.lam)
    condition = _flow_condition(flow, smooth, len(followed))
    bounds: tuple[FlowBound, ...] = ()
    if condition.margin > 0 and smooth:
        bounds = tuple(
            flow_bound(
                method,
                one.problem,
                one.x0,
                pair=pair,
                t0=t0,
                t1=t1,
                scale=one.scale,
                check=one.minimiser,
            )
            for one in followed
        )
    return replace(
        found, conditions=found.conditions | {"convergence": condition}, pair=pair,
        growth=growth(method, fine, h), smooth=smooth, flow_bounds=bounds,
    )  # fmt: skip


def _check_instances(
    problems: Sequence[Problem], scales: Sequence[float] | None, starts: Sequence[Array] | None
) -> None:
    if not problems:
        raise InputError("A certificate needs at least one problem.")
    for name, given in (("scales", scales), ("starts", starts)):
        if given is not None and len(given) != len(problems):
            raise InputError(f"There are {len(problems)} problems but {len(given)} {name}.")
    for scale in () if scales is None else scales:
        as_positive(scale, "A scale")
    for problem, start in zip(problems, () if starts is None else starts, strict=False):
        if np.shape(start) != (problem.n,):
            raise InputError(f"A start has shape {np.shape(start)}; it must be ({problem.n},).")


def _flow_condition(flow: Convergence, smooth: bool, total: int) -> Condition:
    k = int(flow.at_each_time.argmin())
    held = total * (flow.margin > 0 and smooth)
    return Condition(flow.margin, float(flow.t[k]), None, held, total)


def _follow(
    one: _Followed, schedule: Schedule, estimator: Estimator
) -> tuple[Trace, np.ndarray, np.ndarray]:
    """Return the trace and both margins along an instance."""
    scaled = (schedule.a / one.scale, schedule.c / one.scale, schedule.d)
    twin = to_jax(one.problem)
    curvature = np.asarray(_curvatures(twin, scaled, jnp.asarray(one.x0), estimator))
    found = contraction(*scaled, curvature)
    trace = Trace(curvature, found.rho, found.C, found.B)
    return trace, stability_margin(*scaled, curvature), linear_margin(*scaled, curvature)


@eqx.filter_jit
def _curvatures(
    problem: Problem, numbers: ScheduleArrays, x0: Array, estimator: Estimator
) -> Array:
    """Return Lam(x_0)..Lam(x_{K-1}) along the sequence, each warm-started from the one before."""
    points = iterates(numbers, problem, x0)[:-1]
    z = estimator.cold(problem, x0, COLD_STEPS)

    def step(z: Array, x: Array) -> tuple[Array, Array]:
        estimate = estimator(problem, x, z)
        here = jnp.all(jnp.isfinite(problem.gradient(x)))  # whatever the estimator makes of it
        return estimate.z, jnp.where(here, estimate.curvature, jnp.nan)

    return jax.lax.scan(step, z, points)[1]


def iterates(numbers: ScheduleArrays, problem: Problem, x0: Array) -> Array:
    """Return the points of EIGAC inside JAX."""

    def step(state: tuple[Array, Array], row: ScheduleArrays) -> tuple[tuple[Array, Array], Array]:
        x, u = state
        e, u = eigac_step(u, problem.gradient(x), *row)
        return (x + e, u), x + e

    start = (x0, numbers[0][0] * problem.gradient(x0))
    _, later = jax.lax.scan(step, start, numbers)
    return jnp.concatenate([x0[None], later])


def _condition(margins: np.ndarray, t: np.ndarray) -> Condition:
    """Summarise margins of shape (instances, iterations); a NaN counts as a failure."""
    margins = np.where(np.isnan(margins), -np.inf, margins)
    instance, k = np.unravel_index(int(margins.argmin()), margins.shape)
    held = int(np.sum(margins.min(axis=1) > STRICT))
    return Condition(float(margins.min()), float(t[k]), int(instance), held, len(margins))


def curvature_share(
    problems: Sequence[Problem], scales: Sequence[float], rounded: float = 1e-6
) -> float | None:
    """Return the largest smoothness constant of the instances, in units of the method's L.

    A proof for every L-smooth function covers them if it is at most 1; eigenvalues by iteration are
    good to ``rounded``. Matrix inequalities are solved for the share itself: functions that are no
    more curved than the instances.

    Example:
        >>> curvature_share([problem], [4 * problem.smoothness()])
        0.25
    """
    shares = []
    for problem, L in zip(problems, scales, strict=True):
        try:
            shares.append(problem.smoothness() / L)
        except InputError:
            return None
    share = max(shares)
    return 1.0 if abs(share - 1) <= rounded else share


def sequence_proof(
    schedule: Schedule, share: float | None, minimisers: Sequence[MinimiserCheck]
) -> Proof | None:
    """Return what is proved of a table, and why it says nothing of the instances if so."""
    theorem = theorem_of(schedule)
    if theorem is not None and (share is None or share <= 1):
        return covered_proof("theorem", theorem.words, share, minimisers, theorem)
    words = _by_inequalities(schedule, 1.0 if share is None else share)
    if words is not None:
        return covered_proof("lmi", words, None if share is None else 1.0, minimisers)
    if theorem is not None:
        return covered_proof("theorem", theorem.words, share, minimisers, theorem)
    return None


def covered_proof(
    kind: str,
    words: str,
    share: float | None,
    minimisers: Sequence[MinimiserCheck],
    theorem: Theorem | None = None,
) -> Proof:
    """Return a proof with the reason why it does not cover the instances, if there is one."""
    uncovered = ""
    if share is None:
        uncovered = "their curvature has no known limit."
    elif share > 1:
        uncovered = f"they may have curvatures up to {share:.4g} times the method's L."
    lacking = next((i for i, one in enumerate(minimisers) if not one.exists), None)
    if lacking is not None:
        without = None if theorem is None else theorem.words_without_minimiser
        words = without or words
        if without is None and not uncovered:
            uncovered = f"instance {lacking} has no known minimiser: {minimisers[lacking].reason}."
    return Proof(kind, words, uncovered)


def _by_inequalities(schedule: Schedule, share: float) -> str | None:
    """Return the bound on the whole table in a sentence; None where it is no promise."""
    if not 2 <= len(schedule) <= LONGEST + 1:
        return None
    try:
        found = worst_case(schedule, 1.0, len(schedule), share=share)
    except Ode2OptError:
        return None
    if not found.value < found.start:
        return None
    functions = "L-smooth convex function"
    if share != 1:
        functions = f"convex function with curvatures up to {share:.4g} L"
    return (
        f"For every {functions} with a minimiser x*, f(x) - f* after {found.N - 1} steps is at "
        f"most {found.value:.4g} L |x0 - x*|^2, {found.ratio:.3g} times the bound of Nesterov's "
        f"method with L (a chain of matrix inequalities, in floating point)."
    )


def first_iterations(schedule: Schedule, N: int | None) -> tuple[WorstCase | None, tuple[str, ...]]:
    """Return the worst case of a table's first iterations, or notes on why there is none."""
    counts = (N,) if N is not None else sorted({min(n, len(schedule)) for n in FIRST}, reverse=True)
    notes: tuple[str, ...] = ()
    for count in counts:
        try:
            return worst_case(schedule, 1.0, count), ()
        except InputError:
            raise
        except Ode2OptError as error:  # what is certified already stays
            notes = notes or (str(error),)
    return None, notes


def deciding_case(schedule: Schedule, share: float | None) -> WorstCase | None:
    """Return the bound that decides whether the instances may be driven away.

    It is that of the first 80 iterations, or of all where there are fewer, over convex functions
    that are no more curved than the instances.
    """
    if share is None:
        return None
    try:
        return worst_case(schedule, 1.0, min(FIRST[0], len(schedule)), share=share)
    except InputError:
        raise
    except Ode2OptError:
        return None
