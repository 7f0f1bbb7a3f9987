"""The entries of a log: decisions and losses, their checks, and their rows in a table."""

from __future__ import annotations

import math
import operator
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from lols.engine.structures import LARGEST_COST
from lols.errors import LolsError, shown


class Decision(NamedTuple):
    """One structure that was shown, with what learning and off-policy evaluation need.

    A round that explores deviates in one state s_t; if nothing was explored, the fields of that state are empty.
    """

    id: int  # 0, 1, 2, ...
    explored: bool
    step: int  # t; -1 if nothing was explored
    action: int  # a_t; -1 if nothing was explored
    by_reference: bool  # whether the reference completed the roll-out
    chance_step: float  # p(t); 1 if nothing was explored
    chance_action: float  # p(a_t | s_t)
    version: int  # the number of losses that the policy had learned from
    policy: int  # the number of the kept policy that acted; -1 for the current one
    guarded: bool  # whether the guard showed the reference
    propensity: float  # of the whole structure; NaN if it cannot be computed
    ids: np.ndarray  # int64: the features of s_t
    values: np.ndarray  # float32: their values
    action_start: np.ndarray  # int64: where the features of each action begin; empty without action features
    action_stop: np.ndarray  # int64: where they end
    action_ids: np.ndarray  # int64: the features of actions
    action_values: np.ndarray  # float32: their values
    legal: np.ndarray  # bool: the legal actions in s_t
    predicted: np.ndarray  # float32: the predicted cost of each action in s_t
    trail: np.ndarray  # int32: the actions of the structure
    chances: np.ndarray  # float32: the probability of each of them; empty if not drawn step by step


class Loss(NamedTuple):
    """The loss of an earlier decision, between 0 and 1."""

    id: int
    loss: float


