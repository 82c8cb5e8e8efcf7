"""Few files are visited by a call: what a newcomer has to read."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from ode2opt import Quadratic

TOOL = Path(__file__).parents[1] / "tools" / "walk.py"


@pytest.fixture(scope="module")
def walk():
    spec = importlib.util.spec_from_file_location("walk", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_walk_counts_the_files_of_the_package_once(walk):
    problem = Quadratic(np.eye(3), np.ones(3))
    found = walk.Walk()
    found.begin()
    problem.gradient(np.zeros(3))
    problem.gradient(np.ones(3))
    found.end()
    problem.value(np.zeros(3))
    assert found.files == ["problems/quadratic.py"]


def test_a_gradient_on_dask_visits_few_files_beside_those_of_the_solver(walk):
    pytest.importorskip("distributed")
    rows = [file for file in walk.dask().files if not file.startswith("solvers/")]
    assert {"problems/parts/problem.py", "integrations/dask/workers.py"} < set(rows)
    assert len(rows) <= 4, rows


@pytest.mark.parametrize(
    ("call", "files", "switches"),
    [("auto", 28, 530), ("penalised", 33, 720), ("memory", 19, 65)],
)
def test_a_solve_visits_few_files(walk, call, files, switches):
    """What was reached; a change that needs more says why."""
    found = walk.WALKS[call]()
    assert len(found.files) <= files, found.files
    assert found.switches <= switches


def test_the_way_from_a_csv_file_to_a_model_visits_few_files(walk):
    files = walk.csv().files
    assert {"cli/solve.py", "data/table.py", "models/model_file.py"} < set(files)
    assert len(files) <= 57, files
    assert sum(file.startswith("cli/") for file in files) <= 7, files


def test_a_training_step_visits_few_files_of_its_room(walk):
    pytest.importorskip("jax")
    flow, sequence = walk.flow().files, walk.sequence().files
    assert "learning/run.py" in flow
    assert sum(file.startswith("learning/") for file in flow) <= 7, flow
    assert len(sequence) <= 9, sequence
