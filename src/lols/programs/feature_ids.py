"""Ids of the features of programs: strings, numbers and tuples, hashed to the same ids in every process."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

from lols.errors import SpaceError
from lols.kernels.hashing import GOLDEN, MASK, MULTIPLY_1, MULTIPLY_2, SPREAD, mix

MOST = 1 << 21  # the most ids to keep
NOTHING = 0x6E6F6E65


def feature_id(feature: Any) -> int:
    """The id of a feature: an integer is its own id; a tuple of integers has the id that `lols.feature` gives them.

    Strings, None, other numbers and tuples of all these are hashed. Features that are equal in Python have equal ids.

    >>> import lols
    >>> feature_id((3, 17)) == lols.feature(3, 17)
    True
    >>> feature_id(("w", "cat")) == feature_id(("w", "dog")), feature_id(("w", 1)) == feature_id(("w", True))
    (False, True)
    >>> feature_id(["w", "cat"])
    Traceback (most recent call last):
        ...
    lols.errors.SpaceError: a feature is a list, ['w', 'cat']: give a string, a number, None, or a tuple of those
    """
    if isinstance(feature, tuple):
        if not feature:
            return mix(NOTHING, 1)
        parts = [part if part.__class__ is int else _part(part) for part in feature]
        z = (parts[0] * SPREAD + len(parts) * GOLDEN) & MASK
        for part in parts[1:]:
            # `mix(z, part)`, inlined
            z = ((z ^ (z >> 30)) * MULTIPLY_1) & MASK
            z = ((z ^ (z >> 27)) * MULTIPLY_2) & MASK
            z = ((z ^ (z >> 31)) * SPREAD + part * GOLDEN + GOLDEN) & MASK
        z = ((z ^ (z >> 30)) * MULTIPLY_1) & MASK
        z = ((z ^ (z >> 27)) * MULTIPLY_2) & MASK
        z ^= z >> 31
        return z - (1 << 64) if z >> 63 else z
    if isinstance(feature, str):
        return _digest(feature.encode("utf-8", "surrogatepass"))
    if feature is None:
        return mix(NOTHING, 0)
    if isinstance(feature, bytes):
        return _digest(b"\0" + feature)
    try:
        return _signed(feature.__index__())
    except AttributeError:
        pass
    if hasattr(feature, "__float__"):
        number = float(feature)
        if not math.isfinite(number):
            raise SpaceError(f"a feature is {number}: give a finite number")
        return _signed(int(number)) if number.is_integer() else _digest(b"\1" + struct.pack("<d", number))
    shown = repr(feature)
    raise SpaceError(
        f"a feature is a {type(feature).__name__}, {shown[:40]}: give a string, a number, None, or a tuple of those"
    )


def _part(part: Any) -> int:
    """The id of a part of a tuple; the ids of strings are kept, because they recur."""
    if part.__class__ is not str:
        return feature_id(part)
    number = _texts.get(part)
    if number is None:
        if len(_texts) >= MOST:
            _texts.clear()
        number = _texts[part] = feature_id(part)
    return number


_texts: dict[str, int] = {}


def _signed(number: int) -> int:
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)


class Ids(dict[Any, int]):
    """The ids of the features met so far; each is hashed once.

    >>> ids = Ids(); ids["cat"] == ids["cat"] == feature_id("cat"), len(ids)
    (True, 1)
    """

    def __missing__(self, feature: Any) -> int:
        number = feature_id(feature)
        if len(self) >= MOST:
            self.clear()
        self[feature] = number
        return number
