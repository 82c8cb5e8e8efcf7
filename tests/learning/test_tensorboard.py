"""TensorBoard opens what training writes."""

import numpy as np
import pytest

from ode2opt import Method, Schedule
from ode2opt.learning.run_directory import RunDirectory
from ode2opt.learning.tensorboard import SCALARS, TensorBoard


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:tensorboard.*")
def test_tensorboard_reads_the_events_of_a_run(tmp_path):
    """Its own reader finds each scalar at its step, those of a restart apart, and the figure."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    pytest.importorskip("matplotlib")
    board = TensorBoard(RunDirectory(tmp_path))
    lines = [
        dict.fromkeys(SCALARS) | {"stopping_time": 9.0 - k, "P": 0.5**k, "validation": 20.0 - k}
        for k in range(4)
    ]
    board.add(lines[0] | {"restart": 1}, 1)
    for done, line in enumerate(lines, 1):
        board.add(line, done)
    numbers = np.full(5, 0.1)
    board.add_method(Method(Schedule(numbers, numbers, numbers), "logistic", 1e-3), 4)
    board.close()
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    own = {"stopping_time", "P", "validation"}
    tags = events.Tags()
    assert set(tags["scalars"]) == own | {f"restart-1/{name}" for name in own}
    assert tags["images"] == ["method"]
    found = [(event.step, event.value) for event in events.Scalars("stopping_time")]
    assert found == [(0, 9.0), (1, 8.0), (2, 7.0), (3, 6.0)]
