"""Run the numeric tests as other machines would: other BLAS kernels, threads and library versions.

    python tools/machines.py                 all configurations, one line each
    python tools/machines.py Haswell oldest  those whose names contain one of these words
    python tools/machines.py --constraints   the oldest versions that pyproject.toml allows

OPENBLAS_CORETYPE makes OpenBLAS take the kernels of another processor; ``SkylakeX`` needs AVX-512
and is left out where the processor has none. The oldest versions have virtual environments of
their own, in which every package has the lowest version that pyproject.toml allows: one without
the extra ``sklearn``, which needs a newer scikit-learn than solving does, and one with it. They are
made anew when pyproject.toml asks for other versions. Ends with an error if any test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
# What computes, without what compiles or trains for minutes.
ESTIMATORS = "tests/integrations/test_sklearn.py"
NUMERIC = (
    "tests/base", "tests/data", "tests/problems", "tests/solvers", "tests/paper", "tests/proofs",
    "tests/integrations/test_scipy.py", "tests/integrations/test_torch.py",
)  # fmt: skip
KERNELS = ("Prescott", "Nehalem", "Haswell", "Zen", "SkylakeX")
EXTRAS = ("learn", "study", "parquet", "test")
# Tools of the extra test.
NO_LIBRARIES = (
    "ruff", "mypy", "import-linter", "playwright", "build", "pytest-cov", "pyyaml",
    "check-jsonschema",
)  # fmt: skip
PEAK = re.compile(r"peak memory: main (.*)")


class Environment(NamedTuple):
    """A virtual environment of the oldest versions that some extras allow."""

    folder: Path
    extras: tuple[str, ...]

    @property
    def python(self) -> str:
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / "python")


class Configuration(NamedTuple):
    """One way to run tests; without an environment, by the Python that runs this."""

    name: str
    variables: dict[str, str]
    tests: tuple[str, ...] = (*NUMERIC, ESTIMATORS)
    environment: Environment | None = None


OLDEST = Environment(ROOT / ".venv-oldest", EXTRAS)
OLDEST_ESTIMATORS = Environment(ROOT / ".venv-oldest-sklearn", (*EXTRAS, "sklearn"))


def configurations() -> list[Configuration]:
    """Return all configurations that this machine can run."""
    found = []
    for threads in (1, 2):
        words = f"{threads} thread{'s' if threads > 1 else ''}"
        variables = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
        for kernel in KERNELS:
            if kernel != "SkylakeX" or has_avx512():
                core = {"OPENBLAS_CORETYPE": kernel}
                found.append(Configuration(f"{kernel}, {words}", variables | core))
        found.append(Configuration(f"oldest, {words}", variables, NUMERIC, OLDEST))
        found.append(
            Configuration(f"oldest sklearn, {words}", variables, (ESTIMATORS,), OLDEST_ESTIMATORS)
        )
    return found


def has_avx512() -> bool:
    """Whether the processor has AVX-512; where the system does not tell, it has not."""
    if sys.platform == "linux":
        return " avx512f" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return False


def oldest_versions(pyproject: dict[str, Any], extras: tuple[str, ...]) -> dict[str, str]:
    """Return the lowest version of each package; of two that are asked for, the higher one.

    A package without a lowest version is an error: nobody would know what was tried.
    """
    from packaging.requirements import Requirement
    from packaging.version import Version

    project, found = pyproject["project"], {}
    lists = [project["dependencies"], *(project["optional-dependencies"][e] for e in extras)]
    for requirement in (Requirement(line) for lines in lists for line in lines):
        name = requirement.name
        if name in NO_LIBRARIES:
            continue
        least = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
        if not least:
            raise SystemExit(f"{requirement} in pyproject.toml names no lowest version.")
        found[name] = max(*least, found.get(name, least[0]))
    return {name: str(version) for name, version in found.items()}


def constraints(extras: tuple[str, ...]) -> str:
    """Return the oldest versions as the lines of a file of constraints for pip."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = oldest_versions(pyproject, extras)
    return "".join(f"{name}=={version}\n" for name, version in oldest.items())


def make(environment: Environment) -> None:
    """Make an environment of the oldest versions, unless it has these already."""
    lines, made = constraints(environment.extras), environment.folder / "constraints.txt"
    if made.exists() and made.read_text(encoding="utf-8") == lines:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", environment.folder], check=True)
    wanted = environment.folder / "wanted.txt"
    wanted.write_text(lines, encoding="utf-8")
    pip = [environment.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    names = [line.partition("==")[0] for line in lines.split()]
    torch = os.environ.get("TORCH", "torch")  # the build that the package index has
    subprocess.run([*pip, "-c", wanted, *names, torch, "psutil"], check=True)
    subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
    wanted.rename(made)


def run(configuration: Configuration, tests: tuple[str, ...]) -> bool:
    """Run the tests in one configuration and print its line; return whether all passed."""
    python, quiet = sys.executable, ()
    if configuration.environment is not None:
        python = configuration.environment.python
        # Old libraries warn of the newer ones that they find.
        quiet = ("-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning")
    began = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "0", "--tb=short", *quiet, *tests],
        cwd=ROOT, env=os.environ | configuration.variables, capture_output=True, text=True,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    lines = done.stdout.strip().splitlines() or ["nothing was printed"]
    counts = re.sub(r" in [\d.]+s.*|=+ ?", "", lines[-1])
    peak = next((match[1] for match in map(PEAK.match, lines) if match), "?")
    print(f"{configuration.name:26} {counts:45} {seconds:6.0f} s  {peak}", flush=True)
    if done.returncode:
        failures = [line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))]
        print("\n".join(failures or [*lines[-20:], done.stderr]), flush=True)
    return done.returncode == 0


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="run the configurations with such names only")
    parser.add_argument("--tests", nargs="+", help="files of tests, instead of all that compute")
    parser.add_argument("--constraints", action="store_true", help="print the oldest versions")
    asked = parser.parse_args()
    if asked.constraints:
        print(constraints(EXTRAS), end="")
        return
    known = configurations()
    chosen = [c for c in known if not asked.words or any(w in c.name for w in asked.words)]
    if not chosen:
        names = "; ".join(c.name for c in known)
        raise SystemExit(f"No configuration has {' or '.join(asked.words)}. There are: {names}.")
    for environment in {c.environment for c in chosen if c.environment is not None}:
        make(environment)
    passed = [run(c, tuple(asked.tests or c.tests)) for c in chosen]
    raise SystemExit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
