"""Times of the parts of a solve on one machine, which plans are made with.

``measured_times.json`` has a set of them for each form of the arithmetic: "numpy" (NumPy and SciPy
alone) and "kernels" (large dense rows by compiled kernels, extra ``fast``). The command
``python benchmarks/costs.py --write`` measures both and writes the file, with the machine, the
versions and the date. Nothing is timed in a solve, so that the same problem is always solved in the
same way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
NUMPY, KERNELS = "numpy", "kernels"
_SETS: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def form_in_use(problem: Any) -> str:
    """Return the set of times that applies: that of the form in which rows are evaluated."""
    return KERNELS if getattr(problem, "has_kernel", False) else NUMPY


def measured_times(part: str, form: str = NUMPY) -> dict[str, float]:
    """Return the times of one part, by name, in nanoseconds.

    Example:
        >>> from ode2opt.base.measured_times import measured_times
        >>> sorted(measured_times("gram", "numpy"))[0]
        'dense_entry'
    """
    times: dict[str, float] = _SETS[form][part]
    return dict(times)
