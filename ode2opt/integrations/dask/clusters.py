"""A cluster of this machine's processes, or one that runs already."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import dask
from distributed import Client, LocalCluster

from ode2opt.base.errors import InputError
from ode2opt.integrations.dask.executor import DaskExecutor

LOCAL = "local"
IGNORE_INTERRUPTS = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C is for the client
)
ANSWER = 5.0  # seconds that a scheduler may take to answer
SAME = ("dask", "distributed", "ode2opt")  # packages of which client and workers need one version


@contextmanager
def open_executor(
    where: str,
    workers: int | None = None,
    memory: int | None = None,
    same: Sequence[str] = (),
    tell: Callable[[str], None] | None = None,
) -> Iterator[DaskExecutor]:
    """Give the executor of a cluster's workers: "local" is started here and closed at the end.

    Examples:
        >>> with open_executor("local", workers=1) as executor:
        ...     Parts(Logistic, [(A[:30], b[:30]), (A[30:], b[30:])], executor=executor).N
        60
    """
    tell = tell or (lambda sentence: None)
    if where != LOCAL:
        if workers is not None or memory is not None:
            raise InputError("--workers and --memory-limit are for --cluster local.")
        with _answering(where) as client:
            check_versions(client.get_versions(packages=["ode2opt", *same]), same)
            _tell_dashboard(client, tell)
            yield DaskExecutor(client)
        return
    workers = workers or dask.system.CPU_COUNT
    with (
        dask.config.set({"distributed.worker.preload": [IGNORE_INTERRUPTS]}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            memory_limit="auto" if memory is None else memory // workers,
        ) as cluster,
        Client(cluster) as client,
    ):
        _tell_dashboard(client, tell, here=True)
        yield DaskExecutor(client)


def _tell_dashboard(client: Client, tell: Callable[[str], None], here: bool = False) -> None:
    """Say where a cluster's dashboard is; one of this machine shows nothing without bokeh."""
    link = client.dashboard_link
    if link:
        lacking = here and find_spec("bokeh") is None
        tell(f"Dask's dashboard: {link}{' (it needs: pip install bokeh)' * lacking}")


@contextmanager
def _answering(address: str) -> Iterator[Client]:
    """Connect to a scheduler; an error says where none answers."""
    try:
        client = Client(address, timeout=ANSWER, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No scheduler answers at {address} ({type(error).__name__}): start one with 'dask "
            f"scheduler', or use --cluster local."
        ) from None
    with client:
        yield client


def check_versions(found: dict[str, Any], same: Sequence[str] = ()) -> None:
    """Refuse workers with other versions of packages whose objects go between them and the
    client.
    """
    ours = found["client"]["packages"]
    for address, worker in found["workers"].items():
        for name in (*SAME, *same):
            theirs = worker["packages"].get(name)
            if theirs != ours[name]:
                raise InputError(
                    f"The worker at {address} has {name} {theirs or 'not at all'}, but here it is "
                    f"{ours[name]}: install the same version on all."
                )
