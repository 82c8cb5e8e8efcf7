"""The executor of one machine: results, their order, what it holds; sums in a fixed order."""

import pickle
import threading
import time

import numpy as np
import pytest

from ode2opt.executor import THIS_PROCESS, LocalExecutor
from ode2opt.executor.sums import PairwiseSum


def power(shared, item):
    return shared**item


@pytest.mark.parametrize("executor", [THIS_PROCESS, LocalExecutor(2)], ids=["one", "two"])
@pytest.mark.parametrize("options", [{}, {"threads": True}, {"ordered": False}])
def test_results_are_those_of_a_loop(executor, options):
    found = list(executor.map(power, 3, range(9), **options))
    assert (sorted(found) if options.get("ordered") is False else found) == [3**i for i in range(9)]


def test_results_come_as_they_are_done_where_no_order_is_asked_for():
    first = threading.Event()

    def work(shared, item):
        if item == 0:
            assert first.wait(10)
        return item

    found = LocalExecutor(threads=2).map(work, None, range(4), ordered=False, threads=True)
    seen = [next(found)]
    first.set()
    assert seen != [0]
    assert sorted([*seen, *found]) == [0, 1, 2, 3]


def test_an_error_comes_in_place_of_its_result():
    def work(shared, item):
        time.sleep(0.05 * (item == 1))
        if item:
            raise ValueError(f"item {item}")
        return item

    found = LocalExecutor(threads=3).map(work, None, range(3), threads=True)
    assert next(found) == 0
    with pytest.raises(ValueError, match="item 1"):
        next(found)


class Number:
    """An item of some bytes; one that is released counts its loads."""

    def __init__(self, bytes):
        self.bytes, self.value = bytes, bytes

    def released(self):
        found = Number(self.value)
        found.bytes = 0
        return found


@pytest.mark.parametrize(
    ("memory", "held", "words"),
    [
        (100, [5, 3, 4, 1], ""),
        (8, [5, 3, 0, 0], "2 of 4 parts read in each pass"),
        (7, [5, 0, 0, 1], "2 of 4 parts read in each pass"),
    ],
)
def test_the_first_items_that_fit_into_memory_are_held(memory, held, words):
    items = LocalExecutor(memory=memory, threads=2).hold(Number, [5, 3, 4, 1])
    sizes = items.ask(dict.fromkeys(range(4), lambda item: item.bytes))
    assert (list(sizes.values()), items.description()) == (held, words)
    assert items.sum(lambda item: item.value) == 13


def test_items_that_are_not_changed_are_dropped():
    items = LocalExecutor(threads=2).hold(Number, [5, 3, 4])
    items.change({0: lambda item: item.value + 1, 2: lambda item: item.value})
    assert items.sum(lambda item: (item, np.ones(2) * item))[0] == 10
    assert items.ask({2: lambda item: -item, 1: id}) == {2: -4, 1: None}


def test_loading_is_told():
    told = []
    LocalExecutor(watcher=lambda *counts: told.append(counts)).hold(Number, [1, 2, 3])
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_executor_travels_with_its_options_alone():
    executor = LocalExecutor(1, 3, 1_000)
    assert list(executor.map(power, 2, [1, 2], threads=True)) == [2, 4]
    found = pickle.loads(pickle.dumps(executor))
    assert (found.processes, found.threads, found.memory) == (1, 3, 1_000)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 13, 64])
@pytest.mark.parametrize("hands", [1, 2, 3, 5])
def test_a_sum_does_not_depend_on_who_adds_what_and_when(count, hands):
    rng = np.random.default_rng(count)
    numbers = rng.standard_normal(count) * 1e3
    in_turn, joined = PairwiseSum(count), PairwiseSum(count)
    for i, number in enumerate(numbers):
        in_turn.add(number, i)
    own = [PairwiseSum(count) for _ in range(hands)]
    for i in rng.permutation(count):
        own[rng.integers(hands)].add(numbers[i], i)
    for one in own:
        joined.add_all(one.found)
    assert joined.result() == in_turn.result() == pytest.approx(numbers.sum(), abs=1e-9)


def test_a_sum_knows_which_terms_are_missing():
    total = PairwiseSum(7)
    for i in (0, 1, 4, 6):
        total.add(None if i == 4 else 1.0, i)
    assert total.missing() == {2, 3, 5}
    for i in (5, 3, 2):
        total.add(1.0, i)
    assert (total.missing(), total.result()) == (set(), 6.0)
