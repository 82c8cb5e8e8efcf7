"""A table with a prox in C: compiled, and run beside Python."""

import csv
import ctypes
import json
import subprocess

import numpy as np
import pytest
from integrations.learned import on_iterates, with_prox

from ode2opt import InputError, Method, Quadratic, solve
from ode2opt.integrations.export import to_c, to_csv, to_json
from ode2opt.penalties import L1, Box, Simplex
from ode2opt.proofs.table import Table

N = 15
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
LOWER, UPPER = np.linspace(-0.3, 0.0, N), np.linspace(0.05, 0.4, N)
PENALTIES = {"l1": L1(1.5), "box": Box(LOWER, UPPER), "simplex": Simplex(2.0)}
CONVERGED, HORIZON_OVER, BLEW_UP, NOT_FINITE, STOPPED = range(5)
VECTOR = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
LIBRARY = """
#include "%s"
#define N %d
typedef struct { double Q[N][N], b[N]; int calls, stop; } quadratic;
static int gradient(size_t n, const double *x, double *g, void *data)
{
    quadratic *f = data;
    size_t i, j;
    for (i = 0; i < n; i++) {
        g[i] = -f->b[i];
        for (j = 0; j < n; j++) g[i] += f->Q[i][j] * x[j];
    }
    return ++f->calls == f->stop;
}
int run(const double *Q, const double *b, int kind, const double *lower, const double *upper,
        double number, double scale, double tol, int stop, double *x, double *out);
int run(const double *Q, const double *b, int kind, const double *lower, const double *upper,
        double number, double scale, double tol, int stop, double *x, double *out)
{
    static quadratic f;
    static double work[ODE2OPT_T_WORK(N)];
    const ode2opt_t_l1 l1 = {number};
    const ode2opt_t_box box = {lower, upper};
    const ode2opt_t_simplex simplex = {number};
    const ode2opt_t_prox proxes[] = {ode2opt_t_prox_l1, ode2opt_t_prox_box, ode2opt_t_prox_simplex};
    const void *penalties[] = {&l1, &box, &simplex};
    ode2opt_t_problem problem = {gradient, &f, proxes[kind], penalties[kind], scale, tol};
    ode2opt_t_result result;
    int i, status;
    for (i = 0; i < N * N; i++) f.Q[i / N][i %% N] = Q[i];
    for (i = 0; i < N; i++) f.b[i] = b[i];
    f.calls = 0;
    f.stop = stop;
    status = ode2opt_t_solve(N, x, &problem, work, &result);
    out[0] = result.iterations;
    out[1] = result.residual;
    out[2] = f.calls;
    return status;
}
"""


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, N))
    return Quadratic(A.T @ A, A.T @ rng.standard_normal(30))


def learned(problem, table, **guard):
    return with_prox(table, float(np.linalg.eigvalsh(problem.Q)[-1]), "a */ family", **guard)


def compiled(cc, folder, method):
    (header, text), _ = to_c(method, "t").items()
    (folder / header).write_text(text)
    (folder / "library.c").write_text(LIBRARY % (header, N))
    command = [cc, *STRICT, "-O1", "-shared", "-fPIC", "library.c", "-o", "library.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    run = ctypes.CDLL(str(folder / "library.so")).run
    number, whole = ctypes.c_double, ctypes.c_int
    run.argtypes = [
        VECTOR, VECTOR, whole, VECTOR, VECTOR, number, number, number, whole, VECTOR, VECTOR,
    ]  # fmt: skip
    return run


def ran(run, problem, kind, *, scale=0.0, tol=1e-8, stop=-1):
    """Status, iterations, residual, calls and x."""
    x = np.asarray(PENALTIES[kind].project(np.zeros(N)), dtype=np.float64).copy()
    out, number = np.zeros(3), {"l1": 1.5, "simplex": 2.0}.get(kind, 0.0)
    status = run(
        np.ascontiguousarray(problem.Q), problem.b, list(PENALTIES).index(kind), LOWER, UPPER,
        number, scale, tol, stop, x, out,
    )  # fmt: skip
    return status, int(out[0]), out[1], int(out[2]), x


@pytest.mark.parametrize("make", [lambda K: on_iterates(K, 1.2), Table.fista])
def test_c_does_what_python_does(cc, tmp_path, problem, make):
    method = learned(problem, make(60))
    run = compiled(cc, tmp_path, method)
    for kind, penalty in PENALTIES.items():
        for tol in (1e-2, 1e-5):
            status, iterations, residual, calls, x = ran(run, problem, kind, tol=tol)
            python = solve(problem, penalty=penalty, method=method, tol=tol, handover="none")
            assert (status == CONVERGED) == python.success
            assert iterations == python.iterations
            np.testing.assert_allclose(x, python.x, atol=1e-10)
            assert residual == pytest.approx(python.residual, rel=1e-5, abs=1e-13)
            assert calls <= 2 * iterations + 1


def test_c_stops_where_the_guard_does(cc, tmp_path, problem):
    wild = Table(np.ones(50), np.full(50, 40.0), np.zeros(50), np.zeros(50))
    run = compiled(cc, tmp_path, learned(problem, wild, blowup=10.0))
    assert ran(run, problem, "l1")[0] == BLEW_UP
    assert ran(run, problem, "l1", stop=2)[0] == STOPPED
    assert ran(run, problem, "l1", scale=-1.0)[0] == -2
    other = tmp_path / "envelope"
    other.mkdir()
    run = compiled(cc, other, learned(problem, on_iterates(20, 1.2), envelope=(1.0, 1.0, 1e-9)))
    status, iterations, *_ = ran(run, problem, "l1")
    assert (status, iterations) == (BLEW_UP, 2)
    bad = Quadratic(problem.Q, problem.b)
    bad.b = np.full(N, np.nan)
    assert ran(run, bad, "l1")[0] == NOT_FINITE


def test_the_example_solves_its_problem(cc, tmp_path, problem):
    for name, text in to_c(learned(problem, on_iterates(30, 1.2)), "t").items():
        (tmp_path / name).write_text(text)
    command = [cc, *STRICT, "-O1", "ode2opt_t_example.c", "-o", "example", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "example"], capture_output=True, text=True, check=True).stdout
    assert "residual" in said
    assert "ode2opt_t" not in said


def test_other_forms_hold_the_table(problem):
    method = learned(problem, on_iterates(3, 1.2))
    rows = list(csv.reader(to_csv(method).splitlines()))
    assert rows[0] == ["k", "m", "p", "q", "w"]
    assert [float(row[2]) for row in rows[1:]] == method.proximal.p.tolist()
    document = json.loads(to_json(method))
    assert document["arrays"]["proximal.q"] == method.proximal.q.tolist()
    instant = Method(schedule=None, family="x", tol=1.0, scale="family", family_scale=1.0)
    with pytest.raises(InputError, match="no table"):
        to_json(instant)
