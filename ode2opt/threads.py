"""One thread for linear algebra, whatever the environment says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the thread pools of BLAS and OpenMP to one thread each.

    A limit holds for the libraries that are loaded, and SciPy has a BLAS of its own that a solve
    would load later: it is loaded first.
    """
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
