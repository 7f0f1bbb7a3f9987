"""What searches that advance together hold: those that wait, the paths of roll-outs, and the states they have met."""

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
    """Searches under way: those that wait for the policy lie side by side in the first rows."""

    state: np.ndarray  # [row, cell]
    legal: np.ndarray  # [row, action]
    example: np.ndarray  # [row]: in the data set
    number: np.ndarray  # [row]: which walk it is
    stream: np.ndarray  # [row]
    draw: np.ndarray  # [row]: for a policy that draws at random
    time: np.ndarray  # [walk]: steps taken
    waiting: np.ndarray  # [1]: how many rows


class RolloutPaths(Struct):
    """The roll-outs of some walks."""

    cost: np.ndarray  # [walk, step]
    place: np.ndarray  # [walk, step]: where the state before the step is remembered, or -1
    joined: np.ndarray  # [walk]: where the state is remembered at which it met another, or -1
    value: np.ndarray  # [walk]: the loss at its end
    settled: np.ndarray  # [walk]


class RolloutCache(Struct):
    """States of the examples of a batch under teacher or learner, by key, and what they are worth once it is known."""

    owner: np.ndarray  # example and policy; -1 where there is nothing
    key: np.ndarray
    settled: np.ndarray
    value: np.ndarray
    filled: np.ndarray
    mask: np.ndarray  # places in use, less one


class Level(Struct):
    """Searches at the same level, and what the policy says of those that waited for it; nothing at the start."""

    walks: Walks
    rows: int
    costs: np.ndarray  # [row, action]
    bits: np.ndarray  # the same memory as integers


class RollIns(Struct):
    """The roll-ins of a batch."""

    batch: Batch
    trails: Trail  # of columns, one entry for each example
    predicted: np.ndarray  # [place in the trails, action]: what the policy predicted on the way; empty if nobody asks


class Group(Struct):
    """Some examples of a batch, whose deviations are completed together."""

    low: int
    high: int
    ends: np.ndarray  # [2]: where the next features, and features of actions, go
    cache: RolloutCache


class RollOuts(Struct):
    """Deviations that are completed together, from number `first` on."""

    pending: PendingRollouts
    first: int
    paths: RolloutPaths
    cache: RolloutCache


def make_walks(examples: Examples, rows: int, compiled: bool) -> Walks:
    """Memory for so many searches."""
    width = int(examples.states.max(initial=1))
    return Walks(
        state=np.zeros((rows, width), state_type(compiled)),
        legal=np.zeros((rows, examples.space.sizes.actions), np.bool_),
        example=np.zeros(rows, np.int64),
        number=np.zeros(rows, np.int64),
        stream=np.zeros(rows, np.int64),
        draw=np.zeros(rows, np.int64),
        time=np.zeros(rows, np.int64),
        waiting=np.zeros(1, np.int64),
    )


def make_paths(rows: int, steps: int) -> RolloutPaths:
    """Memory for so many roll-outs."""
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
    """Room for up to `most` deviations."""
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
    """The trails of roll-ins with up to so many steps, each in columns: `row` gives one of them."""
    offsets = np.concatenate([[0], np.cumsum(steps + 1)])
    whole = int(offsets[-1])
    columns = (np.zeros(whole, np.int64), np.zeros(whole), np.zeros(whole), np.zeros(whole, np.int64))
    return Trail(*(Ragged(column, offsets) for column in columns))  # type: ignore[arg-type]
