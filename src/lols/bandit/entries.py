"""What a bandit writes down: decisions and losses, their checks, and their rows in a table."""

from __future__ import annotations

import math
import operator
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

from lols.errors import LolsError

__all__ = ["Decision", "Loss", "check", "check_loss", "from_row", "to_row"]


class Decision(NamedTuple):
    """One result that was shown: what learning needs once its loss is known, and what off-policy evaluation needs.

    A round that explores deviates in one state s_t; where nothing was explored, the fields of that state are empty.
    """

    id: int  # 0, 1, 2, ...
    explored: bool
    step: int  # t; -1 where nothing was explored
    action: int  # a_t; -1 where nothing was explored
    by_reference: bool  # the coin: who completed the roll-out
    chance_step: float  # p(t); 1 where nothing was explored
    chance_action: float  # p(a_t | s_t)
    version: int  # how many losses the policy had learned from
    policy: int  # which of the kept policies acted; -1 for the current one
    guarded: bool  # the reference was shown instead
    propensity: float  # of the whole shown structure; NaN where it cannot be computed
    ids: np.ndarray  # int64: the features of s_t
    values: np.ndarray  # float32: their values
    action_start: np.ndarray  # int64: where the features of each action begin, for actions that have some of their own
    action_stop: np.ndarray  # int64: where they end
    action_ids: np.ndarray  # int64: those features
    action_values: np.ndarray  # float32: their values
    legal: np.ndarray  # bool: which actions are legal in s_t
    predicted: np.ndarray  # float32: the predicted cost of each action in s_t, for doubly robust estimates
    trail: np.ndarray  # int32: the actions of the trajectory that was shown
    chances: np.ndarray  # float32: the probability of each of them; empty where not drawn step by step


class Loss(NamedTuple):
    """The loss of an earlier decision, between 0 and 1."""

    id: int
    loss: float


ARRAYS = {
    **{"ids": "<i8", "values": "<f4"},
    **{"action_start": "<i8", "action_stop": "<i8", "action_ids": "<i8", "action_values": "<f4"},
    **{"legal": "?", "predicted": "<f4", "trail": "<i4", "chances": "<f4"},
}
_TOGETHER = [("ids", "values"), ("action_ids", "action_values"), ("action_start", "action_stop")]
_DTYPES = [np.dtype(kind) for kind in ARRAYS.values()]
_NATIVE = [dtype.newbyteorder("=") for dtype in _DTYPES]
_ONES = [1] * len(_NATIVE)
_SCALARS = struct.Struct("<q?qq?ddqq?d")  # the fields of a decision up to its arrays
_LOSS = struct.Struct("<qd")
_COUNT = len(Decision._fields) - len(ARRAYS)
_PROPENSITY = _COUNT - 1
_ROUNDING = 1e-9  # a sum of probabilities may end this much above 1

SCALARS = Decision._fields[:_COUNT]


def check(entry: Decision | Loss, count: int) -> None:
    """Refuse what must not be written to a log of `count` decisions."""
    if isinstance(entry, Decision):
        _check_decision(entry, count)
    elif isinstance(entry, Loss):
        _check_loss(entry, count)
    else:
        raise LolsError(f"a log takes a Decision or a Loss, not {type(entry).__name__}")


