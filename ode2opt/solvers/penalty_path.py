"""Solutions for many weights of a penalty, from the one at which all is 0 to small ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ode2opt.base.arrays import Array, as_count, as_floating, as_number, norm
from ode2opt.base.ended import Ended
from ode2opt.base.errors import InputError
from ode2opt.penalties import Penalty, Separable, SeparableTerms, as_penalty
from ode2opt.problems.base import Problem
from ode2opt.problems.quadratic import Quadratic
from ode2opt.solvers.method_file import Method
from ode2opt.solvers.methods import BuiltIn, method_for
from ode2opt.solvers.objective import Objective, SmoothPart
from ode2opt.solvers.oracle import Oracle
from ode2opt.solvers.path_result import PathProgress, PenaltyPath
from ode2opt.solvers.result import Result
from ode2opt.solvers.screening import Screen
from ode2opt.solvers.solve import limit_of, minimised, tolerance


class PathRules(NamedTuple):
    """How the solves of a path are made cheaper.

    Attributes:
        rounds: in which columns are added that were left out wrongly.
        inside: share of the tolerance, for a problem with fewer columns.
        largest_gram: columns of a Gram matrix.
        fewest_entries: of a matrix whose Gram matrix is worth a solve more for each scale.
        gram_calls: a scale, that a Gram matrix may cost: proximal Newton needs about as many.
    """

    rounds: int = 5
    inside: float = 0.9
    largest_gram: int = 2_000
    fewest_entries: int = 100_000
    gram_calls: float = 4


RULES = PathRules()
ENDING = (Ended.INTERRUPTED, Ended.CALLBACK, Ended.MAX_SECONDS, Ended.WORKERS_LOST)


def path(
    problem: Problem,
    penalty: Penalty,
    n: int = 100,
    ratio: float = 1e-3,
    *,
    scales: Sequence[float] | Array | None = None,
    tol: float = 1e-6,
    max_iter: int = 100_000,
    max_seconds: float | None = None,
    method: str | Method = "auto",
    x0: Array | None = None,
    callback: Callable[[PathProgress], object] | None = None,
) -> PenaltyPath:
    """Minimise f + c h for many scales c of a penalty h, each solve starting at the one before.

    The largest scale is the least one at which everything that is penalised is 0. For wide data
    columns that are likely to stay 0 are left out, and put back where the full problem says so:
    every residual is that of the full problem.

    Args:
        problem: f, a :class:`Problem`.
        penalty: h, with a weight: :class:`L1`, :class:`ElasticNet`, :class:`GroupL1`, or a sum such
            as ``L1(1.0) + NonNegative()``. An intercept is left alone.
        n: how many scales; 100 by default.
        ratio: the smallest scale by the largest; 0.001 by default.
        scales: the scales themselves, positive and falling, in place of ``n`` and ``ratio``.
        tol: the residual to reach at every scale; 1e-6 by default.
        max_iter: at most this many iterations for one scale.
        max_seconds: at most this much wall time for all.
        method: a method of ``solve`` for penalties; "auto" by default.
        x0: where the first solve starts; by default the solution with nothing but what is not
            penalised.
        callback: called with a :class:`PathProgress` after each scale; a true answer stops it.

    Returns:
        A :class:`PenaltyPath`. After Ctrl-C it has the scales that were done.

    Raises:
        InputError: the penalty has no weight, as a box, or there is no largest scale.

    Examples:
        >>> from ode2opt import L1, Logistic, path
        >>> found = path(Logistic(A, b, intercept=True), L1(1.0), n=20)
        >>> found.scales, found.coefficients, found.supports
    """
    if not isinstance(problem, Problem):
        raise InputError(f"A path needs a Problem, not {type(problem).__name__}.")
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function, not {type(callback).__name__}.")
    whole = as_penalty(penalty, problem)
    try:
        whole.scaled(1.0)
    except InputError:
        raise InputError(
            f"{type(penalty).__name__} has no weight, and a path goes through weights: solve(..., "
            f"penalty=...) is for one solution."
        ) from None
    limits = {
        "tol": tolerance(problem, tol),
        "max_iter": as_count(max_iter, "max_iter", least=0),
        "max_seconds": limit_of(max_seconds),
    }
    chosen = method_for(method, penalised=True)
    if not isinstance(chosen, BuiltIn):
        raise InputError("A learned table is made for one start, and a path has many: name one.")
    run = _PathRun(problem, whole, chosen, limits)
    grid = None if scales is None else _given(scales)
    count, ratio = as_count(n, "n"), _ratio(ratio)
    return run.along(
        x0, lambda g: _grid(whole, g, count, ratio) if grid is None else grid, callback
    )


class _PathRun:
    """A path under way."""

    def __init__(
        self, problem: Problem, penalty: Penalty, method: BuiltIn, limits: dict[str, Any]
    ) -> None:
        self.problem, self.penalty, self.method, self.limits = problem, penalty, method, limits
        self.screen = Screen.of(problem)
        self.gram: Quadratic | None = None
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def along(
        self,
        x0: Array | None,
        grid: Callable[[np.ndarray], np.ndarray],
        callback: Callable[[PathProgress], object] | None,
    ) -> PenaltyPath:
        """Solve for one scale after the other, as long as nobody stops it."""
        results: list[Result] = []
        stopped: Ended | None = None
        scales = np.zeros(0)
        try:
            here, first = self._first(x0)
            scales = grid(here.g)
            self.gram, price = gram_of(self.problem, len(scales))
            first, before = (first[0], first[1] + price), math.inf
            for scale in scales:
                result, here = self._solved(float(scale), before, here)
                result = _charged(result, *first)
                if result.status in ENDING:
                    stopped = result.status
                    break
                results.append(result)
                before, first = float(scale), (0, 0.0)
                seen = PathProgress(len(results), len(scales), before, result, self.seconds)
                if callback is not None and callback(seen):
                    stopped = Ended.CALLBACK if len(results) < len(scales) else None
                    break
        except KeyboardInterrupt:
            stopped = Ended.INTERRUPTED
        tol = float(self.limits["tol"])
        about: Any = {"stopped": stopped, "seconds": self.seconds, "tol": tol}
        return PenaltyPath.of(self.problem.n, scales, results, **about)

    def _oracle(
        self, problem: Problem, penalty: Penalty, start: SmoothPart | np.ndarray, share: float = 1.0
    ) -> Oracle:
        """Return a solve that knows f and its gradient at its start, and at its best point."""
        left = max(self.limits["max_seconds"] - self.seconds, 1e-9)
        given = self.limits | {"max_seconds": left, "tol": share * self.limits["tol"]}
        oracle = Oracle(Objective(problem, penalty), **given)
        known = start if isinstance(start, SmoothPart) else oracle.smooth_part(start)
        oracle.known = known
        return oracle

    def _first(self, x0: Array | None) -> tuple[SmoothPart, tuple[int, float]]:
        """Return where all that is penalised is 0, and the iterations and calls that it took."""
        n = self.problem.n
        if x0 is not None:
            start = np.asarray(x0, dtype=np.float64)
            if start.shape != (n,) or not np.isfinite(start).all():
                raise InputError(f"x0 must have {n:,} finite numbers.")
            return self._evaluated(self.penalty.project(start)), (0, 1.0)
        face = self.penalty.curvature_set(self.penalty.project(np.zeros(n)))
        if face is None or not face.free.any():
            return self._evaluated(self.penalty.project(np.zeros(n))), (0, 1.0)
        far = np.where(face.free, np.inf, 0.0)
        zero = np.zeros(n)
        oracle = self._oracle(self.problem, Separable(SeparableTerms(lower=-far, upper=far)), zero)
        result = minimised(oracle, zero, self.method)
        if result.status is Ended.INTERRUPTED:
            raise KeyboardInterrupt
        return oracle.best(), (result.iterations, oracle.calls)

    def _evaluated(self, x: np.ndarray) -> SmoothPart:
        return Oracle(Objective(self.problem), **self.limits).smooth_part(x)

    def _solved(self, scale: float, before: float, here: SmoothPart) -> tuple[Result, SmoothPart]:
        """Return the result for a scale, and its point, from the one for the scale before."""
        penalty = self.penalty.scaled(scale)
        spent, calls = 0, 0.0
        if self.screen is not None and math.isfinite(before) and 2 * scale > before:
            strong = self.penalty.scaled(2 * scale - before)
            columns = self.screen.strong(strong, here.x, here.g)
            if columns is not None:
                here, spent, calls = self._with_fewer(self.screen, penalty, here, columns)
        elif self.gram is not None and norm(penalty.residual(here.x, here.g)) > self.limits["tol"]:
            here, spent, calls = self._by_gram(self.gram, penalty, here)
        oracle = self._oracle(self.problem, penalty, here)
        result = minimised(oracle, oracle.to_problem(here.x), self.method)
        best = here if result.status is Ended.INTERRUPTED else oracle.best()
        return _charged(replace(result, oracle_calls=oracle.calls), spent, calls), best

    def _by_gram(
        self, gram: Quadratic, penalty: Penalty, here: SmoothPart
    ) -> tuple[SmoothPart, int, float]:
        """Return a point from a solve with the Gram matrix, its iterations and its calls."""
        oracle = self._oracle(gram, penalty, here.x, RULES.inside)
        result = minimised(oracle, here.x, self.method)
        if result.status is Ended.INTERRUPTED:
            raise KeyboardInterrupt
        full = Objective(self.problem)
        now = self._evaluated(full.to_numpy(full.to_problem(np.asarray(oracle.best_x))))
        share = gram.gradient_flops() / self.problem.gradient_flops()
        return now, result.iterations, share * oracle.calls + 1

    def _with_fewer(
        self, screen: Screen, penalty: Penalty, here: SmoothPart, columns: np.ndarray
    ) -> tuple[SmoothPart, int, float]:
        """Return a point from solves on some columns, its iterations and its calls.

        Columns that turn out to move are added. Whether the point is a solution of the full
        problem is left to the solve that follows, which begins with its residual.
        """
        spent, calls, now = 0, 0.0, here
        for _ in range(RULES.rounds):
            chosen, problem = screen.variables(columns), screen.cut(columns)
            part = penalty.only(chosen)
            if part is None:
                return now, spent, calls
            oracle = self._oracle(problem, part, now.x[chosen], RULES.inside)
            result = minimised(oracle, oracle.to_problem(now.x[chosen]), self.method)
            if result.status is Ended.INTERRUPTED:
                raise KeyboardInterrupt
            share = problem.entries() / max(screen.problem.entries(), 1)
            x = np.zeros(self.problem.n)
            x[chosen] = oracle.to_numpy(oracle.best_x)
            now = self._evaluated(x)
            spent, calls = spent + result.iterations, calls + share * oracle.calls + 1
            wrong = (penalty.residual(x, now.g) != 0) & ~chosen
            more = screen.with_more(columns, wrong) if wrong.any() else None
            if more is None or not result.success:
                return now, spent, calls
            columns = more
        return now, spent, calls


def gram_of(problem: Any, scales: int) -> tuple[Quadratic | None, float]:
    """Return least squares as a quadratic, and what it cost in calls; None where rows are
    cheaper.
    """
    provides = problem.provides
    if not {"matrix", "quadratic"} <= provides or "classes" in provides:
        return None, 0.0
    price = problem.hessian_flops() / problem.gradient_flops()
    tall = (
        problem.n <= min(problem.N, RULES.largest_gram)
        and problem.entries() >= RULES.fewest_entries
    )
    if not tall or price > RULES.gram_calls * scales or "host" not in provides:
        return None, 0.0
    zero = np.zeros(problem.n, dtype=problem.b.dtype)
    Q = np.asarray(problem.hessian(zero), dtype=np.float64)
    return Quadratic(Q, -np.asarray(problem.gradient(zero), dtype=np.float64)), price + 1


def _charged(result: Result, iterations: int, calls: float) -> Result:
    """Return a result with iterations and calls that were made before it."""
    return replace(
        result,
        iterations=result.iterations + iterations,
        oracle_calls=result.oracle_calls + calls,
    )


def _grid(penalty: Penalty, g: np.ndarray, n: int, ratio: float) -> np.ndarray:
    """Return scales from the least one at which all that is penalised is 0."""
    largest = penalty.critical_scale(g)
    if largest is None:
        raise InputError(
            f"{type(penalty).__name__} has no weight of |x| at which x is 0, or does not allow 0: "
            f"give scales=[...]."
        )
    if not 0 < largest < math.inf:
        raise InputError(
            f"The least scale at which all that is penalised is 0 is {largest:g}: there is no path "
            f"from it; give scales=[...]."
        )
    found = largest * np.geomspace(1.0, ratio, n) if n > 1 else np.array([largest])
    if found[-1] <= 0:
        raise InputError(f"ratio = {ratio:g} of the largest scale, {largest:g}, is 0 in rounding.")
    return found


def _given(scales: Any) -> np.ndarray:
    found = np.asarray(as_floating(scales, "scales"), dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise InputError("scales must be a row of numbers, at least one.")
    if not (np.isfinite(found) & (found > 0)).all() or np.any(np.diff(found) >= 0):
        raise InputError("scales must be positive numbers that fall from one to the next.")
    return found


def _ratio(ratio: Any) -> float:
    found = as_number(ratio, "ratio")
    if not 0 < found < 1:
        raise InputError(f"ratio is {found:g}: it must be between 0 and 1.")
    return found
