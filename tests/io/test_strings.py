"""Strings in columns against dictionaries, and weights without zeros against the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.errors import ModelFileError
from lols.io.sparse import pack, unpack
from lols.io.strings import Interner, Texts, intern, texts_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
FEW = st.text(st.sampled_from("ab\né文😀\0"), max_size=2)  # so that strings come again


def numbered(strings: list[Any]) -> tuple[list[int], list[Any]]:
    """The slow twin of `intern`."""
    known: dict[Any, int] = {}
    return [known.setdefault(s, len(known)) for s in strings], list(known)


# --- numbering --------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(st.lists(st.one_of(TEXT, FEW), max_size=40))
def test_intern_numbers_strings_as_a_dictionary_does(strings: list[str]) -> None:
    column = intern(texts_of(strings))
    assert (column.numbers.tolist(), column.texts.strings()) == numbered(strings)
    assert column.numbers.dtype == np.int64


@pytest.mark.uncompiled
@given(st.binary(max_size=30), st.data())
def test_any_slices_of_any_bytes_can_be_numbered(buffer: bytes, data: st.DataObject) -> None:
    places = st.tuples(st.integers(0, len(buffer)), st.integers(0, len(buffer))).map(sorted)
    pairs = data.draw(st.lists(places, max_size=30))
    begin, end = (np.array([p[k] for p in pairs], np.int64) for k in (0, 1))
    numbers, first = intern(Texts(np.frombuffer(buffer, np.uint8), begin, end))
    wanted, distinct = numbered([buffer[b:e] for b, e in pairs])
    assert numbers.tolist() == wanted
    assert [first.buffer[b:e].tobytes() for b, e in zip(first.begin, first.end, strict=True)] == distinct


@pytest.mark.uncompiled
@given(st.lists(st.lists(st.one_of(TEXT, FEW), max_size=20), max_size=6))
def test_strings_keep_their_numbers_from_piece_to_piece(pieces: list[list[str]]) -> None:
    names, sofar = Interner(), []
    for piece in pieces:
        column = names.number(texts_of(piece))
        sofar += piece
        wanted, distinct = numbered(sofar)
        assert column.numbers.tolist() == wanted[len(sofar) - len(piece) :]
        assert column.texts.strings() == distinct


@settings(max_examples=5)
@given(st.integers(0, 1 << 30), st.sampled_from([2047, 2048, 2049, 8193, 40_000, 140_000]))
def test_the_table_grows_as_often_as_it_must(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    strings = [f"w{k}" for k in generator.integers(0, 2 * count, 2 * count).tolist()]
    strings += [f"w{k}" for k in range(count)]
    column = intern(texts_of(strings))
    assert column.texts.begin.size >= count
    assert (column.numbers.tolist(), column.texts.strings()) == numbered(strings)


@pytest.mark.uncompiled
def test_nothing_and_empty_strings_are_strings_too() -> None:
    assert texts_of([]).strings() == []
    assert intern(texts_of([])).numbers.tolist() == []
    column = intern(texts_of(["", "a", "", "a", ""]))
    assert (column.numbers.tolist(), column.texts.strings()) == ([0, 1, 0, 1, 0], ["", "a"])


@pytest.mark.uncompiled
def test_strings_that_differ_in_length_only_differ() -> None:
    strings = ["\0" * k for k in range(9)]
    assert intern(texts_of(strings)).numbers.tolist() == list(range(9))


@given(st.lists(TEXT, max_size=20))
def test_texts_come_back_as_they_were(strings: list[str]) -> None:
    made = texts_of(strings)
    assert made.strings() == strings
    assert texts_of(iter(strings)).strings() == strings
    assert (made.end >= made.begin).all() and made.begin.dtype == made.end.dtype == np.int64


# --- weights without zeros --------------------------------------------------------------------------------------------


@st.composite
def stacks(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.tuples(st.integers(1, 3), st.integers(0, 6), st.sampled_from([1, 2, 5, 256, 257, 300])))
    generator = np.random.default_rng(draw(st.integers(0, 999)))
    dense = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    return np.where(generator.random(shape) < dense, generator.normal(size=shape), 0.0).astype(np.float32)


@pytest.mark.uncompiled
@given(stacks(), st.integers(0, 99))
def test_unpacked_weights_are_the_packed_ones(stack: np.ndarray, seed: int) -> None:
    rows = np.random.default_rng(seed).permutation(stack.shape[1]).astype(np.int64)
    kept, arrays = pack(stack, rows)
    back = unpack(arrays, stack.shape[2])
    assert back.dtype == np.float32 and back.tobytes() == stack[:, rows[kept]].tobytes()
    assert arrays["values"].size == np.count_nonzero(stack) and (arrays["values"] != 0).all()
    left_out = np.setdiff1d(np.arange(rows.size), kept)
    assert not stack[:, rows[left_out]].any() and all(stack[:, rows[k]].any() for k in kept)
    assert arrays["columns"].dtype == (np.uint8 if stack.shape[2] <= 256 else np.int32)


DAMAGE: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "counts in a row": lambda a: a.update(counts=a["counts"].ravel()),
    "counts of 64 bits": lambda a: a.update(counts=a["counts"].astype(np.int64)),
    "negative counts": lambda a: a.update(counts=a["counts"] - np.array([[3, 0, -3]], np.int32)),
    "counts too large": lambda a: a.update(counts=a["counts"] + np.int32(1)),
    "counts too small": lambda a: a.update(counts=a["counts"] * np.int32(0)),
    "counts that overflow": lambda a: a.update(counts=np.full((4, 1 << 16), (1 << 31) - 1, np.int32)),
    "columns in a square": lambda a: a.update(columns=a["columns"].reshape(1, -1)),
    "columns as fractions": lambda a: a.update(columns=a["columns"].astype(np.float32)),
    "columns of 64 bits": lambda a: a.update(columns=a["columns"].astype(np.int64)),
    "a column too many": lambda a: a.update(columns=np.append(a["columns"], np.uint8(0))),
    "a column beyond the last": lambda a: a.update(columns=np.full_like(a["columns"], 4)),
    "a negative column": lambda a: a.update(columns=np.full(a["columns"].size, -1, np.int32)),
    "values of 64 bits": lambda a: a.update(values=a["values"].astype(np.float64)),
    "a value missing": lambda a: a.update(values=a["values"][1:]),
    "no values": lambda a: a.update(values=np.zeros(0, np.float32)),
}


@pytest.mark.uncompiled
@pytest.mark.parametrize("what", DAMAGE)
def test_arrays_that_do_not_fit_together_are_refused(what: str) -> None:
    stack = np.array([[[0, 0, 0, 1], [2, 0, 0, 0], [0, 3, 4, 0]]], np.float32)
    arrays = dict(pack(stack, np.arange(3))[1])
    assert unpack(arrays, 4).tolist() == stack.tolist()
    DAMAGE[what](arrays)
    with pytest.raises(ModelFileError) as caught:
        unpack(arrays, 4)
    assert "\n" not in str(caught.value)
