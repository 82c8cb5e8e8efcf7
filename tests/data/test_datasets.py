"""Named datasets, splits, scaling, labels, and where files come from."""

import http.server
import shutil
import threading

import numpy as np
import pytest
import scipy.sparse
import sklearn.datasets
import sklearn.preprocessing

from ode2opt import InputError, load_dataset
from ode2opt.base.errors import DataUnavailableError
from ode2opt.data import datasets, named_data, sources
from ode2opt.data.preparing import binary_labels
from ode2opt.problems import DATASETS

BUNDLED = ("digits", "breast_cancer", "separable")
FILES = ("mushrooms", "a5a", "w3a", "phishing", "covtype20k")


def dense(A):
    return A.toarray() if scipy.sparse.issparse(A) else A


def check(data):
    spec = DATASETS[data.name]
    assert (data.n, len(data.train), len(data.test)) == (spec.n, spec.n_train, spec.n_test)
    for rows in (data.train, data.test):
        assert set(np.unique(rows.b)) == {0.0, 1.0}
        assert np.isfinite(dense(rows.A)).all()


@pytest.mark.parametrize("split", ["paper", "shuffled"])
@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_data(name, split):
    check(load_dataset(name, split=split))


@pytest.mark.parametrize("split", ["paper", "shuffled"])
@pytest.mark.parametrize("name", FILES)
def test_real_data(real_data, name, split):
    check(load_dataset(name, split=split))


def test_the_files_at_hand_have_the_hashes_that_downloads_must_have(real_data):
    import pooch

    for name, digest in sources.SHA256.items():
        if name == sources.COVTYPE_TEXT and not (real_data / name).exists():
            continue  # too large to be everywhere
        assert pooch.file_hash(str(real_data / name)) == digest


def test_the_paper_scales_each_part_by_its_own_maxima(real_data):
    data = load_dataset("covtype20k", split="paper")
    raw = sklearn.datasets.load_svmlight_file(str(real_data / "covtype20k"), n_features=54)[
        0
    ].toarray()
    for rows, part in ((data.train, raw[:12_000]), (data.test, raw[12_000:])):
        np.testing.assert_allclose(
            dense(rows.A), sklearn.preprocessing.MaxAbsScaler().fit_transform(part), rtol=1e-14
        )


def test_shuffled_is_scaled_by_train_and_keeps_every_row():
    paper, shuffled = (load_dataset("digits", split=split) for split in ("paper", "shuffled"))
    assert np.abs(shuffled.train.A).max() == 1.0
    raw = sklearn.datasets.load_digits().data
    order = np.random.default_rng(datasets.SHUFFLE_SEED).permutation(len(raw))
    scaler = sklearn.preprocessing.MaxAbsScaler().fit(raw[order][:1_078])
    np.testing.assert_allclose(shuffled.test.A, scaler.transform(raw[order][1_078:]), rtol=1e-14)
    assert (
        paper.train.b.sum() + paper.test.b.sum() == shuffled.train.b.sum() + shuffled.test.b.sum()
    )


def test_separable_has_one_pair_of_clouds_for_train_and_test():
    train, test = named_data.separable(4_000, seed=1)
    for label in (0.0, 1.0):
        means = [rows.A[rows.b == label].mean(axis=0) for rows in (train, test)]
        np.testing.assert_allclose(*means, atol=0.2)
    assert not np.array_equal(train.A, test.A)
    np.testing.assert_array_equal(train.A[:, 0], 1)


def test_labels_map_two_values_and_refuse_others():
    np.testing.assert_array_equal(binary_labels(np.array([-1.0, 1.0, -1.0])), [0, 1, 0])
    np.testing.assert_array_equal(binary_labels(np.array([2.0, 1.0])), [1, 0])
    np.testing.assert_array_equal(binary_labels(np.array(["no", "yes"])), [0, 1])
    for labels, said in (
        ([1.0, 1.0], "has only 1.0"),
        ([1.0, 2.0, 3.0], r"has 3 \(1.0, 2.0, 3.0\)"),
        (list(np.arange(50.0)), r"has 50 \(0.0, 1.0, 2.0, 3.0, 4.0, ...\)"),
        ([0.0, np.nan], "label in row 2 is nan"),
    ):
        with pytest.raises(InputError, match=said):
            binary_labels(np.array(labels))


