"""Families of problems with a penalty, made from a seed: nothing is read or downloaded.

Training and test problems are drawn by different seeds; sparse coding takes its test signals from
another image, too.
"""

from __future__ import annotations

import numpy as np

from ode2opt.base.arrays import as_count, as_positive
from ode2opt.penalties.separable import L1, Box
from ode2opt.problems.deconvolution import Deconvolution
from ode2opt.problems.family import Family
from ode2opt.problems.quadratic import Quadratic

PATCH = (10, 25)  # pixels: 250 numbers a signal
IMAGE = 256  # pixels a side
LEAVES, RADII = 800, (3.0, 60.0)  # discs of a picture of dead leaves, smallest and largest radius
SPIKES, NOISE = 100, 0.05  # of a deconvolution: non-zeros of the signal, standard deviation
MASSES, FORCES, STAGES, PERIOD = 6, 5, 20, 0.5  # of the chain that is controlled
STREAMS = {"train": 1, "test": 2}


def sparse_coding(weight: float = 0.1, *, atoms: int = 500, seed: int = 0) -> Family:
    """Return sparse codes of image patches: 1/2 |D x - y|^2 + weight |x|_1, one D, a new y each.

    The images are dead leaves (discs that cover each other, whose radii follow a power law, as
    sizes in photographs do), whitened as Olshausen and Field (1996) do. Atoms of D and signals y
    are patches of 250 pixels with mean 0 and norm 1.

    Args:
        weight: of the penalty, 0.1 by default.
        atoms: the number of variables, 500 by default.
        seed: makes the dictionary and the images.

    Returns:
        A family of :class:`Quadratic` with an :class:`L1` penalty; test signals are from another
        image.

    Examples:
        >>> family = sparse_coding()
        >>> family.sample(0, part="test").n, family.penalty
        (500, L1(l1 = 0.1))
    """
    D = _patches(np.random.default_rng([seed, 0]), _image([seed, 0]), as_count(atoms, "atoms")).T
    images = {part: _image([seed, stream]) for part, stream in STREAMS.items()}
    Q = D.T @ D
    Q = (Q + Q.T) / 2

    def draw(rng: np.random.Generator, part: str) -> Quadratic:
        return Quadratic(Q, D.T @ _patches(rng, images[part], 1)[0])

    return Family("sparse coding", draw).with_penalty(L1(weight))


def deconvolution(weight: float = 0.1, *, n: int = 4096, width: float = 1.5) -> Family:
    """Return spikes seen through a wavelet: 1/2 |k * x - b|^2 + weight |x|_1 by FFT.

    k is Ricker's wavelet, of norm 1; b is k * (100 normal spikes) with noise of deviation 0.05.

    Args:
        weight: of the penalty, 0.1 by default.
        n: the number of variables, at least 256; 4,096 by default.
        width: of the wavelet, in samples; the wider, the harder.

    Returns:
        A family of :class:`Deconvolution` with an :class:`L1` penalty.
    """
    n, width = as_count(n, "n", least=256), as_positive(width, "width")
    reach = int(np.ceil(5 * width))
    at = np.arange(-reach, reach + 1) / width
    kernel = (1 - at**2) * np.exp(-(at**2) / 2)
    kernel /= np.linalg.norm(kernel)

    def draw(rng: np.random.Generator, part: str) -> Deconvolution:
        signal = np.zeros(n)
        signal[rng.choice(n, SPIKES, replace=False)] = rng.standard_normal(SPIKES)
        padded = np.roll(np.append(kernel, np.zeros(n - len(kernel))), -reach)
        seen = np.fft.irfft(np.fft.rfft(padded) * np.fft.rfft(signal), n=n)
        return Deconvolution(kernel, seen + NOISE * rng.standard_normal(n), origin=reach)

    return Family("deconvolution", draw).with_penalty(L1(weight))


