"""Reading users' files: what scikit-learn, pandas and NumPy write, and what is broken."""

import gzip

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse
import sklearn.datasets

from ode2opt import InputError
from ode2opt.problems import read_table


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.standard_normal((20, 4)).round(6), rng.integers(0, 2, 20).astype(float)


def csv_text(A, b, header=None, delimiter=","):
    rows = [delimiter.join(map(repr, map(float, [*row, y]))) for row, y in zip(A, b, strict=True)]
    return "\n".join(([header] if header else []) + rows) + "\n"


def check(found, A, b):
    dense = found.A.toarray() if scipy.sparse.issparse(found.A) else found.A
    np.testing.assert_allclose(dense, A)
    np.testing.assert_array_equal(found.labels, b)


def test_libsvm_as_scikit_learn_writes_it(table, tmp_path):
    for zero_based in (True, False):
        path = tmp_path / f"data{zero_based}.svm"
        sklearn.datasets.dump_svmlight_file(*table, str(path), zero_based=zero_based)
        check(read_table(path), *table)


@pytest.mark.parametrize("header", [None, "a,b,c,d,target", "0,1,2,3,4", "a,b,c,d,anything"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_with_and_without_header(table, tmp_path, header, encoding):
    path = tmp_path / "data.csv"
    path.write_text(csv_text(*table, header) + "\n\n", encoding=encoding, newline="\r\n")
    check(read_table(path), *table)
    with gzip.open(tmp_path / "data.csv.gz", "wt") as stream:
        stream.write(csv_text(*table, header))
    check(read_table(tmp_path / "data.csv.gz"), *table)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters(table, tmp_path, delimiter):
    path = tmp_path / "data.csv"
    path.write_text(csv_text(*table, delimiter=delimiter))
    check(read_table(path), *table)


FIRST = ("label,p,q\n0,5,6\n1,7,8\n", [[5, 6], [7, 8]], [0, 1])
COLUMNS = {
    "a label's name": (*FIRST, {}),
    "a label by number": (*FIRST, {"label": "0"}),
    "a label by name": (*FIRST, {"label": "label"}),
    "a label from the end": (FIRST[0], [[0, 5], [1, 7]], [6, 8], {"label": "-1"}),
    "an index of pandas": (",a,y\n0,5,0\n1,6,1\n", [[5], [6]], [0, 1], {}),
    "counting numbers that are data": ("0,1\n1,0\n2,0\n", [[0], [1], [2]], [1, 0, 0], {}),
    "an unnamed column in the middle": ("a,,label\n1,2,0\n3,4,1\n", [[1, 2], [3, 4]], [0, 1], {}),
    "a header by a label's name": ("1,2,label\n5,6,no\n7,8,yes\n", [[5, 6], [7, 8]],
                                   ["no", "yes"], {}),
    "labels in quotes": ('age,species\n1,"cat"\n2,dog\n', [[1], [2]], ["cat", "dog"], {}),
    **{
        f"weights {w}": ("p,w,q,kind\n1,0.5,2,a\n3,4,5,b\n", [[1, 2], [3, 5]], ["a", "b"],
                         {"weights": w})
        for w in ("w", "1", "-3")
    },
    "weights in the last column": ("p,q,kind,w\n1,2,0,0.5\n3,5,1,4\n", [[1, 2], [3, 5]], [0, 1],
                                   {"weights": "w"}),
}  # fmt: skip


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_of_csv_are_features_labels_and_weights(case, tmp_path):
    text, A, labels, options = COLUMNS[case]
    (tmp_path / "data.csv").write_text(text)
    found = read_table(tmp_path / "data.csv", **options)
    check(found, A, labels)
    if "weights" in options:
        np.testing.assert_array_equal(found.weights, [0.5, 4])
        assert found.columns == ["p", "q"]


def test_the_csv_files_that_come_with_scikit_learn(tmp_path):
    import importlib.resources

    folder = importlib.resources.files("sklearn.datasets.data")
    path = tmp_path / "breast_cancer.csv"
    path.write_bytes((folder / "breast_cancer.csv").read_bytes())
    check(read_table(path), *sklearn.datasets.load_breast_cancer(return_X_y=True))


def test_a_transposed_sparse_matrix_is_not_mistaken(tmp_path):
    S = scipy.sparse.csc_matrix(np.array([[0, 1.0, 2], [3, 0, 0], [0, 4, 0]]))
    scipy.sparse.save_npz(tmp_path / "s.npz", S)
    with np.load(tmp_path / "s.npz") as parts:
        np.savez(tmp_path / "data.npz", b=[0, 1, 0], **parts)
    check(read_table(tmp_path / "data.npz"), S.toarray(), [0, 1, 0])


def test_the_labels_of_an_archive_can_be_named(table, tmp_path):
    A, b = table
    np.savez(tmp_path / "data.npz", A=A, b=np.zeros(20), z=b)
    check(read_table(tmp_path / "data.npz", label="z"), A, b)


def test_npz_dense_and_sparse(table, tmp_path):
    A, b = table
    for keys in (("A", "b"), ("X", "y")):
        np.savez(tmp_path / "data.npz", **dict(zip(keys, table, strict=True)))
        check(read_table(tmp_path / "data.npz"), A, b)
    S = scipy.sparse.csr_array(A)
    np.savez(
        tmp_path / "s.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=b
    )
    found = read_table(tmp_path / "s.npz")
    assert scipy.sparse.issparse(found.A)
    check(found, A, b)


def test_parquet(table, tmp_path):
    A, b = table
    columns = {"a": A[:, 0], "b": A[:, 1], "c": A[:, 2], "d": A[:, 3], "target": b}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    check(read_table(tmp_path / "data.parquet"), A, b)


BROKEN = {
    "cut.svm": (b"1 1:0.5 3:1\n0 2:1\n1 1:0.5 3:\n", r"line 3 has '3:' .* cut off"),
    "index.svm": (b"1 1:0.5\n0 3:1 2:1\n", r"line 2 has index 2 after 3"),
    "label.svm": (b"1 1:0.5\nspam 3:1\n", r"line 2 starts with 'spam'"),
    "picture.svm": (b"\x89PNG\r\n\x1a\n\x00\x00", r"line 1 starts with"),
    "blank.svm": (b"\n\n", r"holds no rows"),
    "empty.csv": (b"", r"is empty"),
    "text.csv": (b"hello world\nagain\n", r"no comma, semicolon or tab"),
    "binary.csv": (bytes(range(128, 256)) * 4, r"is not CSV"),
    "ragged.csv": (b"a,b,y\n1,2,0\n1,0\n", r"line 3 has 2 columns, not 3"),
    "cell.csv": (b"a,b,y\n1,2,0\n1,oops,0\n", r"line 3, column 'b' is 'oops', not a number"),
    "hole.csv": (b"a,b,y\n1,2,0\n1,,0\n", r"line 3, column 'b' is missing"),
    "head.csv": (b"a,b,y\n", r"a header but no rows"),
    "wide.csv": (b"a,b,y\n1,2\n", r"header has 3 columns, the first row 2"),
    "long.csv": (b"a,b,label\n5,1,0\n5,1,999,0\n", r"line 3 has 4 columns, not 3"),
    "alllong.csv": (b"a,b,label\n5,1,0\n", None),
    "mark.svm": (b"\xef\xbb\xbf1 1:1\n0 1:1\n", r"byte-order mark"),
    "bare.svm": (b"1\n0\n", r"labels but no features"),
    "vast.svm": (b"1 1:1\n0 2000000000:1\n", r"more columns than can be meant"),
    "latin.csv": ("a,é,y\n1,2,0\n".encode("latin-1"), r"not CSV in UTF-8"),
    "bad.csv.gz": (b"\x1f\x8b\x08\x00junk", r"cannot be read"),
    "lone.csv": (b"x;y\n1;2\n", None),
    "text.npz": (b"1,2,3\n4,5,6\n", r"not a readable NPZ"),
    "cut.npz": (b"PK\x03\x04" + b"\0" * 50, r"not a readable NPZ"),
    "text.parquet": (b"1,2,3\n4,5,6\n", r"not a Parquet file"),
    "bad.svm.gz": (b"1 1:1\n", r"cannot be read: Not a gzipped file"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_named(name, tmp_path):
    content, said = BROKEN[name]
    path = tmp_path / name
    path.write_bytes(content)
    if said is None:
        assert read_table(path).A.shape[0] == 1
        return
    with pytest.raises(InputError, match=said) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_other_bad_input_is_named(table, tmp_path):
    A, b = table
    S = scipy.sparse.csr_array(A)
    damaged = {"data": S.data, "indices": S.indices + 100, "indptr": S.indptr, "shape": S.shape}
    archives = {
        "other": {"weights": np.ones(3)},
        "short": {"A": np.ones((3, 2)), "b": np.ones(2)},
        "words": {"A": np.array([["a"], ["b"]]), "b": np.ones(2)},
        "pickle": {"A": np.array([{}], dtype=object), "b": np.ones(1)},
        "bad": damaged | {"y": b},
        "weighed": {"A": A, "b": b, "w": b[:-1]},
    }
    for name, arrays in archives.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)
    (tmp_path / "data.csv").write_text(csv_text(A, b, "a,b,c,d,target"))
    (tmp_path / "weighed.csv").write_text("p,w,y\n1,2,0\n3,x,1\n")
    (tmp_path / "plain.svm").write_text("1 1:1\n0 1:2\n")
    times = pyarrow.table({"when": np.array(["2020-01-01"], dtype="datetime64[s]"), "y": [1.0]})
    pyarrow.parquet.write_table(times, tmp_path / "times.parquet")
    for name, options, said in (
        ("missing.csv", {}, "There is no file"),
        (".", {}, "is a folder"),
        ("data.csv", {"label": "outcome"}, "has no column 'outcome': its columns are a, b, c, d"),
        ("other.npz", {}, "it has weights"),
        ("short.npz", {}, r"short.npz: A has shape \(3, 2\) and b \(2,\)"),
        ("words.npz", {}, "not real numbers"),
        ("other.npz", {"label": "q"}, "has no array 'q'"),
        ("plain.svm", {"label": "y"}, "the label comes first"),
        ("times.parquet", {}, "column 'when' is timestamp"),
        ("pickle.npz", {}, "plain arrays"),
        ("bad.npz", {}, "sparse matrix is damaged"),
        ("weighed.npz", {"weights": "w"}, "the weights 'w' are not"),
        ("weighed.npz", {"weights": "v"}, "has no array 'v'"),
        ("weighed.csv", {"weights": "w"}, "line 3, column 'w' is 'x'"),
        ("weighed.csv", {"label": "y", "weights": "y"}, "'y' cannot hold labels and weights"),
        ("plain.svm", {"weights": "1"}, "for weights use CSV"),
    ):
        with pytest.raises(InputError, match=said):
            read_table(tmp_path / name, **options)


def test_an_archive_and_a_parquet_file_have_weights_too(table, tmp_path):
    A, b = table
    w = np.arange(len(b)) + 1.0
    np.savez(tmp_path / "data.npz", A=A, b=b, w=w)
    columns = dict(zip("pqrswy", [*A.T, w, b], strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    for name in ("data.npz", "data.parquet"):
        found = read_table(tmp_path / name, weights="w")
        check(found, A, b)
        np.testing.assert_array_equal(found.weights, w)
