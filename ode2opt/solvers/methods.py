"""The built-in methods by name. A new one is a function and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ode2opt.dynamics.default import LONGEST, DefaultCoefficients
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import InputError, unknown_name
from ode2opt.problems._arrays import Array
from ode2opt.solvers import classics
from ode2opt.solvers.eigac import Eigac
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.relay import Relay
from ode2opt.solvers.run import HandOver, Run

Policy = Guard | Relay | None
"""What watches a schedule: the guard, the paper's relay, or nothing."""


@dataclass(frozen=True)
class BuiltIn:
    """A named method: what it is, whether it needs the step constant L, and how it runs.

    ``coefficients`` and ``schedule`` (of K iterations, for curvature 1) are those of the methods
    that have them; a certificate can be made for these.
    """

    summary: str
    needs_scale: bool
    minimise: Callable[[Run, Array, float, Policy], None]
    coefficients: DefaultCoefficients | None = None
    schedule: Callable[[int], Schedule] | None = None


def follow(eigac: Eigac, policy: Policy) -> None:
    """Run EIGAC under a policy; leaves by Stop."""
    run = eigac.run
    run.watch = None if policy is None else policy.reason
    try:
        if isinstance(policy, Guard) and len(eigac.schedule) == 1:  # it holds the idle step only
            eigac.first = run.evaluate(eigac.x)
            raise HandOver("the method begins with its fallback")
        eigac.go()
    except HandOver as handover:
        assert policy is not None
        run.hand_over(handover.reason, policy.successor)
        policy.take_over(run, eigac)


def _classic(
    summary: str,
    method: Callable[[Run, Array, float], None],
    schedule: Callable[[int], Schedule] | None = None,
) -> BuiltIn:
    return BuiltIn(summary, True, lambda run, x, L, policy: method(run, x, L), None, schedule)


def _default_eigac(C: float) -> BuiltIn:
    coefficients = DefaultCoefficients(C)

    def minimise(run: Run, x: Array, L: float, policy: Policy) -> None:
        horizon = min(max(1, run.max_iter), LONGEST)
        follow(Eigac(run, coefficients.schedule(horizon, L), x), policy)

    summary = f"EIGAC, default coefficients, C = {C:g}"
    return BuiltIn(summary, True, minimise, coefficients, coefficients.schedule)


METHODS: dict[str, BuiltIn] = {
    "gd": _classic(
        "gradient descent, step 1/L",
        classics.gradient_descent,
        lambda K: Schedule.gradient_descent(1.0, K),
    ),
    "nag": _classic(
        "Nesterov, step 1/L",
        classics.nesterov,
        lambda K: Schedule.nesterov(1.0, classics.nesterov_momenta(K)),
    ),
    "nag-restart": _classic("Nesterov with gradient restart", classics.nesterov_restart),
    "igahd": _classic("IGAHD, two gradients an iteration", classics.igahd),
    "eigac-c1": _default_eigac(1.0),
    "eigac-c2": _default_eigac(2.0),
    "eigac-c4": _default_eigac(4.0),
    "lbfgs": BuiltIn("scipy's L-BFGS-B, 10 corrections", False, lambda run, x, L, p: lbfgs(run, x)),
}


def built_in(name: str) -> BuiltIn:
    """Return a built-in method by its name."""
    if name.endswith(".safetensors"):
        raise InputError(f"To use a method's file, load it: method=Method.load('{name}').")
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]
