"""Fixtures shared by all tests."""

import os
import signal
from pathlib import Path

import jax
import numpy as np
import pytest

from ode2opt import cli


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real datasets. Where ODE2OPT_DATA is set (as in CI) it must be there."""
    folder = os.environ.get("ODE2OPT_DATA")
    if not folder:
        if os.environ.get("CI"):
            pytest.fail("ODE2OPT_DATA must name the folder of datasets in CI")
        pytest.skip("needs the LIBSVM files: set ODE2OPT_DATA to their folder")
    if not (Path(folder) / "a5a").is_file():
        pytest.fail(f"ODE2OPT_DATA is {folder}, but there is no a5a in it")
    return Path(folder)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12345)


@pytest.fixture
def x64():
    """JAX in double precision, for tests that call it directly."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def run_cli(monkeypatch, capsys):
    """Run the command line in this process; returns exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["ode2opt", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            cli.main()
        captured = capsys.readouterr()
        return int(exit_info.value.code or 0), captured.out, captured.err

    return run


@pytest.fixture
def ctrl_c():
    """Ctrl-C as on a terminal; where a shell starts the tests in the background it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """An empty cache, no local folder, and a site that does not answer."""
    monkeypatch.delenv("ODE2OPT_DATA", raising=False)
    monkeypatch.setenv("ODE2OPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ode2opt.problems.sources.LIBSVM_SITE", "http://127.0.0.1:9/")
