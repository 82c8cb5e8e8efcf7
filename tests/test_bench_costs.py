"""The times that plans are made with: what the file has, and `python benchmarks/costs.py`."""

import dataclasses
import json
import os
from unittest.mock import patch

import numpy as np
import pytest

from ode2opt import Logistic
from ode2opt.base import machine
from ode2opt.solvers.costs import Costs, MeasuredTimes, times_of

with patch.dict(os.environ):  # a benchmark keeps itself to one thread
    import costs


def test_times_of_parts_are_found_from_sums_and_never_negative():
    sizes = np.array([[1.0, 10, 100], [1, 50, 300], [1, 7, 900], [1, 400, 20]])
    times = np.array([40.0, 2.0, 0.5])
    np.testing.assert_allclose(costs.fitted(sizes, sizes @ times), times, rtol=1e-9)
    assert costs.fitted(sizes, [50.0, 45, 40, 90]).min() >= 0


def test_every_set_has_the_times_that_plans_read_and_says_where_they_were_measured():
    sets = json.loads(machine.FILE.read_text())
    needed = {
        field.name
        for field in dataclasses.fields(MeasuredTimes)
        if field.default is dataclasses.MISSING
    }
    for form, found in sets.items():
        assert set(found["solving"]) == needed
        assert all(time >= 0 for part in ("solving", "gram") for time in found[part].values())
        assert {"command", "machine", "versions", "date"} <= set(found)
        assert times_of(form).entry == found["solving"]["entry"]
    assert set(sets["numpy"]["gram"]) == set(machine.measured_times("gram"))


def test_a_price_is_the_sum_of_its_measured_parts():
    rng = np.random.default_rng(0)
    problem = Logistic(rng.standard_normal((50, 4)), rng.integers(0, 2, 50).astype(float))
    prices = Costs(problem)
    t = prices.times
    expected = t.evaluation + 4 * t.correction + 200 * t.cached_entry + 50 * t.row
    assert prices.evaluation_seconds() == pytest.approx(1e-9 * expected, rel=1e-12)


def test_rows_that_kernels_evaluate_have_times_of_their_own(monkeypatch):
    problem = Logistic(np.ones((50, 4)), np.arange(50) % 2.0)
    monkeypatch.setattr(Logistic, "has_kernel", True)
    prices = Costs(problem)
    assert prices.times == times_of("kernels")
    assert prices.times.entry < times_of("numpy").entry
    monkeypatch.setattr(Logistic, "has_kernel", False)
    without = Costs(problem)
    assert without.times == times_of("numpy")
    assert without.evaluation_seconds(10) == prices.evaluation_seconds(10)  # a subsample is small


def test_what_was_measured_is_written_with_its_machine_and_read_by_plans(
    tmp_path, monkeypatch, capsys
):
    file = tmp_path / "measured_times.json"
    before = machine.FILE.read_text()
    file.write_text(before)
    kept = json.loads(before)
    faster = {
        part: {name: time / 4 for name, time in kept["numpy"][part].items()}
        for part in ("solving", "gram")
    }
    monkeypatch.setattr(machine, "FILE", file)
    monkeypatch.setattr(costs, "measured_apart", lambda form: faster)
    assert costs.main([])["costs_worst_factor"] >= 4
    assert file.read_text() == before
    costs.main(["--write"])
    entry = kept["numpy"]["solving"]["entry"]
    assert f"| entry | {entry:g} | {entry / 4:g} |" in capsys.readouterr().out
    now = json.loads(file.read_text())["numpy"]
    assert (now["solving"], now["gram"]) == (faster["solving"], faster["gram"])
    assert now["versions"]["numpy"] == np.__version__
    assert "cores" in now["machine"]