def _check_decision(entry: Decision, count: int) -> None:
    """Refuse what does not follow `count` decisions, or would not come back bit for bit."""
    if entry.id != count:
        raise LolsError(f"decision {entry.id!r} is out of order: the log holds {count}, so the next is {count}")
    if not _is_sound(entry):
        for array, dtype, name in zip(entry[_COUNT:], _NATIVE, ARRAYS):
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
                found = f"{array.dtype}, {array.ndim}-d" if isinstance(array, np.ndarray) else type(array).__name__
                raise LolsError(f"decision {entry.id}: {name} is {found}: give a 1-d array of {dtype}")
        for one, other in _TOGETHER:
            if len(getattr(entry, one)) != len(getattr(entry, other)):
                raise LolsError(
                    f"decision {entry.id}: {one} and {other} differ in length: give one for each of the others"
                )
    if len(entry.chances) not in (0, len(entry.trail)):
        raise LolsError(f"decision {entry.id}: {len(entry.chances)} chances for {len(entry.trail)} actions: give all")
    try:
        _SCALARS.pack(*entry[:_COUNT])
    except (struct.error, OverflowError, TypeError) as error:
        raise LolsError(f"decision {entry.id}: a number cannot be written: {error}") from error
    for name, chance in (
        ("chance_step", entry.chance_step),
        ("chance_action", entry.chance_action),
        ("propensity", 1.0 if math.isnan(entry.propensity) else entry.propensity),
    ):
        if not 0 <= chance <= 1 + _ROUNDING:
            raise LolsError(f"decision {entry.id}: {name} is {chance}: a probability lies between 0 and 1")


def _is_sound(entry: Decision) -> bool:
    """Whether all arrays are of the kind and length that they should be, found out quickly."""
    arrays: Any = entry[_COUNT:]
    try:
        return (
            [array.dtype for array in arrays] == _NATIVE
            and [array.ndim for array in arrays] == _ONES
            and entry.ids.size == entry.values.size
            and entry.action_ids.size == entry.action_values.size
            and entry.action_start.size == entry.action_stop.size
        )
    except AttributeError:
        return False


def check_loss(loss: float) -> None:
    """Refuse what is no number from 0 to 1."""
    try:
        fine = 0 <= loss <= 1 and math.isfinite(loss)
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise LolsError(f"loss {loss!r}: give a number from 0 to 1")


def _check_loss(entry: Loss, count: int) -> None:
    """Refuse a loss out of range, or one that belongs to none of `count` decisions."""
    check_loss(entry.loss)
    try:
        known = 0 <= operator.index(entry.id) < count
    except TypeError:
        known = False
    if not known:
        held = f"the log holds {count}, 0 to {count - 1}" if count else "the log holds none yet"
        raise LolsError(f"unknown decision {entry.id!r}: {held}; give the id that came with the decision")


def to_row(entry: Decision | Loss) -> tuple[Any, ...]:
    """The columns of a checked entry, the checksum last."""
    if isinstance(entry, Loss):
        packed = _LOSS.pack(*entry)
        return (*_LOSS.unpack(packed), zlib.crc32(packed))
    if math.isnan(entry.propensity):
        entry = entry._replace(propensity=math.nan)  # one NaN of many: SQL has only NULL
    packed = _SCALARS.pack(*entry[:_COUNT])
    arrays: tuple[Any, ...] = entry[_COUNT:]
    blobs = [array.astype(dtype, copy=False).tobytes() for array, dtype in zip(arrays, _DTYPES)]
    return (*_SCALARS.unpack(packed), *blobs, zlib.crc32(b"".join([packed, *blobs])))


def from_row(row: tuple[Any, ...]) -> Decision | Loss:
    """The entry of a row that `to_row` made; a ValueError where it was altered."""
    try:
        entry = _loss(row) if len(row) == len(Loss._fields) + 1 else _decision(row)
        whole = to_row(entry)[-1] == row[-1]
    except (struct.error, OverflowError, TypeError, ValueError):
        whole = False
    if not whole:
        raise ValueError("the checksum does not fit")
    return entry


def _loss(row: tuple[Any, ...]) -> Loss:
    return Loss(*row[:-1])


def _decision(row: tuple[Any, ...]) -> Decision:
    scalars = list(row[:_COUNT])
    if scalars[_PROPENSITY] is None:
        scalars[_PROPENSITY] = math.nan
    arrays = [
        np.frombuffer(blob, dtype).astype(native) for blob, dtype, native in zip(row[_COUNT:-1], _DTYPES, _NATIVE)
    ]
    return Decision(*_SCALARS.unpack(_SCALARS.pack(*scalars)), *arrays)
