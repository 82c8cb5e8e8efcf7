"""Every loss once, written out, and the array libraries: what tests of linear models cross."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.special
import torch

from ode2opt import Huber, LeastSquares, Logistic, Lpp, Poisson, Softmax, SquaredHinge


class Written(NamedTuple):
    """A loss: its class, options, targets, and its formula by scores and targets."""

    kind: type
    options: dict
    targets: Callable
    formula: Callable


def classes(z, rng):
    return (z + rng.standard_normal(len(z)) > 0).astype(float)


def numbers(z, rng):
    return z + rng.standard_normal(len(z))


def _huber(z, b):
    return np.where(abs(z - b) < 0.7, (z - b) ** 2 / 2, 0.7 * abs(z - b) - 0.245)


def _of_classes(z, b):
    return scipy.special.logsumexp(z, axis=1) - z[np.arange(len(z)), b.astype(int)]


LOSSES = {
    "logistic": Written(Logistic, {}, classes, lambda z, b: np.logaddexp(0, z) - b * z),
    "lpp": Written(Lpp, {"p": 4}, numbers, lambda z, b: (z - b) ** 4 / 4),
    "lpp6": Written(Lpp, {"p": 6}, numbers, lambda z, b: (z - b) ** 6 / 6),
    "leastsquares": Written(LeastSquares, {}, numbers, lambda z, b: (z - b) ** 2 / 2),
    "poisson": Written(
        Poisson, {}, lambda z, rng: rng.poisson(np.exp(0.3 * z)), lambda z, b: np.exp(z) - b * z
    ),
    "huber": Written(Huber, {"delta": 0.7}, numbers, _huber),
    "squaredhinge": Written(
        SquaredHinge, {}, classes, lambda z, b: np.maximum(0, 1 - (2 * b - 1) * z) ** 2
    ),
    "softmax": Written(
        Softmax, {"classes": 4}, lambda z, rng: np.digitize(numbers(z, rng), [-1, 0.3, 1.2]),
        _of_classes,
    ),
}  # fmt: skip
LIBRARIES = {
    "numpy": np.asarray,
    "csr": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "jax": jnp.asarray,
    "torch": torch.asarray,
}
FORMS = {
    "plain": (),
    "intercept": ("l2", "intercept"),
    "all": ("l2", "intercept", "weights", "offset"),
}
"""Options that a problem is given, by name."""


def there(library, x):
    """A vector as the problems of a library take it."""
    return x if "csr" in library else LIBRARIES[library](x)


class Case:
    """Rows with targets, and where to look; ``made`` is the problem on a library's arrays."""

    def __init__(self, loss, form="plain", N=50, n=5, seed=0):
        rng = np.random.default_rng(seed)
        self.kind, options, targets, self.formula = LOSSES[loss]
        self.A = rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.7)
        self.b = np.asarray(targets(self.A @ rng.standard_normal(n) / 2, rng), dtype=float)
        every = {
            "l2": 0.1, "intercept": True, "offset": 0.5 * rng.standard_normal(N),
            "weights": rng.random(N) * (rng.random(N) < 0.9),
        }  # fmt: skip
        several = options.get("classes", 0)
        names = [name for name in FORMS[form] if not (several and name == "offset")]
        self.given = {name: every[name] for name in names}
        self.options = options | self.given
        self.width = several or 1
        self.x, self.v = 0.5 * rng.standard_normal((2, self.width * (n + ("l2" in names))))

    def made(self, library="numpy"):
        return self.kind(LIBRARIES[library](self.A), there(library, self.b), **self.options)

    def value(self, x):
        """The function written out."""
        X = x.reshape(-1, self.width)
        own, shift = (X[:-1], X[-1]) if self.given.get("intercept") else (X, 0)
        z = self.A @ own + shift
        z = z if self.width > 1 else z[:, 0] + self.given.get("offset", 0)
        mean = np.average(self.formula(z, self.b), weights=self.given.get("weights"))
        return mean + self.given.get("l2", 0) / 2 * np.sum(own**2)


def differences(f, x, step=1e-6):
    """The derivative of a function by each variable."""
    return np.stack([(f(x + h) - f(x - h)) / (2 * step) for h in step * np.eye(len(x))])
