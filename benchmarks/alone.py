"""Threads and clock of a benchmark: import this before numpy.

There is one thread, and time is that of the processor, which other programs disturb least. With
BENCH_THREADS=all nothing is limited, which is what a user has by default, and the clock is the
wall's.
"""

import os
import time

VARIABLE = "BENCH_THREADS"
NAMES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "ODE2OPT_THREADS",
)
FORMS = ("one", "all")

THREADS = os.environ.get(VARIABLE, "one")
if THREADS not in FORMS:
    raise SystemExit(f"{VARIABLE} is {THREADS!r}: it may be one or all.")
if THREADS == "one":
    os.environ.update(dict.fromkeys(NAMES, "1"))
clock = time.process_time if THREADS == "one" else time.perf_counter
