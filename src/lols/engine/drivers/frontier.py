"""The memory of searches that advance in lock-step: those that wait, paths of roll-outs, and states they have met."""

from __future__ import annotations

import numpy as np

from lols.contract.examples import Examples, Ragged
from lols.engine.compile.layout import Struct
from lols.engine.memory import state_type
from lols.engine.structures import Batch, PendingRollouts, Trail

__all__ = [
    "Group",
    "Level",
    "RollIns",
    "RollOuts",
    "RolloutCache",
    "RolloutPaths",
    "Walks",
    "make_cache",
    "make_paths",
    "make_pending",
    "make_trails",
    "make_walks",
]


class Walks(Struct):
    """Searches in progress; those that wait for the policy are in the first rows."""

    state: np.ndarray  # [row, cell]
    legal: np.ndarray  # [row, action]
    example: np.ndarray  # [row]: in the data set
    number: np.ndarray  # [row]: the number of the walk
    stream: np.ndarray  # [row]
    draw: np.ndarray  # [row]: for a policy that draws at random
    time: np.ndarray  # [walk]: steps taken
    waiting: np.ndarray  # [1]: how many rows wait


class RolloutPaths(Struct):
    """The roll-outs of some walks."""

    cost: np.ndarray  # [walk, step]
    slot: np.ndarray  # [walk, step]: the slot of the cache for the state before the step, or -1
    joined: np.ndarray  # [walk]: the slot of the state at which it met another roll-out, or -1
    value: np.ndarray  # [walk]: the loss at its end
    settled: np.ndarray  # [walk]


class RolloutCache(Struct):
    """States that roll-outs of a batch have met, by key, under teacher or learner; and costs to go once they are known.

    Unlike a `Memo`, it has states whose cost to go is still unknown, of many examples at the same time.
    """

    owner: np.ndarray  # example and policy; -1 for an empty slot
    key: np.ndarray
    settled: np.ndarray
    value: np.ndarray
    filled: np.ndarray
    mask: np.ndarray  # the number of slots in use, minus one


class Level(Struct):
    """Searches at the same level, and the predicted costs for those that waited; none at the start."""

    walks: Walks
    rows: int
    costs: np.ndarray  # [row, action]
    bits: np.ndarray  # the same memory as integers


class RollIns(Struct):
    """The roll-ins of a batch."""

    batch: Batch
    trails: Trail  # of columns, one entry for each example
    predicted: np.ndarray  # [position in the trails, action]: costs predicted during the roll-in; empty if not needed


class Group(Struct):
    """Consecutive examples of a batch whose deviations are completed at the same time."""

    low: int
    high: int
    ends: np.ndarray  # [2]: the next free places for features, and for features of actions
    cache: RolloutCache


class RollOuts(Struct):
    """Deviations that are completed at the same time, from number `first` on."""

    pending: PendingRollouts
    first: int
    paths: RolloutPaths
    cache: RolloutCache


def make_walks(examples: Examples, rows: int, compiled: bool) -> Walks:
    """Memory for searches in this many rows."""
    width = int(examples.states.max(initial=1))
    return Walks(
        state=np.zeros((rows, width), state_type(compiled)),
        legal=np.zeros((rows, examples.most_actions), np.bool_),
        example=np.zeros(rows, np.int64),
        number=np.zeros(rows, np.int64),
        stream=np.zeros(rows, np.int64),
        draw=np.zeros(rows, np.int64),
        time=np.zeros(rows, np.int64),
        waiting=np.zeros(1, np.int64),
    )


def make_paths(rows: int, steps: int) -> RolloutPaths:
    """Memory for this many roll-outs."""
    return RolloutPaths(
        np.zeros((rows, steps + 1)),
        np.zeros((rows, steps + 1), np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows),
        np.zeros(rows, np.bool_),
    )


def make_cache(most: int) -> RolloutCache:
    """Memory for up to half of `most` states, a power of two."""
    keys, settled, values = np.zeros(most, np.int64), np.zeros(most, np.bool_), np.zeros(most)
    return RolloutCache(np.full(most, -1), keys, settled, values, np.zeros(1, np.int64), np.zeros(1, np.int64))


def make_pending(most: int, chances: int) -> PendingRollouts:
    """Memory for up to `most` deviations."""
    return PendingRollouts(
        chances=np.ones(chances),
        asking=np.zeros(1, np.bool_),
        filled=np.zeros(1, np.int64),
        example=np.empty(most, np.int64),
        time=np.empty(most, np.int64),
        action=np.empty(most, np.int64),
        who=np.empty(most, np.int64),
        beta=np.empty(most),
        stream=np.empty(most, np.int64),
        value=np.empty(most),
    )


def make_trails(steps: np.ndarray) -> Trail:
    """The trails of roll-ins with up to these numbers of steps, in columns: `row` gives one of them."""
    offsets = np.concatenate([[0], np.cumsum(steps + 1)])
    whole = int(offsets[-1])
    columns = (np.zeros(whole, np.int64), np.zeros(whole), np.zeros(whole), np.zeros(whole, np.int64))
    return Trail(*(Ragged(column, offsets) for column in columns))  # type: ignore[arg-type]
