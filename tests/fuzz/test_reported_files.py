"""Files that once broke a promise, each as it was reported."""

import gzip
import json
import pickle
import struct
import time
import tracemalloc
import zipfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from fuzz.mutations import Planted
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from ode2opt import Memory, Method, Ode2OptError
from ode2opt.base import terminal
from ode2opt.base.terminal import facts_table
from ode2opt.data import sources
from ode2opt.learning.config import read_config
from ode2opt.learning.run_directory import Position, RunDirectory
from ode2opt.paper import DefaultCoefficients
from ode2opt.problems import load_dataset, read_table


def method_file(path, change=lambda about: None, arrays=None, raw=()):
    """A method's file, its description changed, other arrays in it, raw JSON in places of text."""
    Method(DefaultCoefficients(2.0).schedule(30), "logistic", 1e-3).save(path)
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["ode2opt"])
    change(about)
    text = json.dumps(about)
    for old, new in raw:
        text = text.replace(json.dumps(old), new)
    save_file(load_file(path) | (arrays or {}), path, metadata={"ode2opt": text})
    return path


def refusal(call, *arguments):
    """The sentence of a refusal, which must be one line of at most 300 printable characters."""
    with pytest.raises(Ode2OptError) as caught:
        call(*arguments)
    said = str(caught.value)
    assert len(said) <= 300
    assert said.isprintable()
    return said


# The method file -----------------------------------------------------------------------------


def test_a_wide_metric_does_not_fill_the_memory(tmp_path):
    arrays = {
        "metric.scale": np.ones(1), "metric.stretch": np.zeros(20_000),
        "metric.V": np.ones((1, 20_000)),
    }  # fmt: skip
    path = method_file(tmp_path / "m", lambda about: about.update(metric="lowrank"), arrays)
    tracemalloc.start()
    try:
        assert "20000 directions in 1 variables" in refusal(Method.load, path)
        assert tracemalloc.get_traced_memory()[1] < 10 * path.stat().st_size + 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("setting", ["patience", "blowup", "power"])
def test_a_guards_number_that_is_a_text_is_refused_at_load(setting, tmp_path):
    path = method_file(tmp_path / "m", lambda about: about["guard"].update({setting: "5"}))
    assert f"guard {setting} is '5', not a" in refusal(Method.load, path)


@pytest.mark.parametrize("digits", [400, 4300, 5000])
@pytest.mark.parametrize("field", ["tol", "horizon", "version", "family", "scale"])
def test_integers_of_thousands_of_digits_are_refused_in_a_sentence(digits, field, tmp_path):
    path = method_file(
        tmp_path / "m",
        lambda about: about.update({field: "@"}),
        raw=[("@", "1" + "0" * (digits - 1))],
    )
    refusal(Method.load, path)


def retyped(path, dtype, count):
    """Say of the float64 arrays of a file that they are of another kind."""
    data = path.read_bytes()
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    sizes = {"BF16": 4 * count, "F4": 16 * count}
    there = f'"{dtype}","shape":[{sizes.get(dtype, 8 * count)}]'
    spoiled = header.replace(f'"F64","shape":[{count}]'.encode(), there.encode())
    assert spoiled != header
    path.write_bytes(len(spoiled).to_bytes(8, "little") + spoiled + data[8 + len(header) :])


@pytest.mark.parametrize("dtype", ["F8_E4M3", "F8_E5M2", "BF16", "F4"])
def test_numbers_that_numpy_does_not_have_are_refused_in_a_sentence(dtype, tmp_path):
    path = method_file(tmp_path / "m")
    retyped(path, dtype, 30)
    refusal(Method.load, path)
    run, like = RunDirectory(tmp_path), [np.ones(4)]
    run.checkpoints.mkdir()
    run.metrics.write_bytes(b"")
    run.save(Position(), like)
    (path,) = run.checkpoints.iterdir()
    retyped(path, dtype, 4)
    refusal(run.load, lambda position: like)


