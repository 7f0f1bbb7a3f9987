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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.contract.hashing import mix
from lols.contract.threads import AUTO
from lols.engine.compile.ahead import prepare_all
from lols.engine.compile.kernel import DISABLED
from lols.engine.structures import LOSSES
from lols.engines import Engine, Files, InProcess, SharedValue, Workers
from lols.engines.history import History, Version
from lols.engines.stage_one import one_compiles, writable
from lols.errors import ConfigurationError
from lols.learners.changes import Detour, LearnerChanges, apply_changes
from lols.learners.learner import Learner
from lols.learners.mixing import mixed
from lols.learners.structures import SECOND_ORDER
from lols.training.order import evened
from lols.training.students import LinearStudent

if TYPE_CHECKING:
    from lols.training.run import TrainingRun
    from lols.training.trainer import Trainer

FIRST = 8  # times as many legs in the first pass: with as many as later, eight shards lose a point of parsing
LEGS = 4  # by default, for eight shards and more; two are as near to one machine with one leg
MOST_BYTES = 2 << 30  # of the data of shards that a worker keeps for the next pass


class ShardTask(NamedTuple):
    """A leg of a pass over one shard, and the learner to go on from."""

    run: str
    shard: int
    trainer: SharedValue
    data: SharedValue
    version: Version
    adaptive: dict[str, Any]
    pass_: int
    leg: int  # of the pass
    legs: int
    alone: bool  # whether there is no other shard


class ShardResult(NamedTuple):
    """What came of it."""

    changes: LearnerChanges
    sums: np.ndarray  # of losses and examples, by pass
    losses: np.ndarray  # of completions, for β = auto
    steps: int


class NoExamplesError(Exception):
    """A shard has nothing to learn from."""


class Shard:
    """A shard on a worker."""

    def __init__(self, task: ShardTask):
        self.trainer: Trainer = of_shard(task.trainer.get(), task.shard)
        data = task.data.get()
        data = data.held() if isinstance(data, Files) else data
        self.bytes = data.nbytes() if isinstance(data, Examples) else 0
        if not len(data):
            raise NoExamplesError
        self.run: TrainingRun = self.trainer.new_run(writable(data) if isinstance(data, Examples) else data)
        with one_compiles():
            self.driver = self.run.driver().__enter__()
            self.work = self.driver.work_of(np.arange(len(self.run.examples)))
            if hasattr(self.driver, "calls") and self.trainer.compiled and not DISABLED:
                prepare_all(self.run.student.calls(self.driver))  # type: ignore[attr-defined]

    def train(self, task: ShardTask, learner: Learner) -> ShardResult:
        """Train for a leg of a pass; then the learner is what it was."""
        run, trainer, student = self.run, self.trainer, self.run.student
        assert isinstance(student, LinearStudent)
        student.learner, detour = learner, Detour(learner)
        run.adaptive = replace(run.adaptive, **task.adaptive)
        first, last = (self._place(leg, task.legs) for leg in (task.leg, task.leg + 1))
        run.pass_, run.offset, run.steps_done = task.pass_, first, 0
        run.sums = np.zeros_like(run.sums)
        losses = [np.zeros((0, LOSSES))]
        shuffled = trainer.shuffle and trainer.neighbours == 1
        parts = task.legs if shuffled and not task.alone else 1  # shards wait for each other after each leg
        batches = run.batches(lambda order: evened(order, self.work, parts))
        for indices, rounds in batches if first < last else ():
            beta, beta_in = run.betas(rounds)
            policy = student.rolling_policy()
            batch = self.driver.make_lessons(indices, rounds, policy, trainer.plan, beta, beta_in)
            losses.append(batch.losses.copy())
            detour.before(batch.lessons)
            run.learn(batch)
            detour.after(batch.lessons)
            if run.offset in (0, last):
                break
        changes = detour.changes()
        detour.take_back()
        return ShardResult(changes, run.sums, np.concatenate(losses), run.steps_done)

    def _place(self, leg: int, legs: int) -> int:
        """Where a leg begins: about as many batches are in each."""
        count, size = len(self.run.examples), self.run.batch_size
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
        kept = ShardLearner(task.run, task.trainer.get().new_learner())
    learner = kept.follow(task)
    try:
        found = _SHARDS.pop(key, None) or Shard(task)
    except NoExamplesError:  # its files are empty
        nothing = np.zeros((task.trainer.get().passes, 2))
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


