"""A method for other languages: the C header is compiled and run beside Python."""

import csv
import ctypes
import json
import subprocess

import numpy as np
import pytest
from integrations.learned import COLUMNS, HORIZON, logistic, method, metrics
from support import visited

import ode2opt
from ode2opt import Guard, InputError, Method, Schedule
from ode2opt.integrations.export import to_c, to_csv, to_json

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
START = np.linspace(-1, 1, COLUMNS)
VECTOR = ctypes.POINTER(ctypes.c_double)
GRADIENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, VECTOR, VECTOR, ctypes.c_void_p)
PRODUCT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, VECTOR, VECTOR, VECTOR, ctypes.c_void_p)
CONVERGED, HORIZON_OVER, BLEW_UP, NOT_FINITE, STOPPED = range(5)
WRONG_N, WRONG_SCALE = -1, -2


class CProblem(ctypes.Structure):
    _fields_ = (
        ("gradient", GRADIENT),
        ("product", PRODUCT),
        ("data", ctypes.c_void_p),
        ("scale", ctypes.c_double),
        ("tol", ctypes.c_double),
    )


class CResult(ctypes.Structure):
    _fields_ = (
        ("iterations", ctypes.c_int),
        ("grad_norm", ctypes.c_double),
        ("scale", ctypes.c_double),
    )


