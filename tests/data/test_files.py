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


def test_the_label_column_can_be_named_or_numbered(table, tmp_path):
    A, b = table
    path = tmp_path / "data.csv"
    path.write_text(csv_text(np.column_stack([b, A[:, :3]]), A[:, 3], "label,p,q,r,s"))
    check(read_table(path), A, b)
    check(read_table(path, label="0"), A, b)
    check(read_table(path, label="label"), A, b)
    check(read_table(path, label="-1"), np.column_stack([b, A[:, :3]]), A[:, 3])


def test_the_index_that_pandas_writes_is_left_out(table, tmp_path):
    A, b = table
    path = tmp_path / "data.csv"
    path.write_text(csv_text(np.column_stack([np.arange(20), A]), b, ",a,b,c,d,target"))
    check(read_table(path), A, b)


def test_the_csv_files_that_come_with_scikit_learn(tmp_path):
    import importlib.resources

    folder = importlib.resources.files("sklearn.datasets.data")
    path = tmp_path / "breast_cancer.csv"
    path.write_bytes((folder / "breast_cancer.csv").read_bytes())
    check(read_table(path), *sklearn.datasets.load_breast_cancer(return_X_y=True))


def test_a_first_row_of_counting_numbers_may_be_data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("0,1\n1,0\n2,0\n")
    check(read_table(path), [[0], [1], [2]], [1, 0, 0])


def test_an_unnamed_column_in_the_middle_is_a_feature(table, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(csv_text(*table, "a,,c,d,label"))
    check(read_table(path), *table)


def test_a_labels_name_makes_a_header(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("1,2,label\n5,6,no\n7,8,yes\n")
    check(read_table(path), [[5, 6], [7, 8]], ["no", "yes"])


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


def test_labels_may_be_words(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text('age,species\n1,"cat"\n2,dog\n')
    found = read_table(path)
    assert list(found.labels) == ["cat", "dog"]


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
    with pytest.raises(InputError, match="There is no file"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    path = tmp_path / "data.csv"
    path.write_text(csv_text(*table, "a,b,c,d,target"))
    with pytest.raises(InputError, match="has no column 'outcome': its columns are a, b, c, d"):
        read_table(path, label="outcome")
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    with pytest.raises(InputError, match="it has weights"):
        read_table(tmp_path / "other.npz")
    np.savez(tmp_path / "short.npz", A=np.ones((3, 2)), b=np.ones(2))
    with pytest.raises(InputError, match=r"short.npz: A has shape \(3, 2\) and b \(2,\)"):
        read_table(tmp_path / "short.npz")
    np.savez(tmp_path / "words.npz", A=np.array([["a"], ["b"]]), b=np.ones(2))
    with pytest.raises(InputError, match="not real numbers"):
        read_table(tmp_path / "words.npz")
    with pytest.raises(InputError, match="has no array 'q'"):
        read_table(tmp_path / "other.npz", label="q")
    (tmp_path / "plain.svm").write_text("1 1:1\n0 1:2\n")
    with pytest.raises(InputError, match="the label comes first"):
        read_table(tmp_path / "plain.svm", label="y")
    times = pyarrow.table({"when": np.array(["2020-01-01"], dtype="datetime64[s]"), "y": [1.0]})
    pyarrow.parquet.write_table(times, tmp_path / "times.parquet")
    with pytest.raises(InputError, match="column 'when' is timestamp"):
        read_table(tmp_path / "times.parquet")
    np.savez(tmp_path / "pickle.npz", A=np.array([{}], dtype=object), b=np.ones(1))
    with pytest.raises(InputError, match="plain arrays"):
        read_table(tmp_path / "pickle.npz")
    S = scipy.sparse.csr_array(table[0])
    bad = {"data": S.data, "indices": S.indices + 100, "indptr": S.indptr, "shape": S.shape}
    np.savez(tmp_path / "bad.npz", **bad, y=table[1])
    with pytest.raises(InputError, match="sparse matrix is damaged"):
        read_table(tmp_path / "bad.npz")


@pytest.mark.parametrize("weights", ["w", "1", "-3"])
def test_weights_are_a_column_and_no_feature(weights, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("p,w,q,kind\n1,0.5,2,a\n3,4,5,b\n")
    found = read_table(path, weights=weights)
    np.testing.assert_array_equal(found.A, [[1, 2], [3, 5]])
    np.testing.assert_array_equal(found.weights, [0.5, 4])
    assert list(found.labels) == ["a", "b"]
    assert found.columns == ["p", "q"]


def test_the_last_column_holds_labels_unless_it_holds_weights(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("p,q,kind,w\n1,2,0,9\n3,5,1,8\n")
    found = read_table(path, weights="w")
    np.testing.assert_array_equal(found.labels, [0, 1])
    np.testing.assert_array_equal(found.A, [[1, 2], [3, 5]])


def test_an_archive_and_a_parquet_file_have_weights_too(table, tmp_path):
    A, b = table
    w = np.arange(len(b)) + 1.0
    np.savez(tmp_path / "data.npz", A=A, b=b, w=w)
    found = read_table(tmp_path / "data.npz", weights="w")
    np.testing.assert_array_equal(found.weights, w)
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    assert pyarrow
    frame = pandas.DataFrame(A, columns=list("pqrs")).assign(w=w, y=b)
    frame.to_parquet(tmp_path / "data.parquet")
    found = read_table(tmp_path / "data.parquet", weights="w")
    check(found, A, b)
    np.testing.assert_array_equal(found.weights, w)


def test_weights_that_are_none_are_named(table, tmp_path):
    A, b = table
    np.savez(tmp_path / "data.npz", A=A, b=b, w=b[:-1])
    with pytest.raises(InputError, match="the weights 'w' are not"):
        read_table(tmp_path / "data.npz", weights="w")
    with pytest.raises(InputError, match="has no array 'v'"):
        read_table(tmp_path / "data.npz", weights="v")
    (tmp_path / "data.csv").write_text("p,w,y\n1,2,0\n3,x,1\n")
    with pytest.raises(InputError, match="line 3, column 'w' is 'x'"):
        read_table(tmp_path / "data.csv", weights="w")
    with pytest.raises(InputError, match="'y' cannot hold labels and weights"):
        read_table(tmp_path / "data.csv", label="y", weights="y")
    (tmp_path / "data.svm").write_text("1 1:2\n0 1:3\n")
    with pytest.raises(InputError, match="for weights use CSV"):
        read_table(tmp_path / "data.svm", weights="1")