def test_a_long_message_is_cut_and_what_a_terminal_obeys_is_spelled_out(tmp_path):
    for odd in ("x" * 100_000, "\x1b]0;owned\x07\x1b[2J", "\u202egnp\u2066"):
        path = method_file(tmp_path / "m", lambda about, odd=odd: about.update(scale=odd))
        said = refusal(Method.load, path)
        assert said.startswith(str(path)[:200])
        refusal(Method.load, method_file(tmp_path / "m", lambda a, odd=odd: a.update({odd: 1})))


def test_nesting_and_keys_that_come_twice_are_refused(tmp_path):
    for raw in ("[" * 50_000, "[" * 900 + "]" * 900, '{"a":' * 40 + "1" + "}" * 40):
        path = method_file(tmp_path / "m", lambda a: a.update(statistics={"a": "@"}),
                           raw=[("@", raw)])  # fmt: skip
        refusal(Method.load, path)
    path = method_file(tmp_path / "m", raw=[("family", '"tol": 1.0, "family"')])
    assert "it has 'tol' twice" in refusal(Method.load, path)


def test_what_a_memory_holds_is_checked_as_a_methods_fields_are(tmp_path):
    Memory().save(tmp_path / "k")
    with safe_open(tmp_path / "k", framework="numpy") as file:
        about = json.loads(file.metadata()["ode2opt-memory"])
    for change in ({"empty": "no"}, {"empty": 0}, {"n": "6"}, {"empty": None}):
        save_file({}, tmp_path / "k", metadata={"ode2opt-memory": json.dumps(about | change)})
        refusal(Memory.load, tmp_path / "k")


def test_text_that_is_no_unicode_is_refused(tmp_path):
    words = np.full(3, 0x44332211, dtype=np.uint32).view("<U1")
    np.savez(tmp_path / "t.npz", A=np.ones((3, 1)), b=words)
    assert "not a readable NPZ" in refusal(read_table, tmp_path / "t.npz")


# Configuration and checkpoint ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["null", "[]", "3", "[" * 100_000, '{"options": null}', '{"options": [1]}', "\xff",
     '{"options": {"tol": ' + "9" * 5000 + "}}", '{"options": {"steps": "many"}}', '{"a": NaN}'],
)  # fmt: skip
def test_a_config_of_the_wrong_type_is_refused_in_a_sentence(text, tmp_path):
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    assert "config.json is " in refusal(read_config, tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"step": "10"}, {"best": [1]}, {"best": {"worst": 3}}, {"penalty": None}, {"over": 1},
     {"metrics_bytes": -1}, {"step": 1e400}, {"more": 1}],
)  # fmt: skip
def test_a_checkpoint_of_the_wrong_type_is_refused_in_a_sentence(change, tmp_path):
    run, like = RunDirectory(tmp_path), [np.ones(2)]
    run.checkpoints.mkdir()
    run.metrics.write_bytes(b"")
    run.save(Position(step=10, done=10), like)
    assert run.load(lambda position: like)[0].step == 10
    (path,) = run.checkpoints.iterdir()
    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["position"])
    for arrays in ({"0000": np.ones(2)}, {"0000": np.ones(2, np.float32)}, {"0000": np.ones(3)}):
        text = json.dumps(about | (change if arrays["0000"].dtype == np.float64 else {}))
        save_file(arrays, path, metadata={"position": text})
        assert "cannot be read" in refusal(run.load, lambda position: like)


