"""Files that are nearly right: valid ones of every format we read, and ways to spoil them.

``originals`` makes the valid files, ``mutated`` spoils one, ``use`` reads it as a user would and
says what came of it. The short test and the long run (soak_files.py) share all of this.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ode2opt import Guard, Memory, Method, Model, Ode2OptError, solve
from ode2opt.data.encoding import ColumnEncoding, TableEncoding
from ode2opt.paper import DefaultCoefficients
from ode2opt.problems import Logistic, Lpp, Quadratic, Softmax, read_table
from ode2opt.problems.quality import quality_of_fit
from ode2opt.solvers.method_file import Formula
from ode2opt.solvers.metric import Metric

LONGEST = 300  # characters of an error
N = 6  # variables of methods and memories
Rng = np.random.Generator
STATE = ("method", "memory", "model", "config", "checkpoint")


class File(NamedTuple):
    """A file: what it is, the name it has, what is in it."""

    kind: str
    name: str
    data: bytes


# Valid files -------------------------------------------------------------------------------------


def originals(folder: Path) -> list[File]:
    """Return valid files of every kind; ``folder`` is for those that are saved by name."""
    rng = np.random.default_rng(0)
    found = [File("method", f"m{i}.safetensors", _saved(m, folder)) for i, m in _methods(rng)]
    found += [File("memory", f"k{i}.safetensors", _saved(m, folder)) for i, m in _memories(rng)]
    found += [File("model", f"f{i}.safetensors", _saved(m, folder)) for i, m in _models(rng)]
    found += [
        File("config", "config.json", json.dumps(_config(), indent=1).encode()),
        File("checkpoint", "step-000010.safetensors", _checkpoint()),
    ]
    return found + list(_tables(rng))


def _saved(thing: Any, folder: Path) -> bytes:
    path = folder / "original"
    thing.save(path)
    data = path.read_bytes()
    path.unlink()
    return data


def _methods(rng: Rng) -> Iterator[tuple[int, Method]]:
    V = np.linalg.qr(rng.standard_normal((N, N)))[0]
    spectral = Metric("spectral", np.exp(rng.standard_normal(N)), V, rng.uniform(-0.5, 2, N))
    lowrank = Metric("lowrank", np.ones(N), V[:, :2].copy(), np.array([0.5, 2.0]))
    parameters = {"alpha": np.array(6.0), "C": np.array(2.0)}
    formula = Formula("default", {"h": 0.04, "corrected": False}, parameters, 0.04, 1.0)
    table = DefaultCoefficients(2.0).schedule(40)
    about = {
        "provenance": {"family": {"name": "logistic a5a", "split": "paper"}, "finished": True},
        "certificate": {"levels": {"flow": True}, "verdict": ["It converges."]},
        "statistics": {"test": {"complexity": 12.5}, "seconds": 3.0},
    }
    yield 0, Method(table, "logistic", 1e-3, formula=formula, **about)
    yield 1, Method(
        table, "logistic", 1e-3, scale="family", family_scale=0.3, metric=spectral,
        start=np.zeros(N), guard=Guard(fallback="metric-lbfgs", power=0.5, envelope=(9.0, 8.0)),
    )  # fmt: skip
    yield 2, Method(
        None, "lpp", 1e-4, scale="family", family_scale=1.0, metric=lowrank,
        guard=Guard(fallback="metric-lbfgs"),
    )  # fmt: skip


def _memories(rng: Rng) -> Iterator[tuple[int, Memory]]:
    memory = Memory()
    yield 0, memory
    memory = Memory()
    for _ in range(3):
        A = rng.standard_normal((60, N))
        solve(Logistic(A, (A[:, 0] > 0) * 1.0, l2=0.1), memory=memory, tol=1e-6)
    yield 1, memory


def _models(rng: Rng) -> Iterator[tuple[int, Any]]:
    from ode2opt.integrations.sklearn import LogisticRegression, Ridge

    A = rng.standard_normal((40, N))
    problem = Softmax(A, np.arange(40) % 3, l2=0.1, intercept=True)
    names = [f"x{j}" for j in range(N - 2)]
    columns = (*map(ColumnEncoding, names), ColumnEncoding("w", "words", ("a", "b")))
    encoding = TableEncoding(N, columns, header=(*names, "w", "y"), named=True, label="y")
    quality = {"fit": quality_of_fit(problem, np.zeros(problem.n))}
    yield 0, Model.of(
        problem, solve(problem), classes=["u", "v", "w"], encoding=encoding, quality=quality,
        scaling=np.ones(N), tol=1e-6,
    )  # fmt: skip
    problem = Lpp(A, A[:, 0], p=6)
    yield 1, Model.of(problem, solve(problem))
    yield 2, LogisticRegression(class_weight={0: 1.0, 1: 2.0}).fit(A, A[:, 0] > 0)
    yield 3, Ridge([1.0, 2.0]).fit(A, A[:, :2])


def _config() -> dict[str, Any]:
    from ode2opt.learning import FlowOptions
    from ode2opt.learning.config import LAYOUT

    return {
        "layout": LAYOUT,
        "options": FlowOptions(steps=20).as_dict(),
        "family": {"name": "logistic digits", "split": "paper", "size": 512, "hash": "0" * 64},
        "versions": {"ode2opt": "0.1.0", "numpy": "2.0"},
    }


LEAVES = (np.arange(5.0), np.array(3.0), np.array(7, dtype=np.int32), np.ones((2, 3)))


def _checkpoint() -> bytes:
    from safetensors.numpy import save

    best = {
        "complexity": 12.5, "worst": 20, "reached": 8, "handovers": 0, "total": 8,
        "feasible": True,
    }  # fmt: skip
    position = {
        "step": 10, "done": 10, "prices": [12.5, 14.0], "penalty": 10.0, "best": best, "stale": 1,
        "over": False, "seconds": 3.5, "metrics_bytes": 0,
    }  # fmt: skip
    arrays = {f"{i:04}": np.asarray(leaf) for i, leaf in enumerate(LEAVES)}
    return save(arrays, metadata={"position": json.dumps(position)})


def _tables(rng: Rng) -> Iterator[File]:
    import pyarrow
    import pyarrow.parquet
    import scipy.sparse

    A, b = rng.standard_normal((25, 4)).round(4), rng.integers(0, 2, 25)
    svm = "".join(
        f"{y} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) + "\n"
        for row, y in zip(A, b, strict=True)
    ).encode()
    rows = [",".join(map(str, [*row, y])) for row, y in zip(A, b, strict=True)]
    csv = "\n".join(["a,b,c,d,label", *rows, ""]).encode()
    words = "\n".join(["label;x;y", *(f"{'yes' if y else 'no'};{y};2" for y in b), ""]).encode()
    for name, text in (("t.svm", svm), ("t.csv", csv), ("w.csv", words)):
        yield File("data", name, text)
        yield File("data", name + ".gz", gzip.compress(text))
    yield File("data", "t.svm.bz2", bz2.compress(svm))
    S = scipy.sparse.csr_array(A * (A > 0))
    parts = {"data": S.data, "indices": S.indices, "indptr": S.indptr, "shape": S.shape}
    for name, save, arrays in (
        ("d.npz", np.savez, {"A": A, "b": b}),
        ("c.npz", np.savez_compressed, {"X": A.astype(np.float32), "y": b.astype(str)}),
        ("s.npz", np.savez, {**parts, "format": "csr", "y": b}),
    ):
        stream = io.BytesIO()
        save(stream, **arrays)
        yield File("data", name, stream.getvalue())
    for i, labels in enumerate((b.astype(float), np.where(b, "yes", "no"))):
        stream = io.BytesIO()
        columns = {"a": A[:, 0], "k": b.astype(bool), "n": np.arange(25), "target": labels}
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)
        yield File("data", f"p{i}.parquet", stream.getvalue())


# Ways to spoil bytes -----------------------------------------------------------------------------


def _somewhere(rng: Rng, data: bytes) -> int:
    """A place; half of them near the beginning, where headers are."""
    length = max(len(data), 1)
    return int(rng.integers(min(length, 200) if rng.random() < 0.5 else length))


def flip_bits(rng: Rng, data: bytes) -> bytes:
    spoiled = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        if spoiled:
            spoiled[_somewhere(rng, data)] ^= 1 << int(rng.integers(8))
    return bytes(spoiled)


def cut(rng: Rng, data: bytes) -> bytes:
    return data[: _somewhere(rng, data)]


def insert(rng: Rng, data: bytes) -> bytes:
    i, what = _somewhere(rng, data), rng.bytes(int(rng.integers(1, 40)))
    return data[:i] + what + data[i:]


def repeat(rng: Rng, data: bytes) -> bytes:
    i, j = sorted(_somewhere(rng, data) for _ in range(2))
    return data[:j] + data[i:j] * int(rng.integers(1, 50)) + data[j:]


def leave_out(rng: Rng, data: bytes) -> bytes:
    i, j = sorted(_somewhere(rng, data) for _ in range(2))
    return data[:i] + data[j:]


def fill(rng: Rng, data: bytes) -> bytes:
    i = _somewhere(rng, data)
    j = i + int(rng.integers(1, 64))
    byte = bytes([int(rng.choice([0, 255, 32, 10, 48]))])
    return data[:i] + byte * len(data[i:j]) + data[j:]


def write_number(rng: Rng, data: bytes) -> bytes:
    """Lengths and offsets are little-endian numbers: make one large, small or negative."""
    i = _somewhere(rng, data)
    form, value = [("<q", -1), ("<q", 2**62), ("<i", 2**31 - 1), ("<H", 0), ("<i", -2)][
        int(rng.integers(5))
    ]
    what = struct.pack(form, value)
    return data[:i] + what + data[i + len(what) :]


BYTES: tuple[Callable[[Rng, bytes], bytes], ...] = (
    flip_bits, cut, insert, repeat, leave_out, fill, write_number,
)  # fmt: skip

# JSON --------------------------------------------------------------------------------------------

RAW = {  # what json.dumps does not write
    "@digits@": "1" * 4300, "@more digits@": "9" * 5000, "@beyond@": "1" + "0" * 400,
    "@nan@": "NaN", "@infinity@": "-Infinity", "@overflow@": "1e999", "@tiny@": "1e-999",
    "@deep@": "[" * 3000 + "]" * 3000, "@deeper@": '{"a":' * 60 + "1" + "}" * 60,
    "@open@": "[" * 100_000, "@twice@": '{"a": 1, "a": 2}', "@surrogate@": '"\\ud800"',
}  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**299, 0.5, -0.5, 1e308, 1e-308, "", "x", "5",
    [], {}, [1], [[]], {"a": {}}, ["x", None], "\x1b[2J\x1b]0;owned\x07", "[/x][link=file:///]",
    "\u202egnp", "x" * 100_000, "\0", "²", "--5", "../../etc/passwd", *RAW,
)  # fmt: skip


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """All containers of a JSON document with a key or index in each."""
    keys = document.keys() if isinstance(document, dict) else range(len(document))
    for key in list(keys):
        yield document, key
        if isinstance(document[key], dict | list):
            yield from _places(document[key])


def _replace(rng: Rng, there: Any, key: Any) -> None:
    there[key] = deepcopy(ODD[int(rng.integers(len(ODD)))])


def _remove(rng: Rng, there: Any, key: Any) -> None:
    del there[key]


def _rename(rng: Rng, there: Any, key: Any) -> None:
    if isinstance(there, dict):
        there[str(ODD[int(rng.integers(len(ODD)))])] = there.pop(key)


def _add(rng: Rng, there: Any, key: Any) -> None:
    if isinstance(there, dict):
        there["added"] = deepcopy(there[key])
    else:
        there.append(deepcopy(there[key]))


def _as_text(rng: Rng, there: Any, key: Any) -> None:
    there[key] = str(there[key])


def _scale(rng: Rng, there: Any, key: Any) -> None:
    if type(there[key]) in (int, float):
        there[key] = there[key] * [-1, 0, 1e-300, 10**18, 0.5][int(rng.integers(5))]


def operate(rng: Rng, text: str) -> str:
    """JSON with one to three of its values replaced, removed, renamed, doubled or scaled."""
    document = json.loads(text)
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(document))
        if places:
            there, key = places[int(rng.integers(len(places)))]
            change = (_replace, _replace, _remove, _rename, _add, _as_text, _scale)
            change[int(rng.integers(len(change)))](rng, there, key)
    spoiled = json.dumps(document)
    for name, raw in RAW.items():
        spoiled = spoiled.replace(json.dumps(name), raw)
    return spoiled


# Safetensors: a length, a JSON header with a JSON description in it, arrays -----------------------

DTYPES = ("F8_E4M3", "F8_E5M2", "F4", "BF16", "F16", "F32", "I64", "U8", "BOOL", "C64", "X")


def spoil_tensors(rng: Rng, data: bytes) -> bytes:
    (length,) = struct.unpack("<Q", data[:8])
    header, arrays = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    choice = rng.random()
    if choice < 0.6:
        about = header["__metadata__"]
        key = next(iter(about))
        about[key] = operate(rng, about[key])
    elif choice < 0.8 and len(header) > 1:
        _spoil_array(rng, header, arrays)
    elif choice < 0.9 and len(arrays) >= 8:
        i = 8 * int(rng.integers(len(arrays) // 8))
        value = [np.nan, np.inf, 1e308, -1e300, 0.0, -1.0, 5e-324][int(rng.integers(7))]
        arrays[i : i + 8] = struct.pack("<d", value)
    else:
        return _with_header(operate(rng, json.dumps(header)), arrays)
    return _with_header(json.dumps(header), arrays)


def _with_header(text: str, arrays: bytes) -> bytes:
    header = text.encode(errors="surrogatepass")
    return struct.pack("<Q", len(header)) + header + bytes(arrays)


def _spoil_array(rng: Rng, header: dict[str, Any], arrays: bytearray) -> None:
    names = [name for name in header if name != "__metadata__"]
    name = names[int(rng.integers(len(names)))]
    one, choice = header[name], int(rng.integers(5))
    if choice == 0:
        one["dtype"] = DTYPES[int(rng.integers(len(DTYPES)))]
    elif choice == 1:
        size = int(np.prod(one["shape"]))
        shapes = ([1, size], [size, 1], [size], [1] * 70 + [size], [0], [2**62, 4], [-1], [])
        one["shape"] = shapes[int(rng.integers(len(shapes)))]
    elif choice == 2:
        header["renamed"] = header.pop(name)
    elif choice == 3:
        one["data_offsets"] = [int(v) for v in rng.integers(0, len(arrays) + 2, 2)]
    else:  # a wide array: what makes an n x n matrix of it runs out of memory
        count = int(rng.choice([2_000, 20_000]))
        shape = [1, count] if rng.random() < 0.5 else [count]
        at = [len(arrays), len(arrays) + 8 * count]
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": at}
        arrays += np.zeros(count).tobytes()
        start = one["data_offsets"]  # no hole may be left
        header["hole"] = {"dtype": "U8", "shape": [start[1] - start[0]], "data_offsets": start}


# Data --------------------------------------------------------------------------------------------

TOKENS = (
    "²", "²:3", "3:²", "1:", ":1", "1:1:1", "0:1", "-1:1", "9999999999999999999999:1",
    "2000000:1", "130000000:1", "nan", "inf", "-inf", "1e999", "1e-999", "--5", "0x10", "1_0",
    '"', '"a,b"', '""', "''", "#", "qid:3", ",", ";", "\t", "\r", "\n", "\r\n", "\0", "\x1b[2J",
    "[/x]", "[link=file:///]", "\ufeff", "é", "\u2028", "x" * 200_000, "1," * 70_000, "a b",
    "\n" * 3000, "9" * 5000, "9" * 5000 + ":1", "True", "None",
)  # fmt: skip


def spoil_text(rng: Rng, data: bytes) -> bytes:
    """Put odd tokens in the places of others."""
    text = data.decode("utf-8", errors="replace")
    for _ in range(int(rng.integers(1, 4))):
        i = int(rng.integers(len(text) + 1))
        j = min(len(text), i + int(rng.integers(0, 6)))
        text = text[:i] + TOKENS[int(rng.integers(len(TOKENS)))] + text[j:]
    return text.encode()


class Planted:
    """Unpickling it leaves a mark."""

    mark = "planted-pickle-ran"

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.mark, "w"))


ODD_ARRAYS: tuple[Callable[[], Any], ...] = (
    lambda: np.array(["csr", "csc"]), lambda: np.array(b"\xff\xfe"), lambda: np.array(3),
    lambda: np.array([]), lambda: np.zeros((3, 3)), lambda: np.arange(25) * 1j,
    lambda: np.array([10**12, 10**12]), lambda: np.array([25, 10**9]), lambda: np.array("x" * 9999),
    lambda: np.zeros(25, dtype="M8[s]"), lambda: np.zeros(25, dtype=[("a", float), ("b", int)]),
    lambda: np.full(25, np.nan), lambda: np.zeros(25, dtype="V8"), lambda: np.zeros((25, 0)),
    lambda: np.array(["\x1b[2J", "[/x]"] * 12 + ["é"]), lambda: np.zeros(25, dtype=np.float16),
    lambda: np.full(100, 2**31, dtype=np.uint32).view("<U4"), lambda: np.zeros(25, dtype="S0"),
    lambda: -np.ones(100, dtype=int),
)  # fmt: skip
SHAPES = ("(10000000000,)", "(25, 4000000)", "(-1,)", "(25.0, 4)", "()", "((((", "(25, 4, 1)")


def spoil_archive(rng: Rng, data: bytes) -> bytes:
    """Spoil one array of a NumPy archive, and pack it again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = list(members)[int(rng.integers(len(members)))]
    choice, method = rng.random(), zipfile.ZIP_DEFLATED
    if choice < 0.4:
        stream = io.BytesIO()
        np.save(stream, ODD_ARRAYS[int(rng.integers(len(ODD_ARRAYS)))]())
        members[name] = stream.getvalue()
    elif choice < 0.6:
        shape, old = SHAPES[int(rng.integers(len(SHAPES)))], members[name]
        i, j = old.index(b"'shape': ") + 9, old.index(b"}")
        members[name] = (old[:i] + shape.encode() + b", ").ljust(j) + old[j:]
    elif choice < 0.7:
        stream = io.BytesIO()
        np.save(stream, np.array([Planted()], dtype=object), allow_pickle=True)
        members[name] = stream.getvalue()
    elif choice < 0.8:
        members[name] = pickle.dumps(Planted())
    elif choice < 0.85:
        members[name] += b"\0" * 20_000_000  # some kilobytes, packed
    elif choice < 0.9:
        method = int(rng.choice([zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]))
    else:
        members[name] = spoil_bytes(rng, members[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for one, content in members.items():
            archive.writestr(one, content)
    return stream.getvalue()


def _odd_columns() -> Iterator[Any]:
    import pyarrow

    yield pyarrow.array([[1, 2]] * 25)
    yield pyarrow.array([{"a": 1}] * 25)
    yield pyarrow.array([None] * 25)
    yield pyarrow.array([True, None] * 12 + [False])
    yield pyarrow.array([1, None] * 12 + [3])
    yield pyarrow.array(["a", None] * 12 + ["b"])
    yield pyarrow.array([b"\xff"] * 25)
    yield pyarrow.array(["\x1b[2J", "[/x]"] * 12 + ["é"])
    yield pyarrow.array([2**63 + 1] * 25, pyarrow.uint64())
    yield pyarrow.array([1] * 25, pyarrow.timestamp("s"))
    yield pyarrow.array([1] * 25, pyarrow.decimal128(20, 3))
    yield pyarrow.array([1.0] * 25, pyarrow.float16())
    yield pyarrow.array(["yes", "no"] * 12 + ["no"]).dictionary_encode()
    yield pyarrow.array([[[1]], None] * 12 + [[]])


def spoil_columns(rng: Rng, data: bytes) -> bytes:
    """Put an odd column into a Parquet table, or take one of many rows."""
    import pyarrow.parquet

    if rng.random() < 0.1:
        return _many_rows()
    table, columns = pyarrow.parquet.read_table(io.BytesIO(data)), list(_odd_columns())
    j, odd = int(rng.integers(table.num_columns)), columns[int(rng.integers(len(columns)))]
    name = str(ODD[int(rng.integers(len(ODD) - len(RAW)))])
    name = name if rng.random() < 0.3 else table.column_names[j]
    table, stream = table.set_column(j, name, odd), io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    return stream.getvalue()


# All together ------------------------------------------------------------------------------------


def spoil_bytes(rng: Rng, data: bytes) -> bytes:
    return BYTES[int(rng.integers(len(BYTES)))](rng, data)


@cache
def _much(pack: Callable[[bytes], bytes]) -> bytes:
    """Some kilobytes that unpack to much; packed texts may follow each other."""
    return pack(b"0" * 50_000_000)


@cache
def _many_rows() -> bytes:
    """A Parquet table of few bytes and many rows."""
    import pyarrow
    import pyarrow.parquet

    zeros, stream = pyarrow.array(np.zeros(3_000_000)), io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": zeros, "b": zeros, "target": zeros}), stream)
    return stream.getvalue()


def _spoil_packed(rng: Rng, file: File) -> bytes:
    pack, unpack = (bz2.compress, bz2.decompress)
    if file.name.endswith(".gz"):
        pack, unpack = (gzip.compress, gzip.decompress)
    text = unpack(file.data)
    if rng.random() < 0.05:
        return file.data + _much(pack)
    return pack(spoil_text(rng, text))


def spoil_form(rng: Rng, file: File) -> bytes:
    """Spoil a file in the terms of its format."""
    end = Path(file.name).suffix
    if file.kind == "config":
        return operate(rng, file.data.decode()).encode(errors="surrogatepass")
    if file.kind in STATE:
        return spoil_tensors(rng, file.data)
    if end in (".gz", ".bz2"):
        return _spoil_packed(rng, file)
    spoil = {".npz": spoil_archive, ".parquet": spoil_columns}.get(end, spoil_text)
    return spoil(rng, file.data)


def mutated(rng: Rng, file: File) -> File:
    """Return a file spoiled in its bytes or, more often, in the terms of its format."""
    data = spoil_bytes(rng, file.data) if rng.random() < 0.35 else spoil_form(rng, file)
    if rng.random() < 0.1:
        data = spoil_bytes(rng, data)
    return file._replace(data=data)


def use(file: File, folder: Path) -> str | None:
    """Read a file, and do with what it holds what a user would; returns the sentence if refused."""
    path = folder / file.name
    path.write_bytes(file.data)
    try:
        USES[file.kind](path)
    except Ode2OptError as error:
        return str(error)
    finally:
        path.unlink()
    return None


def _use_method(path: Path) -> None:
    method = Method.load(path)
    n = N if method.metric is None else method.metric.n
    n = len(method.start) if method.start_rule == "learned" else n
    if n <= 2 * N:
        solve(Quadratic(np.eye(n), np.ones(n)), method=method, max_iter=3)


def _use_memory(path: Path) -> None:
    memory = Memory.load(path)
    repr(memory)
    problem = Logistic(np.eye(N), np.arange(N) % 2.0, l2=0.5)
    solve(problem, memory=memory, max_iter=3)


def _use_model(path: Path) -> None:
    from ode2opt.integrations import sklearn

    model = Model.load(path)
    if model.encoding.width > 2 * N:
        return
    rows = np.ones((2, model.encoding.width))
    repr(model), model.predict(rows), model.coefficients()
    json.dumps(model.fit.quality and next(iter(model.fit.quality.values())).summary())
    if model.estimator is not None:
        sklearn.load(path).predict(rows)


def _use_config(path: Path) -> None:
    from ode2opt.learning.config import read_config
    from ode2opt.learning.registry import make_options

    make_options(read_config(path.parent)["options"])


def _use_checkpoint(path: Path) -> None:
    from ode2opt.learning.run_directory import RunDirectory

    run = RunDirectory(path.parent)
    run.checkpoints.mkdir(exist_ok=True)
    run.metrics.write_bytes(b"")
    there = run.checkpoints / path.name
    there.write_bytes(path.read_bytes())
    run.load(lambda position: list(LEAVES))


def _use_data(path: Path) -> None:
    from ode2opt.data.preparing import rows_of

    rows_of(read_table(path), str(path), binary=None)


USES: dict[str, Callable[[Path], None]] = {
    "method": _use_method, "memory": _use_memory, "model": _use_model, "config": _use_config,
    "checkpoint": _use_checkpoint, "data": _use_data,
}  # fmt: skip


def faults(sentence: str) -> list[str]:
    """Say what is wrong with an error's sentence."""
    found = []
    if len(sentence) > LONGEST:
        found.append(f"{len(sentence)} characters")
    if not sentence.isprintable():
        found.append("not printable")
    if not sentence:
        found.append("empty")
    return found
