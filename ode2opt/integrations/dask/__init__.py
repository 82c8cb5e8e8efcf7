"""Dask: problems of its arrays, and its workers as an executor."""

from ode2opt.base.errors import needing

with needing("dask"):
    import dask.array  # noqa: F401
    import distributed  # noqa: F401

from ode2opt.integrations.dask.arrays import from_dask
from ode2opt.integrations.dask.clusters import open_executor
from ode2opt.integrations.dask.executor import DaskExecutor

__all__ = ["DaskExecutor", "from_dask", "open_executor"]
