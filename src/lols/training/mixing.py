"""Pass mode: each shard of the data trains a learner of its own for a pass, then their weights are mixed."""

from __future__ import annotations

import contextlib
import copy
import signal
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.contract.threads import AUTO
from lols.engine.structures import LOSSES, Batch
from lols.engines import Engine, Files, InProcess, SharedValue, Workers
from lols.engines.history import History, Version
from lols.engines.stage_one import one_compiles, writable
from lols.kernels.ahead import prepare_all
from lols.kernels.hashing import mix
from lols.kernels.kernel import DISABLED
from lols.learners.changes import Detour, LearnerChanges, apply_changes
from lols.learners.learner import Learner
from lols.learners.mixing import mixed
from lols.training.learning import Learning
from lols.training.loop import Searcher, learn
from lols.training.order import evened
from lols.training.recipe import Recipe
from lols.training.sources import Leg, in_memory

FIRST = 8  # times as many legs in the first pass: with as many as later, eight shards lose a point of parsing
LEGS = 4  # by default, for eight shards and more; two are as near to one machine with one leg
MOST_BYTES = 2 << 30  # of the data of shards that a worker keeps for the next pass


class ShardTask(NamedTuple):
    """A leg of a pass over one shard, and the learner to go on from."""

    run: str
    shard: int
    recipe: SharedValue
    data: SharedValue
    version: Version
    adaptive: dict[str, Any]
    pass_: int
    leg: int  # of the pass
    legs: int
    alone: bool  # whether there is no other shard


class ShardResult(NamedTuple):
    """What a shard has learned in a leg."""

    changes: LearnerChanges
    sums: np.ndarray  # of losses and examples, by pass
    losses: np.ndarray  # of completions, for β = auto
    steps: int


class NoExamplesError(Exception):
    """A shard has nothing to learn from."""


