"""Rows that are held back from a fit, to see how well it predicts rows it has not seen."""

from __future__ import annotations

import numpy as np

from ode2opt.base.errors import InputError, many


def check_share(share: float) -> float:
    """Return the share of rows to hold back, checked."""
    if not 0 < share < 1:
        raise InputError(
            f"--holdout {share:g}: name the share of rows to hold back, more than 0 and less than "
            f"1, such as 0.2."
        )
    return share


def held_out(labels: np.ndarray, share: float, seed: int, classes: bool) -> np.ndarray:
    """Return which rows are held back, as a mask: at random, the same for the same seed."""
    check_share(share)
    rng = np.random.default_rng(seed)
    groups = [np.arange(len(labels))]
    if classes:
        _, group = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        groups = [np.flatnonzero(group == k) for k in range(int(group.max()) + 1)]
    held = np.zeros(len(labels), dtype=bool)
    for rows in groups:
        count = min(round(share * len(rows)), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    if not held.any():
        few = max(map(len, groups)) == 1
        way_out = "every class has one row only" if few else "name a larger share"
        raise InputError(
            f"--holdout {share:g} of {many(len(labels), 'row')} holds none back: {way_out}."
        )
    return held
