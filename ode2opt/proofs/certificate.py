"""The certificate: which promises hold for a method, with what margin, and where it is smallest."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.display import Displayed, Listing, brief
from ode2opt.base.errors import many, printable
from ode2opt.paper.conditions import Growth
from ode2opt.proofs.bounds import FlowBound
from ode2opt.proofs.chain import WorstCase

STRICT = 1e-6  # a margin below this is no margin
LEVELS = ("flow", "linear", "proved", "guarded")
CONDITIONS = ("convergence", "stability", "linear")


@dataclass(frozen=True)
class Condition:
    """One condition over all instances: its smallest margin and where that is met.

    Attributes:
        margin: the smallest margin; what it is a share of is said in docs/certificates.md.
        t: the time of the iteration where it is met.
        instance: the problem where it is met; None for a condition on the coefficients alone.
        held: how many instances meet the condition at every iteration.
        total: how many instances there are.
    """

    margin: float
    t: float
    instance: int | None
    held: int
    total: int


class Trace(NamedTuple):
    """Along one instance, iteration by iteration: what the paper's figure 4 shows.

    Attributes:
        curvature: the largest curvature.
        rho: the contraction factor on the mode of that curvature.
        C: B^2 - A of that mode, see :class:`ode2opt.paper.conditions.Contraction`.
        B: (a l + d)/2 of that mode.
    """

    curvature: np.ndarray
    rho: np.ndarray
    C: np.ndarray
    B: np.ndarray


@dataclass(frozen=True)
class Proof:
    """What is proved of a table for every L-smooth convex function, L being the method's scale.

    Attributes:
        kind: "theorem" (docs/mathematics.md, section 15) or "lmi" (a chain of matrix inequalities).
        words: what is proved, in a sentence.
        uncovered: why the proof says nothing of some instance; "" where all are L-smooth.
    """

    kind: str
    words: str
    uncovered: str = ""


@dataclass(frozen=True, repr=False)
class Certificate(Displayed):
    """What can be said of a method; see :meth:`words` and docs/certificates.md.

    Attributes:
        method: its name.
        instances: how many problems it was followed on.
        conditions: "convergence" (of the flow, Theorem 1), "stability" (the paper's condition),
            "linear" (exact linear stability). Convergence is missing for a bare schedule, and all
            are where there is nothing to follow.
        pair: the (kappa, lam) for which convergence was checked.
        growth: the growth constants of the coefficients.
        estimator: how curvature was found, and the error it may have.
        traces: one for each instance.
        times: first and last time for which the conditions were checked.
        smooth: whether beta is smooth enough for Theorem 1.
        flow_bounds: E(t0)/delta(T) for each instance, where Theorem 1 holds.
        share: the largest curvature of the instances, in units of the method's L; None where it
            has no known limit.
        proof: what is proved of the table, if anything.
        worst_case: a bound on the first iterations over all L-smooth convex functions, as many of
            them as were asked for.
        instances_case: a bound on the first 80 iterations (or all, if fewer) over functions no more
            curved than the instances: it decides. None without a ``share``.
        statistical: what fresh problems of the family have shown, where they were solved.
        notes: what else there is to say.
    """

    method: str
    instances: int
    conditions: dict[str, Condition]
    pair: tuple[float, float] | None
    growth: Growth | None
    estimator: str
    traces: tuple[Trace, ...]
    times: tuple[float, float]
    smooth: bool = True
    flow_bounds: tuple[FlowBound, ...] = ()
    share: float | None = None
    proof: Proof | None = None
    worst_case: WorstCase | None = None
    instances_case: WorstCase | None = None
    statistical: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        along = many(self.instances, "instance")
        return printable(f"Certificate({self.method}, {along}: {brief(self.levels)})")

    def _listing(self) -> Listing:
        rows = [(level, brief(held)) for level, held in self.levels.items()]
        for name, one in self.conditions.items():
            where = f"at t = {one.t:.4g}, held on {one.held} of {one.total}"
            rows.append((f"{name} margin", f"{one.margin:.3g} {where}"))
        rows += [("verdict", words) for words in self.words()]
        title = f"Certificate of {self.method} along {many(self.instances, 'instance')}"
        return Listing(title, rows)

    @property
    def levels(self) -> dict[str, bool]:
        """Which levels hold.

        flow: Theorem 1 holds on the whole horizon, and its bound is below where the flow begins on
        every instance. linear: the exact condition of linear stability holds with a margin at every
        iterate. proved: a theorem or matrix inequalities bound the sequence, and cover all
        instances. guarded: always.
        """
        linear = self.conditions.get("linear")
        return {
            "flow": self.theorem_1 and all(one.says_something for one in self.flow_bounds),
            "linear": linear is not None and linear.margin > STRICT,
            "proved": self.proof is not None and not self.proof.uncovered,
            "guarded": True,
        }

    @property
    def theorem_1(self) -> bool:
        """Whether the conditions of Theorem 1 hold, whatever its bound is worth."""
        flow = self.conditions.get("convergence")
        return flow is not None and flow.margin > 0 and self.smooth

    @property
    def margins(self) -> dict[str, float | None]:
        """The smallest margin of each condition."""
        return {n: self.conditions[n].margin if n in self.conditions else None for n in CONDITIONS}

    @property
    def driven_away(self) -> bool:
        """Whether it is not excluded that some convex function drives values upwards.

        Functions that are no more curved than the instances are meant. False where the table has a
        proof for these, or where the bound on the first iterations is at most what bounds every
        start. True where the curvature of the instances has no known limit.
        """
        if self.share is None:
            return True
        if self.proof is not None and (self.share <= 1 or not self.proof.uncovered):
            return False
        return self.instances_case is None or self.instances_case.driven_away

    @property
    def refused(self) -> bool:
        """Whether the certificate is refused; :attr:`refusal` says why."""
        return self.refusal is not None

    @property
    def refusal(self) -> str | None:
        """Why the certificate is refused, in a sentence; None where it is granted.

        A proved method is never refused. Else the sequence has to be linearly stable, the flow, if
        there is one, to meet Theorem 1 with a bound that says something, and the first iterations
        not to be driven away.
        """
        levels = self.levels
        if levels["proved"]:
            return None
        if not self.conditions:
            return "only the guard's promise holds."
        if not levels["linear"]:
            return "the sequence is not linearly stable along the instances."
        if self.pair is not None and not self.theorem_1:
            return "the flow is not shown to meet Theorem 1."
        if self.pair is not None and not levels["flow"]:
            return "the flow meets Theorem 1, but its bound is not below where the flow begins."
        if self.share is None:
            return "no bound covers functions whose curvature has no known limit."
        if self.driven_away:
            return "it is not proved, and some convex function may drive it away from the start."
        return None

    @property
    def bound(self) -> str | None:
        """The strongest statement about values, in a sentence; None where there is none."""
        if self.proof is not None and self.levels["proved"]:
            return self.proof.words
        return _flow_bound_words(self) if self.levels["flow"] else None

    def words(self) -> list[str]:
        """Return the verdict, a sentence or two a level."""
        if not self.conditions:
            return list(self.notes)
        return [*_sentences(self), *self.notes]

    def summary(self) -> dict[str, Any]:
        """Return the fields of ``ode2opt certify --json`` that the certificate knows."""
        worst, kappa_lam = self.worst_case, self.pair or (None, None)
        return {
            "method": self.method,
            "instances": self.instances,
            "levels": self.levels,
            "margins": {k: _bounded(margin) for k, margin in self.margins.items()},
            "worst_case": None if worst is None else {"N": worst.N, "value": worst.value},
            "bound": self.bound,
            "proof": self.proof.kind if self.proof is not None and self.levels["proved"] else None,
            "kappa": kappa_lam[0],
            "lam": kappa_lam[1],
            "growth": self._growth(),
            "flow_bound": self._flow_bound(),
            "statistical": None if self.statistical is None else dict(self.statistical),
        }

    def _growth(self) -> dict[str, Any] | None:
        if self.growth is None:
            return None
        constants = {k: _bounded(v) for k, v in self.growth._asdict().items()}
        return constants | {"holds": self.growth.holds}

    def _flow_bound(self) -> dict[str, Any] | None:
        """The largest E(t0)/delta(T), of how many it is below the start, how many minimisers."""
        if not self.flow_bounds:
            return None
        return {
            "T": self.times[1],
            "value": _bounded(max(one.value for one in self.flow_bounds)),
            "below_start": sum(one.says_something for one in self.flow_bounds),
            "minimisers": sum(one.minimiser for one in self.flow_bounds),
        }


def uncertified(method: str, instances: int, why: str) -> Certificate:
    """Return the certificate of a method of which nothing can be followed: the guard alone."""
    return Certificate(method, instances, {}, None, None, "none", (), (0.0, 0.0), notes=(why,))


def _bounded(number: float | None) -> float | None:
    """JSON has no infinity: what cannot be computed is the largest number there is, signed."""
    if number is None:
        return None
    most = sys.float_info.max
    return float(np.clip(np.nan_to_num(number, nan=-most), -most, most))


GUARDED = (
    "Guarded: whatever holds above, a solve under the guard hands over to a method that converges "
    "for every convex function with a minimiser, and for every L-smooth one that is bounded below "
    "(within iteration limit and rounding)."
)


def _sentences(certificate: Certificate) -> Iterator[str]:
    """Yield the verdict on a certificate that has conditions."""
    yield from _flow(certificate)
    yield _linear(certificate)
    yield from _proved(certificate)
    yield GUARDED


def _flow_bound_words(certificate: Certificate) -> str:
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
        yield _flow_bound_words(certificate)


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
