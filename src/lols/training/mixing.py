"""Pass mode: each shard of the data trains a learner of its own for a pass, then their weights are mixed."""

from __future__ import annotations

import copy
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.contract.hashing import mix
from lols.contract.threads import AUTO
from lols.engine.compile.ahead import prepare_all
from lols.engine.compile.kernel import DISABLED
from lols.engine.structures import LOSSES
from lols.engines import Files, InProcess, SharedValue, Workers
from lols.engines.stage_one import one_compiles, writable
from lols.errors import ConfigurationError
from lols.learners.learner import Learner
from lols.learners.mixing import LearnerChanges, changes_since, mixed

if TYPE_CHECKING:
    from lols.training.run import TrainingRun
    from lols.training.trainer import Trainer

__all__ = ["LEGS", "Mixing", "ShardResult", "ShardTask", "check_mixable", "train_shard"]

LEGS = 4  # by default: with 1, weights are averaged after each pass, and eight shards lose half a point of tagging
MOST_BYTES = 2 << 30  # of the data of shards that a worker keeps for the next pass


class ShardTask(NamedTuple):
    """A leg of a pass over one shard."""

    run: str
    shard: int
    trainer: SharedValue
    data: SharedValue
    state: SharedValue | None  # of the learner to go on from
    adaptive: dict[str, Any]
    pass_: int
    leg: int  # of the pass
    legs: int


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
        data = list(data) if isinstance(data, Files) else data
        self.bytes = data.nbytes() if isinstance(data, Examples) else 0
        if not len(data):
            raise NoExamplesError
        self.run: TrainingRun = self.trainer.new_run(writable(data) if isinstance(data, Examples) else data)
        with one_compiles():
            self.driver = self.run.driver().__enter__()
            if hasattr(self.driver, "calls") and self.trainer.compiled and not DISABLED:
                prepare_all(self.run.student.calls(self.driver))  # type: ignore[attr-defined]

    def train(self, task: ShardTask) -> ShardResult:
        """Train for a leg of a pass, from the given state."""
        run, trainer = self.run, self.trainer
        base: Any = task.state.get() if task.state is not None else self._learner().state()
        if task.state is not None:
            self._learner().load(base)
        run.adaptive = replace(run.adaptive, **task.adaptive)
        first, last = (self._place(leg, task.legs) for leg in (task.leg, task.leg + 1))
        run.pass_, run.offset, run.steps_done = task.pass_, first, 0
        run.sums = np.zeros_like(run.sums)
        losses = [np.zeros((0, LOSSES))]
        for indices, rounds in run.batches() if first < last else ():
            beta, beta_in = run.betas(rounds)
            policy = run.student.rolling_policy()
            batch = self.driver.make_lessons(indices, rounds, policy, trainer.plan, beta, beta_in)
            losses.append(batch.losses.copy())
            run.learn(batch)
            if run.offset in (0, last):
                break
        changes = changes_since(base, self._learner().state(copy=False))
        run.begin_again()  # the weights are not kept
        return ShardResult(changes, run.sums, np.concatenate(losses), run.steps_done)

    def _place(self, leg: int, legs: int) -> int:
        """Where a leg begins: about as many batches are in each."""
        count, size = len(self.run.examples), self.run.batch_size
        return min(count, leg * -(-count // size) // legs * size)

    def _learner(self) -> Learner:
        learner = self.run.student.learner
        assert learner is not None
        return learner


_SHARDS: OrderedDict[tuple[str, int], Shard] = OrderedDict()


def train_shard(task: ShardTask) -> ShardResult:
    """Train on a shard; its data are kept for the next pass, as far as there are not too many."""
    key = task.run, task.shard
    for other in [each for each in _SHARDS if each[0] != task.run]:
        del _SHARDS[other]
    try:
        found = _SHARDS.pop(key, None) or Shard(task)
    except NoExamplesError:  # its files are empty
        base = task.trainer.get().new_learner().state() if task.state is None else task.state.get()
        nothing = np.zeros((task.trainer.get().passes, 2))
        return ShardResult(changes_since(base, base), nothing, np.zeros((0, LOSSES)), 0)
    _SHARDS[key] = found
    while len(_SHARDS) > 1 and sum(each.bytes for each in _SHARDS.values()) > MOST_BYTES:
        _SHARDS.popitem(last=False)
    return found.train(task)


def of_shard(trainer: Trainer, shard: int) -> Trainer:
    """The trainer of a shard: random numbers of its own, and in this process. The first one is like the whole."""
    made = copy.copy(trainer)
    made.engine = InProcess()
    if shard:
        made.seed = mix(trainer.seed, shard) & ((1 << 62) - 1)
        made.plan = trainer.plan._replace(seed=mix(made.seed, 0x1015))
    return made


def check_mixable(trainer: Trainer) -> None:
    """Raise an error if the learners of a training cannot be averaged."""
    chosen = trainer.algorithm
    if trainer.policy is not None:
        raise ConfigurationError("sync='pass' averages weights of the linear learner: use sync='exact' with policy=...")
    if chosen.restart or chosen.returned == "drawn":
        raise ConfigurationError(f"sync='pass' cannot train {chosen.name}: choose lols, aggrevate, dagger or cloning")
    if trainer.settings.update == "ridge":
        raise ConfigurationError("ridge learners cannot be averaged: choose adagrad or nag, or sync='exact'")


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
        How often weights are mixed in a pass.

    """

    def __init__(self, run: TrainingRun, workers: Workers, shards: int, legs: int):
        self.run, self.workers, self.legs, self.id = run, workers, legs, uuid.uuid4().hex
        trainer = copy.copy(run.trainer)
        trainer.engine, trainer.batch_size = InProcess(), run.batch_size
        if trainer.threads in (None, AUTO) and not run.trainer.engine.LOCAL:
            trainer.threads = 1  # there are many workers
        self._trainer = workers.share(trainer)
        self._data = [workers.share(part) for part in shards_of(run.data, shards)]

    def passes(self, bar: Any) -> Iterator[None]:
        """Go on by one pass each time."""
        run = self.run
        while run.pass_ < run.trainer.passes:
            run.student.begin_pass()
            learner: Any = run.student.learner
            before, sums, steps, adaptive = learner.state(), np.zeros(2), run.steps_done, replace(run.adaptive)
            try:
                for leg in range(self.legs):
                    results = []
                    state = learner.state()
                    fresh = run.pass_ == 0 and leg == 0
                    shared = None if fresh else self.workers.share(state)
                    for result in self.workers.map(train_shard, self._tasks(shared, leg)):
                        results.append(result)
                        run.steps_done, sums = run.steps_done + result.steps, sums + result.sums[run.pass_]
                        bar.say(f"{self.workers.alive} workers" if self.workers.alive > 1 else "")
                        bar.advance(run.progress, loss=float(sums[0] / max(sums[1], 1.0)))
                    learner.load(mixed(state, [result.changes for result in results]))
                    if run.trainer.plan.compare:
                        for result in results:
                            run.adaptive.observe(result.losses)
            except BaseException:  # as it was after the last pass, for a checkpoint
                learner.load(before)
                run.steps_done, run.adaptive = steps, adaptive
                raise
            run.sums[run.pass_] = sums
            run.pass_, run.offset = run.pass_ + 1, 0
            yield

    def _tasks(self, state: SharedValue | None, leg: int) -> Iterator[ShardTask]:
        how = self.run.adaptive.state(), self.run.pass_, leg, self.legs
        for shard, data in enumerate(self._data):
            yield ShardTask(self.id, shard, self._trainer, data, state, *how)


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
