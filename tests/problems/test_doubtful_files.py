"""Files that can be taken in more than one way: what is wrong is refused, what is taken is told."""

import numpy as np
import pytest

from ode2opt import InputError
from ode2opt.problems import read_table


@pytest.fixture
def written(tmp_path):
    def write(text, name="t.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


# Weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [("Ulm", "Bonn", "Ulm"), ("true", "false", "true")])
def test_words_are_no_weights(written, cells):
    rows = "".join(f"{i},{cell},{i % 2}\n" for i, cell in enumerate(cells))
    words = f"line 2, column 'town' is '{cells[0]}', not a number: weights are numbers"
    with pytest.raises(InputError, match=words):
        read_table(written(f"age,town,y\n{rows}"), weights="town")


def test_weights_may_have_decimal_commas_and_holes(written):
    path = written("p;w;y\n1,5;0,5;0\n2;;1\n3;2;1\n")
    found = read_table(path, weights="w", missing="drop")
    np.testing.assert_array_equal(found.weights, [0.5, 2])
