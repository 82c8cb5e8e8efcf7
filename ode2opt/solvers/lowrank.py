"""A Hessian that is too large to be formed, as a metric: diagonal plus low rank, O(n r) memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ode2opt.solvers.metric import Metric

RANK = 64  # directions that are kept
EXTRA = 8  # probes beyond these


def lowrank_metric(
    diagonal: np.ndarray, floor: np.ndarray, product: Callable[[np.ndarray], np.ndarray]
) -> Metric:
    """Return about (H + diag(floor))^-1 as a metric, from RANK + EXTRA products with H.

    Jacobi's scaling comes first; of what is left the largest directions are told apart, and all
    others are given their mean curvature.
    """
    scaling = 1 / np.sqrt(diagonal + floor)
    n = len(scaling)
    rank = min(RANK, n)
    rng = np.random.default_rng(0)
    probes, _ = np.linalg.qr(rng.standard_normal((n, min(rank + EXTRA, n))))
    image = np.column_stack([scaling * product(scaling * probe) for probe in probes.T])
    w, V = nystrom(probes, image, rank)
    trace = float(np.sum(scaling**2 * diagonal))
    below = float(np.mean(scaling**2 * floor))
    rest = max(trace - float(np.sum(w)), 0.0) / max(n - rank, 1) + below
    stretch = np.sqrt(rest / (w + below)) - 1
    return Metric("lowrank", scaling / np.sqrt(rest), V, stretch)


def nystrom(probes: np.ndarray, image: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenpairs of H from probes and image = H probes.

    The Nystrom approximation image (probes^T image)^-1 image^T, with a small shift for stability.
    """
    shift = np.sqrt(len(image)) * np.finfo(float).eps * (np.linalg.norm(image, 2) or 1.0)
    image = image + shift * probes
    core = probes.T @ image
    w, Q = np.linalg.eigh((core + core.T) / 2)
    root = image @ (Q / np.sqrt(np.maximum(w, shift)))
    V, s, _ = np.linalg.svd(root, full_matrices=False)
    return np.maximum(s[:rank] ** 2 - shift, 0.0), np.ascontiguousarray(V[:, :rank])