class Shard:
    """A shard on a worker."""

    def __init__(self, task: ShardTask):
        self.recipe: Recipe = of_shard(task.recipe.get(), task.shard)
        data = task.data.get()
        data = data.held() if isinstance(data, Files) else data
        self.bytes = data.nbytes() if isinstance(data, Examples) else 0
        if not len(data):
            raise NoExamplesError
        source = in_memory(self.recipe, writable(data) if isinstance(data, Examples) else data)
        self.source, self.learning = source, Learning(self.recipe, source.count, source.batch_size(self.recipe))
        self.learning.unsettled = False  # margin and scale are those of the whole
        with one_compiles():
            self.searcher = Searcher(self.learning, source, found=self._note, warns=False)
            self.searcher.turn_to(source.first, np.zeros(0, np.int64))
            self.work = self.searcher.driver.work_of(np.arange(len(data)))
            if self.recipe.compiled and not DISABLED:
                prepare_all(source.calls(self.learning.policy, self.searcher.driver, self.recipe))

    def train(self, task: ShardTask, learner: Learner) -> ShardResult:
        """Train for a leg of a pass; then the learner is what it was."""
        learning, recipe = self.learning, self.recipe
        learning.policy.go_on(learner)
        self.detour, self.losses = Detour(learner), [np.zeros((0, LOSSES))]
        learning.adaptive = replace(learning.adaptive, **task.adaptive)
        first, last = (self._place(leg, task.legs) for leg in (task.leg, task.leg + 1))
        learning.go_to(task.pass_, first)
        learning.steps_done, learning.sums = 0, np.zeros_like(learning.sums)
        shuffled = recipe.shuffle and recipe.neighbours == 1
        parts = task.legs if shuffled and not task.alone else 1  # shards wait for each other after each leg
        if first < last:
            leg = Leg(self.source, lambda order: evened(order, self.work, parts), last)
            for _ in learn(learning, leg, self.searcher):
                self.detour.after(self.lessons)
        changes = self.detour.changes()
        self.detour.take_back()
        return ShardResult(changes, learning.sums, np.concatenate(self.losses), learning.steps_done)

    def _note(self, batch: Batch) -> None:
        """Note what was found for a batch, before it is learned from."""
        self.losses.append(batch.losses.copy())
        self.detour.before(batch.lessons)
        self.lessons = batch.lessons

    def _place(self, leg: int, legs: int) -> int:
        """Where a leg begins: about as many batches are in each."""
        count, size = self.learning.count or 0, self.learning.batch_size
        return min(count, leg * -(-count // size) // legs * size)


class ShardLearner:
    """The learner of a worker, which is the driver's as of the last mixing; its shards take turns with it."""

    def __init__(self, run: str, learner: Learner):
        self.run, self.version, self.learner = run, 0, learner

    def follow(self, task: ShardTask) -> Learner:
        """The learner in the version that a shard goes on from."""
        self.version = task.version.follow(self.version, self.learner.load, partial(apply_changes, self.learner))
        return self.learner


_SHARDS: OrderedDict[tuple[str, int], Shard] = OrderedDict()
_LEARNER: ShardLearner | None = None


def train_shard(task: ShardTask) -> ShardResult:
    """Train on a shard; its data are kept for the next pass, as far as there are not too many."""
    global _LEARNER
    key = task.run, task.shard
    for other in [each for each in _SHARDS if each[0] != task.run]:
        del _SHARDS[other]
    kept, _LEARNER = _LEARNER, None  # an error leaves none behind, whose weights would be between two states
    if kept is None or kept.run != task.run:
        kept = ShardLearner(task.run, task.recipe.get().new_learner())
    learner = kept.follow(task)
    try:
        found = _SHARDS.pop(key, None) or Shard(task)
    except NoExamplesError:  # its files are empty
        nothing = np.zeros((task.recipe.get().passes, 2))
        _LEARNER = kept
        return ShardResult(Detour(learner).changes(), nothing, np.zeros((0, LOSSES)), 0)
    _SHARDS[key] = found
    while len(_SHARDS) > 1 and sum(each.bytes for each in _SHARDS.values()) > MOST_BYTES:
        _SHARDS.popitem(last=False)
    result = found.train(task, learner)
    _LEARNER = kept
    return result


def forget_shards(run: str) -> None:
    """Free what this process keeps of a run."""
    global _LEARNER
    for key in [each for each in _SHARDS if each[0] == run]:
        del _SHARDS[key]
    if _LEARNER is not None and _LEARNER.run == run:
        _LEARNER = None


def of_shard(recipe: Recipe, shard: int) -> Recipe:
    """The recipe of a shard: random numbers of its own, and in this process. The first one is like the whole."""
    made = copy.copy(recipe)
    made.engine = InProcess()
    if shard:
        made.seed = mix(recipe.seed, shard) & ((1 << 62) - 1)
        made.plan = recipe.plan._replace(seed=mix(made.seed, 0x1015))
    return made


def shards_and_legs(engine: Engine) -> tuple[int, tuple[int, int]]:
    """How many shards there are, and how often they are mixed in the first pass and in the others.

    Weights move fast in the first pass, and the more shards there are, the less each of them knows of the others.

    >>> [shards_and_legs(InProcess(sync="pass", shards=n)) for n in (2, 6, 32)]
    [(2, (32, 1)), (6, (32, 3)), (32, (32, 4))]
    >>> shards_and_legs(InProcess(sync="pass", shards=2, legs=4))
    (2, (32, 4))
    """
    shards = engine.shards or engine.count
    return shards, (FIRST * (engine.legs or LEGS), engine.legs or max(1, min(LEGS, shards // 2)))


class Mixing:
    """Learning in pass mode, on the side of the driver.

    Parameters
    ----------
    learning
        What learns: its learner has the mixed weights after each leg of a pass, and its `offset` counts legs.
    data
        Examples, objects or files.
    workers
        Who trains shards.
    shards
        How many there are; the result depends on it.
    legs
        How often weights are mixed in the first pass, and in the others.

    """

    def __init__(self, learning: Learning, data: Any, workers: Workers, shards: int, legs: tuple[int, int]):
        self.learning, self.workers, self.legs, self.id = learning, workers, legs, uuid.uuid4().hex
        recipe, counted = copy.copy(learning.recipe), isinstance(data, Files)
        # so that all shards together search as many examples with the same policy as one machine
        recipe.engine, recipe.batch_size = InProcess(), max(1, learning.batch_size // shards)
        if recipe.threads in (None, AUTO) and not learning.recipe.engine.LOCAL:
            recipe.threads = 1  # there are many workers
        self._recipe, self._counts = workers.share(recipe), counted
        self._data = [workers.share(part) for part in shards_of(data, shards)]
        self.history = History(workers)
        self.received = 0  # bytes of weights

    def passes(self, bar: Any) -> Iterator[None]:
        """Go on by one leg of a pass each time; between two of them there can be a checkpoint."""
        try:
            yield from self._legs(bar)
        finally:
            if self.learning.recipe.engine.LOCAL:
                forget_shards(self.id)

    def _legs(self, bar: Any) -> Iterator[None]:
        learning, learner = self.learning, self._learner
        if learning.pass_ or learning.offset:
            self._share_whole()
        while learning.pass_ < learning.passes:
            results, steps, sums = [], learning.steps_done, learning.sums[learning.pass_].copy()
            for result in self.workers.map(train_shard, self._tasks()):
                results.append(result)
                steps, sums = steps + result.steps, sums + result.sums[learning.pass_]
                bar.say(f"{self.workers.alive} workers" if self.workers.alive > 1 else "")
                bar.advance(steps, loss=float(sums[0] / max(sums[1], 1.0)))
            changes = mixed(learner, [result.changes for result in results])
            with uninterrupted():
                apply_changes(learner, changes)
                learning.steps_done, learning.sums[learning.pass_] = steps, sums
                if learning.recipe.plan.compare:
                    for result in results:
                        learning.adaptive.observe(result.losses)
                leg = learning.offset + 1
                learning.go_to(*((learning.pass_, leg) if leg < self.legs_now else (learning.pass_ + 1, 0)))
                if self._counts:
                    learning.examples = int(learning.sums[:, 1].max())
            self.received += sum(result.changes.nbytes for result in results)
            self._share(changes)
            yield

    @property
    def _learner(self) -> Learner:
        learner = self.learning.policy.learner
        assert learner is not None
        return learner

    @property
    def legs_now(self) -> int:
        """The legs of this pass."""
        return self.legs[self.learning.pass_ > 0]

    def _tasks(self) -> Iterator[ShardTask]:
        learning = self.learning
        for shard, data in enumerate(self._data):
            how = learning.adaptive.state(), learning.pass_, learning.offset, self.legs_now, len(self._data) == 1
            yield ShardTask(self.id, shard, self._recipe, data, self.history.now, *how)

    def _share(self, changes: LearnerChanges) -> None:
        """Give the workers what has changed, or all of the learner where that is less."""
        if self.history.has_room(changes.nbytes, self._learner.report()["bytes"]):
            self.history.add(changes, changes.nbytes)
        else:
            self._share_whole()

    def _share_whole(self) -> None:
        state = self._learner.state()
        self.history.begin(state, sum(array.nbytes for array in state.values()))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until this is done."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():  # which alone is interrupted
        yield
        return
    asked: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: asked.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        signal.raise_signal(signal.SIGINT)


def shards_of(data: Any, shards: int) -> list[Any]:
    """The data in parts, of which each has every nth example; none is empty, so there may be fewer."""
    if isinstance(data, Files):
        return list(data.shards(shards))
    shards = min(shards, len(data))
    if shards == 1:
        return [data]
    if isinstance(data, Examples):
        return [some(data, np.arange(shard, len(data), shards)) for shard in range(shards)]
    return [data[shard::shards] for shard in range(shards)]
