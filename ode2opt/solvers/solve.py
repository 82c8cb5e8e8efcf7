"""The one public verb."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt.base.arrays import (
    Array,
    as_count,
    as_number,
    as_positive,
    as_vector,
    copy,
    detached,
    epsilon,
)
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError, WorkersLostError, shown
from ode2opt.base.schedule import Schedule
from ode2opt.base.threads import is_small, one_blas_thread
from ode2opt.kernels.rows import nothing_compiled
from ode2opt.penalties import ZERO, Penalty, as_penalty
from ode2opt.problems.base import Problem, Start
from ode2opt.problems.function import FunctionProblem
from ode2opt.solvers.bound import Bound, best_bound, by_strong_convexity, euclidean
from ode2opt.solvers.eigac import EigacIteration
from ode2opt.solvers.gap import with_residual
from ode2opt.solvers.guard import Guard
from ode2opt.solvers.memory import Memory
from ode2opt.solvers.memory.use import MemorySession
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.methods import UNSET, BuiltIn, Policy, in_stages, method_for, policy_of
from ode2opt.solvers.metric import Operator
from ode2opt.solvers.monitored import MonitoredTable, TableProof
from ode2opt.solvers.objective import Objective
from ode2opt.solvers.options import AutoOptions
from ode2opt.solvers.oracle import Callback, Oracle, Stop
from ode2opt.solvers.penalised_table import PenalisedTable
from ode2opt.solvers.relay import Relay
from ode2opt.solvers.result import Result
from ode2opt.solvers.start_point import first_point, unfit_start
from ode2opt.solvers.table import UnderWay, run_watched

AT_ONCE = {True: "the start point, which meets the tolerance", False: "stopped at the start point"}
COMPILING = 60.0  # seconds: a shorter limit leaves no time to compile kernels


def solve(
    problem: Problem | Callable[[Array], Any] | None = None,
    x0: Array | Start | None = None,
    *,
    fun: Callable[[Array], Any] | None = None,
    jac: Callable[[Array], Array] | bool | None = None,
    method: str | Path | Schedule | Method | BuiltIn = "auto",
    penalty: Penalty | None = None,
    memory: Memory | None = None,
    start_from_memory: bool = True,
    tol: float = 1e-6,
    max_iter: int = 100_000,
    max_seconds: float | None = None,
    handover: str | Guard | Relay = "guard",
    stop_at_tol: bool = True,
    history: bool = False,
    callback: Callback | None = None,
    options: AutoOptions | None = None,
) -> Result:
    """Minimise a smooth convex function until its gradient norm is at most ``tol``.

    With a penalty h the sum f + h is minimised, until the residual |x - prox(x - grad f(x))| is
    at most ``tol``.

    Args:
        problem: a :class:`Problem`, or a function of x as in scipy.
        x0: where to start; a :class:`Start` (``problem.start()``, the paper's) brings its step
            constant along. By default the start that a learned method was trained from
            (``method.start_of(problem)``), or the memory's, else 0 (a Problem only).
        fun: the function, if ``problem`` is not given.
        jac: the function's gradient; True if it returns (value, gradient); by JAX if not given.
        method: a built-in name (see ``ode2opt.solvers.METHODS``), a learned :class:`Method` or the
            name of one that comes with the package (``ode2opt methods list``), the ``Path`` of a
            method's file, or a :class:`Schedule`, which is taken as it is. "auto" plans from the
            problem: Newton, L-BFGS in a metric made of some of its rows, or plain L-BFGS.
        penalty: a :class:`Penalty` that is added, such as ``L1(0.01)`` or ``Box(0, 1)``; with the
            methods "auto", "fista" and those learned for a family with a penalty. A start outside
            of its domain is projected.
        memory: a :class:`Memory` that has seen problems like this one, and learns from it; with
            the method "auto" only, with a penalty or without.
        start_from_memory: whether the solve may start at the memory's mean solution. Say False
            where problems share rows, as folds of a cross-validation do: then only the
            preconditioner and the plan are shared, and the solution knows its own rows alone.
        tol: the Euclidean gradient norm to reach; with a penalty, the residual.
        max_iter: at most this many iterations.
        max_seconds: at most this much wall time. Below a minute nothing is compiled: of the extra
            ``fast`` only kernels are used that the process has loaded before, else NumPy.
        handover: who goes on where a method gives up. "guard": the next stage, and in the end a
            method with a proof (a learned method brings its own settings). "none": nobody; the
            first stage runs alone until it meets the tolerance, gives up or hits a limit. "relay":
            the paper's, for EIGAC with a table only. A :class:`Guard` or :class:`Relay` has
            settings of your own, for methods with a table. Gradient descent, Nesterov's method,
            IGAHD and scipy's L-BFGS have one stage and run as they are.
        stop_at_tol: False goes on to ``max_iter``; ``Result.reached`` tells when ``tol`` was met.
        history: keep norms, calls and seconds of every iteration.
        callback: called with a ``Progress`` after every iteration; a true answer stops the solve.
        options: how "auto" plans, an :class:`AutoOptions`; for that method only.

    Returns:
        A ``Result``. Its ``x`` is the best point seen, also after Ctrl-C or divergence.

    Examples:
        >>> result = solve(Logistic(A, b, l2=1e-3), tol=1e-8)
        >>> result.success, result.x
        >>> solve(Logistic(A, b), penalty=ode2opt.L1(0.01)).support
        >>> solve(lambda x: ((x - 1) ** 2).sum(), np.zeros(3), jac=lambda x: 2 * (x - 1))
    """
    task = _as_problem(problem, x0, fun, jac)
    _check_memory(memory, method)
    if memory is None and not start_from_memory:
        raise InputError("start_from_memory is for a memory, and there is none: leave it out.")
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function, not {type(callback).__name__}.")
    if options is not None and not isinstance(options, AutoOptions):
        raise InputError(f"options must be AutoOptions, not {type(options).__name__}.")
    if options is not None and method != "auto":
        raise InputError(f"options are for the method 'auto' only, not for {shown(method)}.")
    if penalty is not None and options is not None:
        raise InputError("options are for solves without a penalty: leave out one of them.")
    chosen = method_for(method, penalised=penalty is not None)
    policy = policy_of(handover, chosen)
    if not (x0 is None or isinstance(x0, Start)):
        x0 = as_vector(x0, task.xp.empty(0, dtype=task.dtype), "x0", task.n)
    oracle = Oracle(
        Objective(task, ZERO if penalty is None else as_penalty(penalty, task)),
        tol=tolerance(task, tol),
        max_iter=as_count(max_iter, "max_iter", least=0),
        max_seconds=limit_of(max_seconds),
        stop_at_tol=stop_at_tol,
        history=history,
        callback=callback,
        options=options,
    )
    if memory is None:
        return minimised(oracle, x0, chosen, policy)
    with_memory = MemorySession(
        memory, oracle, first_only=policy is None, from_mean=start_from_memory
    )
    with _surroundings(oracle):
        status = _minimise(oracle, x0, with_memory.minimise, policy)
        with suppress(
            KeyboardInterrupt, WorkersLostError
        ):  # the solution is worth more than what can be learned
            with_memory.learn()
        return _result(oracle, status)


def _check_memory(memory: Memory | None, method: object) -> None:
    if memory is not None and not isinstance(memory, Memory):
        raise InputError(
            f"memory must be an ode2opt.Memory, not {type(memory).__name__}: "
            f"Memory.load(path) reads its file."
        )
    if memory is not None and method != "auto":
        raise InputError(f"A memory goes with the method 'auto' only, not with {shown(method)}.")


Strategy = Callable[[Array, bool], None]
"""Minimises from a point, which may have been given, in a way of its own; leaves by Stop."""


def minimised(
    oracle: Oracle,
    x0: Array | Start | None,
    method: BuiltIn | Schedule | Method | Strategy,
    policy: Policy = UNSET,
) -> Result:
    """Run the method until it stops; the problem, x0 and the run's limits are valid."""
    with _surroundings(oracle):
        return _result(oracle, _minimise(oracle, x0, method, policy))


@contextmanager
def _surroundings(oracle: Oracle) -> Iterator[None]:
    """What a solve runs in: floating-point warnings, kernels and BLAS threads."""
    short = oracle.max_seconds < COMPILING
    with (
        np.errstate(over="ignore", invalid="ignore"),
        nothing_compiled() if short else nullcontext(),
        _blas_threads(oracle.objective),
    ):
        yield


def _blas_threads(objective: Objective) -> AbstractContextManager[None]:
    """Return a context with one BLAS thread for a small problem of ours, else an idle one.

    Where kernels read the rows, what is left for BLAS is small, too. A function of the user may
    well have large products of its own.
    """
    problem: Any = objective.problem
    if "matrix" in objective.provides:
        small = is_small(problem.entries(), problem.n) or problem.has_kernel
    else:
        small = "Q" in objective.provides and is_small(problem.n**2, problem.n)
    return one_blas_thread() if small else nullcontext()


def _minimise(
    oracle: Oracle,
    x0: Array | Start | None,
    method: BuiltIn | Schedule | Method | Strategy,
    policy: Policy,
) -> Ended:
    """Run the method until it stops, and say why it did."""
    own = method.start if isinstance(method, Method) else None
    start = first_point(own, oracle.problem) if x0 is None else x0
    x = copy(start.x0 if isinstance(start, Start) else start)
    try:
        if isinstance(method, Schedule):
            oracle.log(f"EIGAC with a given schedule of {len(method)} iterations")
            run_watched(EigacIteration(oracle, method, x), policy)
        elif isinstance(method, Method):
            _follow_learned(oracle, x, method, policy)
        elif isinstance(method, BuiltIn):
            L = _step_constant(oracle, start) if method.needs_scale else math.nan
            method.minimise(oracle, x, L, policy)
        else:
            method(x, x0 is not None)
    except Stop as stop:
        return stop.status
    except WorkersLostError:
        if oracle.best_x is None:
            raise
        return Ended.WORKERS_LOST
    except KeyboardInterrupt:
        if oracle.best_x is None:  # still in the set-up: the start is the best point so far
            with suppress(Stop):
                oracle.at(x)
        return Ended.INTERRUPTED
    raise AssertionError("a method returned without a status")


def _follow_learned(oracle: Oracle, x: Array, method: Method, policy: Policy) -> None:
    """Run a table as a learned method has it, with its scale and metric; leaves by Stop."""
    metric = None if method.metric is None else method.metric.on(oracle.problem)
    scale = method.family_scale or 1.0
    if method.instant:
        guard = policy or method.guard
        assert isinstance(guard, Guard)
        in_stages(oracle, x, lambda: guard.stages(oracle, metric, scale), policy)
    oracle.log(method.words)
    run_watched(_table_of(oracle, x, method, policy, metric, scale), policy)


def _table_of(
    oracle: Oracle, x: Array, method: Method, policy: Policy, metric: Operator | None, scale: float
) -> UnderWay:
    """Return a method's table, set up on a problem."""
    if method.proximal is not None:
        assert not isinstance(policy, Relay)
        return PenalisedTable(oracle, method.proximal, scale, x, policy)
    schedule = method.table()
    if method.monitored is not None and method.proof is not None:
        rho, tau = method.monitored.rho, method.monitored.tau
        distance = euclidean if method.metric is None else method.metric.distance
        proof = TableProof(method.proof, schedule, tau)
        return MonitoredTable(oracle, proof, x, rho, scale, metric, distance)
    if method.scale == "product":

        def scale_at(g: Array) -> float:
            oracle.charge(1)
            return method.curvature(oracle.problem, x, g, metric)

        return EigacIteration(oracle, schedule, x, metric, scale_at)
    scale, calls = method.scale_and_calls(oracle.problem, x)
    oracle.charge(calls)
    eigac = EigacIteration(oracle, schedule, x, metric)
    eigac.divide_by(scale)
    return eigac


def _step_constant(oracle: Oracle, start: Array | Start) -> float:
    """Return L, with its price on the run's account."""
    if isinstance(start, Start):
        oracle.charge(start.scale.oracle_calls, start.scale.seconds)
        return start.L
    scale = oracle.problem.scale(start)
    oracle.charge(scale.oracle_calls)
    return scale.L


def _result(oracle: Oracle, status: Ended) -> Result:
    if oracle.best_x is None:
        raise unfit_start(oracle.problem, oracle.unfit, "gradient", "not finite")
    value = _best_value(oracle)
    result = Result(
        x=oracle.best_x,
        fun=value,
        grad_norm=oracle.best_norm,
        status=status,
        iterations=oracle.k,
        oracle_calls=oracle.calls,
        seconds=oracle.seconds,
        method=", then ".join(oracle.description) or AT_ONCE[oracle.reached is not None],
        handovers=tuple(oracle.handovers),
        history=oracle.history,
        reached=oracle.reached,
        concave=oracle.concave,
        tol=oracle.tol,
        bound=_bound(oracle, value),
    )
    return result if oracle.objective.smooth else with_residual(oracle, result)


def _bound(oracle: Oracle, value: float) -> Bound | None:
    """Return what is known of f(best_x) - f*, by strong convexity or by the method's own proof."""
    if oracle.concave is not None or not oracle.objective.smooth:
        return None
    x, unit = oracle.best_x, oracle.rounding
    known = by_strong_convexity(oracle.problem, x, oracle.best_norm, value, unit)
    if known is not None or not oracle.lower_bounds:
        return known
    return best_bound(oracle.lower_bounds, np.asarray(x, dtype=np.float64), value, unit)


def _best_value(oracle: Oracle) -> float:
    """Return f at the best point; no number where nobody is left to tell it."""
    if oracle.best_value is not None:
        return oracle.best_value
    try:
        return oracle.value(oracle.best_x)
    except WorkersLostError:
        return math.nan


def _as_problem(
    problem: Problem | Callable[[Array], Any] | None,
    x0: Array | None,
    fun: Callable[[Array], Any] | None,
    jac: Callable[[Array], Array] | bool | None,
) -> Problem:
    if isinstance(problem, Problem):
        if fun is not None or jac is not None:
            raise InputError("Give a Problem, or fun and jac, not both.")
        return problem
    if (problem is None) == (fun is None):
        raise InputError("Give one thing to minimise: a Problem, or a function with x0.")
    function: Any = fun if problem is None else problem
    if not callable(function):
        raise InputError(f"{type(function).__name__} is neither a Problem nor a function.")
    if x0 is None:
        raise InputError("A function needs a start point: pass x0.")
    if isinstance(x0, Start):
        x0 = x0.x0
    n = int(np.asarray(detached(x0)).size)
    if jac is True:
        both = _Remembering(function)
        return FunctionProblem(lambda x: both(x)[0], lambda x: both(x)[1], n=n)
    return FunctionProblem(function, jac or None, n=n)


class _Remembering:
    """A function that returns (value, gradient), asked once for both at the same point."""

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self.function = function
        self.x: np.ndarray | None = None
        self.answer: tuple[Any, Any] = (None, None)

    def __call__(self, x: np.ndarray) -> tuple[Any, Any]:
        if self.x is None or not np.array_equal(self.x, x):
            answer = self.function(x)
            if not isinstance(answer, tuple | list) or len(answer) != 2:
                raise InputError("With jac=True the function must return (value, gradient).")
            self.x, self.answer = x.copy(), (answer[0], np.array(answer[1]))
        return self.answer


def tolerance(task: Problem, tol: float) -> float:
    """Return a tolerance that the precision of a problem can reach."""
    tol = as_positive(tol, "tol")
    reach = epsilon(task.xp, task.dtype)
    if tol < reach:
        raise InputError(
            f"tol = {tol:g} is below what {task.dtype} can reach (about {reach:.1e}): "
            f"raise it or scale the problem."
        )
    return tol


def limit_of(max_seconds: float | None) -> float:
    """Return the seconds that a solve may take; infinity where there is no limit."""
    seconds = math.inf if max_seconds is None else as_number(max_seconds, "max_seconds")
    if not seconds > 0:  # infinity is no limit
        raise InputError(f"max_seconds is {max_seconds}: it must be positive.")
    return seconds
