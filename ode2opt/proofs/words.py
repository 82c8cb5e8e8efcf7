"""A certificate in sentences, one or two for each level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ode2opt.base.errors import many

if TYPE_CHECKING:
    from ode2opt.proofs.bounds import FlowBound
    from ode2opt.proofs.certificate import Certificate

GUARDED = (
    "Guarded: whatever holds above, a solve under the guard hands over to a method that converges "
    "for every convex function with a minimiser, and for every L-smooth one that is bounded below "
    "(within iteration limit and rounding)."
)


def sentences(certificate: Certificate) -> Iterator[str]:
    """Yield the verdict on a certificate that has conditions."""
    yield from _flow(certificate)
    yield _linear(certificate)
    yield from _proved(certificate)
    yield GUARDED


def flow_bound_words(certificate: Certificate) -> str:
    """Return what Theorem 1 bounds, in numbers."""
    bounds, T = certificate.flow_bounds, certificate.times[1]
    said = []
    known = [one.value for one in bounds if one.minimiser]
    if known:
        where = "" if len(known) == len(bounds) else f" on {_of(len(known), len(bounds))}"
        said.append(f"f(x({T:g})) - f* <= E(t0)/delta({T:g}) = {max(known):.3g}{where}.")
    others = [one for one in bounds if not one.minimiser]
    if others:
        worst = max(others, key=lambda one: one.value)
        said.append(
            f"{_of(len(others), len(bounds))} {_have(len(others))} {worst.why}. There, for some "
            f"t <= {T:g}, f(x(t)) <= f(z) + E_z(t0)/delta({T:g}) = {worst.reference:.4g} + "
            f"{worst.value:.3g}, where z is the point that makes this sum least."
        )
    return " ".join(said)


def _of(some: int, total: int) -> str:
    return f"{some} of {many(total, 'instance')}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _flow(certificate: Certificate) -> Iterator[str]:
    flow = certificate.conditions.get("convergence")
    if flow is None or certificate.pair is None:
        yield "The schedule is not that of an inertial system: nothing is said of a flow."
        return
    kappa, lam = certificate.pair
    checked = (
        f"for t in [{certificate.times[0]:g}, {certificate.times[1]:g}] "
        f"(kappa = {kappa:.3g}, lam = {lam:.3g})"
    )
    if not certificate.theorem_1:
        why = f"margin {flow.margin:.3g} at t = {flow.t:.4g}"
        why = why if certificate.smooth else "beta has kinks"
        yield f"Flow: Theorem 1 is not shown to hold {checked}: {why}."
        return
    yield f"Flow: Theorem 1 holds {checked}; its conditions have the margin {flow.margin:.3g}."
    empty = [one for one in certificate.flow_bounds if not one.says_something]
    if empty:
        yield _says_nothing(empty, certificate)
    else:
        yield flow_bound_words(certificate)


def _says_nothing(empty: Sequence[FlowBound], certificate: Certificate) -> str:
    worst = max(empty, key=lambda one: one.value - one.start)
    star = "f*" if worst.minimiser else "f(z), z the point that makes the bound least"
    return (
        f"But its bound says nothing on {_of(len(empty), certificate.instances)}: "
        f"E(t0)/delta({certificate.times[1]:g}) = {worst.value:.3g} is not below where the flow "
        f"begins, {worst.start:.3g} above {star}. So this level is not granted."
    )


def _linear(certificate: Certificate) -> str:
    linear = certificate.conditions["linear"]
    along = f"along {many(certificate.instances, 'instance')}"
    if certificate.levels["linear"]:
        return (
            f"Linear: the sequence is linearly stable {along}, with the margin {linear.margin:.3g} "
            f"of the exact condition on every mode; this is no proof beyond quadratics."
        )
    return (
        f"Linear: the sequence is not linearly stable: the margin is {linear.margin:.3g} at t = "
        f"{linear.t:.4g} on instance {linear.instance}; it is positive on {linear.held} of "
        f"{linear.total}."
    )


def _proved(certificate: Certificate) -> Iterator[str]:
    proof = certificate.proof
    if proof is not None and not proof.uncovered:
        yield f"Proved: {proof.words} L is the method's, and covers the instances."
        return
    if proof is not None:
        yield f"The table is proved, but not for these instances: {proof.uncovered} {proof.words}"
    else:
        yield from _not_proved(certificate)
    yield from _decided(certificate)


def _not_proved(certificate: Certificate) -> Iterator[str]:
    yield "Not proved: no theorem and no matrix inequalities bound this table."
    if (worst := certificate.worst_case) is not None:
        yield (
            f"Over all L-smooth convex functions, f(x_N) - f* after N = {worst.N} iterations is at "
            f"most {worst.value:.4g} L |x0 - x*|^2 by matrix inequalities (at the start: 0.5)."
        )
    if certificate.share is None:
        yield (
            "No bound over L-smooth functions covers the instances: their curvature has no known "
            "limit."
        )


def _decided(certificate: Certificate) -> Iterator[str]:
    """What the bound over functions like the instances says of a table without a proof for them."""
    share, own = certificate.share, certificate.instances_case
    if share is None or (certificate.proof is not None and share <= 1):
        return
    if own is None:
        yield "The bound that decides, of the first 80 iterations or all, cannot be computed."
    elif own != certificate.worst_case:
        yield (
            f"Over convex functions that are no more curved than the instances f(x_N) - f* is at "
            f"most {own.value:.4g} L |x0 - x*|^2 after N = {own.N} iterations (at the start: "
            f"{own.start:.3g})."
        )
    if certificate.driven_away:
        yield "So it is not excluded that some convex function drives it away from the start."
