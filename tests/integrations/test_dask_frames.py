"""Frames of Dask that read many files: their parts stay together, whatever Dask fuses."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from ode2opt import InputError, LeastSquares, Logistic
from ode2opt.integrations import sklearn


def test_the_parts_of_many_files_stay_together(tmp_path):
    """Dask reads few columns of many files in fewer partitions than all of them."""
    rng = np.random.default_rng(0)
    frames = []
    for i in range(8):
        frame = pd.DataFrame(rng.standard_normal((30, 12)), columns=[f"c{j}" for j in range(12)])
        frame["colour"] = rng.choice(["red", "green", "blue"], 30)
        frame["w"], frame["y"] = rng.random(30) + 0.5, rng.choice(["no", "yes"], 30)
        frame.to_parquet(tmp_path / f"{i}.parquet")
        frames.append(frame)
    read = dd.read_parquet(tmp_path / "*.parquet")
    assert len(read["y"].to_delayed()) < read.npartitions == 8  # else this test shows nothing
    whole = pd.concat(frames)
    features = whole.drop(columns=["w", "y"])
    A = pd.get_dummies(features, prefix_sep="=", dtype=float)
    due = Logistic(A.to_numpy(), (whole["y"] == "yes").astype(float), l2=0.1, weights=whole["w"])
    x = np.linspace(-1, 1, A.shape[1])
    for mine in (
        Logistic(read, "y", l2=0.1, weights="w"),
        Logistic(read.drop(columns=["y", "w"]), read["y"], l2=0.1, weights=read["w"]),
    ):
        assert mine.names == list(A.columns)
        assert mine.label_values == ("no", "yes")
        np.testing.assert_allclose(mine.gradient(x), due.gradient(x), rtol=1e-11)
    few, target = ["c1", "c2"], read["w"]
    model = sklearn.Ridge(alpha=0.1).fit(read[few], target)
    alone = sklearn.Ridge(alpha=0.1).fit(whole[few].to_numpy(), whole["w"].to_numpy())
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(read[few]).compute(), alone.predict(whole[few].to_numpy()), rtol=1e-6
    )
    with pytest.raises(InputError, match="LeastSquares needs numbers as targets"):
        LeastSquares(read, "y")
