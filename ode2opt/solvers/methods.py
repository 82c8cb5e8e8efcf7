"""Methods by name: the built-in ones, and the learned ones that come with the package.

A new built-in one is a function and a line in ``METHODS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ode2opt.base.arrays import Array
from ode2opt.base.errors import InputError, shown, unknown_name
from ode2opt.base.schedule import Schedule
from ode2opt.paper.default import ALPHA, DefaultCoefficients
from ode2opt.proofs import theorem
from ode2opt.proofs.table import schedule_of
from ode2opt.solvers import classics
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.monitored import nag_monitored
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.plan import plan
from ode2opt.solvers.relay import Relay
from ode2opt.solvers.stages.lbfgs import Lbfgs
from ode2opt.solvers.stages.nesterov import Fista
from ode2opt.solvers.stages.newton import Newton
from ode2opt.solvers.stages.stage import Stage, for_ever
from ode2opt.solvers.supervisor import first_alone, supervise
from ode2opt.solvers.table import run_watched

SUFFIX = ".safetensors"
FOLDER = Path(__file__).parents[1] / "learned"
"""The files of the learned methods; its README.md says where they come from."""


Policy = Guard | Relay | None
"""What watches a schedule and lets others go on: the guard, the paper's relay, or nothing."""


UNSET = Guard()
WORDS = ("guard", "none")
"""The handovers that every method takes."""
HANDOVERS: dict[str, Policy] = {"guard": UNSET, "relay": Relay(), "none": None}


@dataclass(frozen=True)
class BuiltIn:
    """A named method: what it is, what it needs, and how it runs.

    ``coefficients`` and ``schedule`` (of K iterations, for curvature 1) are those of the methods
    that have them; a certificate can be made for these.

    Attributes:
        summary: what it is, in a line.
        needs_scale: whether it needs the step constant L.
        minimise: runs it: the solve, the start point, L (NaN where it is not needed), the
            policy.
        coefficients: its coefficients, where it has some.
        schedule: its table of K iterations for curvature 1, where it has one.
        smooth: whether it takes problems without a penalty.
        penalised: whether it takes those with one.
    """

    summary: str
    needs_scale: bool
    minimise: Callable[[Oracle, Array, float, Policy], None]
    coefficients: DefaultCoefficients | None = None
    schedule: Callable[[int], Schedule] | None = None
    smooth: bool = True
    penalised: bool = False


def in_stages(
    oracle: Oracle, x: Array, plan_of: Callable[[], Sequence[Stage]], policy: Policy
) -> NoReturn:
    """Run stages from ``x``: all of them under the guard, the first one alone without it."""
    start = oracle.begin(oracle.objective.first_point(x))
    if policy is None:
        first_alone(oracle, start, plan_of())
    supervise(oracle, start, plan_of())


def runs_a_table(method: BuiltIn | Schedule | Method) -> bool:
    """Whether a method is EIGAC with a table of (a, c, d): what guards and relays can watch."""
    if isinstance(method, Method):
        return not method.instant
    return isinstance(method, Schedule) or method.coefficients is not None


def check_handover(handover: str | Guard | Relay, method: BuiltIn | Schedule | Method) -> None:
    """Refuse a relay for a method that has no table to watch, and settings that nobody reads.

    The words "guard" and "none" are for every method.
    """
    relay = handover == "relay" or isinstance(handover, Relay)
    if isinstance(method, Method) and method.proximal is not None:
        if relay or (isinstance(handover, Guard) and handover.fallback != "fista"):
            raise InputError(
                "This table has a prox, and only FISTA goes on after it: use handover='guard', "
                "'none' or Guard(fallback='fista')."
            )
        if isinstance(handover, Guard):
            _check_guard(handover, method)
        return
    if isinstance(handover, Guard) and isinstance(method, Method):
        _check_guard(handover, method)
        return
    if isinstance(method, Method) and method.monitored is not None and handover not in WORDS:
        raise InputError(
            "A monitored table checks its own proof and takes no relay: use handover='guard' or "
            "'none', or method.replace(monitored=None)."
        )
    if (handover == "relay" or not isinstance(handover, str)) and not runs_a_table(method):
        kind = "relay" if handover == "relay" else type(handover).__name__
        raise InputError(
            f"handover {kind} watches the tables of EIGAC (a Schedule, a learned table, eigac-c1 to"
            f" eigac-c4), and this method has none: use handover='guard' or 'none'."
        )
    if isinstance(handover, Guard):
        _check_guard(handover)


