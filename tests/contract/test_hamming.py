"""`hamming`: the number of places that differ, as plain Python and compiled, beside the loop that it replaces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lols
from lols.datasets.worlds import tagging_data
from tests.contract.test_task import Tagging


class Loop(Tagging):
    """Only whole end states have a loss, written as a loop, so that roll-outs evaluate it."""

    cost = None


class Counted(Loop):
    """The same by `hamming`."""

    def loss(x, y, s):
        return lols.hamming(s[2:], y.tags)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12))
def test_it_counts_the_places_that_differ(pairs):
    made, true = (np.array([pair[k] for pair in pairs], np.int32) for k in (0, 1))
    assert lols.hamming(made, true) == sum(one != other for one, other in pairs)
    assert lols.hamming(np.append(made, 9), true) == lols.hamming(made, true)  # what follows is left out


@pytest.mark.parametrize("compiled", [False, True])
def test_a_task_learns_the_same_with_it_as_with_a_loop(compiled):
    data = tagging_data(12, labels=3)
    models = [lols.train(task, data, passes=2, seed=3, compiled=compiled) for task in (Loop, Counted)]
    assert models[0].policy.stack.tobytes() == models[1].policy.stack.tobytes()
    assert models[0].losses(data).tolist() == models[1].losses(data).tolist()
