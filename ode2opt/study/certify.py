"""Certificates of methods by name, along test problems of a family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ode2opt.base.arrays import as_count
from ode2opt.base.errors import InputError, many, unknown_name
from ode2opt.base.schedule import Schedule
from ode2opt.learning.flow.smoothness import fit_l0l1
from ode2opt.learning.sequence.composite.certifying import proximal_certificate
from ode2opt.learning.sequence.in_metric import in_metric, no_table
from ode2opt.paper.coefficients import Coefficients, Default
from ode2opt.problems import Family, Problem
from ode2opt.proofs.certificate import Certificate
from ode2opt.proofs.chain import check_worst_case
from ode2opt.proofs.confidence import Expectation, expectation
from ode2opt.proofs.following import certificate_of
from ode2opt.solvers import Method, solve
from ode2opt.solvers.methods import METHODS, BuiltIn, built_in, method_of
from ode2opt.study.benchmark import Settings
from ode2opt.study.prove import prove

ESTIMATORS = ("power", "l0l1")
Certifiable = str | Path | Method | Coefficients | Schedule


def certify(
    method: Certifiable,
    problems: Sequence[Problem],
    *,
    K: int = 500,
    worst_case: int | None = None,
    **options: Any,
) -> Certificate:
    """Say what theory and instances promise about a method.

    Args:
        method: a name, a learned method, the ``Path`` of its file, coefficients, or a schedule for
            curvature 1.
        problems: instances of one kind and shape.
        K: iterations to follow on each; a learned method is followed to its horizon at most. An
            instant method has nothing to follow.
        worst_case: how many iterations to bound over all L-smooth convex functions, 1 to 201; by
            default 80, or all where there are fewer (needs the extra ``proofs``). The verdict does
            not depend on it.
        options: those of :func:`ode2opt.proofs.certificate_of`: ``scales``, ``starts``,
            ``estimator``.

    Examples:
        >>> certificate = certify("eigac-c4", [problem])
        >>> print(*certificate.words(), sep="\\n")
    """
    method = _loaded(method)
    if isinstance(method, Method) and method.instant:
        return no_table(method, len(problems))
    if isinstance(method, Method) and method.proximal is not None:
        return proximal_certificate(method, len(problems))
    name, subject, K = _subject(method, K)
    if worst_case is not None:
        check_worst_case(worst_case, len(subject) if isinstance(subject, Schedule) else K)
    if not isinstance(method, Method):
        return certificate_of(subject, problems, K=K, name=name, worst_case=worst_case, **options)
    problems, given = _as_learned(method, problems)
    return certificate_of(
        subject, problems, K=K, name=name, worst_case=worst_case, proved=_proved(method),
        **given | options,
    )  # fmt: skip


def _proved(method: Method) -> str | None:
    """Return what the proof in a method's file says, checked in exact arithmetic; None without."""
    if method.proof is None:
        return None
    proof = prove(method)
    return proof.words()[0] if proof.proved else None


def certify_family(
    method: Certifiable,
    family: Family,
    *,
    instances: int,
    seed: int = 0,
    K: int = 500,
    estimator: str = "power",
    worst_case: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Certificate:
    """Certify along fresh test problems, and tell what further ones of the family need."""
    as_count(instances, "instances")
    if estimator not in ESTIMATORS:
        raise unknown_name("estimator", estimator, ESTIMATORS)
    method = _loaded(method)
    _subject(method, K)
    _check_penalty(method, family)
    if worst_case is not None:
        check_worst_case(worst_case, K)
    problems = [family.sample([seed, i], part="test") for i in range(instances)]
    fitted = fit_l0l1(family) if estimator == "l0l1" else None
    found = certify(method, problems, K=K, estimator=fitted, worst_case=worst_case, advance=advance)
    if not isinstance(method, str | Method):
        return found
    expected = _expected(method, problems, K, family.penalty)
    said = expected.words(many(K, "iteration"))
    if expected.solved_share:
        said += ", if problems are drawn in the same way"
    note = f"Statistical: of this family {said}."
    return replace(found, statistical=expected.summary(), notes=(*found.notes, note))


def _check_penalty(method: str | Method | Coefficients | Schedule, family: Family) -> None:
    """Refuse a family with a penalty that the method does not know, or the other way round."""
    knows = isinstance(method, Method) and method.proximal is not None
    if knows and family.penalty is None:
        raise InputError(
            "The method was learned with a penalty: give the family the same one (--l1)."
        )
    if family.penalty is not None and not knows:
        raise InputError("The method knows no penalty: leave it out.")


def _expected(
    method: str | Method, problems: Sequence[Problem], most: int, penalty: Any = None
) -> Expectation:
    """Return what further problems need, from solves of these, at most ``most`` iterations each."""
    own = method if isinstance(method, Method) else None
    tol = Settings.tol if own is None else own.tol
    starts = [p.start() if own is None else None for p in problems]
    reached = [
        solve(problem, start, method=method, penalty=penalty, tol=tol, max_iter=most).reached
        for problem, start in zip(problems, starts, strict=True)
    ]
    return expectation((math.inf if r is None else r.oracle_calls for r in reached), tol=tol)


def _loaded(method: Certifiable) -> str | Method | Coefficients | Schedule:
    """Return a built-in name or coefficients as they are, and anything else as ``solve`` does."""
    if isinstance(method, Coefficients) or (isinstance(method, str) and method in METHODS):
        return method
    found = method_of(method)
    assert not isinstance(found, BuiltIn)
    return found


def _as_learned(
    method: Method, problems: Sequence[Problem]
) -> tuple[Sequence[Problem], dict[str, Any]]:
    """Return problems, scales, starts and mesh as a solve with a learned method would have them."""
    subjects = in_metric(method, problems, [method.start_of(problem) for problem in problems])
    options: dict[str, Any] = {"starts": subjects.starts, "scales": subjects.scales}
    if method.formula is not None:
        options |= {"h": method.formula.h, "t0": method.formula.t0}
    return subjects.problems, options


def _subject(method: str | Method | Coefficients | Schedule, K: int) -> tuple[str, Any, int]:
    """Return a method's name, what there is to certify about it, and how many iterations of it."""
    as_count(K, "max_iter")
    if isinstance(method, Method):
        K = min(K, method.horizon)
        return "learned", method.schedule if method.formula is None else method.coefficients(), K
    if not isinstance(method, str):
        return type(method).__name__.lower(), method, K
    entry = built_in(method)
    if entry.coefficients is not None:
        return method, Default(entry.coefficients.C), K
    if entry.schedule is not None:
        return method, entry.schedule(K), K
    able = ", ".join(name for name, entry in METHODS.items() if entry.schedule is not None)
    raise InputError(f"{method} has no schedule of three numbers to certify; these have: {able}.")
