"""Deconvolution: least squares through a circular convolution, by FFT; no matrix is stored."""

from __future__ import annotations

import math

import numpy as np

from ode2opt.base.arrays import Array, as_vector, epsilon, namespace, norm
from ode2opt.base.errors import InputError
from ode2opt.problems.base import Problem


class Deconvolution(Problem):
    """The function f(x) = 1/2 |k * x - b|^2, with the circular convolution k * x of n numbers.

    A gradient is two Fourier transforms. Only the power spectrum |K|^2 and k's adjoint of b are
    kept.

    Args:
        kernel: at most n numbers: k_0, k_1, ..., the rest being 0. The kernel k_{-1}, k_0, k_1 of a
            blur is given with ``origin=1``.
        b: n numbers, the data, of NumPy, JAX or torch.
        origin: which entry of ``kernel`` is k_0; 0 by default.

    Raises:
        InputError: the kernel is longer than the data, or numbers are not finite.

    Examples:
        >>> from ode2opt import Deconvolution
        >>> blur, b = np.array([0.25, 0.5, 0.25]), np.eye(8)[3]
        >>> problem = Deconvolution(blur, b, origin=1)
        >>> [round(float(one), 2) for one in problem.gradient(np.zeros(8))[2:5]]
        [-0.25, -0.5, -0.25]
    """

    arrays = ("power", "back", "energy")

    def __init__(self, kernel: Array, b: Array, *, origin: int = 0) -> None:
        xp = namespace(b)
        if b.ndim != 1 or not b.shape[0]:
            raise InputError(f"b has shape {tuple(b.shape)}: one row of numbers is due.")
        self.n = int(b.shape[0])
        b = as_vector(b, b, "b", self.n)
        taps = as_vector(kernel, b, "kernel", len(kernel))
        if len(kernel) > self.n or not 0 <= origin < len(kernel):
            raise InputError(
                f"The kernel has {len(kernel)} numbers and its origin is {origin}: it must lie "
                f"within the kernel, and the kernel within the {self.n} numbers of b."
            )
        self.dtype, self.xp = b.dtype, xp
        room = xp.zeros(self.n - len(kernel), dtype=b.dtype)
        response = xp.fft.rfft(xp.roll(xp.concat([taps, room]), -origin))
        self.power = xp.abs(response) ** 2
        self.back = xp.fft.irfft(xp.conj(response) * xp.fft.rfft(b), n=self.n)
        self.energy = 0.5 * (b @ b)

    @property
    def provides(self) -> frozenset[str]:
        return super().provides | {"quadratic", "smoothness"}

    def value(self, x: Array) -> Array:
        return 0.5 * (x @ self.hvp(x, x)) - self.back @ x + self.energy

    def gradient(self, x: Array) -> Array:
        return self.hvp(x, x) - self.back

    def value_and_gradient(self, x: Array) -> tuple[Array, Array]:
        g = self.gradient(x)
        return 0.5 * (x @ (g - self.back)) + self.energy, g

    def hvp(self, x: Array, v: Array) -> Array:
        fft = self.xp.fft
        return fft.irfft(self.power * fft.rfft(v), n=self.n)

    def hessian_diagonal(self, x: Array) -> Array:
        """Return the diagonal, on which all entries are the mean of the power spectrum."""
        return 0 * x + self.xp.fft.irfft(self.power, n=self.n)[0]

    def smoothness(self, metric: object = None) -> float:
        """Return the largest value of the power spectrum, rounded up.

        Args:
            metric: must be None: the spectrum tells nothing about another metric.

        Raises:
            InputError: a preconditioner is given.
        """
        if metric is not None:
            raise InputError("Deconvolution has a bound of its curvature without preconditioner.")
        top = float(self.xp.max(self.power))
        return top * (1 + 64 * math.log2(self.n + 1) * epsilon(self.xp, self.dtype))

    def gradient_rounding(self, x: Array, value: float | None = None) -> float:
        """Return the error of two transforms: log n units of the largest number in them."""
        u = epsilon(self.xp, self.dtype)
        size = float(self.xp.max(self.power)) * norm(x) + norm(self.back)
        return 16 * u * (1 + math.log2(self.n + 1)) * size

    def gradient_flops(self) -> int:
        """Return the operations of two real transforms of n numbers."""
        return int(5 * self.n * max(1.0, math.log2(self.n)))

    def _paper_bound(self) -> tuple[float, int]:
        return float(np.max(np.asarray(self.power))), 0