def test_a_users_file_is_split_and_scaled(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "mine.npz"
    np.savez(path, A=5 * rng.standard_normal((100, 3)), b=rng.integers(0, 2, 100))
    data = load_dataset(path)
    assert (len(data.train), len(data.test), data.size, data.split) == (60, 40, 30, "shuffled")
    assert np.abs(data.train.A).max() == 1.0


def test_constant_and_empty_columns_are_left_alone(tmp_path):
    path = tmp_path / "mine.npz"
    A = np.column_stack([np.zeros(10), np.full(10, 4.0), np.arange(10.0)])
    np.savez(path, A=A, b=np.arange(10) % 2)
    data = load_dataset(path)
    np.testing.assert_array_equal(data.train.A[:, 0], 0)
    np.testing.assert_array_equal(data.train.A[:, 1], 1)


def test_bad_data_is_named(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,y\n1,2,0\n1,nan,1\n3,4,1\n3,4,1\n")
    with pytest.raises(InputError, match="line 3, column 'b' is missing"):
        load_dataset(path)
    path.write_text("a,b,y\n1,2,0\n1,3,1\n")
    with pytest.raises(InputError, match="2 rows: too few"):
        load_dataset(path)
    with pytest.raises(InputError, match="did you mean 'mushrooms'"):
        load_dataset("mushroom")
    with pytest.raises(InputError, match="There is no file"):
        load_dataset("mushrooms.csv")
    with pytest.raises(InputError, match="knows its labels"):
        load_dataset("digits", label="y")
    with pytest.raises(InputError, match="a name or a path, not 3"):
        load_dataset(3)
    with pytest.raises(InputError, match="did you mean 'shuffled'"):
        load_dataset("digits", split="shufled")


def test_a_cut_off_named_file_is_noticed(monkeypatch, tmp_path):
    (tmp_path / "phishing").write_text("1 1:1 68:1\n0 1:1\n")
    monkeypatch.setenv("ODE2OPT_DATA", str(tmp_path))
    with (
        pytest.warns(sources.DataWarning, match="phishing is not the known file"),
        pytest.raises(InputError, match=r"phishing should have .* is the file cut off\?"),
    ):
        load_dataset("phishing")


def test_no_network_and_no_data_says_what_to_do(no_network):
    with pytest.raises(DataUnavailableError) as caught:
        load_dataset("a5a")
    said = str(caught.value)
    assert "'a5a'" in said
    assert "set ODE2OPT_DATA" in said
    assert "ode2opt data fetch" in said


@pytest.fixture
def site(monkeypatch, tmp_path):
    """A local site in the place of LIBSVM's; returns its folder."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("ODE2OPT_DATA", raising=False)
    monkeypatch.setenv("ODE2OPT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "LIBSVM_SITE", f"http://127.0.0.1:{server.server_port}/")
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


class Bar:
    def __init__(self):
        self.total = self.seen = 0

    def update(self, n):
        self.seen += n

    def reset(self):
        self.seen = 0

    def close(self):
        pass


def test_a_download_is_checked_cached_and_shown(real_data, site):
    shutil.copy(real_data / "mushrooms", site / "mushrooms")
    bar = Bar()
    check(load_dataset("mushrooms", progress=bar))
    assert bar.total == (real_data / "mushrooms").stat().st_size
    assert bar.seen > 0
    cached = sources.cache_folder() / "mushrooms"
    cached.write_bytes(cached.read_bytes()[:-1000])
    check(load_dataset("mushrooms"))  # damaged in the cache: fetched again
    (site / "mushrooms").unlink()
    check(load_dataset("mushrooms"))  # from the cache


def test_a_download_with_another_hash_is_refused_and_not_kept(site, tmp_path):
    (site / "mushrooms").write_text("1 1:1\n2 1:1\n")
    with pytest.raises(DataUnavailableError, match="does not have the expected hash"):
        load_dataset("mushrooms")
    assert not list((tmp_path / "cache").glob("mushrooms*"))
