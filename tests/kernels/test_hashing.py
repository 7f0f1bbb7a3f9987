"""The compiled hashes against the plain ones, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.contract.features import FeatureBuffer, ItemBuffer, emit, feature, feature_buffer, item_buffer, look, uniform
from lols.kernels.hashing import mix, spread, unit
from lols.kernels.kernel import kernel

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


@kernel
def compiled_mix(a, b):
    return mix(a, b)


@kernel
def compiled_mix_of_elements(a, b):
    return mix(a[0], b[0])


@kernel
def compiled_unit(key):
    return unit(key)


@kernel
def compiled_spread(key, shift):
    return spread(key, shift)


@kernel
def compiled_features(out, t, a, b, c, smalls):
    small = smalls[0]
    emit(out, feature(t))
    emit(out, feature(t, a))
    emit(out, feature(t, a, b), 0.5)
    emit(out, feature(t, a, b, c, small, a))
    emit(out, feature(t, c, b, a, c, b, a))
    emit(out, feature(small, small))
    emit(out, feature(1, a > b))


@kernel
def compiled_looks(out, item, role):
    look(out, item)
    look(out, item, role)
    look(out, item + 1, role)


@kernel
def compiled_uniform(rng):
    return uniform(rng)


def plain(function):
    return getattr(function, "py_func", function)


@pytest.mark.uncompiled
@given(INT64, INT64)
def test_mix_is_the_same_at_both_speeds(a: int, b: int) -> None:
    assert compiled_mix(np.int64(a), np.int64(b)) == mix(a, b)
    assert -(2**63) <= mix(a, b) < 2**63


@given(INT32, st.integers(0, 255))
def test_mix_does_not_mind_the_type_of_its_arguments(a: int, b: int) -> None:
    expected = mix(a, b)
    assert compiled_mix(np.int32(a), np.uint8(b)) == expected
    assert compiled_mix_of_elements(np.array([a], np.int32), np.array([b], np.uint8)) == expected
    assert mix(np.int32(a), np.uint8(b)) == expected
    assert mix(np.int64(a), np.int32(b)) == expected


@pytest.mark.uncompiled
@given(INT64)
def test_unit_is_the_same_at_both_speeds_and_below_one(key: int) -> None:
    assert compiled_unit(np.int64(key)) == unit(key)
    assert 0.0 <= unit(key) < 1.0


@pytest.mark.uncompiled
@given(INT64, st.integers(1, 63))
def test_spread_is_the_same_at_both_speeds_and_fits(key: int, shift: int) -> None:
    assert compiled_spread(np.int64(key), shift) == spread(key, shift)
    assert 0 <= spread(key, shift) < 1 << (64 - shift)


@pytest.mark.uncompiled
@given(INT64, INT64, INT64, INT64, INT32)
def test_features_are_the_same_at_both_speeds(t: int, a: int, b: int, c: int, small: int) -> None:
    fast, slow = feature_buffer(7), feature_buffer(7)
    wide = [np.int64(v) for v in (t, a, b, c)]
    compiled_features(fast, *wide, np.array([small], np.int32))
    plain(compiled_features)(slow, t, a, b, c, [small])
    for mine, other in zip(fast, slow, strict=True):
        assert np.array_equal(mine, other)
    assert slow.size[0] == 7


def test_what_does_not_fit_is_counted_and_not_written() -> None:
    for compiled in (True, False):
        out: FeatureBuffer = feature_buffer(2)
        (compiled_features if compiled else plain(compiled_features))(out, 1, 2, 3, 4, np.array([5]))
        assert out.size[0] == 7
        assert out.ids.tolist() == [feature(1), feature(1, 2)]


@given(INT32, INT32)
def test_items_are_looked_at_in_the_same_way_at_both_speeds(item: int, role: int) -> None:
    fast, slow = item_buffer(2), item_buffer(2)
    compiled_looks(fast, item, role)
    plain(compiled_looks)(slow, item, role)
    expected: ItemBuffer = ItemBuffer(np.array([item, item]), np.array([0, role]), np.array([3]))
    for mine, other, wanted in zip(fast, slow, expected, strict=True):
        assert mine.tolist() == other.tolist() == wanted.tolist()


@pytest.mark.uncompiled
@given(INT64)
def test_a_stream_gives_the_same_numbers_at_both_speeds(seed: int) -> None:
    fast, slow = np.array([seed], np.int64), np.array([seed], np.int64)
    drawn = [(compiled_uniform(fast), uniform(slow)) for _ in range(4)]
    assert all(a == b for a, b in drawn)
    assert len({a for a, _ in drawn}) == 4


def test_units_of_a_stream_are_spread_evenly() -> None:
    units = np.array([unit(mix(mix(5, k), 1)) for k in range(4000)])
    counts, _ = np.histogram(units, bins=10, range=(0, 1))
    assert counts.min() > 320
    assert counts.max() < 480


def test_features_of_different_templates_counts_and_orders_differ() -> None:
    ids = {feature(t, *v) for t in range(20) for v in [(), (0,), (0, 0), (1,), (0, 1), (1, 0), (-1,), (-1, -1)]}
    assert len(ids) == 160
