"""The states of a decision that can be learned from: their features, legal actions, and what was taken there."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lols.engine.structures import Lessons, Slots
from lols.errors import LolsError

_KINDS = {"start": "i8", "stop": "i8", "ids": "i8", "values": "f4"}
OF_ACTIONS = ("action_start", "action_stop")
_KINDS |= {f"action_{name}": kind for name, kind in _KINDS.items()}


class Seen(NamedTuple):
    """States of one structure, in the order of its steps.

    `lessons` has one round, whose slots are these states; their costs and weights are to be filled in by who learns.
    """

    lessons: Lessons
    legal: np.ndarray  # bool [state, action]
    taken: np.ndarray  # int64 [state]: the action that was taken
    chances: np.ndarray  # float64 [state]: its probability; positive
    steps: np.ndarray  # int64 [state]: the number of the step

    def only(self, step: int) -> Seen:
        """The state of one step alone."""
        at = int(np.searchsorted(self.steps, step))
        one, here = np.array([self.lessons.first[0] + at]), slice(at, at + 1)
        lessons = self.lessons._replace(first=one, filled=np.ones(1, np.int64))
        return Seen(lessons, self.legal[here], self.taken[here], self.chances[here], self.steps[here])

    def slot(self, name: str) -> np.ndarray:
        """The part of an array of the slots that belongs to these states, such as `costs`."""
        first = int(self.lessons.first[0])
        array: np.ndarray = getattr(self.lessons.slots, name)
        return array[first : first + self.taken.size]

    def slot_features(self, k: int) -> np.ndarray:
        """The features of a state."""
        return self.lessons.slots.ids[int(self.slot("start")[k]) : int(self.slot("stop")[k])]

    def compact(self) -> dict[str, np.ndarray]:
        """Arrays of what is there, from which `seen_of` makes the states again."""
        arrays = {"legal": self.legal, "taken": self.taken, "chances": self.chances, "steps": self.steps}
        slots = self.lessons.slots
        for of, there in (("", True), ("action_", slots.action_start.shape[0] > 0)):
            nothing = np.zeros((0, self.legal.shape[1]), np.int64)
            start, stop = (self.slot(f"{of}{end}") if there else nothing for end in ("start", "stop"))
            high = int(stop.max(initial=0))
            low = int(start.min(initial=high))
            arrays |= {f"{of}start": start - low, f"{of}stop": stop - low}
            arrays |= {f"{of}{part}": getattr(slots, f"{of}{part}")[low:high] for part in ("ids", "values")}
        return arrays

    def to_bytes(self) -> bytes:
        """All that is needed to read it again."""
        return zlib.compress(save({name: np.ascontiguousarray(array) for name, array in self.compact().items()}))

    @classmethod
    def from_bytes(cls, packed: bytes) -> Seen:
        """From what `to_bytes` gave; ValueError if it is something else."""
        try:
            arrays = load(unpacked(packed))
            return seen_of(**arrays)
        except (SafetensorError, zlib.error, TypeError, KeyError, LolsError) as error:
            raise ValueError(f"its features are damaged: {' '.join(str(error).split())}") from None


def seen_of(
    *,
    start: np.ndarray,
    stop: np.ndarray,
    ids: np.ndarray,
    values: np.ndarray,
    action_start: np.ndarray,
    action_stop: np.ndarray,
    action_ids: np.ndarray,
    action_values: np.ndarray,
    legal: np.ndarray,
    taken: np.ndarray,
    chances: np.ndarray,
    steps: np.ndarray,
) -> Seen:
    """States from arrays as the slots of lessons have them: the features of state i are `start[i]` to `stop[i]`."""
    count, actions = legal.shape
    slots = Slots(
        start=start,
        stop=stop,
        ids=ids,
        values=values,
        costs=np.full((count, actions), np.inf, np.float32),
        weight=np.ones(count, np.float32),
        action_start=action_start,
        action_stop=action_stop,
        action_ids=action_ids,
        action_values=action_values,
    )
    lessons = Lessons(
        example=np.zeros(1, np.int64),
        first=np.zeros(1, np.int64),
        filled=np.array([count]),
        widest=int((stop - start).max(initial=0)),
        widest_action=int((action_stop - action_start).max(initial=0)),
        slots=slots,
    )
    seen = Seen(lessons, legal, taken, chances, steps)
    check_seen(seen, "a decision")
    return seen


def check_seen(seen: Seen, where: str) -> None:
    """Check states that were read: kernels use these numbers as indices, and do not check them."""
    slots, (count, actions) = seen.lessons.slots, seen.legal.shape
    for name, kind in _KINDS.items():
        if getattr(slots, name).dtype != np.dtype(kind):
            raise LolsError(f"{where}: {name} is {getattr(slots, name).dtype}: give an array of {np.dtype(kind)}")
    for name in ("taken", "chances", "steps"):
        if getattr(seen, name).shape != (count,):
            raise LolsError(f"{where}: {name} has not one number for each of {count} states")
    by_action = slots.action_start.shape[0] > 0
    own_start, own_stop = (seen.slot(name) if by_action else np.zeros(0, np.int64) for name in OF_ACTIONS)
    if not seen.slot("start").shape == seen.slot("stop").shape == (count,):
        raise LolsError(f"{where}: it has {count} states, but not as many lists of features")
    if by_action and not own_start.shape == own_stop.shape == (count, actions):
        raise LolsError(f"{where}: it has {actions} actions, but not as many lists of features")
    for start, stop, ids, values in (
        (seen.slot("start"), seen.slot("stop"), slots.ids, slots.values),
        (own_start, own_stop, slots.action_ids, slots.action_values),
    ):
        if ids.shape != values.shape or ids.ndim != 1:
            raise LolsError(f"{where}: ids and values of features differ in length: give as many of both")
        if start.size and not (start.min() >= 0 and (start <= stop).all() and stop.max() <= ids.size):
            raise LolsError(f"{where}: its features are out of bounds")
        if not np.isfinite(values).all():
            raise LolsError(f"{where}: a feature is NaN or infinite")
    if count and not (seen.taken.min() >= 0 and seen.taken.max() < actions):
        raise LolsError(f"{where}: an action is not legal where it was taken")
    if not seen.legal[np.arange(count), seen.taken].all():
        raise LolsError(f"{where}: an action is not legal where it was taken")
    if count and not (seen.chances.min() > 0.0 and seen.chances.max() <= 1.0 + 1e-6):
        raise LolsError(f"{where}: its actions cannot have been taken with the chances it has")
    if (np.diff(seen.steps) <= 0).any() or (seen.steps < 0).any():
        raise LolsError(f"{where}: its steps are out of order")


MOST_BYTES = 1 << 28  # of what a packed value of a row may hold


def unpacked(packed: Any) -> bytes:
    """The content of a packed value; ValueError if it is too large, so that a small row cannot fill the memory."""
    reader = zlib.decompressobj()
    content = reader.decompress(packed, MOST_BYTES)
    if not reader.eof:
        raise ValueError("a packed value has no end")
    return content
