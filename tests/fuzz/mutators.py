"""Mutators of the fuzzer: each makes a damaged copy of a valid input, and draws from the given generator only."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

NUMBER = re.compile(rb"-?\d+(\.\d+)?")
NUMBERS = [0, 1, -1, 2, 7, 127, 255, -(10**12), 10**12, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), 10**400]
FLOATS = [float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 1e-320, -0.0, 0.5, 1e20]
TEXTS = ["", " ", "\0", "\n", "\r", "\t", "[red]", "[/]", "é", "\u2028", "\ud800", "_", "0", "-1", "nan", "a" * 5000]
PIECES = [text.encode("utf-8", "surrogatepass") for text in TEXTS]
PIECES += [b"\xff", b"\xef\xbb\xbf", b"\r\n", b'"', b"'", b",", b";", b"#", b"&", b"..", b"\x1f\x8b", b"\n\n"]
OBJECTS = [
    *(10**5000, object(), b"x", {1}, print, 1j, range(3), ["a" * 3000] * 9, [[1], [2, 3]], {"words": {}}),
    *(np.zeros((2, 2)), np.array([np.nan]), np.arange(3, dtype=np.uint64) << 63, np.array(["a"]), np.array(3)),
]
MOST = 200_000  # bytes of a mutated input


# --- bytes ---


def place(rng: Random, data: bytes) -> int:
    return rng.randint(0, len(data))


def span(rng: Random, data: bytes, most: int = 200) -> tuple[int, int]:
    """Where a short piece of the data begins and ends."""
    begin = place(rng, data)
    return begin, min(len(data), begin + rng.randint(1, most))


def flip(rng: Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if made else 0):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def cut(rng: Random, data: bytes) -> bytes:
    begin, end = span(rng, data)
    return data[:begin] if rng.random() < 0.3 else data[:begin] + data[end:]


def insert(rng: Random, data: bytes) -> bytes:
    at = place(rng, data)
    piece = rng.choice(PIECES) if rng.random() < 0.8 else rng.randbytes(rng.randint(1, 20))
    return data[:at] + piece + data[at:]


def repeat(rng: Random, data: bytes) -> bytes:
    begin, end = span(rng, data, rng.choice((1, 20, 200)))
    return data[:begin] + data[begin:end] * rng.choice((2, 3, 50, 2000)) + data[end:]


def swap(rng: Random, data: bytes) -> bytes:
    a, b, c, d = sorted(place(rng, data) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def lines(rng: Random, data: bytes) -> bytes:
    """Drop, repeat, exchange or join lines."""
    made = data.split(b"\n")
    i, j = rng.randrange(len(made)), rng.randrange(len(made))
    how = rng.randrange(5)
    if how == 0:
        del made[i]
    elif how == 1:
        made[i:i] = made[j : j + 1] * rng.choice((1, 2, 500))
    elif how == 2:
        made[i], made[j] = made[j], made[i]
    elif how == 3:
        made[i : i + 2] = [b"\t".join(made[i : i + 2])]
    else:
        made = made[i:] + made[:i]
    return b"\n".join(made)


def cells(rng: Random, data: bytes) -> bytes:
    """Drop, repeat, empty or replace a cell of a line."""
    made = data.split(b"\n")
    i, between = rng.randrange(len(made)), rng.choice((b"\t", b",", b" "))
    row = made[i].split(between)
    j, how = rng.randrange(len(row)), rng.randrange(4)
    row[j : j + 1] = [[], [row[j]] * rng.choice((2, 100)), [b""], [rng.choice(PIECES)]][how]
    made[i] = between.join(row)
    return b"\n".join(made)


def numbers(rng: Random, data: bytes) -> bytes:
    """Make a number huge, negative, or not a number."""
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    at = rng.choice(found)
    value = str(rng.choice(NUMBERS) if rng.random() < 0.7 else rng.choice(FLOATS))
    return data[: at.start()] + value.encode() + data[at.end() :]


ANY: tuple[Callable[[Random, bytes], bytes], ...] = (flip, cut, insert, repeat, swap)
WRITTEN = (*ANY, lines, cells, numbers)


def damaged(rng: Random, data: bytes, how: tuple[Callable[[Random, bytes], bytes], ...] = ANY) -> bytes:
    """The data after one to four mutations."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        data = rng.choice(how)(rng, data)[:MOST]
    return data


# --- values as JSON has them, arrays ---


def inner(value: Any) -> Iterator[tuple[Any, Any]]:
    """All places in a nested value, as a container and an index or key of it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from inner(value[key])


def other_value(rng: Random, value: Any) -> Any:
    """Something in the place of a value: most often of its own type."""
    how = rng.random()
    if how < 0.5 and isinstance(value, dict) and value:
        return {key: value[key] for key in rng.sample(sorted(value), len(value) - 1)}
    if how < 0.5 and isinstance(value, list) and value:
        return rng.choice((value[:-1], value + value[:1], value[::-1], value * 300, [value]))
    if how < 0.5 and isinstance(value, str):
        return damaged(rng, value.encode("utf-8", "replace")).decode("utf-8", "replace")
    if how < 0.7 and isinstance(value, int | float):
        return rng.choice([*NUMBERS[:-1], value + 1, value - 1, -value])
    return copy.deepcopy(rng.choice([*NUMBERS, *FLOATS, *TEXTS, None, True, False, [], {}, [[]], {"a": [1]}]))


def other_object(rng: Random, value: Any) -> Any:
    """Any object of Python in the place of a value."""
    return rng.choice(OBJECTS) if rng.random() < 0.5 else other_value(rng, value)


def change_value(rng: Random, value: Any) -> None:
    """Change one place in a dictionary or list, or remove it."""
    places = list(inner(value))
    if not places:
        return
    owner, key = rng.choice(places)
    if rng.random() < 0.1:
        del owner[key]
    else:
        owner[key] = other_value(rng, owner[key])


def other_array(rng: Random, array: np.ndarray) -> np.ndarray:
    """An array of other values, another length, shape or type."""
    how, made = rng.randrange(6), array.copy()
    if how <= 2 and made.size:
        limits = [0, 1] if made.dtype.kind in "b" else [0.0, -1.0, 1e30] if made.dtype.kind == "f" else None
        if limits is None:
            bounds = np.iinfo(made.dtype)
            limits = [0, bounds.min, bounds.max, bounds.max // 2, max(-1, bounds.min), min(made.size, bounds.max)]
        made.reshape(-1)[rng.randrange(made.size)] = rng.choice(limits)
        return made
    if how == 3:
        return made[: rng.randint(0, made.shape[0])] if made.ndim else made
    if how == 4:
        return np.concatenate([made, made]) if made.ndim else made
    if rng.random() < 0.5:
        return made.reshape(-1)[::-1].copy()
    return made.astype(rng.choice([np.int8, np.int64, np.float32, np.float64, np.uint8]))
