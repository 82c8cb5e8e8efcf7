"""scipy: ``scipy.optimize.minimize(fun, x0, jac=g, method=minimizer("auto"), tol=1e-6)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, approx_fprime

from ode2opt.base.errors import InputError, unknown_name
from ode2opt.base.schedule import Schedule
from ode2opt.problems.base import Problem
from ode2opt.solvers import Memory, Method, Result, Status, solve
from ode2opt.solvers.oracle import Progress

OPTIONS = ("tol", "gtol", "maxiter", "max_seconds", "disp")


def minimizer(
    method: str | Path | Method | Schedule = "auto", *, memory: Memory | None = None
) -> Callable[..., OptimizeResult]:
    """Return what ``scipy.optimize.minimize`` takes as its ``method``.

    ``tol`` (or the option ``gtol``) is the Euclidean gradient norm to reach, 1e-5 by default as in
    scipy; other options are ``maxiter``, ``max_seconds`` and ``disp``. Without ``jac`` gradients
    are forward differences of the function, as in scipy.

    Args:
        method: as in :func:`ode2opt.solve`: a name, a learned method, the ``Path`` of its file or
            a schedule; "auto" by default.
        memory: a :class:`Memory` that all calls share; with "auto" only. None by default.

    Returns:
        A function for the argument ``method``; it returns scipy's ``OptimizeResult``.

    Examples:
        >>> minimize(fun, x0, jac=gradient, method=minimizer("auto"), tol=1e-6)
    """

    def minimise(
        fun: Callable[..., Any],
        x0: Any,
        args: tuple[Any, ...] = (),
        jac: Any = None,
        hess: Any = None,
        hessp: Any = None,
        bounds: Any = None,
        constraints: Any = (),
        callback: Callable[..., Any] | None = None,
        **options: Any,
    ) -> OptimizeResult:
        if bounds is not None or np.size(constraints):
            raise InputError("ode2opt minimises without bounds and constraints.")
        for name in options:
            if name not in OPTIONS:
                raise unknown_name("option", name, OPTIONS)
        x0 = np.atleast_1d(np.asarray(x0, dtype=np.float64))
        counted = _Counted(fun, args, jac, hess, hessp, x0.size)
        result = solve(
            counted.problem,
            x0,
            method=method,
            memory=memory,
            tol=options.get("gtol", options.get("tol", 1e-5)),
            max_iter=options.get("maxiter", 100_000),
            max_seconds=options.get("max_seconds"),
            callback=None if callback is None else _callback(callback, counted),
        )
        answer = _answer(result, counted)
        if options.get("disp"):
            print(f"{answer.message} f = {answer.fun:.6g}, gradient norm {result.grad_norm:.3g}.")
        return answer

    return minimise


class _Counted:
    """A function as scipy's users give it, with a count of what is asked for.

    ``last`` is the last point at which the function was asked, with its answer.
    """

    def __init__(
        self, fun: Callable[..., Any], args: Any, jac: Any, hess: Any, hessp: Any, n: int
    ) -> None:
        self.args = args if isinstance(args, tuple) else (args,)
        self.fun, self.jac, self.hess, self.hessp = fun, jac, hess, hessp
        self.nfev = self.njev = self.nhev = 0
        self.last: tuple[np.ndarray, Any] | None = None
        second = callable(hess) or callable(hessp)
        hvp = self._product if second else None
        self.problem = Problem.from_function(self._value, self._gradient, n=n, hvp=hvp)

    def _value(self, x: np.ndarray) -> Any:
        self.nfev += 1
        self.last = (np.copy(x), self.fun(np.copy(x), *self.args))
        return self.last[1]

    def _gradient(self, x: np.ndarray) -> np.ndarray:
        self.njev += 1
        if self.jac is None:
            return np.asarray(approx_fprime(x, self.problem.value))
        return np.ravel(self.jac(np.copy(x), *self.args))

    def _product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.nhev += 1
        if callable(self.hessp):
            return np.ravel(self.hessp(np.copy(x), v, *self.args))
        return np.ravel(self.hess(np.copy(x), *self.args) @ v)

    def known_value(self, x: np.ndarray) -> float:
        """Return f(x), asking for it only where the last answer was another point's."""
        if self.last is not None and np.array_equal(self.last[0], x):
            return float(np.asarray(self.last[1]).reshape(()))
        return float(self.problem.value(x))


def _callback(callback: Callable[..., Any], counted: _Counted) -> Callable[[Progress], bool]:
    """Return scipy's callback as ours: by x, or by ``intermediate_result``; both can stop."""
    whole = set(inspect.signature(callback).parameters) == {"intermediate_result"}

    def called(progress: Progress) -> bool:
        x = np.array(progress.x, dtype=np.float64)
        try:
            if whole:
                now = OptimizeResult(x=x, fun=counted.known_value(x))
                callback(intermediate_result=now)
            else:
                callback(x)
        except StopIteration:
            return True
        return False

    return called


def _answer(result: Result, counted: _Counted) -> OptimizeResult:
    x = np.asarray(result.x)
    return OptimizeResult(
        x=x,
        fun=result.fun,
        jac=counted.problem.gradient(x),
        success=result.success,
        status=0 if result.success else list(Status).index(result.status),  # ours in their order
        message=result.message,
        nit=result.iterations,
        nfev=counted.nfev,
        njev=counted.njev,
        nhev=counted.nhev,
        method=result.method,
        handovers=result.handovers,
    )
