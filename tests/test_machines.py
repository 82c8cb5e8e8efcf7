"""The tool of make test-machines: which versions are the oldest, and what a failure does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import module_of

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def machines():
    return module_of(ROOT / "tools/machines.py")


def project(dependencies, **extras):
    return {"project": {"dependencies": dependencies, "optional-dependencies": extras}}


def test_the_oldest_version_is_the_highest_of_those_asked_for(machines):
    found = machines.oldest_versions(
        project(["numpy>=1.26", "b>=2,!=2.1"], one=["numpy>=1.9", "c[x]>=0.2"], two=["b>=3"]),
        ("one",),
    )
    assert found == {"numpy": "1.26", "b": "2", "c": "0.2"}


def test_a_dependency_without_a_lowest_version_is_refused(machines):
    with pytest.raises(SystemExit, match="rich in pyproject"):
        machines.oldest_versions(project(["rich"]), ())


def test_every_dependency_of_ours_names_its_lowest_version(machines):
    lines = machines.constraints(machines.OLDEST_ESTIMATORS.extras).split()
    assert {"numpy", "scipy", "scikit-learn", "jax"} <= {line.partition("==")[0] for line in lines}


def test_every_folder_and_file_of_numeric_tests_is_there(machines):
    assert all((ROOT / path).exists() for path in (*machines.NUMERIC, machines.ESTIMATORS))


def test_each_kernel_has_one_thread_and_two(machines):
    seen = {
        (c.variables.get("OPENBLAS_CORETYPE"), c.variables["OPENBLAS_NUM_THREADS"])
        for c in machines.configurations()
    }
    kernels = {"Prescott", "Nehalem", "Haswell", "Zen", None}
    assert {(kernel, count) for kernel in kernels for count in "12"} <= seen


def test_a_test_that_fails_on_one_machine_fails_the_run(machines, tmp_path, monkeypatch, capsys):
    failing = tmp_path / "test_kernel.py"
    failing.write_text(
        "import os\n"
        "def test_kernel():\n    assert os.environ['OPENBLAS_CORETYPE'] == 'Nehalem'\n"
        "def test_other():\n    pass\n"
    )
    monkeypatch.setattr(sys, "argv", ["machines", "Nehalem, 1", "Zen, 1", "--tests", str(failing)])
    with pytest.raises(SystemExit) as ended:
        machines.main()
    assert ended.value.code == 1
    one, other, *_ = capsys.readouterr().out.splitlines()
    assert "Nehalem, 1 thread " in one
    assert " 2 passed " in one
    assert "1 failed, 1 passed" in other


def test_an_unknown_machine_is_refused_with_the_known_ones(machines, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["machines", "Z80"])
    with pytest.raises(SystemExit, match=r"Z80.*Haswell, 1 thread"):
        machines.main()


@pytest.mark.parametrize(
    "variables", [{"ODE2OPT_DATA": "/nowhere"}, {"ODE2OPT_DATA": "", "CI": "1"}]
)
def test_without_its_data_ci_fails_and_skips_nothing(variables):
    needs_data = "tests/data/test_datasets.py::test_the_paper_scales_each_part_by_its_own_maxima"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", needs_data],
        cwd=ROOT, env=os.environ | variables, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "skipped" not in done.stdout
    assert "ODE2OPT_DATA" in done.stdout
