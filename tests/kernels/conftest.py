"""Kernels for matrices of every size, and NumPy's form beside them."""

import numpy as np
import pytest

from ode2opt.kernels import classes, rows


@pytest.fixture(autouse=True)
def for_all_sizes(monkeypatch):
    """Let kernels take every matrix, whatever the environment says."""
    monkeypatch.setenv("ODE2OPT_KERNELS", "on")
    monkeypatch.delenv("ODE2OPT_THREADS", raising=False)
    monkeypatch.setattr(rows, "FEWEST_BYTES", 0)
    every = {8: (0, 10_000), 4: (0, 10_000)}
    monkeypatch.setattr(rows, "COLUMNS", {"C": every, "F": every})


@pytest.fixture
def numpy_form(monkeypatch):
    """Return what a function of a problem returns without kernels."""

    def evaluated(work):
        with monkeypatch.context() as patch:
            patch.setenv("ODE2OPT_KERNELS", "off")
            return work()

    return evaluated


@pytest.fixture
def passes(monkeypatch):
    """Return the list of the kernels that have run."""
    seen, kernel_of = [], rows.kernel_for

    def counted(dtype, name="rows"):
        kernel = kernel_of(dtype, name)
        return kernel and (lambda *given: (seen.append(np.dtype(dtype).name), kernel(*given)))

    monkeypatch.setattr(rows, "kernel_for", counted)
    monkeypatch.setattr(classes, "kernel_for", counted)
    return seen
