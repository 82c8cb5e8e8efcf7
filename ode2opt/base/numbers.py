"""Norms and curvatures that overflow or underflow, for every array library and precision.

All that a solve divides by or compares passes through here, so that what is too large or too small
for a precision is handled in one place.
"""

from __future__ import annotations

import math

import numpy as np

from ode2opt.base.arrays import Array

SMALLEST_CURVATURE = 1e-290  # that a step can be divided by: its inverse is finite
SMALLEST_SQUARE = 1e-30  # squares of single precision below it may have lost digits


def norm(g: Array) -> float:
    """Return the Euclidean norm; infinity or NaN only where an entry or the norm itself is such.

    The squares may overflow or vanish where the norm does not. Then the entries are first divided
    by a power of two close to the largest one. Such a division is exact where nothing underflows:
    for NumPy arrays norm(2**k g) is 2**k norm(g) to the last bit, on every machine.
    """
    square = float(g @ g)
    if SMALLEST_SQUARE < square < math.inf:
        return math.sqrt(square)
    g = np.asarray(g)
    largest = float(np.max(np.abs(g), initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    _, exponent = math.frexp(largest)
    # Two factors, as 2**exponent or its inverse may be out of the range of the precision.
    one, other = 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)
    scaled = g / one / other
    return math.sqrt(float(scaled @ scaled)) * one * other


def usable(curvature: float) -> float:
    """Return a curvature that a step can be divided by: one where the given one tells nothing."""
    return curvature if SMALLEST_CURVATURE < curvature < math.inf else 1.0
