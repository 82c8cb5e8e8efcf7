"""One cluster of processes for all tests that want one."""

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