class Log(Protocol):
    """The methods that a bandit needs of its log, to be implemented for a server database in the place of `SqliteLog`.

    A log has one writer. It must count each loss exactly once, also across crashes.
    """

    def append(self, entry: Decision | Loss) -> bool:
        """Write an entry; it is durable when this returns.

        Returns False if the decision already has a loss: the second one is ignored, and counted as a duplicate. After
        an error nothing was written.

        Parameters
        ----------
        entry
            A decision, or the loss of one.

        """

    def replay(self) -> Iterator[Decision | Loss]:
        """All entries that exist when the reading begins, in the order in which they were written."""

    def decisions(self) -> int:
        """The number of decisions, which is the id of the next one."""

    def duplicates(self) -> int:
        """The number of losses that were ignored because their decision had one."""

    def close(self) -> None:
        """Close the log; closing it twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


_KINDS = ("<i8", "<f4", "<i8", "<i8", "<i8", "<f4", "?", "<f4", "<i4", "<f4")
ARRAYS = dict(zip(Decision._fields[-len(_KINDS) :], _KINDS, strict=True))
_EQUALLY_LONG = [("ids", "values"), ("action_ids", "action_values"), ("action_start", "action_stop")]
_DTYPES = [np.dtype(kind) for kind in ARRAYS.values()]
_NATIVE = [dtype.newbyteorder("=") for dtype in _DTYPES]
_SCALARS = struct.Struct("<q?qq?ddqq?d")  # the fields of a decision up to its arrays
_LOSS = struct.Struct("<qd")
_COUNT = len(Decision._fields) - len(ARRAYS)
_PROPENSITY = _COUNT - 1
# Nothing is explored; the arrays are shared, so they are read-only.
NOTHING = Decision(0, False, -1, -1, False, 1.0, 1.0, 0, -1, False, math.nan, *(np.frombuffer(b"", d) for d in _NATIVE))
_ROUNDING = 1e-9  # by which a sum of probabilities may exceed 1
_ROUNDING_STEPS = 1e-6  # the same for those of single steps, of 32 bits
_SMALLEST_CHANCE = 1.0 / LARGEST_COST  # of what was explored: a loss divided by it is a cost to learn from

SCALARS = Decision._fields[:_COUNT]


def check(entry: Decision | Loss, count: int) -> None:
    """Check an entry before it is written to a log of `count` decisions, or when it is read after as many."""
    if isinstance(entry, Decision):
        if entry.id != count:
            raise LolsError(
                f"decision {shown(entry.id)} is out of order: the log holds {count}, so the next is {count}"
            )
        check_fields(entry)
    elif isinstance(entry, Loss):
        check_loss(entry.loss)
        try:
            exists = 0 <= operator.index(entry.id) < count
        except TypeError:
            exists = False
        if not exists:
            held = f"the log holds {count}, 0 to {count - 1}" if count else "the log holds none yet"
            raise LolsError(f"unknown decision {shown(entry.id)}: {held}; give the id that came with the decision")
    else:
        raise LolsError(f"a log takes a Decision or a Loss, not {type(entry).__name__}")


def check_fields(entry: Decision) -> None:
    """Check that a decision can be read back bit for bit, and that kernels can learn from it."""
    arrays: tuple[Any, ...] = entry[_COUNT:]
    for array, dtype, name in zip(arrays, _NATIVE, ARRAYS):
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            kind = f"{array.dtype}, {array.ndim}-d" if isinstance(array, np.ndarray) else type(array).__name__
            raise LolsError(f"decision {entry.id}: {name} is {kind}: give a 1-d array of {dtype}")
    for name, other in _EQUALLY_LONG:
        if len(getattr(entry, name)) != len(getattr(entry, other)):
            raise LolsError(f"decision {entry.id}: {name} and {other} differ in length: give as many of both")
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
    if entry.chances.size and not 0 < entry.chances.min() <= entry.chances.max() <= 1 + _ROUNDING_STEPS:
        raise LolsError(f"decision {entry.id}: its actions cannot have been taken with the chances it has")
    if entry.explored:
        _check_deviation(entry)


def _check_deviation(entry: Decision) -> None:
    """Check the state in which a decision explored: kernels use these numbers as indices, and do not check them."""
    where, actions, start, stop = f"decision {entry.id}", entry.legal.size, entry.action_start, entry.action_stop
    if entry.step < 0:
        raise LolsError(f"{where}: it explored at step {entry.step}: steps are counted from 0")
    if not 0 <= entry.action < actions or not entry.legal[entry.action]:
        raise LolsError(f"{where}: its action {entry.action} is not legal where it was taken")
    chance = min(entry.chance_step, entry.chance_action)
    if not chance >= _SMALLEST_CHANCE:
        raise LolsError(f"{where}: its action cannot have been taken with the chance {chance}")
    if entry.predicted.size != actions or start.size not in (0, actions):
        raise LolsError(f"{where}: it has {actions} actions, but not as many predicted costs or lists of features")
    if start.size and not (start.min() >= 0 and (start <= stop).all() and stop.max() <= entry.action_ids.size):
        raise LolsError(f"{where}: the features of its actions are out of bounds")


def check_loss(loss: float) -> None:
    """Check that a loss is a number from 0 to 1."""
    try:
        valid = 0 <= loss <= 1 and math.isfinite(loss)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise LolsError(f"loss {shown(loss)}: give a number from 0 to 1")


def to_row(entry: Decision | Loss) -> tuple[Any, ...]:
    """The columns of a checked entry, with the checksum last."""
    if isinstance(entry, Loss):
        packed = _LOSS.pack(*entry)
        return (*_LOSS.unpack(packed), zlib.crc32(packed))
    if math.isnan(entry.propensity):
        entry = entry._replace(propensity=math.nan)  # the same NaN always: SQL has only NULL
    packed = _SCALARS.pack(*entry[:_COUNT])
    arrays: tuple[Any, ...] = entry[_COUNT:]
    blobs = [array.astype(dtype, copy=False).tobytes() for array, dtype in zip(arrays, _DTYPES)]
    return (*_SCALARS.unpack(packed), *blobs, zlib.crc32(b"".join([packed, *blobs])))


def from_row(row: tuple[Any, ...]) -> Decision | Loss:
    """The entry of a row that `to_row` made; ValueError if the row was changed."""
    try:
        entry = Loss(*row[:-1]) if len(row) == len(Loss._fields) + 1 else _decision(row)
        intact = to_row(entry)[-1] == row[-1]
    except (struct.error, OverflowError, TypeError, ValueError):
        intact = False
    if not intact:
        raise ValueError("the checksum is wrong")
    return entry


def _decision(row: tuple[Any, ...]) -> Decision:
    scalars = list(row[:_COUNT])
    if scalars[_PROPENSITY] is None:
        scalars[_PROPENSITY] = math.nan
    arrays = [
        np.frombuffer(blob, dtype).astype(native) for blob, dtype, native in zip(row[_COUNT:-1], _DTYPES, _NATIVE)
    ]
    return Decision(*_SCALARS.unpack(_SCALARS.pack(*scalars)), *arrays)