def box_mpc(limit: float = 0.5) -> Family:
    """Return model predictive control of a chain of masses with limited forces; 100 variables.

    Six masses between walls, joined by springs, five forces between neighbours, 20 periods of half
    a second (Wang and Boyd, 2010). The states are eliminated: 1/2 u.Qu - b(state).u with
    |u_j| <= limit; a problem is an initial state, drawn uniformly.

    Args:
        limit: of each force, 0.5 by default.

    Returns:
        A family of :class:`Quadratic` with a :class:`Box`.
    """
    limit = as_positive(limit, "limit")
    Q, B = _condensed(*_chain())
    spread = np.repeat([2.0, 1.0], MASSES)  # of places and speeds

    def draw(rng: np.random.Generator, part: str) -> Quadratic:
        return Quadratic(Q, -B @ (spread * rng.uniform(-1, 1, 2 * MASSES)))

    return Family("box MPC", draw).with_penalty(Box(-limit, limit))


def _image(seed: list[int]) -> np.ndarray:
    """Return a whitened picture of dead leaves."""
    rng = np.random.default_rng(seed)
    picture, (low, high) = np.zeros((IMAGE, IMAGE)), RADII
    at = np.arange(IMAGE)
    for _ in range(LEAVES):
        radius = (rng.random() * (high**-2 - low**-2) + low**-2) ** -0.5
        (x, y), grey = rng.random(2) * IMAGE, rng.standard_normal()
        inside = (at[:, None] - y) ** 2 + (at - x) ** 2 < radius**2
        picture[inside] = grey
    f = np.hypot(np.fft.fftfreq(IMAGE)[:, None], np.fft.rfftfreq(IMAGE))
    return np.fft.irfft2(np.fft.rfft2(picture) * f * np.exp(-((f / 0.4) ** 4)), s=picture.shape)


def _patches(rng: np.random.Generator, image: np.ndarray, count: int) -> np.ndarray:
    """Return patches of mean 0 and norm 1 as rows."""
    height, width = PATCH
    rows: list[np.ndarray] = []
    while len(rows) < count:
        top, left = rng.integers(IMAGE - height + 1), rng.integers(IMAGE - width + 1)
        patch = image[top : top + height, left : left + width].ravel()
        patch = patch - patch.mean()
        rows.append(patch / np.linalg.norm(patch))
    return np.array(rows)


def _chain() -> tuple[np.ndarray, np.ndarray]:
    """Return A and B of x+ = A x + B u: the chain's exact motion under a constant force."""
    from scipy.linalg import expm

    nothing, one = np.zeros((MASSES, MASSES)), np.eye(MASSES)
    springs = 2 * one - np.eye(MASSES, k=1) - np.eye(MASSES, k=-1)
    A = np.block([[nothing, one], [-springs, -0.1 * one]])
    B = np.zeros((2 * MASSES, FORCES))
    for j in range(FORCES):
        B[MASSES + j, j], B[MASSES + j + 1, j] = 1.0, -1.0
    both = np.vstack([np.hstack([A, B]), np.zeros((FORCES, 2 * MASSES + FORCES))])
    moved = expm(PERIOD * both)
    return moved[: 2 * MASSES, : 2 * MASSES], moved[: 2 * MASSES, 2 * MASSES :]


def _condensed(A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and the matrix of the linear term, for cost sum |x|^2 + 0.1 |u|^2."""
    n, m = B.shape
    powers = [np.eye(n)]
    for _ in range(STAGES):
        powers.append(A @ powers[-1])
    states = np.vstack(powers[1:])
    inputs = np.zeros((STAGES * n, STAGES * m))
    for t in range(STAGES):
        for j in range(t + 1):
            inputs[t * n : (t + 1) * n, j * m : (j + 1) * m] = powers[t - j] @ B
    Q = inputs.T @ inputs + 0.1 * np.eye(STAGES * m)
    return (Q + Q.T) / 2, inputs.T @ states
