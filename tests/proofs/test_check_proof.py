"""The checker that anybody can copy: true bounds only, whatever the file says."""

import ast
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tampering import tampered

from ode2opt.base.errors import Ode2OptError
from ode2opt.proofs import chain, check_proof
from ode2opt.proofs.chain import worst_case
from ode2opt.proofs.exact import classical_proof, exact_proof, monitored_proof
from ode2opt.proofs.theorem import classical_rows

HALF = Fraction(1, 2)


def near_rows(N, seed=0):
    """Rows near OGM's, as fractions."""
    rng = np.random.default_rng(seed)
    rows = np.array(classical_rows("ogm", N), float) * (1 + 0.05 * rng.standard_normal((N, 3)))
    return [tuple(Fraction(float(x)) for x in row) for row in rows]


@pytest.fixture(scope="module")
def proofs():
    """Proofs of every kind."""
    return [
        classical_proof("nag", 6),
        classical_proof("ogm", 9),
        monitored_proof(7),
        exact_proof(near_rows(8), tail="ogm"),
        exact_proof(near_rows(8, 1), tail="nag"),
        exact_proof(near_rows(8, 2)),
        exact_proof(near_rows(6, 3), star="convex"),
        exact_proof(classical_rows("nag", 7), tail="nag", star="convex"),
    ]


def run(text, tmp_path):
    """Run a copy of the checker, alone in a folder, without any package to import."""
    shutil.copy(check_proof.__file__, tmp_path / "checker.py")
    (tmp_path / "proof.json").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", "-S", "checker.py", "proof.json"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_a_copy_runs_alone_and_says_the_theorem(tmp_path):
    done = run(json.dumps(classical_proof("ogm", 40).document), tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    for said in ("every L-smooth convex function", "every k >= 39", "at most 0.5 times Nesterov's",
                 "Proved in exact arithmetic"):  # fmt: skip
        assert said in done.stdout


def test_it_imports_the_standard_library_only():
    tree = ast.parse(Path(check_proof.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else
                     [alias.name for alias in node.names])
    }  # fmt: skip
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize(("name", "ratio"), [("nag", Fraction(1)), ("ogm", HALF)])
def test_the_classics_are_proved_without_any_rounding(name, ratio):
    proved = classical_proof(name, 25)
    assert (proved.tau, proved.ratio) == (HALF, ratio)


def test_the_monitored_method_is_proved_without_a_minimiser():
    """2/((k + 1)(k + 4)) after k steps, a little below Nesterov's 2/(k + 2)^2."""
    proved = monitored_proof(10)
    assert proved.tau == Fraction(2, 11 * 14)
    assert "no minimiser is needed" in proved.words


def chain_value(proof):
    """The best that neighbours' inequalities can prove for a proof's table and goal."""
    theta = None if proof.tail is None else proof.theta
    return worst_case(
        np.array(proof.rows, float), tail=proof.tail, star=proof.star, theta=theta
    ).tau


def test_exact_bounds_are_those_of_the_chain(proofs):
    for proved in proofs:
        best, own = chain_value(proved.proof), float(proved.tau)
        assert best * (1 - 1e-6) <= own
        assert own <= best * (1 + 1e-3) or "no minimiser is needed" in proved.words


def test_a_solver_that_almost_solves_costs_sharpness_and_no_truth(monkeypatch):
    """The exact proof decides what multipliers of three digits are worth."""
    rows = near_rows(8)
    best = exact_proof(rows, tail="ogm").tau
    monkeypatch.setattr(chain, "TOLERANCE", 1e-3)
    crude = exact_proof(rows, tail="ogm").tau
    assert best * Fraction(999999, 1000000) <= crude <= 2 * best


@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=pytest.mark.exhaustive)])
def test_no_tampered_proof_gives_a_false_bound(proofs, count):
    """It is refused in a sentence, or it proves a bound that the chain does not undercut."""
    rng = np.random.default_rng(count)
    accepted, refusals = 0, []
    for k in range(count):
        text = tampered(proofs[k % len(proofs)].document, rng)
        try:
            proof = check_proof.read(text)
            tau = check_proof.bound(proof)
        except check_proof.Refused as refusal:
            refusals.append(str(refusal))
            continue
        try:
            best = chain_value(proof)
        except Ode2OptError:  # the solver has no number to compare with
            assert tau > 1000
            continue
        assert float(tau) >= best * (1 - 1e-6) - 1e-9
        accepted += 1
    assert accepted > count / 20
    assert len(refusals) > count / 20
    assert max(map(len, refusals)) < 250


