"""What learned tables with a prox are compared with: textbook FISTA, and peers by their own calls.

Everything here is written from Q and b (or the transfer function) alone, not by the package.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ode2opt import Family, Method, solve
from ode2opt.integrations.export import to_c
from ode2opt.penalties import Penalty
from ode2opt.problems.base import Problem
from ode2opt.problems.quadratic import Quadratic

LADDER = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)  # a peer's own tolerances
MOST = 100_000
C_CODE = """
#include "ode2opt_t.h"
#define N %(n)d
typedef struct { const double *Q, *b; } quadratic;
static int gradient(size_t n, const double *x, double *g, void *data)
{
    const quadratic *f = data;
    size_t i, j;
    (void)n;
    for (i = 0; i < N; i++) g[i] = -f->b[i];
    for (j = 0; j < N; j++) {
        const double *row = f->Q + j * N, weight = x[j];
        if (weight == 0.0) continue;
        for (i = 0; i < N; i++) g[i] += weight * row[i];
    }
    return 0;
}
int run(const double *Q, const double *b, const double *lower, const double *upper, double *x,
        double tol)
{
    quadratic f = {Q, b};
    static double work[ODE2OPT_T_WORK(N)];
    const ode2opt_t_%(prox)s penalty = %(penalty)s;
    ode2opt_t_problem problem = {gradient, &f, ode2opt_t_prox_%(prox)s, &penalty, 0.0, tol};
    (void)lower;
    (void)upper;
    return ode2opt_t_solve(N, x, &problem, work, 0);
}
"""
Way = Callable[[Problem], np.ndarray]


def curvature(problem: Problem) -> float:
    """Return the largest eigenvalue of a quadratic."""
    if isinstance(problem, Quadratic):
        return float(np.linalg.eigvalsh(problem.Q)[-1])
    return float(np.max(problem.power))  # type: ignore[attr-defined]


def gradient_of(problem: Problem) -> Way:
    """Return the gradient of a quadratic."""
    if isinstance(problem, Quadratic):
        return lambda x: problem.Q @ x - problem.b
    power, back, n = problem.power, problem.back, problem.n  # type: ignore[attr-defined]
    return lambda x: np.fft.irfft(power * np.fft.rfft(x), n) - back


def prox_of(penalty: Penalty) -> Callable[[np.ndarray, float], np.ndarray]:
    """Return the prox of |x|_1 with a weight, or of a box."""
    pieces = penalty.pieces()
    assert pieces is not None
    if np.isfinite(pieces.lower):
        return lambda v, step: np.minimum(np.maximum(v, pieces.lower), pieces.upper)
    return lambda v, step: np.sign(v) * np.maximum(np.abs(v) - step * pieces.l1, 0.0)


def residual(problem: Problem, penalty: Penalty, x: np.ndarray) -> float:
    """Return |x - prox(x - g(x))|."""
    g = gradient_of(problem)(x)
    return float(np.linalg.norm(x - prox_of(penalty)(x - g, 1.0)))


def fista(problem: Problem, penalty: Penalty, L: float, tol: float, restart: bool) -> int:
    """Return the iterations of FISTA with the step 1/L, with or without gradient restart."""
    gradient, prox = gradient_of(problem), prox_of(penalty)
    x = y = np.zeros(problem.n)
    t = 1.0
    for k in range(MOST):
        g = gradient(x)
        if np.linalg.norm(x - prox(x - g, 1.0)) <= tol:
            return k
        before, x = x, prox(y - gradient(y) / L, 1 / L)
        if restart and (y - x) @ (x - before) > 0:
            t = 1.0
        t, t_before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        y = x + (t_before - 1) / t * (x - before)
    return MOST


def in_c(method: Method, family: Family, Q: np.ndarray, tol: float) -> Way | None:
    """Return the method as C code, compiled by cc for dense quadratics; None without a compiler.

    Args:
        method: a method with a table.
        family: its family.
        Q: the matrix of all problems.
        tol: the residual to reach.
    """
    if shutil.which("cc") is None:
        return None
    folder, n, pieces = Path(tempfile.mkdtemp()), len(Q), family.penalty.pieces()
    (header, text), _ = to_c(method, "t").items()
    (folder / header).write_text(text)
    boxed = bool(np.isfinite(pieces.lower))
    prox = "box" if boxed else "l1"
    penalty = "{lower, upper}" if boxed else f"{{{float(pieces.l1)!r}}}"
    (folder / "code.c").write_text(C_CODE % {"n": n, "prox": prox, "penalty": penalty})
    command = "cc -std=c99 -O3 -march=native -shared -fPIC code.c -o code.so -lm"
    subprocess.run(command.split(), cwd=folder, check=True)
    run = ctypes.CDLL(str(folder / "code.so")).run
    vector = ctypes.c_void_p
    run.argtypes = [vector] * 5 + [ctypes.c_double]
    limits = [np.full(n, float(one)) for one in (pieces.lower, pieces.upper)]
    ends = [one.ctypes.data for one in limits]

    def way(problem: Problem) -> np.ndarray:
        x = np.zeros(n)
        code = run(problem.Q.ctypes.data, problem.b.ctypes.data, *ends, x.ctypes.data, tol)
        if code:
            x = solve(problem, x, penalty=family.penalty, tol=tol).x
        return x

    way.limits = limits  # type: ignore[attr-defined]  # they must live as long as it does
    return way


def peers(family: Family, practice: Sequence[Problem], tol: float) -> dict[str, Way]:
    """Return the peers that are installed for a family, each at the loosest tolerance that does.

    Args:
        family: the problems.
        practice: training problems, on which the tolerance is chosen.
        tol: the residual to reach.
    """
    first = practice[0]
    if not isinstance(first, Quadratic):
        return {}
    makers = LASSOS if np.any(family.penalty.pieces().l1) else BOXES
    found = {}
    for name, make in makers.items():
        try:
            for own in LADDER:
                way = make(first.Q, family.penalty.pieces(), own)
                found[name] = way
                if all(residual(one, family.penalty, way(one)) <= tol for one in practice):
                    break
        except ImportError:
            continue
    return found


def _design(Q: np.ndarray) -> tuple[np.ndarray, Way]:
    """Return X with X^T X = Q as rows, and problem -> y with X^T y = b, the solvers' arguments.

    y is found once for a problem, so that the second pass does not pay for it.
    """
    w, V = np.linalg.eigh(Q)
    kept = w > 1e-10 * w[-1]
    root, known = np.sqrt(w[kept]), {}

    def target(problem: Problem) -> np.ndarray:
        if id(problem) not in known:
            known[id(problem)] = (problem, (problem.b @ V[:, kept]) / root)
        return known[id(problem)][1]

    return np.asfortranarray(root[:, None] * V[:, kept].T), target


def _lasso(precompute: bool) -> Callable[[np.ndarray, Any, float], Way]:
    def make(Q: np.ndarray, pieces: Any, own: float) -> Way:
        from sklearn.linear_model import Lasso

        X, target = _design(Q)
        model = Lasso(
            alpha=pieces.l1 / len(X), fit_intercept=False, precompute=Q if precompute else False,
            tol=own, max_iter=MOST, copy_X=False,
        )  # fmt: skip
        return lambda problem: model.fit(X, target(problem), check_input=False).coef_

    return make


def _skglm(Q: np.ndarray, pieces: Any, own: float) -> Way:
    from skglm import Lasso

    X, target = _design(Q)
    model = Lasso(alpha=pieces.l1 / len(X), fit_intercept=False, tol=own, max_iter=1000)
    return lambda problem: model.fit(X, target(problem)).coef_


def _celer(Q: np.ndarray, pieces: Any, own: float) -> Way:
    from celer import Lasso

    X, target = _design(Q)
    model = Lasso(alpha=pieces.l1 / len(X), fit_intercept=False, tol=own, max_iter=1000)
    return lambda problem: model.fit(X, target(problem)).coef_


def _osqp(Q: np.ndarray, pieces: Any, own: float) -> Way:
    import osqp
    from scipy import sparse

    n = len(Q)
    solver = osqp.OSQP()
    limits = (np.full(n, pieces.lower), np.full(n, pieces.upper))
    solver.setup(
        sparse.csc_matrix(np.triu(Q)), np.zeros(n), sparse.identity(n, format="csc"), *limits,
        eps_abs=own, eps_rel=own, verbose=False, max_iter=MOST, polishing=False,
        warm_starting=False,
    )  # fmt: skip

    def way(problem: Problem) -> np.ndarray:
        solver.update(q=-problem.b)
        return np.clip(solver.solve().x, *limits)

    return way


def _daqp(Q: np.ndarray, pieces: Any, own: float) -> Way:
    import daqp

    n = len(Q)
    lower, upper = np.full(n, pieces.lower), np.full(n, pieces.upper)
    nothing, sense = np.zeros((0, n)), np.zeros(n, dtype=np.int32)
    return lambda problem: np.array(daqp.solve(Q, -problem.b, nothing, upper, lower, sense)[0])


def _piqp(Q: np.ndarray, pieces: Any, own: float) -> Way:
    import piqp

    n = len(Q)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = own
    limits = {"x_l": np.full(n, pieces.lower), "x_u": np.full(n, pieces.upper)}
    solver.setup(Q, np.zeros(n), **limits)

    def way(problem: Problem) -> np.ndarray:
        solver.update(c=-problem.b)
        solver.solve()
        return np.clip(solver.result.x, limits["x_l"], limits["x_u"])

    return way


def _clarabel(Q: np.ndarray, pieces: Any, own: float) -> Way:
    import clarabel
    from scipy import sparse

    n = len(Q)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = own
    P = sparse.csc_matrix(np.triu(Q))
    A = sparse.vstack([sparse.identity(n), -sparse.identity(n)], format="csc")
    h = np.append(np.full(n, pieces.upper), np.full(n, -pieces.lower))
    cones = [clarabel.NonnegativeConeT(2 * n)]

    def way(problem: Problem) -> np.ndarray:
        solver = clarabel.DefaultSolver(P, -problem.b, A, h, cones, settings)
        return np.clip(np.array(solver.solve().x), pieces.lower, pieces.upper)

    return way


LASSOS = {
    "scikit-learn, Gram": _lasso(True),
    "scikit-learn": _lasso(False),
    "skglm": _skglm,
    "celer": _celer,
}
BOXES = {"OSQP": _osqp, "DAQP": _daqp, "PIQP": _piqp, "Clarabel": _clarabel}