# Data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["²", "--5", "-", "9" * 5000, "٣"])
def test_a_label_that_looks_like_a_number_is_no_column(label, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,2,0\n3,4,1\n")
    assert "has no column" in refusal(lambda: read_table(path, label=label))


@pytest.mark.parametrize("token", ["²:3", "1:1 ²:3", "9" * 5000 + ":1", "1:1 " + "9" * 30 + ":1"])
def test_odd_digits_in_libsvm_text_are_named(token, tmp_path):
    path = tmp_path / "t.svm"
    path.write_text(f"1 1:1\n0 {token}\n")
    assert "line 2" in refusal(read_table, path)


def test_a_damaged_gz_is_told(tmp_path, rng):
    text = "".join(f"{i % 2} 1:{i} 2:{rng.random()}\n" for i in range(300)).encode()
    whole = gzip.compress(text)
    for name in ("t.svm.gz", "t.csv.gz"):
        for at in range(20, len(whole) - 8, 150):
            damaged = bytearray(whole)
            damaged[at] ^= 0x55
            (tmp_path / name).write_bytes(damaged)
            refusal(read_table, tmp_path / name)


def test_text_that_unpacks_without_end_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"0" * 25_000_000))
    assert "unpacks to more than 100 times its size" in refusal(read_table, path)


