"""Fixtures shared by all tests, and how the suite compiles, searches and forgets."""

import ctypes
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from support import one_sentence

from ode2opt import cli
from ode2opt.base.precision import jax_precision

CACHE = Path(__file__).parents[1] / ".pytest_cache"
# Most of the suite's time would be that of optimising compiled programs which run once. XLA refuses
# to start with a flag that it does not know, so only versions that do are given these.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
KNOWN_TO_TAKE_THEM = ("0.10.",)
MUCH_MEMORY, GROWTH = 1_000_000_000, 150_000_000  # bytes: then programs are forgotten earlier
kept = 0  # bytes of memory that were left when they were forgotten last
LONG = ("tests/learning/", "tests/study/", "tests/integrations/", "tests/test_")


def pytest_configure(config):
    """Set what JAX reads when it is imported, here, in workers and in the processes of tests.

    A program is compiled once for all of them. Where XLA_FLAGS is set, to nothing even, it stays:
    ``make test-all`` compiles as users do.
    """
    config.stash[PEAKS] = {}
    config.pluginmanager.register(Workers())
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    with suppress(PackageNotFoundError):
        if version("jaxlib").startswith(KNOWN_TO_TAKE_THEM):
            os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)


def pytest_runtest_teardown(item, nextitem):
    """Forget what was compiled after the last test of a file, or where it takes much memory.

    Programs are kept on disk (above), so that what comes next reads what it needs again.
    """
    global kept
    ends = nextitem is None or nextitem.path != item.path
    if not ends and resident_memory() < max(MUCH_MEMORY, kept + GROWTH):
        return
    for library in ("equinox", "jax"):
        if library in sys.modules:
            sys.modules[library].clear_caches()
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library other than glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)
    kept = resident_memory()


def resident_memory():
    """Return the bytes of memory that this process holds now; 0 on systems that do not tell."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def peak_memory():
    """Return the most bytes of memory that this process has held; None where nobody tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


PEAKS = pytest.StashKey[dict[str, int]]()


class Workers:
    """The peaks of the processes of pytest-xdist, told by each at its end."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        if peak := getattr(node, "workeroutput", {}).get("peak_memory"):
            node.config.stash[PEAKS][node.gateway.id] = peak


def pytest_sessionfinish(session):
    peak = peak_memory()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peak_memory"] = peak
    elif peak is not None:
        session.config.stash[PEAKS]["main"] = peak


def pytest_terminal_summary(terminalreporter, config):
    """Tell how much memory each process of the tests took; 1.5 GB is what they may."""
    told = ", ".join(f"{name} {peak / 1e9:.2f} GB" for name, peak in config.stash[PEAKS].items())
    if told:
        terminalreporter.write_line(f"peak memory: {told}")


def pytest_collection_modifyitems(items):
    """Long files first, so that at the end both processes have something to do."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(CACHE / "hypothesis"))
hypothesis.settings.register_profile(
    "the same every time", derandomize=True, database=None, deadline=None, max_examples=50
)
hypothesis.settings.load_profile("the same every time")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real datasets. Where ODE2OPT_DATA is set (as in CI) it must be there.

    A CI without these files says so by ODE2OPT_NO_DATA.
    """
    folder = os.environ.get("ODE2OPT_DATA")
    if not folder:
        if os.environ.get("CI") and not os.environ.get("ODE2OPT_NO_DATA"):
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
    with jax_precision():
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
def refused(run_cli):
    """Check that a command line is wrong use: exit code 2 and one sentence, which has ``words``."""

    def check(words: str, *arguments: object) -> str:
        code, out, err = run_cli(*arguments)
        assert (code, out, one_sentence(err)) == (2, "", True), err
        told = " ".join(err.split())
        assert words in told
        return told

    return check


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
    monkeypatch.setattr("ode2opt.data.sources.LIBSVM_SITE", "http://127.0.0.1:9/")
