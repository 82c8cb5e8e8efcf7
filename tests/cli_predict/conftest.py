"""A file of customers, and a model that was fitted to it."""

import numpy as np
import pandas as pd
import pytest

L2 = 0.01


@pytest.fixture
def churn(tmp_path, rng):
    """A file of rows with a column of words, labels yes and no, and its model."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 120),
            "plan": rng.choice(["basic", "extra"], 120),
            "spent": rng.uniform(0, 90, 120).round(2),
        }
    )
    score = 0.05 * frame["age"] - 0.03 * frame["spent"] + (frame["plan"] == "basic") - 2
    frame["left"] = np.where(score + rng.standard_normal(120) > 0, "yes", "no")
    frame.to_csv(tmp_path / "churn.csv", index=False)
    return frame


@pytest.fixture
def model(run_cli, tmp_path, churn):
    file = tmp_path / "model.safetensors"
    code, _, _ = run_cli(
        "solve", tmp_path / "churn.csv", "--problem", "logistic", "--l2", L2, "--intercept",
        "--label", "left", "--out", file,
    )  # fmt: skip
    assert code == 0
    return file
