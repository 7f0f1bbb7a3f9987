"""Stage 1 on a worker: it holds the data and a copy of the policy, and searches parts of batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.engine.drivers.portable import Portable
from lols.engine.lessons import NO_FEATURES, FeatureRuns
from lols.engine.structures import Batch, Plan
from lols.engines.history import Version
from lols.engines.protocol import SharedValue
from lols.engines.replica import Replica, Touched
from lols.kernels import store
from lols.kernels.ahead import prepare_all
from lols.kernels.kernel import DISABLED


class SearchedProblem(NamedTuple):
    """What is searched: a driver with its data, and the policy of the user if it is not the linear one."""

    driver: Portable
    policy: Any = None


class PartOfBatch(NamedTuple):
    """Examples of a batch to be searched, and the policy to do it with."""

    run: str
    problem: SharedValue
    version: Version
    indices: np.ndarray
    rounds: np.ndarray
    plan: Plan
    beta: np.ndarray
    beta_in: np.ndarray


class PartLessons(NamedTuple):
    """The lessons of some rounds without gaps, and which features learning from them touches."""

    filled: np.ndarray  # [round]
    losses: np.ndarray
    lengths: np.ndarray  # [slot]: features
    ids: np.ndarray
    values: np.ndarray  # none if all are 1
    costs: np.ndarray  # of slots with weight, as their features
    weight: np.ndarray
    action_lengths: np.ndarray  # [slot, action]
    action_ids: np.ndarray
    action_values: np.ndarray
    taken: np.ndarray  # [slot]: the actions of the roll-ins, for policies of the user's
    shared: Touched
    single: Touched

    @property
    def nbytes(self) -> int:
        """Bytes to be sent."""
        arrays = [*self[:11], *self.shared, *self.single]
        return sum(array.nbytes for array in arrays)


NOTHING = Touched(np.zeros(0, np.int32), np.zeros(0, np.int64))


@contextlib.contextmanager
def one_compiles() -> Iterator[None]:
    """On each machine one process compiles, and the others wait and load what it has stored."""
    folder = store.folder()
    try:
        import fcntl

        lock = open(folder / "workers.lock", "w") if folder is not None else None  # noqa: SIM115
    except (ImportError, OSError):
        lock = None
    try:
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        if lock is not None:
            lock.close()


class StageOne:
    """The data of a run on a worker, its driver, and the policy in the version that was last asked for."""

    def __init__(self, run: str, problem: SearchedProblem):
        self.run, self.policy = run, problem.policy
        self.version: int | None = None
        self.driver = problem.driver.make()
        self.linear, self.fresh, self.compiled = problem.policy is None, True, self.driver.compiled
        self.replica: Any = None

    def follow(self, part: PartOfBatch) -> Any:
        """The policy in the version that a part is searched with."""
        self.version = part.version.follow(self.version, self._load, self._apply)
        return self.replica.policy() if self.linear else self.policy

    def _load(self, whole: Any) -> None:
        if self.linear:
            self.replica = Replica(whole, compiled=self.compiled)
        else:
            self.policy.load({name: np.array(array) for name, array in whole.items()})

    def _apply(self, changes: Any) -> None:
        self.replica.apply(changes)

    def search(self, part: PartOfBatch) -> PartLessons:
        """Search the examples of a part."""
        policy = self.follow(part)
        arguments = (part.indices, part.rounds, policy, part.plan, part.beta, part.beta_in)
        if self.fresh and self.compiled and not DISABLED:
            with one_compiles():
                self._prepare(arguments)
        self.fresh = False
        batch = self.driver.make_lessons(*arguments)
        if not self.linear:
            return packed(batch, self.driver.taken(batch))
        lessons = packed(batch)
        shared, single = self.replica.shared.touched(lessons.ids), self.replica.single.touched(lessons.action_ids)
        return lessons._replace(shared=shared, single=single)

    def _prepare(self, arguments: Any) -> None:
        """Compile what a search needs, or load it."""
        indices, rounds, policy, plan, beta, beta_in = arguments
        if not self.linear:
            self.driver.make_lessons(indices[:1], rounds[:1], policy, plan, beta[:1], beta_in[:1])
        elif hasattr(self.driver, "calls"):
            prepare_all([self.driver.calls(policy, plan).search])


_STAGE: StageOne | None = None  # of the latest run


def search_part(part: PartOfBatch) -> PartLessons:
    """Search a part of a batch; the data come with the first one."""
    global _STAGE
    if _STAGE is None or _STAGE.run != part.run:
        _STAGE = None  # its memory first
        problem = part.problem.get()
        arguments = dict(problem.driver.arguments)
        if "examples" in arguments:
            arguments["examples"] = writable(arguments["examples"])
        _STAGE = StageOne(part.run, problem._replace(driver=problem.driver._replace(arguments=arguments)))
    return _STAGE.search(part)


def writable(examples: Examples) -> Examples:
    """The same examples in arrays that can be written to: kernels are compiled for these."""
    arrays = [a for column in (*examples.x, *examples.y, examples.items) for a in column if isinstance(a, np.ndarray)]
    if all(array.flags.writeable for array in arrays):
        return examples

    def copied(column: Any) -> Any:
        return type(column)(*(np.array(a) if isinstance(a, np.ndarray) else a for a in column))

    made = Examples.__new__(Examples)
    vars(made).update(vars(examples))
    for name in ("x", "y"):
        side = getattr(examples, name)
        setattr(made, name, type(side)(*(copied(column) for column in side)))
    made.items = copied(examples.items)
    for name in ("states", "steps", "actions"):
        value = getattr(examples, name)
        setattr(made, name, None if value is None else np.array(value))
    return made


def packed(batch: Batch, taken: np.ndarray | None = None) -> PartLessons:
    """The lessons of a batch without the gaps between them."""
    lessons, slots = batch.lessons, batch.lessons.slots
    filled = lessons.filled
    count = int(filled.sum())
    at = np.repeat(lessons.first - (np.cumsum(filled) - filled), filled) + np.arange(count)
    learned = slots.weight[at] > 0.0  # nothing else of other slots matters
    start, stop = (np.where(learned, each[at], 0) for each in (slots.start, slots.stop))
    own = FeatureRuns(start, stop, slots.ids, slots.values)
    by_action = NO_FEATURES
    if slots.action_start.size:
        begin, end = (
            np.where(learned[:, np.newaxis], each[at], 0).reshape(-1)
            for each in (slots.action_start, slots.action_stop)
        )
        by_action = FeatureRuns(begin, end, slots.action_ids, slots.action_values)
    lengths, ids, values = _gathered(own)
    action_lengths, action_ids, action_values = _gathered(by_action)
    nobody = np.zeros(0, np.int64)
    return PartLessons(
        filled.copy(),
        batch.losses.copy(),
        lengths,
        ids,
        values,
        slots.costs[at[learned]],
        slots.weight[at],
        action_lengths,
        action_ids,
        action_values,
        nobody if taken is None else taken,
        NOTHING,
        NOTHING,
    )


def _gathered(runs: FeatureRuns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The lengths of runs, and their features one after the other."""
    lengths = runs.stop - runs.start
    at = np.repeat(runs.start - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    values = runs.values[at]
    return lengths.astype(np.int32), runs.ids[at], values[:0] if (values == 1.0).all() else values
