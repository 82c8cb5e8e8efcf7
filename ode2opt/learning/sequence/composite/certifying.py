"""What is promised of a table with a prox: the guard, and FISTA's theorem where it is inside."""

from __future__ import annotations

from ode2opt.proofs.certificate import Certificate, uncertified
from ode2opt.solvers import Method

GUARDED = (
    "There is no table of EIGAC to certify: it has a prox. Where it does not come nearer, the "
    "guard hands over to FISTA, which converges for every convex function and penalty (within "
    "iteration limit and rounding)."
)


def proximal_certificate(method: Method, instances: int = 0) -> Certificate:
    """Return the certificate of a method whose table has a prox; its proof is checked."""
    said = GUARDED
    if method.proof is not None:
        assert method.proximal is not None
        factor = float(method.proximal.proved_factors(method.proof["ages"])[-1])
        said = (
            f"Proved (docs/mathematics.md, section 19): for every convex f whose curvature is at "
            f"most L = {method.family_scale:.4g} and every convex penalty, after {method.horizon} "
            f"iterations F - F* is at most L |x0 - x*|^2 / {2 * factor:.4g}. {said}"
        )
    return uncertified("learned", instances, said)