def policy_of(handover: str | Guard | Relay, method: BuiltIn | Schedule | Method) -> Policy:
    """Return who watches a solve and goes on after it, from what ``handover`` may be."""
    given = isinstance(handover, Guard | Relay)
    if not given and (not isinstance(handover, str) or handover not in HANDOVERS):
        raise unknown_name("handover", str(handover), HANDOVERS)
    check_handover(handover, method)
    if isinstance(handover, Guard | Relay):
        return handover
    if handover == "guard" and isinstance(method, Method):
        return method.guard
    return HANDOVERS[handover]


def _check_guard(guard: Guard, method: Method | None = None) -> None:
    """Refuse settings of a guard that nobody reads: of a prox, of a metric, of a table."""
    if guard.fallback == "fista" and (method is None or method.proximal is None):
        raise InputError("fallback fista is for tables with a prox: use lbfgs or nesterov.")
    if guard.power != UNSET.power and guard.fallback != "metric-lbfgs":
        raise InputError(
            f"power is for the fallback metric-lbfgs, and fallback is {guard.fallback}: leave "
            f"power out."
        )
    if method is None or not method.instant:
        return
    for name in ("blowup", "patience", "envelope"):
        if getattr(guard, name) != getattr(UNSET, name):
            raise InputError(
                f"{name} watches a table, and an instant method has none: leave {name} out."
            )


def _classic(
    summary: str,
    method: Callable[[Oracle, Array, float], None],
    schedule: Callable[[int], Schedule] | None = None,
) -> BuiltIn:
    def classic(oracle: Oracle, x: Array, L: float, policy: Policy) -> None:
        oracle.log(summary)
        method(oracle, x, L)

    return BuiltIn(summary, True, classic, None, schedule)


def _in_stages(
    summary: str,
    stages: Callable[[Oracle], list[Stage]],
    smooth: bool = True,
    penalised: bool = False,
) -> BuiltIn:
    def minimise(oracle: Oracle, x: Array, L: float, policy: Policy) -> None:
        in_stages(oracle, x, lambda: stages(oracle), policy)

    return BuiltIn(summary, False, minimise, smooth=smooth, penalised=penalised)


def default_eigac(coefficients: DefaultCoefficients) -> BuiltIn:
    """Return EIGAC with default coefficients, the step constant L of each problem."""

    def minimise(oracle: Oracle, x: Array, L: float, policy: Policy) -> None:
        horizon = min(max(1, oracle.max_iter), DefaultCoefficients.longest)
        oracle.log(summary)
        run_watched(EigacIteration(oracle, coefficients.schedule(horizon, L), x), policy)

    summary = f"EIGAC, default coefficients, C = {coefficients.C:g}"
    if coefficients.alpha != ALPHA:
        summary += f", alpha = {coefficients.alpha:g}"
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
    "ogm": _classic(
        "OGM, step 1/L",
        classics.ogm,
        lambda K: schedule_of(theorem.classical_rows("ogm", K)).first(K),
    ),
    "nag-monitored": _classic(
        "Nesterov with longer steps that checks its own proof",
        nag_monitored,
        lambda K: schedule_of(theorem.monitored_rows(K)).first(K),
    ),
    "nag-restart": _classic("Nesterov with gradient restart", classics.nesterov_restart),
    "igahd": _classic("IGAHD, two gradients an iteration", classics.igahd),
    "eigac-c1": default_eigac(DefaultCoefficients(1.0)),
    "eigac-c2": default_eigac(DefaultCoefficients(2.0)),
    "eigac-c4": default_eigac(DefaultCoefficients(4.0)),
    "auto": _in_stages(
        "planned from the problem: Newton, L-BFGS in a metric of its rows, or L-BFGS",
        lambda oracle: plan(oracle.objective, oracle.costs, oracle.options),
        penalised=True,
    ),
    "fista": _in_stages(
        "FISTA with backtracking and restart, for penalties",
        lambda oracle: [Fista(for_ever)],
        smooth=False,
        penalised=True,
    ),
    "newton": _in_stages(
        "Newton's method, by Cholesky or conjugate gradients",
        lambda oracle: [Newton.within_budget(oracle.costs), Lbfgs()],
    ),
    "lbfgs": _in_stages("L-BFGS, 10 corrections", lambda oracle: [Lbfgs()]),
    "lbfgs-scipy": BuiltIn(
        "scipy's L-BFGS-B, 10 corrections",
        False,
        lambda oracle, x, *_: classics.lbfgs_scipy(oracle, x),
    ),
}