GOOD = classical_proof("nag", 2).document
BAD = {
    "no JSON": ("{", "not JSON"),
    "a list": ("[]", "not an object"),
    "nested without end": ("[" * 100_000, "not JSON"),
    "a field twice": (json.dumps(GOOD)[:-1] + ', "w": []}', "stands twice"),
    "a field more": (json.dumps(GOOD | {"tau": "0"}), "'tau' has no meaning"),
    "a bare number": (json.dumps(GOOD | {"theta": 2}), "not a fraction in quotes"),
    "a huge bare number": (json.dumps(GOOD)[:-1] + ', "x": ' + "9" * 10**6 + "}", "in quotes"),
    "not a number": ('{"w": NaN}', "not a fraction in quotes"),
    "megabytes of digits": (json.dumps(GOOD | {"theta": "9" * 10**7}), "at most 400 digits"),
    "a word": (json.dumps(GOOD | {"theta": "nan"}), "a fraction in quotes"),
    "an exponent": (json.dumps(GOOD | {"theta": "1e9"}), "a fraction in quotes"),
    "a zero denominator": (json.dumps(GOOD | {"theta": "1/0"}), "denominator 0"),
    "too many rows": (json.dumps(GOOD | {"rows": [["0", "1", "0"]] * 1001}), "1 to 1000 entries"),
    "no rows": (json.dumps(GOOD | {"rows": []}), "1 to 1000 entries"),
    "a short list": (json.dumps(GOOD | {"v": ["0"]}), "v has 1 entries where the rows ask for 2"),
    "a text as list": (json.dumps(GOOD | {"v": "00"}), "v is not a list"),
    "a row of two": (json.dumps(GOOD | {"rows": [["0", "1"]] * 2}), "three fractions"),
    "a negative multiplier": (json.dumps(GOOD | {"w": ["-1", "13/4"]}), "w_0 is negative"),
    "a negative s": (json.dumps(GOOD | {"v": ["5", "0"], "w": ["1", "25/4"]}), "s_1 is negative"),
    "r_0": (json.dumps(GOOD | {"r": ["1", "0"]}), "r_0 must be 0"),
    "values that stay": (json.dumps(GOOD | {"w": ["1", "1"]}), "do not cancel"),
    "theta below 1": (json.dumps(GOOD | {"theta": "1/2"}), "theta is below 1"),
    "an unknown tail": (json.dumps(GOOD | {"tail": "lbfgs"}), "it must be ogm or nag"),
    "a tail of a horizon": (json.dumps(GOOD | {"objective": "horizon"}), "must be null"),
    "ogm by convexity": (json.dumps(GOOD | {"tail": "ogm", "star": "convex"}), "no proof"),
    "a momentum at the start": (
        json.dumps(GOOD | {"rows": [["1", "1", "0"], ["1/4", "5/4", "1/4"]]}), "has a momentum",
    ),
    "steps that are too long": (
        json.dumps(GOOD | {"rows": [["0", "1", "0"], ["1/4", "9", "1/4"]]}), "proves? nothing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_a_sentence(case):
    text, said = BAD[case]
    with pytest.raises(check_proof.Refused, match=said) as refusal:
        check_proof.bound(check_proof.read(text))
    assert len(str(refusal.value)) < 250
    assert str(refusal.value).isprintable()


def test_numbers_that_grow_without_end_are_refused():
    """A table of huge numbers would otherwise take hours."""
    rows = [["0", "1", "0"], *([["9" * 300, "1", "0"]] * 30)]
    multipliers = {"w": ["1/32"] * 32, "v": ["0"] * 32, "r": ["0", *["1"] * 31]}
    about = {"objective": "horizon", "tail": None, "star": "smooth", "theta": None, "rows": rows}
    with pytest.raises(check_proof.Refused, match="grows beyond any use"):
        check_proof.bound(check_proof.ExactProof(about | multipliers))


def fractions_of_many_digits(count):
    """A proof of that many points whose multipliers have no common denominator of 400 digits."""
    rng = np.random.default_rng(0)
    below = [int("".join(map(str, rng.integers(1, 10, 400)))) for _ in range(count - 1)]
    rows = [["0", "1", "0"], *([["1/4", "5/4", "1/4"]] * (count - 2))]
    return json.dumps({
        "objective": "horizon", "tail": None, "star": "smooth", "theta": None, "rows": rows,
        "w": [*(f"1/{x}" for x in below), "1"], "v": ["0"] * count, "r": ["0"] * count,
    })  # fmt: skip


def test_multipliers_whose_sums_grow_are_refused_as_they_begin_to(tmp_path):
    """Their common denominator has 400 digits more at each point: a small file for hours."""
    done = run(fractions_of_many_digits(500), tmp_path)
    assert done.returncode == 1
    assert "The multipliers up to point 1 sum to more than 400 digits" in done.stderr


def kinds_of_long_proofs(K):
    rng = np.random.default_rng(K)
    near = np.array(classical_rows("nag", K), float) * (1 - 1e-3 * rng.random((K, 3)))
    rows = [tuple(Fraction(float(x)) for x in row) for row in near]
    return [
        classical_proof("nag", K), classical_proof("ogm", K), monitored_proof(K),
        exact_proof(rows), exact_proof(rows, tail="nag"), exact_proof(rows, star="convex"),
    ]  # fmt: skip


@pytest.mark.parametrize("K", [100, 160])
def test_proofs_that_the_package_writes_are_far_inside_the_bounds(K):
    """A tenth of the digits, in the file and in sums, and a tenth of the bytes."""
    for proved in kinds_of_long_proofs(K):
        proof, text = proved.proof, json.dumps(dict(proved.document), indent=1)
        fractions = [*proof.w, *proof.v, *proof.r, *(x for row in proof.rows for x in row)]
        w, v = np.array(proof.w, dtype=object), np.array(proof.v, dtype=object)
        for x in (*fractions, *np.cumsum(w - v), proof.theta):
            assert max(abs(x.numerator), x.denominator) < 10**40
        assert len(text) < check_proof.MOST_BYTES / 10
        assert check_proof.bound(check_proof.read(text)) == proved.tau


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "not text in UTF-8"),
        (lambda path: path.mkdir(), "cannot be read"),
        (lambda path: None, "cannot be read"),
        (lambda path: path.write_text("{}"), "'objective' is missing"),
    ],
)
def test_unreadable_files_end_with_1(write, said, tmp_path, capsys):
    write(tmp_path / "proof.json")
    assert check_proof.main([str(tmp_path / "proof.json")]) == 1
    assert said in capsys.readouterr().err


