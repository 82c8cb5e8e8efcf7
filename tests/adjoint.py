"""An independent adjoint: NumPy and SciPy, the formulas and nothing else.

See docs/mathematics.md, section 6.

The derivatives of T, P and Q along one direction of the parameters. Along it the coefficients
change by known curves (beta_, gamma_, dbeta_ below, the trailing underscore meaning d/dtheta);
r and omega are solved backwards. P depends on theta through the sequence as well, which the
printed formula leaves out: ``sequence_part`` adds it by the iteration's own sensitivity.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

TIGHT = {"rtol": 1e-10, "atol": 1e-13, "method": "DOP853"}
NODES = np.array([0.5 - 0.5 / np.sqrt(3), 0.5 + 0.5 / np.sqrt(3)])


@dataclass
class Curves:
    """beta, gamma, beta' and their derivatives along the direction, as functions of t."""

    alpha: float
    beta: Any
    gamma: Any
    dbeta: Any
    beta_: Any
    gamma_: Any
    dbeta_: Any


@dataclass
class Adjoint:
    problem: Any
    third: Any  # (scores) -> third derivative of the loss, row by row
    curves: Curves
    x0: np.ndarray
    scale: float
    eps: float
    h: float
    t0: float
    safety: float

    def __post_init__(self):
        self.n = len(self.x0)
        self._flow()

    # The flow and the sequence ------------------------------------------------------------------

    def g(self, x):
        return self.problem.gradient(x) / self.scale

    def H(self, x):
        return self.problem.hessian(x) / self.scale

    def psi(self, t, s):
        c, (x, v) = self.curves, np.split(s, 2)
        g = self.g(x)
        moved = v - c.beta(t) * g
        return np.concatenate([moved, -c.alpha / t * moved + (c.dbeta(t) - c.gamma(t)) * g])

    def psi_theta(self, t, x):
        c, g = self.curves, self.g(x)
        pull = c.alpha / t * c.beta_(t) + c.dbeta_(t) - c.gamma_(t)
        return np.concatenate([-c.beta_(t) * g, pull * g])

    def psi_s_T(self, t, x, r):
        """The transpose of psi_s times r."""
        c, (rx, rv) = self.curves, np.split(r, 2)
        pull = c.alpha * c.beta(t) / t + c.dbeta(t) - c.gamma(t)
        H = self.H(x)
        return np.concatenate([H @ (-c.beta(t) * rx + pull * rv), rx - c.alpha / t * rv])

    def _flow(self):
        def reached(t, s):
            return np.linalg.norm(self.problem.gradient(s[: self.n])) - self.eps

        reached.terminal, reached.direction = True, -1
        s0 = np.concatenate([self.x0, self.curves.beta(self.t0) * self.g(self.x0)])
        found = solve_ivp(
            self.psi, (self.t0, 100.0), s0, events=reached, dense_output=True,
            rtol=1e-11, atol=1e-13, method="DOP853",
        )  # fmt: skip
        self.T, self.s, self.end = found.t[-1], found.sol, found.y[:, -1]

    @cached_property
    def sequence(self):
        """x_k and dx_k/dtheta, iteration by iteration."""
        c, h = self.curves, self.h
        K = int(np.ceil((self.T - self.t0) / h)) + 1
        x, x_ = self.x0.copy(), np.zeros(self.n)
        u, u_ = h * c.beta(self.t0) * self.g(x), h * c.beta_(self.t0) * self.g(x)
        points, slopes = [x], [x_]
        for k in range(K):
            t = self.t0 + k * h
            g, g_ = self.g(x), self.H(x) @ x_
            a, a_ = h * c.beta(t), h * c.beta_(t)
            cc, cc_ = h**2 * (c.gamma(t) - c.dbeta(t)), h**2 * (c.gamma_(t) - c.dbeta_(t))
            d = c.alpha * h / t
            e, e_ = u - a * g, u_ - a_ * g - a * g_
            x, x_ = x + e, x_ + e_
            u, u_ = u - d * e - cc * g, u_ - d * e_ - cc_ * g - cc * g_
            points.append(x)
            slopes.append(x_)
        return points, slopes

    def bar(self, t, rows):
        k, share = divmod((t - self.t0) / self.h, 1.0)
        k = int(k)
        return (1 - share) * rows[k] + share * rows[k + 1]

    # T --------------------------------------------------------------------------------------------

    def dT(self, with_start=True):
        x, v = np.split(self.end, 2)
        g, H = self.g(x), self.H(x)

        def back(t, state):
            x, r = self.s(t)[: self.n], state[:-1]
            return np.append(-self.psi_s_T(t, x, r), -(r @ self.psi_theta(t, x)))

        final = np.concatenate([H @ g, np.zeros(self.n + 1)])
        found = solve_ivp(back, (self.T, self.t0), final, **TIGHT).y[:, -1]
        top = found[-1]
        if with_start:
            top += found[self.n : 2 * self.n] @ self.g(self.x0) * self.curves.beta_(self.t0)
        return -top / (g @ H @ (v - self.curves.beta(self.T) * g))

    # P --------------------------------------------------------------------------------------------

    def p(self, t, x=None, x_bar=None):
        """p (times h) and its derivatives by x, x_bar and theta (explicitly)."""
        c, problem = self.curves, self.problem
        x = self.s(t)[: self.n] if x is None else x
        x_bar = self.bar(t, self.sequence[0]) if x_bar is None else x_bar
        nodes = [(1 - tau) * x + tau * x_bar for tau in NODES]
        mean = sum(self.H(node) for node in nodes) / 2
        values, vectors = np.linalg.eigh(mean)
        lam, z = self.safety * values[-1], vectors[:, -1]
        A, N = problem.A, problem.N
        factor = self.safety / self.scale / N
        thirds = [factor * A.T @ (self.third(A @ y) * (A @ z) ** 2) for y in nodes]
        lam_x = sum((1 - tau) * d for tau, d in zip(NODES, thirds, strict=True)) / 2
        lam_bar = sum(tau * d for tau, d in zip(NODES, thirds, strict=True)) / 2
        s, s_ = c.gamma(t) - c.dbeta(t), c.gamma_(t) - c.dbeta_(t)
        rest, rest_ = s - c.alpha * c.beta(t) / t, s_ - c.alpha * c.beta_(t) / t
        value = c.beta(t) * np.sqrt(lam) - np.sqrt(s) - np.sqrt(rest)
        if value <= 0:
            zero = np.zeros(self.n)
            return 0.0, zero, zero, 0.0
        root = c.beta(t) / (2 * np.sqrt(lam))
        explicit = c.beta_(t) * np.sqrt(lam) - s_ / (2 * np.sqrt(s)) - rest_ / (2 * np.sqrt(rest))
        return tuple(self.h * part for part in (value, root * lam_x, root * lam_bar, explicit))

    def pieces(self):
        """The intervals of the mesh until T: p has kinks at their ends."""
        ends = np.append(np.arange(self.t0, self.T - 1e-12, self.h), self.T)
        return list(itertools.pairwise(ends))

    def P(self):
        nodes, weights = np.polynomial.legendre.leggauss(12)
        return sum(
            (b - a) / 2 * sum(w * self.p((a + b) / 2 + (b - a) / 2 * y)[0]
                              for y, w in zip(nodes, weights, strict=True))
            for a, b in self.pieces()
        )  # fmt: skip

    def dP(self, sequence_part=True):
        def back(t, state):
            x, omega = self.s(t)[: self.n], state[:-1]
            _, p_x, p_bar, p_theta = self.p(t, x)
            rate = omega @ self.psi_theta(t, x) + p_theta
            if sequence_part:
                rate += p_bar @ self.bar(t, self.sequence[1])
            pull = -self.psi_s_T(t, x, omega) - np.concatenate([p_x, np.zeros(self.n)])
            return np.append(pull, -rate)

        state = np.zeros(2 * self.n + 1)
        for a, b in reversed(self.pieces()):
            state = solve_ivp(back, (b - 1e-13, a), state, **TIGHT).y[:, -1]
        start = state[self.n : 2 * self.n] @ self.g(self.x0) * self.curves.beta_(self.t0)
        return state[-1] + start + self.p(self.T)[0] * self.dT()
