"""The memory of searches that advance in lock-step: those that wait, paths of roll-outs, and states they have met."""

from __future__ import annotations

import numpy as np

from lols.contract.examples import Examples, Ragged
from lols.engine.memory import state_type
from lols.engine.structures import Batch, PendingRollouts, Trail
from lols.kernels.layout import Struct

PLACES = ("row", "example", "step", "number", "stream", "draw")


class Walks(Struct):
    """Searches in progress; those that wait for the policy have the first places. A state stays in its row."""

    state: np.ndarray  # [row, cell]
    legal: np.ndarray  # [row, action]
    row: np.ndarray  # [place]: of the state
    example: np.ndarray  # [place]: in the data set
    step: np.ndarray  # [place]: of the search; in a roll-out, of the deviation
    number: np.ndarray  # [place]: the number of the walk
    stream: np.ndarray  # [place]
    draw: np.ndarray  # [place]: for a policy that draws at random
    time: np.ndarray  # [walk]: steps taken
    waiting: np.ndarray  # [1]: how many wait

    def begin(self, examples: np.ndarray) -> None:
        """New walks, each in the row of its number."""
        self.row[: examples.size] = self.number[: examples.size] = np.arange(examples.size)
        self.example[: examples.size] = examples

    def part(self, low: int, high: int) -> Walks:
        """Some of the places, for a thread."""
        places = {name: getattr(self, name)[low:high] for name in PLACES}
        return self._replace(**places, waiting=np.zeros(1, np.int64))

    def take(self, at: int, other: Walks, count: int) -> None:
        """Move the first walks of a part to other places."""
        for name in PLACES:
            getattr(self, name)[at : at + count] = getattr(other, name)[:count]

    def found(self, part: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The memory of states, the rows of walks at some places, and their legal actions."""
        rows = self.row[part]
        return self.state, rows, self.legal[rows]


class RolloutPaths(Struct):
    """The roll-outs of some walks."""

    first: np.ndarray  # [walk]: where its steps begin in the next two
    cost: np.ndarray  # [step]
    slot: np.ndarray  # [step]: the slot of the cache for the state before the step, or -1
    joined: np.ndarray  # [walk]: the slot of the state at which it met another roll-out, or -1
    value: np.ndarray  # [walk]: the loss at its end
    settled: np.ndarray  # [walk]


class RolloutCache(Struct):
    """States that roll-outs of a batch have met, by key, under teacher or learner; and costs to go once they are known.

    Unlike a `Memo`, it has states whose cost to go is still unknown. Each example has slots of its own, so that threads
    can share it.
    """

    owner: np.ndarray  # BY_TEACHER or BY_LEARNER; -1 for an empty slot
    key: np.ndarray
    settled: np.ndarray
    value: np.ndarray
    first: np.ndarray  # [example of the batch]: its first slot
    mask: np.ndarray  # [example of the batch]: the number of its slots, a power of two, minus one
    filled: np.ndarray  # [example of the batch]: how many of them are in use


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
        row=np.zeros(rows, np.int64),
        example=np.zeros(rows, np.int64),
        step=np.zeros(rows, np.int64),
        number=np.zeros(rows, np.int64),
        stream=np.zeros(rows, np.int64),
        draw=np.zeros(rows, np.int64),
        time=np.zeros(rows, np.int64),
        waiting=np.zeros(1, np.int64),
    )


def make_paths(old: RolloutPaths | None, steps: np.ndarray) -> RolloutPaths:
    """Memory for roll-outs of up to these numbers of steps; that of earlier ones is used again."""
    ends = np.cumsum(steps + 1)
    whole, rows = int(ends[-1]), steps.size
    if old is None or old.cost.size < whole or old.joined.size < rows:
        whole, rows = whole + whole // 4, rows + rows // 4
        old = RolloutPaths(
            np.zeros(rows, np.int64),
            np.zeros(whole),
            np.zeros(whole, np.int64),
            np.zeros(rows, np.int64),
            np.zeros(rows),
            np.zeros(rows, np.bool_),
        )
    old.first[: steps.size] = ends - steps - 1
    return old


def make_cache(old: RolloutCache | None, states: np.ndarray, most: int) -> RolloutCache:
    """An empty cache for about this many states of each example; fewer if that were more than `most` slots."""
    sizes = np.int64(1) << np.ceil(np.log2(np.maximum(2 * states, 2))).astype(np.int64)
    while sizes.sum() > max(most, 2 * sizes.size):
        sizes = np.maximum(sizes // 2, 2)
    whole = int(sizes.sum())
    if old is None or old.owner.size < whole:
        keys, settled, values = np.zeros(whole, np.int64), np.zeros(whole, np.bool_), np.zeros(whole)
        old = RolloutCache(np.zeros(whole, np.int8), keys, settled, values, *(np.zeros(0, np.int64),) * 3)
    old.owner[:whole] = -1
    return old._replace(first=np.cumsum(sizes) - sizes, mask=sizes - 1, filled=np.zeros(sizes.size, np.int64))


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
