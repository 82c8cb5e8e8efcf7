"""Hostile problems with a penalty: what a result says is checked by arithmetic of this file alone.

    python benchmarks/soak_composite.py [--count 3000] [--first 0] [--method auto]

Rank-deficient and duplicated columns, columns of zeros, scales from 1e-8 to 1e8, weights above the
critical one, boxes whose limits are equal, single precision. For each: the status is true by a
residual in plain NumPy, the point is finite and feasible to rounding. Where ours did not arrive,
Clarabel (by cvxpy, where it is installed) is asked, and its point judged by the same residual.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import alone  # noqa: F401 - before numpy
import numpy as np
import scipy.sparse as sp

import ode2opt
from ode2opt import L1, Box, ElasticNet, GroupL1, L1Ball, NonNegative, Penalty, Simplex

MOST_ITERATIONS = 20_000
MOST_SECONDS = 20.0
SLACK = 64  # units of rounding by which sums may differ
KINDS = (
    "l1", "l1 by column", "net", "box", "positive", "l1 positive", "group", "simplex", "ball",
)  # fmt: skip

Prox = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A problem, once for the package and once for the arithmetic here.

    Attributes:
        name: what it is.
        problem: f, as a user makes it.
        penalty: h.
        A: the matrix as it is, in double precision; Q of a quadratic.
        b: targets; the vector of a quadratic.
        loss: "squares", "logistic" or "quadratic".
        prox: of h with the step 1.
        size: h itself.
        tol: the residual to reach.
        kind: which penalty.
        limits: numbers of the penalty, for cvxpy.
    """

    name: str
    problem: Any
    penalty: Penalty
    A: np.ndarray
    b: np.ndarray
    loss: str
    prox: Prox
    size: Callable[[np.ndarray], float]
    tol: float
    kind: str
    limits: tuple[Any, ...]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of f."""
        if self.loss == "quadratic":
            return self.A @ x - self.b
        z = self.A @ x
        if self.loss == "squares":
            return self.A.T @ (z - self.b) / len(z)
        with np.errstate(over="ignore"):
            return self.A.T @ (1 / (1 + np.exp(-z)) - self.b) / len(z)

    def value(self, x: np.ndarray) -> float:
        """Return f + h."""
        z = self.A @ x
        if self.loss == "quadratic":
            f = 0.5 * (x @ z) - self.b @ x
        elif self.loss == "squares":
            f = 0.5 * np.mean((z - self.b) ** 2)
        else:
            f = np.mean(np.logaddexp(0, z) - self.b * z)
        return float(f) + self.size(x)

    def residual(self, x: np.ndarray) -> float:
        """Return |x - prox(x - g)|."""
        return float(np.linalg.norm(x - self.prox(x - self.gradient(x))))

    def rounding(self, x: np.ndarray, precision: float) -> float:
        """Return by how much two ways to compute the residual may differ."""
        A = np.abs(self.A)
        if self.loss == "quadratic":
            terms = A @ np.abs(x) + np.abs(self.b)
        else:
            inner = A @ np.abs(x) + np.abs(self.b)
            share = np.minimum(1.0, inner) + 1 if self.loss == "logistic" else inner
            terms = A.T @ share / len(inner)
            if self.loss == "logistic":
                terms = terms + A.T @ (inner / 4) / len(inner)
        return SLACK * precision * float(np.linalg.norm(terms) + np.linalg.norm(x))


def soft(x: np.ndarray, reach: Any) -> np.ndarray:
    """Return x moved towards 0."""
    return np.sign(x) * np.maximum(np.abs(x) - reach, 0)


def onto_simplex(x: np.ndarray, radius: float) -> np.ndarray:
    """Return the nearest point with sum ``radius`` and none negative, by bisection and polish."""
    low, high = x.max() - radius, x.max()
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.maximum(x - middle, 0).sum() > radius else (low, middle)
    active = x > high
    if active.any():
        high = (x[active].sum() - radius) / active.sum()
    return np.maximum(x - high, 0)


def onto_ball(x: np.ndarray, radius: float) -> np.ndarray:
    """Return the nearest point whose absolute values sum to at most ``radius``."""
    if np.abs(x).sum() <= radius:
        return x
    return np.sign(x) * onto_simplex(np.abs(x), radius)


def matrix(rng: np.random.Generator) -> np.ndarray:
    """Return a matrix with several troubles at once."""
    rows, n = int(rng.integers(1, 60)), int(rng.integers(2, 40))
    A = rng.standard_normal((rows, n))
    if rng.random() < 0.3:
        rank = int(rng.integers(1, min(rows, n) + 1))
        A = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, n))
    if rng.random() < 0.3:
        A[:, n // 2 :] = A[:, : n - n // 2]
    if rng.random() < 0.3:
        A[:, rng.random(n) < 0.3] = 0
    if rng.random() < 0.3:
        A *= 10.0 ** rng.integers(-8, 9)
    elif rng.random() < 0.3:
        A *= 10.0 ** rng.uniform(-8, 8, n)
    elif rng.random() < 0.2:
        A *= 10.0 ** rng.uniform(-4, 4, (rows, 1))
    return A


def penalties(rng: np.random.Generator, n: int, slope: float) -> tuple[str, Penalty, Any, Any, Any]:
    """Return a penalty: its kind, itself, its prox and value in plain NumPy, and its numbers."""
    kinds = (
        "l1",
        "l1 by column",
        "net",
        "box",
        "positive",
        "l1 positive",
        "group",
        "simplex",
        "ball",
    )
    kind = str(rng.choice(kinds))
    weight = slope * 10.0 ** rng.uniform(-4, 1)  # above the critical one now and then
    if kind in ("l1", "l1 by column"):
        w = np.full(n, weight) if kind == "l1" else weight * rng.random(n) * (rng.random(n) < 0.8)
        made: Penalty = L1(weight) if kind == "l1" else L1(w)
        return kind, made, lambda x: soft(x, w), lambda x: float(w @ np.abs(x)), (w,)
    if kind == "net":
        ratio = float(rng.random())
        one, two = weight * ratio, weight * (1 - ratio)
        return (
            kind, ElasticNet(weight, ratio), lambda x: soft(x, one) / (1 + two),
            lambda x: float(one * np.abs(x).sum() + two / 2 * (x @ x)), (one, two),
        )  # fmt: skip
    if kind == "box":
        size = 10.0 ** rng.uniform(-6, 6)
        low = size * rng.standard_normal(n)
        high = low + size * rng.random(n) * (rng.random(n) < 0.6)
        low = np.where(rng.random(n) < 0.1, -np.inf, low)
        return kind, Box(low, high), lambda x: np.clip(x, low, high), lambda x: 0.0, (low, high)
    if kind == "positive":
        return kind, NonNegative(), lambda x: np.maximum(x, 0), lambda x: 0.0, ()
    if kind == "l1 positive":
        both = L1(weight) + NonNegative()
        return (
            kind, both, lambda x: np.maximum(x - weight, 0),
            lambda x: float(weight * np.abs(x).sum()), (weight,),
        )  # fmt: skip
    if kind == "group":
        groups = [np.arange(0, n, 2), np.arange(1, n, 2)]
        return (
            kind, GroupL1(weight, groups), lambda x: _shrunk(x, groups, weight),
            lambda x: float(weight * sum(np.linalg.norm(x[one]) for one in groups)),
            (weight, groups),
        )  # fmt: skip
    radius = 10.0 ** rng.uniform(-6, 6)
    if kind == "simplex":
        return kind, Simplex(radius), lambda x: onto_simplex(x, radius), lambda x: 0.0, (radius,)
    return kind, L1Ball(radius), lambda x: onto_ball(x, radius), lambda x: 0.0, (radius,)


def _shrunk(x: np.ndarray, groups: Sequence[np.ndarray], weight: float) -> np.ndarray:
    found = x.copy()
    for one in groups:
        size = np.linalg.norm(x[one])
        found[one] *= max(0.0, 1 - weight / size) if size > 0 else 0.0
    return found


def case(seed: int) -> Case:
    """Return a hostile problem.

    Args:
        seed: makes it.
    """
    rng = np.random.default_rng([7, seed])
    A = matrix(rng)
    loss = str(rng.choice(["squares", "logistic", "quadratic"]))
    single = rng.random() < 0.15
    number = np.float32 if single else np.float64
    A = A.astype(number)
    target = (rng.standard_normal(len(A)) * 10.0 ** rng.integers(-2, 3)).astype(number)
    if loss == "quadratic":
        M = (A.T @ A / len(A)).astype(number)
        M = ((M + M.T) / 2).astype(number)
        b = (A.T @ target / len(A)).astype(number)
        problem: Any = ode2opt.Quadratic(sp.csr_matrix(M) if rng.random() < 0.2 else M, b)
        A, target = M, b
    else:
        target = (target > 0).astype(number) if loss == "logistic" else target
        made = ode2opt.LeastSquares if loss == "squares" else ode2opt.Logistic
        problem = made(sp.csr_matrix(A) if rng.random() < 0.3 else A, target)
    A, b = A.astype(np.float64), target.astype(np.float64)
    plain = Case("", problem, NonNegative(), A, b, loss, lambda x: x, lambda x: 0.0, 1.0, "", ())
    n = A.shape[1]
    slope = float(np.abs(plain.gradient(np.zeros(n))).max()) or 1.0
    kind, penalty, prox, size, limits = penalties(rng, n, slope)
    start = prox(np.zeros(n))
    first = float(np.linalg.norm(start - prox(start - plain.gradient(start))))
    tol = 1e-6 * (max(1.0, first) if rng.random() < 0.5 else 1.0)
    tol = max(tol, 1e-3 * first) if single else tol
    name = f"{seed}: {loss}, {kind}, {len(A)} x {n}{', float32' if single else ''}"
    return Case(name, problem, penalty, A, b, loss, prox, size, tol, kind, limits)


def faults(one: Case, result: ode2opt.Result) -> list[str]:
    """Return what is not as it should be, apart from not having arrived.

    Args:
        one: the problem.
        result: what the package returned.
    """
    x = np.asarray(result.x, dtype=np.float64)
    if not (np.isfinite(x).all() and np.isfinite(result.fun)):
        return ["not finite"]
    precision = float(np.finfo(np.asarray(result.x).dtype).eps)
    found, slack = one.residual(x), one.rounding(x, precision)
    wrong = []
    if abs(found - result.residual) > slack + 1e-6 * found:
        wrong.append(f"residual is {found:.3e}, told {result.residual:.3e} (slack {slack:.1e})")
    if result.success != (result.residual <= one.tol):
        wrong.append(f"success is {result.success} at {result.residual:.3e}, tol {one.tol:.1e}")
    if result.success != (result.status is ode2opt.Status.CONVERGED):
        wrong.append(f"success is {result.success}, status {result.status.name}")
    inside = _projected(one, x)
    far = float(np.abs(inside - x).max())
    if far > SLACK * precision * (float(np.abs(x).max()) + float(np.abs(inside).max())):
        wrong.append(f"infeasible by {far:.1e}")
    return wrong


def _projected(one: Case, x: np.ndarray) -> np.ndarray:
    if one.kind == "box":
        return np.clip(x, *one.limits)
    if one.kind in ("positive", "l1 positive"):
        return np.maximum(x, 0)
    return one.prox(x) if one.kind in ("simplex", "ball") else x


def by_clarabel(one: Case) -> np.ndarray | None:
    """Return Clarabel's point, inside of the limits; None where it finds none.

    Args:
        one: the problem.
    """
    import cvxpy as cp

    x = cp.Variable(one.A.shape[1])
    if one.loss == "quadratic":
        f = 0.5 * cp.quad_form(x, cp.psd_wrap(one.A)) - one.b @ x
    elif one.loss == "squares":
        f = cp.sum_squares(one.A @ x - one.b) / (2 * len(one.A))
    else:
        z = one.A @ x
        f = cp.sum(cp.logistic(z) - cp.multiply(one.b, z)) / len(one.A)
    added, limits = _in_cvxpy(cp, one, x)
    with suppress(Exception):  # it fails in many ways, and that is what is asked
        cp.Problem(cp.Minimize(f + added), limits).solve(solver="CLARABEL")
    return None if x.value is None else _projected(one, np.asarray(x.value))


def _in_cvxpy(cp: Any, one: Case, x: Any) -> tuple[Any, list[Any]]:
    """Return what a penalty adds to the objective, and its constraints."""
    numbers = one.limits
    if one.kind in ("l1", "l1 by column"):
        return cp.sum(cp.multiply(numbers[0], cp.abs(x))), []
    if one.kind == "net":
        return numbers[0] * cp.norm1(x) + numbers[1] / 2 * cp.sum_squares(x), []
    if one.kind == "box":
        low, high = numbers
        bounded = np.flatnonzero(low > -np.inf)
        return 0, [x <= high, *([x[bounded] >= low[bounded]] if len(bounded) else [])]
    if one.kind == "group":
        weight, groups = numbers
        return weight * sum(cp.norm2(x[group]) for group in groups), []
    if one.kind == "simplex":
        return 0, [x >= 0, cp.sum(x) == numbers[0]]
    if one.kind == "ball":
        return 0, [cp.norm1(x) <= numbers[0]]
    return (numbers[0] * cp.sum(x) if numbers else 0), [x >= 0]


def main(arguments: Sequence[str]) -> int:
    """Solve them all; returns how many are not as they should be."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--method", default="auto")
    asked = parser.parse_args(arguments)
    peer = find_spec("cvxpy") is not None and find_spec("clarabel") is not None
    statuses: Counter[str] = Counter()
    bad = missed = 0
    began = time.process_time()
    for seed in range(asked.first, asked.first + asked.count):
        one = case(seed)
        result = ode2opt.solve(
            one.problem,
            penalty=one.penalty,
            tol=one.tol,
            method=asked.method,
            max_iter=MOST_ITERATIONS,
            max_seconds=MOST_SECONDS,
        )
        statuses[result.status.name] += 1
        if wrong := faults(one, result):
            bad += 1
            print(f"{one.name}: {'; '.join(wrong)}", flush=True)
        if not result.success and peer:
            x = by_clarabel(one)
            theirs = np.inf if x is None else one.residual(x)
            own = np.asarray(result.x)
            told = one.rounding(own.astype(np.float64), float(np.finfo(own.dtype).eps)) / SLACK
            if theirs <= one.tol and told <= one.tol:  # else single precision cannot tell
                missed += 1
                print(
                    f"{one.name}: {result.status.name} at {result.residual:.2e} (tol {one.tol:.1e})"
                    f" after {result.iterations} iterations, Clarabel has {theirs:.2e}",
                    flush=True,
                )
    counts = ", ".join(f"{count} {name}" for name, count in statuses.most_common())
    print(
        f"{asked.count} problems: {counts}; {bad} with a fault; {missed} not solved that Clarabel "
        f"solves{'' if peer else ' (not installed)'}; {time.process_time() - began:.0f} CPU s"
    )
    return bad + missed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