def test_an_npz_that_is_no_zip_of_arrays_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.npz"
    np.save(tmp_path / "t.npy", np.ones(3))
    payload = np.array([Planted()], dtype=object)
    for content in (
        (tmp_path / "t.npy").read_bytes(),
        pickle.dumps(Planted()),
        b"PK\5\6" + b"\0" * 18,
    ):
        path.write_bytes(content)
        refusal(read_table, path)
    np.savez(path, A=payload, b=payload)
    refusal(read_table, path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("A", "b.npy"):
            archive.writestr(name, "no array")
    refusal(read_table, path)
    assert not (tmp_path / Planted.mark).exists()


def header_of(shape, descr, version=b"\1\0"):
    """An NPY file that ends after its header."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    width = "<H" if version == b"\1\0" else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, len(text)) + text


def saved_npz(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


HUGE = {
    "texts without characters": ((2**28,), "<U0"),
    "bytes of no length": ((2**28,), "|S0"),
    "rows without columns": ((2**28, 0), "<f8"),
    "columns without rows": ((0, 2**40), "<f8"),
    "numbers that are not there": ((2**27,), "<f8"),
    "more than any number": ((10**30, 10**30), "<f8"),
    "long texts": ((1,), f"<U{2**27}"),
}


@pytest.mark.parametrize("name", ["A", "b"])
@pytest.mark.parametrize("case", HUGE)
def test_an_npz_that_declares_more_than_it_can_hold_is_refused_before_anything_is_made(
    case, name, tmp_path
):
    arrays = {"A": header_of((0, 1), "<f8"), "b": header_of((0,), "<f8")}
    saved_npz(tmp_path / "t.npz", **(arrays | {name: header_of(*HUGE[case])}))
    tracemalloc.start()
    try:
        assert "more than 100 times its size" in refusal(read_table, tmp_path / "t.npz")
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_rows_that_only_a_shape_names_are_refused_before_they_are_made(tmp_path):
    """A matrix by columns has no bytes for its rows; one by rows would."""
    parts = {"data": [1.0], "indices": [0], "indptr": [0, 1], "y": [1], "format": "csc"}
    np.savez(tmp_path / "t.npz", shape=[2**28, 1], **parts)
    assert "more than 100 times its size" in refusal(read_table, tmp_path / "t.npz")


def test_archives_in_archives_long_headers_and_objects_are_refused(tmp_path):
    path, inner = tmp_path / "t.npz", tmp_path / "inner.npz"
    saved_npz(inner, A=bytes(2**26))
    good = header_of((0,), "<f8")
    for bad, said in (
        (inner.read_bytes(), "not a readable NPZ archive"),
        (bytes(2**26), "unpacks to more than 100 times its size"),
        (b"\x93NUMPY\2\0" + b"\xff" * 4, "not a readable NPZ archive"),
        (header_of((2,), "|O"), "not a readable NPZ archive"),
        (header_of((2,), [("x", "<f8")]), "not a readable NPZ archive"),
        (header_of((2,), "<f8", b"\3\0"), "not a readable NPZ archive"),
    ):
        saved_npz(path, A=bad, b=good)
        assert said in refusal(read_table, path)


@pytest.mark.parametrize(
    "form",
    [np.array(["csr", "csc"]), np.array([]), np.array(b"\xff"), np.array(3), np.array(["q"])],
)
def test_odd_format_arrays_are_told(form, tmp_path):
    path = tmp_path / "t.npz"
    parts = {"data": [1.0], "indices": [0], "indptr": [0, 1], "shape": [1, 1]}
    np.savez(path, y=[1], format=form, **parts)
    assert "save it as CSR or CSC" in refusal(read_table, path)


def test_a_sparse_matrix_of_few_bytes_and_many_columns_is_refused(tmp_path):
    parts = {"data": [1.0], "indices": [0], "indptr": [0, 1], "y": [1]}
    np.savez(tmp_path / "t.npz", shape=[1, 10**12], **parts)
    assert "more columns than can be meant" in refusal(read_table, tmp_path / "t.npz")


@pytest.mark.parametrize(
    "labels", [[[1], [2]], [{"a": 1}] * 2, [None, None], [b"\xff", b"a"], ["a", None]]
)
def test_nested_and_missing_parquet_labels_are_told(labels, tmp_path):
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "y": labels}), path)
    assert "label" in refusal(read_table, path)


def test_missing_truth_values_of_a_parquet_feature_are_missing(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"a": [True, None, False], "y": [0, 1, 1]}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    assert "row 2, column 'a' is missing" in refusal(read_table, path)
    np.testing.assert_array_equal(read_table(path, missing="mean").A[:, 0], [1, 0.5, 0])


def test_a_long_word_among_labels_costs_its_own_length_only(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "1,u\n" * 20_000 + "1," + "v" * 50_000 + "\n")
    tracemalloc.start()
    try:
        found = read_table(path)
        assert tracemalloc.get_traced_memory()[1] < 20e6  # 4 GB as an array of such words
    finally:
        tracemalloc.stop()
    assert set(found.labels) == {"u", "v" * 50_000}


# Trust ---------------------------------------------------------------------------------------


def covtype_text(count):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 300, (count, 54)), rng.integers(1, 8, count)])
    return rows, gzip.compress("\n".join(",".join(map(str, row)) for row in rows).encode(), 1)


def test_a_planted_pickle_in_the_place_of_covtype_is_not_run(tmp_path, monkeypatch, no_network):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "COVTYPE_URL", "http://127.0.0.1:9/")
    folder = tmp_path / "cache" / "covertype"
    folder.mkdir(parents=True)
    for name in ("samples_py3", "targets_py3"):
        (folder / name).write_bytes(pickle.dumps(Planted()))
    assert "covtype.data.gz" in refusal(load_dataset, "covtype20k")
    assert not (tmp_path / Planted.mark).exists()


def test_covtype_is_read_from_its_text_and_its_hash_is_checked(tmp_path, monkeypatch):
    rows, text = covtype_text(20_000)
    (tmp_path / "covtype.data.gz").write_bytes(text)
    monkeypatch.setenv("ODE2OPT_DATA", str(tmp_path))
    monkeypatch.setenv("ODE2OPT_CACHE", str(tmp_path / "cache"))
    with pytest.warns(sources.DataWarning, match=r"covtype\.data\.gz is not the known file"):
        data = load_dataset("covtype20k", split="paper")
    np.testing.assert_array_equal(data.train.b, rows[:12_000, -1] != 2)
    top = np.abs(rows[:12_000, :54]).max(axis=0)
    np.testing.assert_allclose(np.asarray(data.train.A), rows[:12_000, :54] / top)


def test_files_with_the_known_hash_are_taken_without_a_word(real_data):
    for name in ("a5a", "a5a.t", "w3a", "w3a.t", "mushrooms", "phishing", "covtype20k"):
        assert sources.check_hash(real_data / name) == real_data / name


# Output --------------------------------------------------------------------------------------


def test_what_a_file_says_is_shown_and_not_obeyed(capsys):
    from rich.console import Console

    from ode2opt.base.terminal import say

    say("learned for [/x] [link=file:///]y[/link] \x1b]0;owned\x07")
    assert "[/x] [link=file:///]y[/link] \\x1b]0;owned\\x07" in capsys.readouterr().out
    console = Console(width=200, record=True)
    console.print(facts_table({"[/x]": "[link=a]b\x1b[2J"}, "[/title]\x1b"))
    text = console.export_text(styles=True)
    assert "[/title]\\x1b" in text
    assert "[link=a]b\\x1b[2J" in text


CODES = ":x: root:x:0:0 :100: [red]:skull:[/red]"


def test_codes_of_emoji_in_a_file_are_shown_as_they_stand(tmp_path, run_cli):
    """A label, a column, a category and a family; root:x:0:0 is a line of a system's file."""
    ends = ("0,:x:0,root:x:0:0", "1,:x:1,:100:")
    rows = "".join(f"{i % 3},{ends[i % 2]}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(f"a,{CODES},words,label\n{rows}", encoding="utf-8")
    model = tmp_path / "m.safetensors"
    _, said, _ = run_cli(
        "solve", tmp_path / "t.csv", "--problem", "logistic", "--l2", 1, "--out", model
    )
    assert "root:x:0:0" in said
    _, said, _ = run_cli("coefficients", model)
    assert CODES in said
    assert "words=:x:1" in said
    _, said, _ = run_cli("predict", model, tmp_path / "t.csv", "--proba")
    assert "proba_root:x:0:0" in said
    assert "proba_:100:" in said
    method = method_file(tmp_path / "f.safetensors", lambda about: about.update(family=CODES))
    _, said, _ = run_cli("methods", "show", method)
    assert CODES in said
    assert CODES in run_cli("predict", model, CODES)[2]


def drawn(capsys):
    """What a terminal gets; bars are drawn ten times a second."""
    end = time.monotonic() + 20
    shown = ""
    while CODES not in shown and time.monotonic() < end:
        time.sleep(0.02)
        shown += capsys.readouterr().err
    return shown


def test_progress_and_warnings_show_codes_of_emoji_as_they_stand(monkeypatch, capsys):
    """On a terminal: a pipe has no bars."""
    for name, value in (("FORCE_COLOR", "1"), ("TERM", "xterm"), ("COLUMNS", "200")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(terminal.err, "is_interactive", True)
    with terminal.spinner(f"solving {CODES}", beside=str):
        assert f"solving {CODES}" in drawn(capsys)
    with terminal.bar(f"reading {CODES}", 2):
        assert f"reading {CODES}" in drawn(capsys)
    terminal.show_warning(f"warned {CODES}")
    assert f"warned {CODES}" in drawn(capsys)
    terminal.mention(f"mentioned {CODES}")
    assert f"mentioned {CODES}" in drawn(capsys)


def test_bench_shows_the_provenance_of_a_file_as_it_is(tmp_path, run_cli):
    away = {"name": "[/x][link=file:///]here[/link]\x1b[2J", "split": "[red]"}
    path = method_file(tmp_path / "m.safetensors", lambda a: a.update(provenance={"family": away}))
    code, said, _ = run_cli(
        "bench", "logistic", "digits", "--methods", "lbfgs", "--instances", 1, "--size", 60,
        "--jobs", 1, "--method", f"[bold]={path}",
    )  # fmt: skip
    assert code == 0
    shown = " ".join(said.split())
    assert "learned for [/x][link=file:///]here[/link]\\x1b[2J ([red] split)" in shown
    assert "[bold]" in shown
    assert "\x1b" not in said