def test_a_file_that_is_too_long_is_not_read(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(check_proof, "MOST_BYTES", 10)
    (tmp_path / "proof.json").write_text("{" + " " * 20 + "}")
    assert check_proof.main([str(tmp_path / "proof.json")]) == 1
    assert "more than 10 bytes" in capsys.readouterr().err


def test_without_a_file_the_use_is_told(capsys):
    assert check_proof.main([]) == check_proof.main(["--help"]) == 2
    assert "Usage" in capsys.readouterr().err


def test_decimals_are_rounded_to_the_safe_side():
    """Bounds up, theta down: what is printed is never stronger than what is proved."""
    for x in (Fraction(1, 3), Fraction(2, 3), Fraction(10**9 + 1, 7), Fraction(1, 10**9 + 7)):
        assert x <= Fraction(check_proof._up(x)) <= x * Fraction(100001, 100000)
        assert 0 <= x - Fraction(check_proof._down(x)) <= Fraction(1, 10**6)


def test_forms_are_rounded_downwards():
    """What is taken off is positive semidefinite: all its leading minors are, exactly."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        entries = [Fraction(int(x), 3**70) for x in rng.integers(-(2**62), 2**62, 6)]
        a, b, c, d, e, g = entries
        form = [[a, b, c], [b, d, e], [c, e, g]]
        below = check_proof._rounded_down(form, 0)
        gap = [[form[i][j] - below[i][j] for j in range(3)] for i in range(3)]
        two = gap[0][0] * gap[1][1] - gap[0][1] ** 2
        three = (
            gap[0][0] * (gap[1][1] * gap[2][2] - gap[1][2] ** 2)
            - gap[0][1] * (gap[0][1] * gap[2][2] - gap[1][2] * gap[0][2])
            + gap[0][2] * (gap[0][1] * gap[1][2] - gap[1][1] * gap[0][2])
        )
        assert gap[0][0] > 0
        assert two > 0
        assert three > 0


def test_a_tail_by_convexity_needs_room_for_its_next_step():
    """One gradient step has no square of g to spare, which the step of theta by 1/2 costs."""
    document = {
        "objective": "tail", "tail": "nag", "star": "convex", "theta": "1",
        "rows": [["0", "1", "0"]], "w": ["1"], "v": ["0"], "r": ["0"],
    }  # fmt: skip
    with pytest.raises(check_proof.Refused, match="prove nothing"):
        check_proof.bound(check_proof.ExactProof(document))
    assert check_proof.bound(check_proof.ExactProof(document | {"star": "smooth"})) == HALF


def test_along_runs_the_statement_holds():
    """A table near OGM's with its tail, on random functions: the bound for every k >= M."""
    proved = exact_proof(near_rows(8), tail="ogm")
    from ode2opt.proofs.theorem import tail_rows

    rows = [*proved.proof.rows, *tail_rows("ogm", proved.proof.theta, 40)]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A, star, width = rng.standard_normal((9, 6)), rng.standard_normal(6), rng.uniform(0.05, 1)
        A /= np.linalg.norm(A, 2)
        huber = lambda r, c=width: np.where(abs(r) <= c, r**2 / 2, c * abs(r) - c**2 / 2)  # noqa: E731
        y = before = np.zeros(6)
        g_before = np.zeros(6)
        for k, (m, p, q) in enumerate(np.array(rows, float)):
            g = A.T @ np.clip(A @ (y - star), -width, width)
            if k >= 7:
                theta = float(proved.proof.theta) + (k - 7) / 2
                bound = float(proved.tau) * (star @ star) / (2 * theta**2)
                assert huber(A @ (y - g - star)).sum() <= bound
            y, before, g_before = y + m * (y - before) - p * g + q * g_before, y, g