def smooth_names() -> list[str]:
    """Return the names of the methods for problems without a penalty."""
    return [name for name, method in METHODS.items() if method.smooth]


def built_in(name: str) -> BuiltIn:
    """Return a built-in method by its name."""
    if name.endswith(".safetensors"):
        raise InputError(
            f"The method {name!r} is a string, which is taken as a name: for the method in that "
            f"file use method=pathlib.Path({name!r})."
        )
    if name not in METHODS:
        raise unknown_name("method", name, smooth_names())
    if not METHODS[name].smooth:
        raise InputError(f"The method {name!r} is for penalties: without one use 'nag-restart'.")
    return METHODS[name]


def learned_names() -> list[str]:
    """Return the names of the learned methods that come with the package."""
    return sorted(file.stem for file in FOLDER.glob(f"*{SUFFIX}"))


def by_name(name: str) -> BuiltIn | Method:
    """Return a built-in method, or a learned one as "logistic-a5a"."""
    if name in METHODS or name.endswith(SUFFIX):
        return built_in(name)
    known = learned_names()
    if name not in known:
        raise unknown_name("method", name, [*smooth_names(), *known])
    return Method.load(FOLDER / f"{name}{SUFFIX}")


def method_of(method: str | Path | Method | Schedule) -> BuiltIn | Method | Schedule:
    """Return what a ``method`` argument stands for; the rule of every function that takes one.

    A string is a name and never a file; a ``Path`` is the file of a learned method; a ``Method``
    and a ``Schedule`` are taken as they are.
    """
    if isinstance(method, str):
        return by_name(method)
    if isinstance(method, os.PathLike):
        return Method.load(Path(method))
    if not isinstance(method, Method | Schedule):
        raise InputError(
            f"method must be a name, a Method, a Schedule or the Path of a method's file, not "
            f"{type(method).__name__}."
        )
    return method


def method_for(method: Any, penalised: bool) -> BuiltIn | Method | Schedule:
    """Return the method of a solve; one for the other kind of problems is refused."""
    if not penalised:
        # With constants of its own no name stands for it.
        found = method if isinstance(method, BuiltIn) else method_of(method)
        if isinstance(found, Method) and found.proximal is not None:
            raise InputError(
                f"The method for {found.family} is for problems with a penalty: give penalty as "
                f"well."
            )
        return found
    names = [name for name, one in METHODS.items() if one.penalised]
    if isinstance(method, str):
        if method in names:
            return METHODS[method]
        if method not in {*METHODS, *learned_names()}:
            raise unknown_name("method", method, names)
    elif isinstance(method, Path | Method):
        found = method_of(method)
        if isinstance(found, Method) and found.proximal is not None:
            return found
    raise InputError(
        f"The method {shown(method)} is for smooth functions: with a penalty use "
        f"{', '.join(repr(name) for name in names)}, or one learned for it."
    )


def by_name_or_file(name: str) -> BuiltIn | Method:
    """Return a method by its name, or that of a file."""
    if Path(name).suffix == SUFFIX or (Path(name).exists() and name not in METHODS):
        return Method.load(name)
    return by_name(name)
