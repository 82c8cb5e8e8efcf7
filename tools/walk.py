"""Count the files of the package that a reader of one call visits: ``python tools/walk.py``.

Calls are followed with ``sys.setprofile``: every file of ode2opt in which a function is called
counts once; a switch is a call from one of these files into another. The fewer there are, the
sooner a newcomer has read what happens.

- ``auto``: ``solve`` by the default method, to the end.
- ``penalised``: the same with ``penalty=L1(0.01)``.
- ``memory``: the second ``solve`` with one ``Memory``, to the end.
- ``dask``: ``solve`` of a problem of Dask arrays, until a worker begins its first gradient.
- ``flow``, ``sequence``: one training step, after a first one that compiles.
- ``csv``: ``ode2opt solve file.csv --out model.safetensors``.

``--files`` lists the files too. The calls run on small problems that are made here.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ode2opt

PACKAGE = str(Path(ode2opt.__file__).parent) + os.sep


class Walk:
    """The files of the package in which functions were called, in the order of the first calls,
    and how often a call led from one into another.

    It sees the thread that begins it, and the threads that were started since it was made.

    Args:
        until: a file of the package and names of functions; the walk ends when one is called.
    """

    def __init__(self, until: tuple[str, tuple[str, ...]] = ("", ())) -> None:
        self.files: list[str] = []
        self.switches = 0
        self._until, self._under_way = until, False
        threading.setprofile(self._see)

    def begin(self) -> None:
        """See all calls from here on."""
        self._under_way = True
        sys.setprofile(self._see)

    def end(self) -> None:
        """See no more."""
        self._under_way = False
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _see(self, frame: Any, event: str, _: object) -> None:
        if not self._under_way or event != "call":
            return
        name = _file(frame)
        if name is None:
            return
        if name == self._until[0] and frame.f_code.co_name in self._until[1]:
            self._under_way = False
            return
        if name not in self.files:
            self.files.append(name)
        caller = frame.f_back
        while caller is not None and _file(caller) is None:
            caller = caller.f_back
        self.switches += caller is not None and _file(caller) != name


def _file(frame: Any) -> str | None:
    """Return the file of the package in which a frame stands, None elsewhere."""
    path = frame.f_code.co_filename
    return Path(path[len(PACKAGE) :]).as_posix() if path.startswith(PACKAGE) else None


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix with correlated columns, and labels."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20_000, 20)) @ rng.standard_normal((20, 20))
    return A, (A @ rng.standard_normal(20) + 20 * rng.standard_normal(20_000) > 0).astype(float)


def auto(penalty: ode2opt.Penalty | None = None) -> Walk:
    """Follow a solve by the default method."""
    walk, problem = Walk(), ode2opt.Logistic(*rows(), l2=1e-4)
    walk.begin()
    ode2opt.solve(problem, penalty=penalty)
    walk.end()
    return walk


def penalised() -> Walk:
    """Follow a solve with a penalty."""
    return auto(ode2opt.L1(0.01))


def memory() -> Walk:
    """Follow the second solve with one memory."""
    walk, problem, known = Walk(), ode2opt.Logistic(*rows(), l2=1e-4), ode2opt.Memory()
    ode2opt.solve(problem, memory=known)
    walk.begin()
    ode2opt.solve(problem, memory=known)
    walk.end()
    return walk


def dask() -> Walk:
    """Follow a solve on Dask's workers, threads of this process, until the first gradient."""
    import dask.array as da
    from distributed import Client, LocalCluster

    walk = Walk(until=("problems/linear_model.py", ("gradient", "value_and_gradient")))
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    with LocalCluster(dashboard_address=None, **options) as cluster, Client(cluster):
        A, b = (da.from_array(array, chunks=(5_000, *array.shape[1:])) for array in rows())
        problem = ode2opt.Logistic(A, b, l2=1e-4)
        walk.begin()
        ode2opt.solve(problem)
        walk.end()
    return walk


def flow() -> Walk:
    """Follow the second training step of a flow; the first one compiles."""
    return _training(target="flow")


def sequence() -> Walk:
    """Follow the second training step of a sequence; the first one compiles."""
    return _training(target="sequence", metric="diagonal", reference="start", horizon=30)


def _training(**options: Any) -> Walk:
    A, b = rows()
    family = ode2opt.Family.from_arrays("logistic", A[:, :5], b, size=200, l2=0.01)
    walk = Walk()
    follow = {1: walk.begin, 2: walk.end}
    ode2opt.learn(
        family, steps=3, batch=2, validation=2, tol=1e-2, **options,
        callback=lambda step: follow.get(step.done, lambda: None)(),
    )  # fmt: skip
    return walk


def csv() -> Walk:
    """Follow the command that makes a model of a file."""
    from typer.main import get_command

    from ode2opt.cli.app import app

    walk, (A, b) = Walk(), rows()
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        table = os.path.join(folder, "rows.csv")
        np.savetxt(table, np.column_stack([A[:2_000], b[:2_000]]), delimiter=",")
        words = ["solve", table, "--problem", "logistic", "--out", f"{folder}/model.safetensors"]
        command = get_command(app)
        walk.begin()
        with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            command.main(words, standalone_mode=False)
        walk.end()
    return walk


WALKS: dict[str, Callable[[], Walk]] = {
    "auto": auto, "penalised": penalised, "memory": memory, "dask": dask, "flow": flow,
    "sequence": sequence, "csv": csv,
}  # fmt: skip


def main() -> None:
    """Print how many files each call visits."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "calls", nargs="*", metavar="CALL", help=f"of {', '.join(WALKS)}; all by default"
    )
    parser.add_argument("--files", action="store_true", help="list the files")
    given = parser.parse_args()
    for name in given.calls or WALKS:
        walk = WALKS[name]()
        files = walk.files
        rooms = Counter(file.partition("/")[0].removesuffix(".py") for file in files)
        visited = ", ".join(f"{n} {room}" for room, n in rooms.items())
        print(f"{name}: {len(files)} files ({visited}), {walk.switches} switches", flush=True)
        if given.files:
            print(*(f"    {file}" for file in files), sep="\n")


if __name__ == "__main__":
    main()
