"""The guard of a table with a prox: the envelope of the residual on held-out problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ode2opt.learning.sequence.handing_over import horizon_for
from ode2opt.solvers import Guard, Method, Result

FACTORS = (3.0, 10.0, 30.0, 100.0)  # times the largest residual of held-out problems
NEIGHBOURS = 3  # iterations before and after whose residuals count as well: dips move
BLOWUP = 100.0  # times the first residual: a learned table may overshoot at the beginning


def guards(residuals: np.ndarray, tol: float) -> list[Guard]:
    """Return the guards to choose from, the strictest first."""
    solved = residuals[np.nanmin(residuals, axis=1) <= np.log(tol)]
    if not len(solved):
        return [Guard(blowup=BLOWUP, fallback="fista")]
    highest = np.max(np.maximum(solved, np.log(tol)) - solved[:, :1], axis=0)
    padded = np.pad(highest, NEIGHBOURS, mode="edge")
    around = np.max(np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1), axis=1)
    return [
        Guard(blowup=BLOWUP, fallback="fista", envelope=tuple(factor * np.exp(around)))
        for factor in FACTORS
    ]


def best_guard(
    tried: Sequence[Guard], solved: Callable[[Guard], list[Result]]
) -> tuple[Guard, list[Result]]:
    """Return the guard whose solves need the fewest iterations, and these."""
    found = [solved(guard) for guard in tried]
    means = [float(np.mean([result.iterations for result in results])) for results in found]
    best = int(np.argmin(means))
    return tried[best], found[best]


def shortened(method: Method, iterations: Sequence[int]) -> Method:
    """Return the method with as many rows as held-out problems need, and half as many again."""
    assert method.proximal is not None
    K = min(len(method.proximal), max(1, horizon_for(max(iterations, default=1))))
    proof = method.proof
    if proof is not None:
        proof = dict(proof) | {"ages": proof["ages"][:K]}
    return method.replace(proximal=method.proximal.first(K), proof=proof)
