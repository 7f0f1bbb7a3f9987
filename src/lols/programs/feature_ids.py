"""Features as a program names them: strings, numbers and tuples, hashed to ids that are the same in every process."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

from lols.contract.hashing import GOLDEN, MASK, MULTIPLY_1, MULTIPLY_2, SPREAD, mix
from lols.errors import SpaceError

__all__ = ["Ids", "feature_id"]

MOST = 1 << 21  # things whose ids are kept
NOTHING = 0x6E6F6E65


def feature_id(thing: Any) -> int:
    """The id of a feature: an integer is its own, a tuple of integers is what `lols.feature` makes of them.

    Strings, None, other numbers and tuples of all these are hashed; things that are equal in Python have equal ids.

    >>> import lols
    >>> thing_id((3, 17)) == lols.feature(3, 17)
    True
    >>> thing_id(("w", "cat")) == thing_id(("w", "dog")), thing_id(("w", 1)) == thing_id(("w", True))
    (False, True)
    >>> thing_id(["w", "cat"])
    Traceback (most recent call last):
        ...
    lols.errors.SpaceError: a feature is a list, ['w', 'cat']: give a string, a number, None, or a tuple of those
    """
    if isinstance(thing, tuple):
        if not thing:
            return mix(NOTHING, 1)
        parts = [part if part.__class__ is int else _part(part) for part in thing]
        z = (parts[0] * SPREAD + len(parts) * GOLDEN) & MASK
        for part in parts[1:]:
            # `mix` of what there is so far and the next part, without calling it.
            z = ((z ^ (z >> 30)) * MULTIPLY_1) & MASK
            z = ((z ^ (z >> 27)) * MULTIPLY_2) & MASK
            z = ((z ^ (z >> 31)) * SPREAD + part * GOLDEN + GOLDEN) & MASK
        z = ((z ^ (z >> 30)) * MULTIPLY_1) & MASK
        z = ((z ^ (z >> 27)) * MULTIPLY_2) & MASK
        z ^= z >> 31
        return z - (1 << 64) if z >> 63 else z
    if isinstance(thing, str):
        return _digest(thing.encode("utf-8", "surrogatepass"))
    if thing is None:
        return mix(NOTHING, 0)
    if isinstance(thing, bytes):
        return _digest(b"\0" + thing)
    try:
        return _signed(thing.__index__())
    except AttributeError:
        pass
    if hasattr(thing, "__float__"):
        number = float(thing)
        if not math.isfinite(number):
            raise SpaceError(f"a feature is {number}: a number that is not one cannot be looked up again")
        return _signed(int(number)) if number.is_integer() else _digest(b"\1" + struct.pack("<d", number))
    shown = repr(thing)
    raise SpaceError(
        f"a feature is a {type(thing).__name__}, {shown[:40]}: give a string, a number, None, or a tuple of those"
    )


def _part(part: Any) -> int:
    """The id of a part of a tuple; strings recur there, and are kept."""
    if part.__class__ is not str:
        return feature_id(part)
    found = _texts.get(part)
    if found is None:
        if len(_texts) >= MOST:
            _texts.clear()
        found = _texts[part] = feature_id(part)
    return found


_texts: dict[str, int] = {}


def _signed(number: int) -> int:
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little", signed=True)


class Ids(dict[Any, int]):
    """Ids of the things met so far; each is hashed once.

    >>> ids = Ids(); ids["cat"] == ids["cat"] == thing_id("cat"), len(ids)
    (True, 1)
    """

    def __missing__(self, thing: Any) -> int:
        made = feature_id(thing)
        if len(self) >= MOST:
            self.clear()
        self[thing] = made
        return made
