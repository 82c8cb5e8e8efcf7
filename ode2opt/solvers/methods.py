"""The built-in methods by name. A new one is a function and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ode2opt.dynamics.default import LONGEST, DefaultCoefficients
from ode2opt.dynamics.schedule import Schedule
from ode2opt.errors import unknown_name
from ode2opt.problems._arrays import Array
from ode2opt.solvers import classics
from ode2opt.solvers.eigac import Eigac
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.lbfgs import lbfgs
from ode2opt.solvers.relay import Relay
from ode2opt.solvers.run import Run

Policy = Guard | Relay | None
"""What watches a schedule: the guard, the paper's relay, or nothing."""


@dataclass(frozen=True)
class BuiltIn:
    """A named method: what it is, whether it needs the step constant L, and how it runs."""

    summary: str
    needs_scale: bool
    minimise: Callable[[Run, Array, float, Policy], None]


def follow(schedule: Schedule, run: Run, x: Array, policy: Policy) -> None:
    """Run EIGAC with a schedule under a policy; leaves by Stop."""
    eigac = Eigac(run, schedule, x)
    if policy is None:
        eigac.go()
    else:
        policy.minimise(run, eigac)


def _default_eigac(C: float, run: Run, x: Array, L: float, policy: Policy) -> None:
    horizon = min(max(1, run.max_iter), LONGEST)
    follow(DefaultCoefficients(C).schedule(horizon, L), run, x, policy)


def _classic(method: Callable[[Run, Array, float], None]) -> Callable[..., None]:
    return lambda run, x, L, policy: method(run, x, L)


METHODS: dict[str, BuiltIn] = {
    "gd": BuiltIn("gradient descent, step 1/L", True, _classic(classics.gradient_descent)),
    "nag": BuiltIn("Nesterov, step 1/L", True, _classic(classics.nesterov)),
    "nag-restart": BuiltIn(
        "Nesterov with gradient restart", True, _classic(classics.nesterov_restart)
    ),
    "igahd": BuiltIn("IGAHD, two gradients an iteration", True, _classic(classics.igahd)),
    "eigac-c1": BuiltIn("EIGAC, default coefficients, C = 1", True, partial(_default_eigac, 1.0)),
    "eigac-c2": BuiltIn("EIGAC, default coefficients, C = 2", True, partial(_default_eigac, 2.0)),
    "eigac-c4": BuiltIn("EIGAC, default coefficients, C = 4", True, partial(_default_eigac, 4.0)),
    "lbfgs": BuiltIn("scipy's L-BFGS-B, 10 corrections", False, lambda run, x, L, p: lbfgs(run, x)),
}


def built_in(name: str) -> BuiltIn:
    """Return a built-in method by its name."""
    if name not in METHODS:
        raise unknown_name("method", name, METHODS)
    return METHODS[name]
