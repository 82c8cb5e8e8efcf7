"""The method file: what is written is read, and what is wrong with a file is said."""

import json
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ode2opt import Guard, InputError, Logistic, Method, Quadratic, Schedule, solve
from ode2opt.paper import DefaultCoefficients
from ode2opt.problems.curvature import largest_curvature
from ode2opt.solvers.method_file import Formula


def make(**fields):
    parameters = {"alpha": np.array(6.0), "C": np.array(2.0)}
    formula = Formula("default", {"h": 0.04, "corrected": False}, parameters, 0.04, 1.0)
    given = {
        "schedule": DefaultCoefficients(2.0).schedule(300), "family": "logistic test", "tol": 1e-4,
        "formula": formula, "guard": Guard(blowup=7.0, patience=33),
        "provenance": {"seed": 3}, "certificate": {"levels": {"flow": True}},
        "statistics": {"test": {"complexity": 12.5}},
    }  # fmt: skip
    return Method(**(given | fields))


@pytest.fixture
def problem(rng):
    return Logistic(rng.standard_normal((60, 4)), rng.integers(0, 2, 60).astype(float), l2=0.01)


def test_a_file_gives_back_the_method(tmp_path):
    method, path = make(), tmp_path / "m.safetensors"
    method.save(path)
    again = Method.load(path)
    for key in "acd":
        np.testing.assert_array_equal(getattr(again.schedule, key), getattr(method.schedule, key))
    assert again.guard == method.guard
    assert again.formula.settings == method.formula.settings
    assert float(again.formula.parameters["C"]) == 2.0
    for key in ("family", "tol", "scale", "provenance", "certificate", "statistics"):
        assert getattr(again, key) == getattr(method, key)


def test_solving_divides_by_the_curvature_at_the_start(problem):
    method, x0 = make(), np.ones(4)
    curvature, calls = largest_curvature(problem, x0)
    alone = {"tol": 1e-4, "handover": "none"}
    by_method = solve(problem, x0, method=method, **alone)
    by_schedule = solve(problem, x0, method=method.schedule.scaled(curvature), **alone)
    np.testing.assert_array_equal(by_method.x, by_schedule.x)
    assert by_method.oracle_calls == by_schedule.oracle_calls + calls


def test_a_family_scale_costs_nothing(problem):
    method = make(scale="family", family_scale=0.3)
    alone = {"tol": 1e-4, "handover": "none"}
    by_method = solve(problem, np.ones(4), method=method, **alone)
    by_schedule = solve(problem, np.ones(4), method=method.schedule.scaled(0.3), **alone)
    assert by_method.oracle_calls == by_schedule.oracle_calls
    np.testing.assert_array_equal(by_method.x, by_schedule.x)


def test_the_methods_own_guard_watches(problem):
    wild = make(schedule=Schedule(np.full(50, 90.0), np.full(50, 90.0), np.full(50, 0.1)))
    result = solve(problem, np.ones(4), method=wild, tol=1e-6)
    assert result.success
    assert "7 times" in result.handovers[0].reason


def test_beyond_the_horizon_the_guard_takes_over(problem):
    result = solve(problem, np.ones(4), method=make(schedule=DefaultCoefficients(2.0).schedule(5)))
    assert result.success
    assert "horizon" in result.handovers[0].reason


def rewritten(path, change):
    """A valid file with its description changed."""
    make().save(path)
    arrays = load_file(path)
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["ode2opt"])
    change(about, arrays)
    save_file(arrays, path, metadata={"ode2opt": json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about, arrays: about.update(version=99), "format version 99"),
        (lambda about, arrays: about.pop("tol"), "it has no tol"),
        (lambda about, arrays: about.update(tol="small"), "tol is 'small'"),
        (lambda about, arrays: about.update(tol=-1.0), "tol is -1"),
        (lambda about, arrays: about.update(scale="metric"), "Unknown scale 'metric'"),
        (lambda about, arrays: about.update(scale="family"), "family_scale is None"),
        (lambda about, arrays: about.update(horizon=7), r"schedule.a has the shape \(300,\)"),
        (lambda about, arrays: about.update(guard={"bite": 1}), "guard has no setting bite"),
        (lambda about, arrays: about.update(guard={"envelope": 3}), "envelope is 3, not a list"),
        (lambda about, arrays: about.update(guard={"power": 0}), "power is 0"),
        (lambda about, arrays: about.update(guard={"blowup": 10**400}), "holds 1000.*too large"),
        (lambda about, arrays: about.update(guard={"blowup": 0.5}), "blowup is 0.5"),
        (lambda about, arrays: about.update(formula=[]), r"formula is \[\], not an object"),
        (lambda about, arrays: arrays.pop("schedule.c"), "it has no schedule.c"),
        (
            lambda about, arrays: arrays.update({"schedule.a": np.full(300, np.nan)}),
            "schedule.a is not made of finite",
        ),
        (
            lambda about, arrays: arrays.update({"parameters.C": np.array(np.inf)}),
            "parameters.C is not made of finite",
        ),
        (lambda about, arrays: about.update(statistics=3), "statistics is 3"),
    ],
)
def test_a_wrong_field_is_named(tmp_path, change, said):
    path = tmp_path / "m.safetensors"
    rewritten(path, change)
    with pytest.raises(InputError, match=said):
        Method.load(path)


def test_damaged_files_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    make().save(path)
    whole = path.read_bytes()
    for damage in (whole[:-9], whole[:20], b"", b"\xff" * 64, b"\x00" * 4096):
        path.write_bytes(damage)
        with pytest.raises(InputError, match="damaged or no method file"):
            Method.load(path)
    save_file({"x": np.ones(2)}, path)
    with pytest.raises(InputError, match="not one of a method"):
        Method.load(path)
    save_file({"x": np.ones(2)}, path, metadata={"ode2opt": "[" * 10_000})
    with pytest.raises(InputError, match="nested too deeply"):
        Method.load(path)
    with pytest.raises(InputError, match="There is no method file"):
        Method.load(tmp_path / "none.safetensors")
    with pytest.raises(InputError, match="is not a file"):
        Method.load(tmp_path)


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    make().save(path)
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ode2opt.base.storage.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        make(tol=1e-3).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_solving_with_a_file_needs_no_jax(tmp_path):
    path = tmp_path / "m.safetensors"
    make().save(path)
    script = (
        "import sys; sys.modules['jax'] = None\n"
        "import numpy as np, ode2opt\n"
        f"method = ode2opt.Method.load({str(path)!r})\n"
        "problem = ode2opt.Quadratic(np.diag([1.0, 2.0]), np.ones(2))\n"
        "print(ode2opt.solve(problem, np.zeros(2), method=method, tol=1e-4).success)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def test_the_scale_of_a_problem_is_one_number():
    Q = np.diag([1.0, 4.0])
    problem, x0 = Quadratic(Q, np.ones(2)), np.array([2.0, 1.0])
    table = Schedule.heavy_ball(1.0, 0.5, 9)
    g = Q @ x0 - 1
    due = {"instance": 4.0, "product": (g @ Q @ g) / (g @ g), "family": 7.0}
    for scale, curvature in due.items():
        method = Method(table, "any", 1e-6, scale, family_scale=7.0 if scale == "family" else None)
        assert method.scale_of(problem, x0) == pytest.approx(curvature, rel=1e-6)
        assert method.scale_of(problem, problem.start()) > 0
        assert method.replace(start=x0).scale_of(problem) == method.scale_of(problem, x0)
    with pytest.raises(InputError, match="x0"):
        method.scale_of(problem, np.ones(3))
