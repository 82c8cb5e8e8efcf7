"""The commands as a user runs them."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
import sklearn.datasets
from sklearn.linear_model import LogisticRegression
from support import one_sentence

from ode2opt import Memory
from ode2opt.problems import DATASETS

FIELDS = {
    "measure_mean", "measure_std", "complexity_mean", "complexity_std", "complexity_max",
    "oracle_calls_mean", "seconds_mean", "reached", "diverged", "statistical",
}  # fmt: skip


def test_bench_prints_one_json_document(run_cli):
    code, out, err = run_cli(
        "bench", "logistic", "digits", "--methods", "gd,lbfgs", "--instances", 2, "--max-iter", 40,
        "--jobs", 1, "--json", "-",
    )  # fmt: skip
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert set(document) == {
        "problem", "dataset", "split", "instances", "size", "tol", "max_iter", "seed", "methods",
    }  # fmt: skip
    assert list(document["methods"]) == ["gd", "lbfgs"]
    assert set(document["methods"]["gd"]) >= FIELDS
    assert (document["instances"], document["size"], document["split"]) == (2, 512, "paper")


def test_bench_shows_a_table_and_writes_json_to_a_file(run_cli, tmp_path):
    file = tmp_path / "bench.json"
    code, out, _ = run_cli(
        "bench", "lpp", "breast_cancer", "--methods", "nag", "--instances", 2, "--size", 50,
        "--p", 6, "--l2", 0.1, "--split", "shuffled", "--jobs", 1, "--json", file,
    )  # fmt: skip
    assert code == 0
    assert "nag" in out
    assert "complexity" in out
    assert "with confidence 95% (2 fresh problems)" in " ".join(out.split())
    assert json.loads(file.read_text())["split"] == "shuffled"


def test_bench_tells_which_constants_were_chosen(run_cli, tmp_path):
    line = [
        "bench", "logistic", "digits", "--methods", "nag-tuned,lbfgs", "--instances", 1,
        "--jobs", 1, "--size", 60, "--json",
    ]  # fmt: skip
    file = tmp_path / "bench.json"
    code, out, _ = run_cli(*line, file)
    document = json.loads(file.read_text())
    found = document["tuned"]["nag-tuned"]
    assert (code, list(document["tuned"]), list(document["methods"])) == (
        0, ["nag-tuned"], ["nag-tuned", "lbfgs"],
    )  # fmt: skip
    assert f"nag-tuned: C = {found['C']:g}, the best of 7 choices on 2 training problems" in out


def test_bench_says_which_methods_take_no_relay(run_cli, tmp_path):
    file = tmp_path / "bench.json"
    code, out, _ = run_cli(
        "bench", "logistic", "digits", "--methods", "eigac-c4,lbfgs,auto", "--instances", 1,
        "--max-iter", 20, "--jobs", 1, "--handover", "relay", "--json", file,
    )  # fmt: skip
    assert code == 0
    assert "The relay is for EIGAC with a table; run as they are: lbfgs, auto." in out
    assert json.loads(file.read_text())["as_they_are"] == ["lbfgs", "auto"]


def test_bench_takes_a_users_file(run_cli, tmp_path, rng):
    np.savez(tmp_path / "mine.npz", A=rng.standard_normal((80, 3)), b=rng.standard_normal(80))
    code, out, _ = run_cli(
        "bench", "leastsquares", tmp_path / "mine.npz", "--methods", "nag", "--instances", 2,
        "--jobs", 1, "--json", "-",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["methods"]["nag"]["reached"] == 2


@pytest.fixture(scope="module")
def classification():
    return sklearn.datasets.make_classification(300, 8, flip_y=0.2, random_state=0)


@pytest.mark.parametrize("form", ["svm", "csv"])
def test_solve_finds_scikit_learns_coefficients(run_cli, tmp_path, classification, form):
    X, y = classification
    file, solution = tmp_path / f"data.{form}", tmp_path / "solution.npz"
    if form == "svm":
        sklearn.datasets.dump_svmlight_file(X, y, str(file))
    else:
        names = ",".join(f"x{j}" for j in range(8))
        np.savetxt(
            file, np.column_stack([X, y]), "%.17g", ",", header=names + ",target", comments=""
        )
    C = 0.5
    reference = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, y)
    code, out, _ = run_cli(
        "solve", file, "--problem", "logistic", "--l2", 1 / (C * len(y)), "--tol", 1e-8,
        "--out", solution, "--json", "-",
    )  # fmt: skip
    assert code == 0
    assert set(json.loads(out)) == {
        "status", "success", "fun", "grad_norm", "iterations", "oracle_calls", "seconds",
        "handovers", "bound", "bound_from", "quality",
    }  # fmt: skip
    np.testing.assert_allclose(np.load(solution)["x"], reference.coef_[0], atol=1e-4)


@pytest.mark.parametrize("scaling", [[], ["--scale-columns"]])
def test_solve_fits_an_intercept(run_cli, tmp_path, classification, scaling):
    X, y = classification
    file, solution = tmp_path / "data.npz", tmp_path / "solution.npz"
    np.savez(file, A=3 * X + 1, b=y)
    reference = LogisticRegression(C=1e6, tol=1e-10, max_iter=10_000).fit(3 * X + 1, y)
    code, _, _ = run_cli(
        "solve", file, "--problem", "logistic", "--intercept", "--tol", 1e-8, *scaling,
        "--out", solution,
    )  # fmt: skip
    assert code == 0
    x = np.load(solution)["x"]  # some columns are sums of others: scores are unique, x is not
    scores = (3 * X + 1) @ x[:-1] + x[-1]
    np.testing.assert_allclose(scores, reference.decision_function(3 * X + 1), atol=1e-3)


def test_solve_takes_weights_from_a_column(run_cli, tmp_path):
    rows = [
        ("a", 1.0, 2),
        ("b", 2.0, 1),
        ("a", 3.0, 1),
        ("c", 0.5, 3),
        ("b", 1.5, 2),
        ("c", 2.5, 1),
    ]
    weighted, repeated = tmp_path / "weighted.csv", tmp_path / "repeated.csv"
    weighted.write_text("x,w,y\n" + "".join(f"{x},{w},{y}\n" for y, x, w in rows))
    repeated.write_text("x,y\n" + "".join(f"{x},{y}\n" * w for y, x, w in rows))
    model = ["--problem", "softmax", "--l2", 0.1, "--tol", 1e-10]
    _, told, _ = run_cli("solve", weighted, *model, "--weights", "w", "--out", tmp_path / "one.npz")
    run_cli("solve", repeated, *model, "--out", tmp_path / "other.npz")
    one, other = (np.load(tmp_path / f"{name}.npz")["x"] for name in ("one", "other"))
    assert one.shape == (3,)
    np.testing.assert_allclose(one, other, atol=1e-8)
    assert "0 is 'a', 1 is 'b', 2 is 'c'" in told


def test_words_are_shown_with_what_became_1(run_cli, tmp_path):
    file = tmp_path / "words.csv"
    file.write_text("x,y\n" + "".join(f"{i},{'yes' if i % 3 else 'no'}\n" for i in range(40)))
    for problem in ("logistic", "squaredhinge"):
        _, told, _ = run_cli("solve", file, "--problem", problem, "--l2", 0.1)
        assert "The label 'yes' is 1, 'no' is 0." in told
    _, told, _ = run_cli("solve", tmp_path / "w*.csv", "--problem", "logistic", "--l2", 0.1)
    assert "The label 'yes' is 1, 'no' is 0." in told
    options = ["--methods", "lbfgs", "--instances", 2, "--l2", 0.1, "--jobs", 1]
    _, told, _ = run_cli("bench", "logistic", file, *options)
    assert "The label 'yes' is 1" in told
    _, told, _ = run_cli("solve", file, "--problem", "logistic", "--l2", 0.1, "--json", "-")
    assert json.loads(told)["success"]


def test_solve_keeps_what_it_learns_in_a_file(run_cli, refused, tmp_path, classification):
    A, y = classification
    np.savez(tmp_path / "data.npz", A=A, b=y)
    arguments = ("solve", tmp_path / "data.npz", "--problem", "logistic", "--l2", 0.1)
    memory = tmp_path / "memory.safetensors"
    calls = []
    for _ in range(2):
        code, out, _ = run_cli(*arguments, "--memory", memory, "--json", "-")
        assert code == 0
        calls.append(json.loads(out)["oracle_calls"])
    assert calls[1] == 1 < calls[0]
    assert Memory.load(memory).solves == 2
    refused("memory", *arguments, "--memory", tmp_path / "data.npz")
    refused("auto", *arguments, "--memory", memory, "--method", "newton")


def test_solve_that_does_not_converge_keeps_its_result_and_exits_1(
    run_cli, tmp_path, classification
):
    np.savez(tmp_path / "data.npz", A=classification[0], b=classification[1])
    solution = tmp_path / "solution.npz"
    code, out, err = run_cli(
        "solve", tmp_path / "data.npz", "--problem", "logistic", "--max-iter", 3, "--out", solution,
    )  # fmt: skip
    assert code == 1
    assert "iteration limit" in err
    assert "grad norm" in out
    assert np.load(solution)["status"] == "max_iter"


def test_scaled_columns_give_the_solution_of_the_columns_as_they_are(run_cli, tmp_path, rng):
    A, solution = rng.standard_normal((60, 4)) * np.logspace(3, -3, 4), tmp_path / "x.npz"
    A[:, 3] = 0.0
    b = rng.standard_normal(60)
    np.savez(tmp_path / "data.npz", A=A, b=b)
    code, _, _ = run_cli(
        "solve", tmp_path / "data.npz", "--problem", "leastsquares", "--scale-columns",
        "--tol", 1e-10, "--out", solution,
    )  # fmt: skip
    assert code == 0
    expected = np.linalg.lstsq(A[:, :3], b)[0]
    np.testing.assert_allclose(np.load(solution)["x"][:3], expected, rtol=1e-6)


def test_certify_says_it_in_words_json_and_a_figure(run_cli, tmp_path):
    figure = tmp_path / "certificate.png"
    arguments = ("certify", "eigac-c1", "logistic", "digits", "--instances", 2, "--max-iter", 100)
    code, out, _ = run_cli(*arguments, "--figure", figure)
    assert code == 0
    said = " ".join(out.split())
    assert "Flow: Theorem 1 holds" in said
    assert "no minimiser" in said
    assert "linearly stable along 2 instances" in said
    assert figure.read_bytes().startswith(b"\x89PNG")
    code, out, _ = run_cli(*arguments, "--worst-case", 2, "--estimator", "l0l1", "--json", "-")
    document = json.loads(out)
    assert set(document) >= {
        "method", "problem", "dataset", "instances", "levels", "margins", "worst_case", "bound",
        "proof", "kappa", "lam", "growth",
    }  # fmt: skip
    assert set(document["levels"]) == {"flow", "linear", "proved", "guarded"}
    assert set(document["margins"]) == {"convergence", "stability", "linear"}
    assert set(document["worst_case"]) == {"N", "value"}
    assert document["worst_case"]["N"] == 2


def test_a_refused_certificate_exits_1(run_cli):
    options = ("leastsquares", "digits", "--instances", 1, "--max-iter", 20, "--json", "-")
    code, out, err = run_cli("certify", "eigac-c2", *options)
    assert code == 1
    document = json.loads(out)
    assert (document["levels"]["proved"], document["proof"]) == (False, None)
    assert document["worst_case"]["N"] == 20  # all that there are
    assert document["worst_case"]["value"] > 7  # PEPit: 7.23
    assert "refused" in err


@pytest.mark.parametrize("method", ["nag", "gd"])
def test_a_proved_method_is_granted(run_cli, method):
    code, out, err = run_cli(
        "certify", method, "leastsquares", "digits", "--instances", 1, "--max-iter", 20,
        "--json", "-",
    )  # fmt: skip
    document = json.loads(out)
    assert code == 0, err
    assert (document["levels"]["proved"], document["proof"]) == (True, "theorem")
    assert "For every L-smooth convex function" in document["bound"]


def test_what_is_written_keeps_links_and_ordinary_rights(run_cli, tmp_path, classification):
    np.savez(tmp_path / "data.npz", A=classification[0], b=classification[1])
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    arguments = ("solve", tmp_path / "data.npz", "--problem", "logistic", "--l2", 0.1)
    assert run_cli(*arguments, "--json", link, "--overwrite")[0] == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["success"]
    plain = write(tmp_path / "plain", "")
    assert real.stat().st_mode == plain.stat().st_mode
    assert run_cli(*arguments, "--json", "/dev/null")[0] == 0
    assert not os.path.isfile("/dev/null")
    code, _, err = run_cli(*arguments, "--json", real, "--out", real)
    assert (code, one_sentence(err)) == (2, True)


def test_handovers_that_overflowed_are_still_json(run_cli, tmp_path, rng):
    np.savez(tmp_path / "data.npz", A=rng.standard_normal((40, 3)), b=50 * rng.standard_normal(40))
    options = ("--problem", "lpp", "--p", 12, "--max-iter", 50, "--json", "-")
    code, out, _ = run_cli("solve", tmp_path / "data.npz", *options)
    assert (code, json.loads(out)["success"]) == (1, False)


def test_handovers_are_told_in_words(run_cli, tmp_path, classification):
    np.savez(tmp_path / "data.npz", A=classification[0], b=classification[1])
    options = ("--problem", "logistic", "--l2", 0.1, "--tol", 1e-12, "--method", "eigac-c2")
    code, out, _ = run_cli("solve", tmp_path / "data.npz", *options)
    assert (code, "to lbfgs at iteration" in out, "{" in out) == (0, True, False)


def test_info_describes_a_regression_file(run_cli, tmp_path):
    text = "a,y\n" + "\n".join(f"{i},{i / 7}" for i in range(10)) + "\n"
    code, out, _ = run_cli("data", "info", write(tmp_path / "reg.csv", text))
    assert (code, "rows" in out) == (0, True)


def test_data_commands(run_cli):
    code, out, _ = run_cli("data", "list", "--json", "-")
    assert code == 0
    assert [row["name"] for row in json.loads(out)] == list(DATASETS)
    code, out, _ = run_cli("data", "info", "digits")
    assert code == 0
    assert "1078" in out
    code, out, _ = run_cli("data", "fetch", "digits")
    assert (code, "digits is ready" in out) == (0, True)


def test_demo_solves_remembers_learns_and_reports(run_cli, monkeypatch, tmp_path):
    monkeypatch.setattr("ode2opt.study.demo.INSTANCES", 2)
    monkeypatch.setattr("ode2opt.study.demo.STEPS", 2)
    code, out, _ = run_cli("demo", "--out", tmp_path / "demo")
    assert code == 0
    assert [line[:2] for line in out.splitlines() if line[:1].isdigit()] == ["1.", "2.", "3."]
    assert all(name in out for name in ("nag", "lbfgs-scipy", "auto", "memory", "learned"))
    assert {path.name for path in (tmp_path / "demo").iterdir()} == {
        "method.safetensors", "report.html",
    }  # fmt: skip


def write(path, text):
    path.write_text(text)
    return path


WRONG = {
    "unknown problem": (("bench", "logit", "digits"), 2, "did you mean 'logistic'"),
    "unknown dataset": (("bench", "logistic", "a6a"), 2, "did you mean 'a5a'"),
    "unknown method": (("bench", "logistic", "digits", "--methods", "lbgs"), 2, "'lbfgs'"),
    "no instances": (("bench", "logistic", "digits", "--instances", "0"), 2, "instances is 0"),
    "odd p": (("bench", "lpp", "digits", "--p", "3", "--jobs", "1"), 2, "p is 3"),
    "p without lpp": (("bench", "logistic", "digits", "--p", "6"), 2, "--p 6 is for lpp"),
    "bad confidence": (
        ("bench", "logistic", "digits", "--confidence", "95"), 2, "confidence is 95: it must be",
    ),
    "bad tol": (("bench", "logistic", "digits", "--tol", "-1"), 2, "tol is -1"),
    "tol below reach": (
        ("bench", "logistic", "digits", "--tol", "1e-18", "--jobs", "1"), 2, "below what float64",
    ),
    "too large": (("bench", "logistic", "digits", "--size", "9999"), 2, "9999 rows cannot"),
    "no folder": (("data", "list", "--json", "/nowhere/x.json"), 2, "no folder /nowhere"),
    "no file": (("solve", "/nowhere/x.csv", "--problem", "logistic"), 2, "There is no file"),
    "certify lbfgs": (("certify", "lbfgs", "logistic", "digits"), 2, "no schedule"),
    "certify nothing": (
        ("certify", "eigac-c1", "logistic", "digits", "--instances", "0"), 2, "instances is 0",
    ),
    "figure form": (
        ("certify", "nag", "logistic", "digits", "--figure", "figure.xyz"), 2, "written as",
    ),
    "long worst case": (
        ("certify", "nag", "logistic", "digits", "--instances", "1", "--max-iter", "300",
         "--worst-case", "202"), 2, "1 to 201",
    ),
    "brackets": (
        ("solve", "no[/foo].csv", "--problem", "logistic"), 2,
        "Error: No file matches no[/foo].csv: the pattern must name at least one.",
    ),
    "other brackets": (("solve", "no[red].csv", "--problem", "logistic"), 2, "no[red].csv:"),
    "info of nothing": (("data", "info", "digit"), 2, "did you mean 'digits'"),
    "fetch of a file": (("data", "fetch", "x.csv"), 2, "Unknown dataset 'x.csv'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_use_is_one_sentence(run_cli, case):
    arguments, expected, said = WRONG[case]
    code, out, err = run_cli(*arguments)
    assert (code, out) == (expected, "")
    assert said in err
    assert one_sentence(err)


BAD_FILES = {
    "nan.csv": ("a,b,y\n1,2,0\n1,nan,1\n", "line 3, column 'b' is missing: --missing drop"),
    "inf.svm": ("1 1:2\n0 1:inf 2:1\n", "line 2, column 0 (counted from 0) is inf"),
    "one.csv": ("a,b,y\n1,2,1\n1,3,1\n", "two label values, but has only 1.0"),
    "three.csv": ("a,b,y\n1,2,1\n1,3,2\n1,3,3\n", "has 3 (1.0, 2.0, 3.0)"),
    "rows.csv": ("a,b,y\n", "a header but no rows"),
    "cut.svm": ("1 1:2\n0 1:3 2", "line 2 has '2'"),
    "not.parquet": ("a,b\n1,2\n", "not a Parquet file"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_one_sentence(refused, tmp_path, name):
    text, said = BAD_FILES[name]
    refused(said, "solve", write(tmp_path / name, text), "--problem", "logistic")


def test_no_network_and_no_data_exits_1(run_cli, no_network):
    code, _, err = run_cli("data", "fetch", "a5a")
    assert code == 1
    assert "set ODE2OPT_DATA" in err
    assert one_sentence(err)


def test_a_traceback_comes_with_debug_only(run_cli):
    code, _, err = run_cli("bench", "logit", "digits", "--debug")
    assert (code, "Traceback" in err) == (2, True)


def test_a_full_disk_leaves_the_old_file(run_cli, tmp_path, monkeypatch, classification):
    np.savez(tmp_path / "data.npz", A=classification[0], b=classification[1])
    solution = write(tmp_path / "solution.npz", "earned before")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez", full)
    code, _, err = run_cli(
        "solve", tmp_path / "data.npz", "--problem", "logistic", "--l2", 0.1, "--out", solution,
        "--overwrite",
    )  # fmt: skip
    assert code == 1
    assert "No space left on device" in err
    assert solution.read_text() == "earned before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.npz", "solution.npz"]


TELLING = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background
from ode2opt.cli import main
from ode2opt.study import benchmark

def telling(family, settings, advance, pool, run=benchmark.run_benchmark):
    told = lambda *given: (advance(*given), print("one", flush=True))
    return run(family, settings, told, pool)

benchmark.run_benchmark = telling
main()
"""


def test_the_installed_command_runs_and_ctrl_c_keeps_what_is_done(tmp_path):
    file = tmp_path / "bench.json"
    command = [
        sys.executable, "-c", TELLING, "bench", "logistic", "digits",
        "--methods", "gd", "--instances", "100000", "--json", str(file),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        done = [process.stdout.readline() for _ in range(8)]  # both workers are at work
        assert done == ["one\n"] * 8
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1, err
    assert "Interrupted after" in err
    assert "Traceback" not in err
    assert 0 < json.loads(file.read_text())["instances"] < 100_000


def test_import_needs_no_jax():
    code = "import sys, ode2opt; print(sorted({'jax', 'torch', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
