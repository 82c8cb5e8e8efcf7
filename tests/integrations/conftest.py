"""What tests of integrations share: a cluster of processes, a C compiler."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def cluster():
    """Two processes; a test that kills one gets another."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as found:
        yield found


@pytest.fixture(scope="session")
def client(cluster):
    from distributed import Client

    with Client(cluster) as found:
        yield found


@pytest.fixture(scope="session")
def cc():
    """The C compiler; in CI it must be there."""
    found = shutil.which("cc")
    if found is None and os.environ.get("CI"):
        pytest.fail("the tests of the C header need a compiler: there is no cc")
    if found is None:
        pytest.skip("needs a C compiler: there is no cc")
    return found
