"""What this machine has, and times of the parts of a solve on one machine, which plans use.

``measured_times.json`` has a set of times for each form of the arithmetic: "numpy" (NumPy and SciPy
alone) and "kernels" (large dense rows by compiled kernels, extra ``fast``). The command
``python benchmarks/costs.py --write`` measures both and writes the file, with the machine, the
versions and the date. Nothing is timed in a solve, so that the same problem is always solved in the
same way.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any


def cpu_count() -> int:
    """Return how many processors this process may use, at least one.

    Limits of the process (its affinity, a container's share) count where the system has them.
    """
    import joblib

    return int(joblib.cpu_count())


def described() -> dict[str, Any]:
    """Return what is to be known of the machine where times are measured on it."""
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


if sys.platform == "win32":

    def physical_memory() -> int:
        """Return the bytes of memory that the machine has."""
        import ctypes

        class MemoryStatus(ctypes.Structure):
            """MEMORYSTATUSEX of the Windows API."""

            _fields_ = (
                ("length", ctypes.c_ulong),
                ("load", ctypes.c_ulong),
                *((name, ctypes.c_ulonglong) for name in ("total", "free", *"abcde")),
            )

        status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
        if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            raise ctypes.WinError()
        return int(status.total)

else:

    def physical_memory() -> int:
        """Return the bytes of memory that the machine has."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


FILE = Path(__file__).with_name("measured_times.json")
NUMPY, KERNELS = "numpy", "kernels"
_SETS: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def form_in_use(problem: Any) -> str:
    """Return the set of times that applies: that of the form in which rows are evaluated."""
    return KERNELS if getattr(problem, "has_kernel", False) else NUMPY


def measured_times(part: str, form: str = NUMPY) -> dict[str, float]:
    """Return the times of one part, by name, in nanoseconds.

    Example:
        >>> from ode2opt.base.machine import measured_times
        >>> sorted(measured_times("gram", "numpy"))[0]
        'dense_entry'
    """
    times: dict[str, float] = _SETS[form][part]
    return dict(times)
