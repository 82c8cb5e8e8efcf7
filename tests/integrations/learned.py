"""Methods and problems that the adapters of several libraries are tried on."""

import numpy as np

from ode2opt import Guard, Logistic, Method, Schedule
from ode2opt.proofs.table import Table
from ode2opt.solvers.metric import Metric

ROWS, COLUMNS, HORIZON = 60, 7, 25
NOT_LEARNED = {
    "logistic-a5b": "did you mean 'logistic-a5a'",
    "auto": "auto is run by ode2opt.solve only",
    "mine.safetensors": "pathlib.Path",
    3: "not int",
    Method(None, "lpp", 1e-6, "family", 1.0): "no table: it is L-BFGS",
}
"""What no adapter runs, and what each says."""


def logistic(seed=0, l2=0.05):
    """A small problem with columns of different sizes."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((ROWS, COLUMNS)) * np.geomspace(1, 4, COLUMNS)
    return Logistic(A, (rng.random(ROWS) < 0.4).astype(float), l2=l2)


def table(K=HORIZON):
    """No row is like another."""
    k = np.arange(K)
    return Schedule(1.1 + 0.3 * np.sin(k), 0.8 + 0.2 * np.cos(k), 0.4 + 0.5 / (1 + k))


def metrics():
    """One of each kind, and one whose directions are too few for a matrix."""
    rng = np.random.default_rng(1)
    scale = np.geomspace(1, 0.3, COLUMNS)
    V, _ = np.linalg.qr(rng.standard_normal((COLUMNS, COLUMNS)))
    stretch = np.linspace(-0.5, 0.4, COLUMNS)
    return {
        "none": None,
        "diagonal": Metric("diagonal", scale),
        "spectral": Metric("spectral", scale, V, stretch),
        "lowrank": Metric("lowrank", scale, np.ascontiguousarray(V[:, :2]), stretch[:2]),
    }


def method(metric=None, scale="family", **more):
    """A method whose scale is right for the problems above."""
    fixed = {"family_scale": 9.0} if scale == "family" else {}
    return Method(table(), "logistic tests", 1e-6, scale, metric=metric, **fixed, **more)


def with_prox(table, scale, family="made up", **guard):
    """A method whose table has a prox."""
    return Method(
        schedule=None, family=family, tol=1e-6, scale="family", family_scale=scale,
        guard=Guard(fallback="fista", **guard), proximal=table,
    )  # fmt: skip


def on_iterates(K, step=1.0):
    """FISTA's momenta in a table that takes its gradients at the iterates."""
    m = Table.fista(K).m
    return Table(m, step * (1 + m), step * m, 0 * m)