def of_shard(trainer: Trainer, shard: int) -> Trainer:
    """The trainer of a shard: random numbers of its own, and in this process. The first one is like the whole."""
    made = copy.copy(trainer)
    made.engine = InProcess()
    if shard:
        made.seed = mix(trainer.seed, shard) & ((1 << 62) - 1)
        made.plan = trainer.plan._replace(seed=mix(made.seed, 0x1015))
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


def check_mixable(trainer: Trainer) -> None:
    """Raise an error if the learners of a training cannot be averaged."""
    chosen = trainer.algorithm
    if trainer.policy is not None:
        raise ConfigurationError("sync='pass' averages weights of the linear learner: use sync='exact' with policy=...")
    if chosen.restart or chosen.returned == "drawn":
        raise ConfigurationError(f"sync='pass' cannot train {chosen.name}: choose lols, aggrevate, dagger or cloning")
    update = trainer.settings.update
    if update in SECOND_ORDER:
        raise ConfigurationError(f"{update} learners cannot be averaged: choose adagrad or nag, or sync='exact'")


class Mixing:
    """A run in pass mode, on the side of the driver.

    Parameters
    ----------
    run
        The run, whose learner has the mixed weights after each pass.
    workers
        Who trains shards.
    shards
        How many there are; the result depends on it.
    legs
        How often weights are mixed in the first pass, and in the others.

    """

    def __init__(self, run: TrainingRun, workers: Workers, shards: int, legs: tuple[int, int]):
        self.run, self.workers, self.legs, self.id = run, workers, legs, uuid.uuid4().hex
        trainer = copy.copy(run.trainer)
        # so that all shards together search as many examples with the same policy as one machine
        trainer.engine, trainer.batch_size = InProcess(), max(1, run.batch_size // shards)
        if trainer.threads in (None, AUTO) and not run.trainer.engine.LOCAL:
            trainer.threads = 1  # there are many workers
        self._trainer = workers.share(trainer)
        self._data = [workers.share(part) for part in shards_of(run.data, shards)]
        self.history = History(workers)
        self.received = 0  # bytes of weights

    def passes(self, bar: Any) -> Iterator[None]:
        """Go on by one leg of a pass each time; between two of them there can be a checkpoint."""
        try:
            yield from self._legs(bar)
        finally:
            if self.run.trainer.engine.LOCAL:
                forget_shards(self.id)

    def _legs(self, bar: Any) -> Iterator[None]:
        run = self.run
        learner: Any = run.student.learner
        if run.pass_ or run.offset:
            self._share_whole()
        while run.pass_ < run.trainer.passes:
            results, steps, sums = [], run.steps_done, run.sums[run.pass_].copy()
            for result in self.workers.map(train_shard, self._tasks()):
                results.append(result)
                steps, sums = steps + result.steps, sums + result.sums[run.pass_]
                bar.say(f"{self.workers.alive} workers" if self.workers.alive > 1 else "")
                bar.advance(steps, loss=float(sums[0] / max(sums[1], 1.0)))
            changes = mixed(learner, [result.changes for result in results])
            with uninterrupted():
                apply_changes(learner, changes)
                run.steps_done, run.sums[run.pass_] = steps, sums
                if run.trainer.plan.compare:
                    for result in results:
                        run.adaptive.observe(result.losses)
                leg = run.offset + 1  # where a run has the number of examples, this one has that of legs
                run.pass_, run.offset = (run.pass_, leg) if leg < self.legs_now else (run.pass_ + 1, 0)
            self.received += sum(result.changes.nbytes for result in results)
            self._share(changes)
            yield

    @property
    def legs_now(self) -> int:
        """The legs of this pass."""
        return self.legs[self.run.pass_ > 0]

    def _tasks(self) -> Iterator[ShardTask]:
        run = self.run
        for shard, data in enumerate(self._data):
            how = run.adaptive.state(), run.pass_, run.offset, self.legs_now, len(self._data) == 1
            yield ShardTask(self.id, shard, self._trainer, data, self.history.now, *how)

    def _share(self, changes: LearnerChanges) -> None:
        """Give the workers what has changed, or all of the learner where that is less."""
        if self.history.has_room(changes.nbytes, self.run.student.learner.report()["bytes"]):  # type: ignore[union-attr]
            self.history.add(changes, changes.nbytes)
        else:
            self._share_whole()

    def _share_whole(self) -> None:
        state = self.run.student.learner.state()  # type: ignore[union-attr]
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
