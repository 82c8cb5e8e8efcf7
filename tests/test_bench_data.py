"""The data that benchmarks compare solvers on."""

import importlib

import numpy as np


def test_the_rows_of_libsvm_files_come_together_with_columns_of_size_one(tmp_path, monkeypatch):
    data = importlib.import_module("data")
    (tmp_path / "a").write_text("+1 1:2 3:1\n-1 2:4\n")
    (tmp_path / "a.t").write_text("-1 1:1 2:-8\n")
    monkeypatch.setattr(data, "obtain_file", lambda name: tmp_path / name)
    A, b = data.from_files("a", "a.t", n=3)
    A = A if isinstance(A, np.ndarray) else A.toarray()
    assert np.array_equal(A, [[1, 0, 1], [0, 0.5, 0], [0.5, -1, 0]])
    assert np.array_equal(b, [1, 0, 0])
