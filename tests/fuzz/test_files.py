"""Whatever the bytes of a file are: a valid object, or one short sentence, and nothing is run."""

import traceback
import warnings

import numpy as np
import pytest
from fuzz.mutations import Planted, faults, mutated, originals, use

COUNT = {
    "method": 250, "memory": 150, "model": 250, "config": 250, "checkpoint": 150, "data": 500,
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return originals(tmp_path_factory.mktemp("originals"))


def test_the_originals_are_valid(files, tmp_path):
    assert [file.name for file in files if use(file, tmp_path) is not None] == []


@pytest.mark.parametrize("kind", COUNT)
def test_a_mutated_file_is_valid_or_refused_in_a_sentence(kind, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(list(kind.encode()))
    own = [file for file in files if file.kind == kind]
    refused, bad = 0, []
    for _ in range(COUNT[kind]):
        file = mutated(rng, own[int(rng.integers(len(own)))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # numbers near the largest float
                sentence = use(file, tmp_path)
        except Exception:
            bad.append((file.name, file.data[:300], traceback.format_exc(limit=-2)))
            continue
        refused += sentence is not None
        bad += [(file.name, fault, sentence[:400]) for fault in faults(sentence or "valid")]
    assert bad[:3] == []
    assert refused > COUNT[kind] / 3  # the mutations do bite
    assert not (tmp_path / Planted.mark).exists()