def compiled(cc, folder, chosen):
    """The header's functions, in a library of their own."""
    (header, text), _ = to_c(chosen, "my method.v2").items()
    (folder / header).write_text(text)
    (folder / "library.c").write_text(
        f'#include "{header}"\n'
        "int start(size_t n, double *x);\n"
        "int start(size_t n, double *x) { return ode2opt_my_method_v2_start(n, x); }\n"
        "size_t space(size_t n);\n"
        "size_t space(size_t n) { return ODE2OPT_MY_METHOD_V2_WORK(n); }\n"
        "int run(size_t n, double *x, const ode2opt_my_method_v2_problem *p, double *w,\n"
        "        ode2opt_my_method_v2_result *r);\n"
        "int run(size_t n, double *x, const ode2opt_my_method_v2_problem *p, double *w,\n"
        "        ode2opt_my_method_v2_result *r)\n"
        "{ return ode2opt_my_method_v2_solve(n, x, p, w, r); }\n"
    )
    command = [cc, *STRICT, "-O1", "-shared", "-fPIC", "library.c", "-o", "library.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "library.so"))
    library.space.restype, library.space.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    return library


def run(library, problem, x0, *, scale=0.0, tol=1e-15, product=True, n=None, stop_at=None):
    """Status, result, x and all points at which C asked for a gradient."""
    n = len(x0) if n is None else n
    points = []

    def there(pointer):
        return np.ctypeslib.as_array(pointer, (n,))

    @GRADIENT
    def gradient(size, x, g, data):
        points.append(there(x).copy())
        there(g)[:] = problem.gradient(points[-1])
        return int(len(points) == stop_at)

    @PRODUCT
    def times(size, x, v, Hv, data):
        there(Hv)[:] = problem.hvp(there(x).copy(), there(v).copy())
        return 0

    given = CProblem(gradient, times if product else PRODUCT(), None, scale, tol)
    x, work, result = x0.copy(), np.full(library.space(n) + 1, np.nan), CResult()
    status = library.run(
        ctypes.c_size_t(n), x.ctypes.data_as(VECTOR), ctypes.byref(given),
        work.ctypes.data_as(VECTOR), ctypes.byref(result),
    )  # fmt: skip
    assert np.isnan(work[-1])  # nothing is written beyond the work space
    return status, result, x, points


@pytest.mark.parametrize("scale", ["family", "product"])
@pytest.mark.parametrize("kind", metrics())
def test_the_iterates_are_those_of_python(cc, tmp_path, kind, scale):
    problem, chosen = logistic(), method(metrics()[kind], scale)
    status, result, x, points = run(compiled(cc, tmp_path, chosen), problem, START)
    due = visited(problem, START, chosen, HORIZON)
    assert status == HORIZON_OVER
    assert result.iterations == HORIZON
    assert len(points) == HORIZON  # the first iteration does not move
    for found, right in zip([points[0], *points], due, strict=True):
        assert np.linalg.norm(found - right) <= 1e-12 * np.linalg.norm(right)
    norms = [np.linalg.norm(problem.gradient(point)) for point in due]
    np.testing.assert_allclose(x, due[int(np.argmin(norms))], rtol=1e-11)
    assert result.grad_norm == pytest.approx(min(norms), rel=1e-9)


def test_a_solve_ends_where_pythons_does(cc, tmp_path):
    chosen = Method(Schedule.heavy_ball(0.2, 0.9, 900), "x", 1e-7, "instance", start=START)
    library, problem = compiled(cc, tmp_path, chosen), logistic()
    due = ode2opt.solve(problem, method=chosen, tol=1e-7, handover="none")
    first = np.zeros(COLUMNS)
    library.start(ctypes.c_size_t(COLUMNS), first.ctypes.data_as(VECTOR))
    np.testing.assert_array_equal(first, START)
    scale = chosen.scale_of(problem, first)
    status, result, x, _ = run(library, problem, first, scale=scale, tol=0.0)
    assert status == CONVERGED
    assert result.iterations == due.iterations
    assert result.scale == scale
    np.testing.assert_allclose(x, due.x, rtol=1e-10)
    status, result, *_ = run(library, problem, due.x, scale=scale, tol=1e-3)
    assert (status, result.iterations) == (CONVERGED, 0)


def test_what_goes_wrong_is_a_code(cc, tmp_path):
    chosen = method(metrics()["lowrank"], guard=Guard(blowup=2.0))
    library, problem = compiled(cc, tmp_path, chosen), logistic()
    status, _, x, points = run(library, problem, START, scale=1e-3)
    norms = [np.linalg.norm(problem.gradient(point)) for point in points]
    assert status == BLEW_UP
    assert norms[-1] > 2 * norms[0] >= max(norms[:-1])
    np.testing.assert_array_equal(x, points[int(np.argmin(norms))])
    assert run(library, problem, START, n=COLUMNS - 1)[0] == WRONG_N
    wrong = np.full(3, 7.0)
    assert library.start(ctypes.c_size_t(3), wrong.ctypes.data_as(VECTOR)) == WRONG_N
    assert run(library, problem, np.full(COLUMNS, np.nan))[0] == NOT_FINITE
    status, _, x, points = run(library, problem, START, stop_at=4)
    assert status == STOPPED
    assert len(points) == 4
    assert run(library, problem, START, scale=-1.0, product=False)[0] == WRONG_SCALE


def test_the_result_is_filled_in_whatever_happens(cc, tmp_path):
    library, problem = compiled(cc, tmp_path, method(metrics()["lowrank"])), logistic()
    first = pytest.approx(np.linalg.norm(problem.gradient(START)), rel=1e-12)
    for changed, status, norm in (
        ({"n": COLUMNS - 1}, WRONG_N, np.inf),
        ({"stop_at": 1}, STOPPED, np.inf),
        ({"scale": np.nan}, WRONG_SCALE, first),
        ({"scale": np.inf}, WRONG_SCALE, first),
    ):
        found, result, x, _ = run(library, problem, START, **changed)
        assert (found, result.iterations, result.grad_norm) == (status, 0, norm)
        np.testing.assert_array_equal(x, START)


def example(cc, folder, chosen, *options):
    """What the example program says, line by line, or why it does not compile."""
    files = to_c(chosen, "a5a")
    for name, text in files.items():
        (folder / name).write_text(text)
    assert list(files) == ["ode2opt_a5a.h", "ode2opt_a5a_example.c"]
    command = [cc, *STRICT, *options, *[*files][1:], "-o", "example", "-lm"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if made.returncode:
        return made.stderr.splitlines()
    said = subprocess.run([folder / "example"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


@pytest.mark.parametrize("kind", metrics())
def test_the_example_says_that_the_table_ended_and_who_solved_it(cc, tmp_path, kind):
    status, iterations, who, end = example(cc, tmp_path, method(metrics()[kind], "instance"))
    assert status == f"status {HORIZON_OVER}: the schedule ended"
    assert iterations.startswith(f"{HORIZON} iterations, gradient norm ")
    assert "gradient descent goes on" in who
    assert end.endswith(": solved")


def test_the_example_needs_nobody_else_where_the_table_converges(cc, tmp_path):
    chosen = Method(Schedule.heavy_ball(0.2, 0.9, 900), "x", 1e-7, "product")
    status, iterations = example(cc, tmp_path, chosen)
    assert status == f"status {CONVERGED}: the gradient norm reached the tolerance"
    norm = float(iterations.split("norm ")[1].split(",")[0])
    assert 0 < norm <= 1e-7


def test_a_header_for_another_n_or_without_infinities_does_not_compile(cc, tmp_path):
    chosen = method(metrics()["diagonal"], "instance")
    said = example(cc, tmp_path, chosen, f"-DCOLUMNS={COLUMNS + 1}")
    assert "ode2opt_a5a.h is for another number of variables" in " ".join(said)
    said = example(cc, tmp_path, chosen, "-ffast-math")
    assert "compile without -ffast-math" in " ".join(said)


def test_json_and_csv_have_every_number():
    chosen = method(metrics()["lowrank"], start=START)
    document = json.loads(to_json(chosen))
    assert document["horizon"] == HORIZON
    assert document["scale"] == "family"
    np.testing.assert_array_equal(document["arrays"]["metric.V"], chosen.metric.V)
    np.testing.assert_array_equal(document["arrays"]["start"], START)
    rows = list(csv.DictReader(to_csv(chosen).splitlines()))
    for key in "acd":
        np.testing.assert_array_equal(
            [float(row[key]) for row in rows], getattr(chosen.schedule, key)
        )
        np.testing.assert_array_equal(
            document["arrays"][f"schedule.{key}"], getattr(chosen.schedule, key)
        )
    assert [row["k"] for row in rows] == [str(k) for k in range(HORIZON)]


@pytest.mark.parametrize("form", [lambda m: to_c(m, "x"), to_json, to_csv])
def test_a_method_without_a_table_is_refused(form):
    with pytest.raises(InputError, match="no table: it is L-BFGS"):
        form(Method(None, "lpp", 1e-6, "family", 1.0))
