"""Dask: problems whose parts live on the workers of a cluster."""

from ode2opt.errors import needing

with needing("dask"):
    import dask.array  # noqa: F401
    import distributed  # noqa: F401

from ode2opt.integrations.dask.arrays import problem_of
from ode2opt.integrations.dask.clusters import joined, opened
from ode2opt.integrations.dask.workers import Cluster

__all__ = ["Cluster", "joined", "opened", "problem_of"]
