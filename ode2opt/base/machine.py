"""What this machine has, on Linux, macOS and Windows alike."""

from __future__ import annotations

import os
import platform
import sys
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
