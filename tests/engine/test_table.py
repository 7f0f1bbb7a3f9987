"""Feature tables against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.engine.structures import Table
from lols.engine.table import features_by_row, fill, fixed_table, growing_table, insert, is_fixed, lookup, rehash_kernel
from lols.kernels.hashing import spread
from lols.kernels.kernel import kernel

IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))  # zero among them: an id like any other


@kernel
def insert_all(table, ids, count, most, rows):
    for k in range(ids.size):
        rows[k] = insert(table, ids[k], count, most)


@kernel
def lookup_all(table, ids, rows):
    for k in range(ids.size):
        rows[k] = lookup(table, ids[k])


def inserted(table: Table, ids: np.ndarray, count: np.ndarray, most: int, compiled: bool) -> list[int]:
    rows = np.zeros(ids.size, np.int64)
    (insert_all if compiled else getattr(insert_all, "py_func", insert_all))(table, ids, count, most, rows)
    return rows.tolist()


def found(table: Table, ids: np.ndarray, compiled: bool) -> list[int]:
    rows = np.zeros(ids.size, np.int64)
    (lookup_all if compiled else getattr(lookup_all, "py_func", lookup_all))(table, ids, rows)
    return rows.tolist()


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
@given(st.lists(IDS, max_size=30), st.lists(IDS, max_size=10), st.integers(1, 16))
def test_a_growing_table_is_a_dictionary_that_numbers_its_keys(
    compiled: bool, ids: list[int], others: list[int], most: int
) -> None:
    table, count = growing_table(32), np.zeros(1, np.int64)
    wanted: dict[int, int] = {}
    rows = []
    for k in ids:
        if k not in wanted and len(wanted) < most:
            wanted[k] = len(wanted)
        rows.append(wanted.get(k, -1))
    assert inserted(table, np.array(ids, np.int64), count, most, compiled) == rows
    assert count[0] == len(wanted)
    every = ids + others
    assert found(table, np.array(every, np.int64), compiled) == [wanted.get(k, -1) for k in every]


@pytest.mark.uncompiled
@given(st.lists(IDS, max_size=30, unique=True), st.lists(IDS, max_size=10), st.sampled_from([64, 128, 4096]))
def test_a_larger_map_keeps_every_row(ids: list[int], others: list[int], capacity: int) -> None:
    small, count = growing_table(64), np.zeros(1, np.int64)
    inserted(small, np.array(ids, np.int64), count, 1 << 20, True)
    large = growing_table(capacity)
    rehash_kernel(True, small, large)
    every = np.array(ids + others, np.int64)
    assert found(large, every, True) == found(small, every, True)


@given(st.lists(IDS, max_size=30, unique=True))
def test_a_filled_map_numbers_features_in_their_order(ids: list[int]) -> None:
    table = growing_table(64)
    fill(table, np.array(ids, np.int64))
    assert found(table, np.array(ids, np.int64), True) == list(range(len(ids)))
    for count in {0, len(ids) // 2, len(ids)}:
        assert features_by_row(table, count).tolist() == ids[:count]


@given(st.lists(IDS, max_size=20), st.integers(1, 30))
def test_a_fixed_table_has_a_row_for_every_feature(ids: list[int], bits: int) -> None:
    table, count = fixed_table(bits), np.zeros(1, np.int64)
    rows = inserted(table, np.array(ids, np.int64), count, 1, True)
    assert rows == found(table, np.array(ids, np.int64), True) == [spread(k, 64 - bits) for k in ids]
    assert all(0 <= row < 1 << bits for row in rows)
    assert count[0] == 0
    assert is_fixed(table)
    assert features_by_row(table, 1 << bits).size == 0


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_keys_that_fall_on_one_slot_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.integers(-(2**63), 2**63 - 1, 4000, dtype=np.int64)
    last = np.array([k for k in keys.tolist() if spread(k, 59) >= 30][:16], np.int64)  # around the end of 32 slots
    table, count = growing_table(32), np.zeros(1, np.int64)
    assert inserted(table, last, count, 99, True) == list(range(16))
    assert found(table, last[::-1].copy(), True) == list(range(15, -1, -1))


def test_plain_python_fills_a_table_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    features = np.array([5, -3, 7, 0])
    expected = growing_table(16)
    fill(expected, features)
    monkeypatch.setattr(rehash_kernel, "prepare", None)  # would fail
    monkeypatch.setattr(rehash_kernel, "_loaded", {})
    plain = growing_table(16)
    fill(plain, features, compiled=False)
    assert np.array_equal(plain.entries, expected.entries) and np.array_equal(plain.marks, expected.marks)
