"""What a bandit knows after some entries of its log, as bytes for a snapshot: filled rows only, packed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lols.bandit.seen import unpacked
from lols.errors import ModelFileError

LEVEL = 1  # of packing: most of the size for a fraction of the time


class Knowledge(NamedTuple):
    """Counts and settings, decisions whose losses are awaited, and the state of the student."""

    numbers: Mapping[str, Any]  # JSON
    pending: Mapping[int, dict[int, float] | None]  # by number: the losses of steps so far
    student: Mapping[str, np.ndarray]


def to_bytes(knowledge: Knowledge) -> bytes:
    """Knowledge as bytes.

    >>> from_bytes(to_bytes(Knowledge({"losses": 3}, {7: None, 8: {0: 0.5}}, {"w": np.ones(2)})))
    Knowledge(numbers={'losses': 3}, pending={7: None, 8: {0: 0.5}}, student={'w': array([1., 1.])})
    """
    partly = {str(number): losses for number, losses in knowledge.pending.items() if losses is not None}
    about = json.dumps({"numbers": knowledge.numbers, "partly": partly}).encode()
    arrays = {f"student.{name}": np.ascontiguousarray(array) for name, array in knowledge.student.items()}
    arrays |= {"about": np.frombuffer(about, np.uint8), "pending": np.array(list(knowledge.pending), np.int64)}
    return zlib.compress(save(arrays), LEVEL)


def from_bytes(packed: bytes) -> Knowledge:
    """Knowledge from bytes that `to_bytes` made."""
    try:
        arrays = load(unpacked(packed))
        about = json.loads(arrays.pop("about").tobytes())
        partly = {
            int(number): {int(k): float(v) for k, v in losses.items()} for number, losses in about["partly"].items()
        }
        pending = {number: partly.get(number) for number in arrays.pop("pending").tolist()}
    except (SafetensorError, zlib.error, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"a snapshot is damaged ({' '.join(str(error).split())})") from None
    return Knowledge(about["numbers"], pending, {name.removeprefix("student."): a for name, a in arrays.items()})
