"""The lock-step driver: many searches advance at the same time, with one call of the policy for each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.threads import Threads
from lols.engine.drivers.adapted import ROOM, Adapted, adapted
from lols.engine.drivers.frontier import (
    Group,
    Level,
    RollIns,
    RolloutCache,
    RolloutPaths,
    RollOuts,
    Walks,
    make_cache,
    make_paths,
    make_pending,
    make_trails,
    make_walks,
)
from lols.engine.drivers.fused import Again, FusedDriver
from lols.engine.drivers.levels import follow_kernel, roll_in_kernel, roll_out_kernel, search_kernel, settle_kernel
from lols.engine.drivers.portable import Portable
from lols.engine.drivers.predictions import Predictions
from lols.engine.lessons import make_slots
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.states import GatheredFeatures, Replayed, States, look_at_kernel, replay_kernel
from lols.engine.structures import EXPECTED, NONE, Batch, Lessons, PendingRollouts, Plan, Scratch, Slots, Trail
from lols.errors import LolsError
from lols.kernels.kernel import Kernel

MOST_WALKS = 1 << 17
MOST_PENDING = 1 << 20
MOST_SLOTS = 1 << 22  # of the cache of states that roll-outs meet
LONG = 1 << 5  # steps of a roll-out before it meets another one
FEW = 1 << 11  # walks that one thread continues by itself
NO_COSTS = np.zeros((0, 1), np.float32)


class LockStepDriver(FusedDriver):
    """Runs a data set through a space with any policy that scores batches: see `lols.policies`.

    It has the interface of the fused driver. `room` is the approximate memory, in bytes, for searches in progress.
    """

    def __init__(
        self,
        space: SearchSpace,
        examples: Examples,
        reference: Reference | None = None,
        *,
        threads: Threads = 1,
        compiled: bool = True,
        room: int = ROOM,
        bare: bool = False,
    ):
        super().__init__(space, examples, reference, threads=threads, compiled=compiled)
        self._bytes = room
        self._bare = bare  # whether errors are raised unchanged
        self._measure()

    def _measure(self) -> None:
        """Compute how much memory a walk takes, and release the memory of earlier examples."""
        sizes, examples = self.space.sizes, self.examples
        self._widest = sizes.features + sizes.items * examples.widest_item
        steps = int(examples.steps.max(initial=1))
        walk = 4 * int(examples.states.max(initial=1)) + 8 * steps + 12 * self._widest + 64
        walk += examples.most_actions * (5 + 12 * sizes.action_features)
        self._most = max(1, min(MOST_WALKS, self._bytes // walk))
        self._walks: Walks | None = None
        self._paths: RolloutPaths | None = None
        self._cache: RolloutCache | None = None
        self._features: Slots | None = None
        self._states = np.zeros((0, 1), state_type(self.compiled))  # that are computed again
        self._trails: Trail | None = None
        self._ends = 0, 0

    def turn_to(self, examples: Examples) -> None:
        """Continue with other examples, without truth."""
        self._scratch = []
        super().turn_to(examples)
        self._measure()

    def portable(self) -> Portable:
        """What makes such a driver on another machine."""
        made = super().portable()
        return made._replace(arguments={**made.arguments, "room": self._bytes})

    # --- stages ---

    def make_lessons(
        self,
        indices: np.ndarray,
        rounds: np.ndarray,
        policy: Any,
        plan: Plan,
        beta: np.ndarray,
        beta_in: np.ndarray,
        observe: Callable[[PendingRollouts], None] | None = None,
    ) -> Batch:
        """Search examples with a frozen policy; the lessons are in memory that the next call reuses.

        `observe` is given the roll-outs of some examples once they are completed, if there are any.
        """
        batch = make_batch(self._slots, self.examples, indices, rounds, beta, beta_in)
        self._slots = batch.lessons.slots
        plan = plan._replace(bound=False)
        policy = self._begin(policy, indices)

        def again(b: int) -> None:
            at, plain = slice(b, b + 1), self._plain()
            plain.make_lessons(indices[at], rounds[at], policy, plan, beta[at], beta_in[at])

        keeps_costs = plan.prune > 0 or bool(np.isfinite(plan.slack))
        states = int(self.examples.steps[indices].sum()) + indices.size if keeps_costs else 0
        self._trails = make_trails(self.examples.steps[indices])
        rollins = RollIns(batch, self._trails, np.zeros((states, self.actions), np.float32))
        scratch, lessons = self._scratches(policy)[0], batch.lessons
        head = (self.bound, self.bound_reference, self.data)
        walks = self._room(indices.size)
        walks.begin(indices)
        before = (*head, plan._replace(merge=False), scratch, rollins)
        self._advance(roll_in_kernel, before, (), walks, indices.size, policy, again, indices)
        lessons.first[:] = np.cumsum(lessons.filled) - lessons.filled
        ends, drawn = np.zeros(2, np.int64), policy.random
        for low, high, pending in self._groups(lessons.filled, plan, 2 if drawn else 1):
            cache = self._empty_cache(lessons, low, high, pending.value.size)
            arguments = (*head, plan, scratch, rollins, pending, Group(low, high, ends, cache))
            if plan.roll_out != NONE:
                pending.asking[0] = True
                self._run(search_kernel, [arguments], again, indices)
                self._complete((*head, plan, scratch, rollins), pending, cache, policy, again, indices)
                if observe is not None:
                    observe(pending)
            pending.asking[0], pending.filled[0] = False, 0
            self._run(search_kernel, [arguments], again, indices)
        self._ends = int(ends[0]), int(ends[1])
        return batch

    def adopt(self, batch: Batch, taken: np.ndarray) -> None:
        """Take over a batch that was searched elsewhere, without gaps between its lessons; `taken` are its actions."""
        filled, slots = batch.lessons.filled, batch.lessons.slots
        self._trails = make_trails(filled)
        offsets = self._trails.action.offsets  # type: ignore[attr-defined]
        at = np.repeat(offsets[:-1] - (np.cumsum(filled) - filled), filled) + np.arange(taken.size)
        self._trails.action.values[at] = taken  # type: ignore[attr-defined]
        self._ends = slots.ids.size, slots.action_ids.size

    def lesson(self, batch: Batch) -> tuple[States, np.ndarray, np.ndarray]:
        """The lessons of the last batch for a policy to learn from: states in order, cost vectors and weights."""
        lessons = batch.lessons
        count, slots = int(lessons.filled.sum()), lessons.slots
        kept: Any = slice(count)
        number = np.repeat(np.arange(lessons.example.size), lessons.filled)
        if (slots.weight[:count] == 0.0).any():
            kept = np.flatnonzero(slots.weight[:count])
            number = number[kept]
        time = (np.arange(count) - np.repeat(lessons.first, lessons.filled))[kept]
        trails: Any = self._trails
        features = GatheredFeatures(slots, kept, self._ends)
        where = lessons.example[number], trails.action.offsets[number], time, trails.action.values
        return self.states_along(*where, lambda _: features), slots.costs[kept], slots.weight[kept]

    def states_along(
        self, example: np.ndarray, first: np.ndarray, time: np.ndarray, actions: np.ndarray, find_features: Any = None
    ) -> States:
        """The states of examples after `time` of the `actions` from `first` on; of each example in order of time."""

        def find_states() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            if self._states.shape[0] < example.size:
                width = int(self.examples.states.max(initial=1))
                self._states = np.zeros((example.size + example.size // 4, width), self._states.dtype)
            vectors = self._states[: example.size]
            legal = np.zeros((example.size, self.actions), np.bool_)
            replayed = Replayed(example, first, time, actions, vectors, legal)
            work = (self.bound, self.data, self._scratches(None)[0], replayed)
            self._run(replay_kernel, [work], lambda _: None)  # its errors need no second run
            return vectors, np.arange(example.size), legal

        find: Any = {"find_states": find_states, "find_features": find_features or self._gather}
        return States(self.examples, example, time, np.zeros(example.size, np.int64), **find)

    def costs_of(self, policy: Any, states: States) -> np.ndarray:
        """The policy's costs of states, [state, action], in one call."""
        policy = self._begin(policy, np.unique(states.example))
        found = np.empty((len(states), self.actions), np.float32)
        self._take_costs(policy, states, policy.costs(states), found)
        return found

    def taken(self, batch: Batch) -> np.ndarray:
        """The actions of the last batch's roll-ins, example after example."""
        trails: Any = self._trails
        first = trails.action.offsets[:-1]
        return np.concatenate([trails.action.values[f : f + n] for f, n in zip(first, batch.lessons.filled)])

    def predict(
        self, policy: Any, plan: Plan, *, scores: bool = False, temperature: float = 0.0, same: bool = False
    ) -> Predictions:
        """Follow the learned policy on all examples."""
        predictions = Predictions(self.examples, self.compiled, self.actions if scores else 0, temperature)
        most = min(self._most, adapted(policy).most_examples or self._most)
        for low in range(0, len(self.examples), most):
            self._follow(policy, plan, predictions, low, min(low + most, len(self.examples)))
        return predictions

    def _follow(self, policy: Any, plan: Plan, predictions: Predictions, low: int, high: int) -> None:
        """Follow the learned policy on examples `low` to `high`."""

        def again(at: int) -> None:
            self._plain()._follow(policy, plan, Predictions(self.examples, False), at, at + 1)

        rows, walks = high - low, self._room(high - low)
        policy = self._begin(policy, np.arange(low, high))
        walks.begin(np.arange(low, high))
        drawn, scratch = policy.random, self._scratches(policy)[0]
        before = (self.bound, self.data, plan, drawn, scratch)
        self._advance(follow_kernel, before, (predictions.ends,), walks, rows, policy, again)

    # --- levels ---

    def _begin(self, policy: Any, indices: np.ndarray) -> Adapted:
        """The policy to ask in a search of these examples; it is told which they are, if it wants to know."""
        return adapted(policy).begin(self.examples, indices)

    def _advance(
        self,
        kernel: Kernel,
        before: Any,
        after: Any,
        walks: Walks,
        rows: int,
        policy: Adapted,
        again: Again,
        indices: np.ndarray | None = None,
    ) -> None:
        """Continue the walks of the first rows to their ends, level by level; threads share those of a large level.

        They do so only if the policy scores all parts in one call: rounding may depend on what is scored together.
        """
        parts, scratches = self._divided(walks, rows) if policy.scores_parts else [(0, rows)], self._scratches(policy)
        rest = [k for k, value in enumerate(before) if isinstance(value, Scratch)]
        waiting, costs = [high - low for low, high in parts], [NO_COSTS] * len(parts)
        lanes = [walks] if len(parts) == 1 else [walks.part(*part) for part in parts]
        while True:
            work = []
            for lane, count, known, scratch in zip(lanes, waiting, costs, scratches):
                own = [scratch if k in rest else value for k, value in enumerate(before)]
                work.append((*own, Level(lane, count, known, known.view(np.int32)), *after))
            self._run(kernel, work, again, indices)
            waiting = [int(lane.waiting[0]) for lane in lanes]
            if sum(waiting) == 0:
                return
            if len(lanes) > 1 and sum(waiting) < FEW:
                at = 0
                for lane, count in zip(lanes, waiting):
                    walks.take(at, lane, count)
                    at += count
                lanes, waiting = [walks], [at]
            costs = self._costs(policy, lanes, waiting)

    def _divided(self, walks: Walks, rows: int) -> list[tuple[int, int]]:
        """The rows in parts, one for each thread; those of an example stay together."""
        if self.threads == 1 or rows < FEW:
            return [(0, rows)]
        begins = np.flatnonzero(np.diff(walks.example[:rows], prepend=-1))
        cuts = begins[np.searchsorted(begins, rows * np.arange(1, self.threads) // self.threads, side="right") - 1]
        bounds = np.unique([0, *cuts, rows]).tolist()
        return list(pairwise(bounds))

    def _costs(self, policy: Adapted, lanes: Sequence[Walks], waiting: Sequence[int]) -> list[np.ndarray]:
        """The policy's costs of the states that wait, in batches of at most the size that it accepts."""
        most = policy.batch or max(waiting)
        found, batches = [], []
        for walks, rows in zip(lanes, waiting):
            found.append(np.empty((rows, self.actions), np.float32))
            for low in range(0, rows, most):
                part = slice(low, min(low + most, rows))
                states = States(
                    self.examples,
                    walks.example[part],
                    walks.step[part],
                    walks.draw[part],
                    find_states=lambda walks=walks, part=part: walks.found(part),  # type: ignore[misc]
                    find_features=self._gather,
                )
                batches.append((states, found[-1][part]))
        if len(lanes) > 1:
            predicted = policy.costs_of_parts([states for states, _ in batches])
        else:
            predicted = (policy.costs(states) for states, _ in batches)
        for (states, out), each in zip(batches, predicted):
            self._take_costs(policy, states, each, out)
        return found

    def _take_costs(self, policy: Adapted, states: States, predicted: Any, out: np.ndarray) -> None:
        """Copy the costs that a policy predicts for states; an error if shape, type or values cannot be right."""
        predicted = np.asarray(predicted.toarray() if hasattr(predicted, "toarray") else predicted)
        if predicted.shape != (len(states), self.actions):
            raise LolsError(
                f"`costs` of {policy.name} gave an array of shape {predicted.shape} for {len(states)} "
                f"states with {self.actions} actions: it must be {(len(states), self.actions)}"
            )
        if predicted.dtype.kind not in "fiub":
            raise LolsError(f"`costs` of {policy.name} gave {predicted.dtype} values: give real numbers")
        np.add(predicted, 0.0, out=out, casting="unsafe")  # turns -0.0 into 0.0
        if not np.isfinite(out).all() and not np.isfinite(out[states.legal]).all():
            raise LolsError(
                f"`costs` of {policy.name} gave NaN or infinity for a legal action: has it diverged? "
                "Lower its learning rate, or scale the features"
            )

    def _gather(self, states: States) -> GatheredFeatures:
        """Gather the features of states."""
        rows = len(states)
        if self._features is None or self._features.start.size < rows:
            self._features = make_slots(self.space.sizes, self.actions, rows + rows // 4, self._widest)
        ends, scratch = np.zeros(2, np.int64), self._scratches(None)[0]
        arguments = (self.bound, self.data, scratch, states.where(), self._features, ends)

        def again(_: int) -> None:
            scratch.report[:] = 0
            look_at_kernel.plain(*arguments)

        self._run(look_at_kernel, [arguments], again)
        return GatheredFeatures(self._features, slice(rows), (int(ends[0]), int(ends[1])))

    def _complete(
        self, head: Any, pending: PendingRollouts, cache: RolloutCache, policy: Any, again: Again, indices: np.ndarray
    ) -> None:
        """Roll out the pending deviations, as many at a time as the memory allows."""
        for first in range(0, int(pending.filled[0]), self._most):
            count = min(self._most, int(pending.filled[0]) - first)
            walks = self._room(count)
            part = slice(first, first + count)
            walks.begin(indices[pending.example[part]])
            self._paths = make_paths(self._paths, self.examples.steps[walks.example[:count]] - pending.time[part])
            rollouts = RollOuts(pending, first, self._paths, cache)
            self._advance(roll_out_kernel, (*head, rollouts), (), walks, count, policy, again, indices)
            self._run(settle_kernel, [(rollouts, count, walks, self._scratches(policy)[0])], again, indices)

    # --- memory ---

    @property
    def actions(self) -> int:
        """The number of actions."""
        return self.examples.most_actions

    def _groups(self, filled: np.ndarray, plan: Plan, chances: int) -> Iterator[tuple[int, int, PendingRollouts]]:
        """Ranges of examples whose deviations are completed at the same time, and memory for these."""
        most = filled * self.actions * (2 if plan.mix == EXPECTED else 1) + 1
        low = 0
        while low < filled.size:
            total = np.cumsum(most[low:])
            high = low + max(1, int(np.searchsorted(total, MOST_PENDING, side="right")))
            size = 0 if plan.roll_out == NONE else int(total[high - low - 1])
            yield low, high, make_pending(size, chances)
            low = high

    def _empty_cache(self, lessons: Lessons, low: int, high: int, deviations: int) -> RolloutCache:
        """An empty cache for the states that roll-outs of some examples meet."""
        states = np.zeros(lessons.filled.size, np.int64)
        if self.space.key is not None and deviations:
            steps = lessons.filled[low:high]
            states[low:high] = steps * self.actions * np.minimum(steps, LONG)
        self._cache = make_cache(self._cache, states, MOST_SLOTS)
        return self._cache

    def _room(self, rows: int) -> Walks:
        if self._walks is None or self._walks.number.size < rows:
            # pages that are used for the first time cost more than the walks in them, and as the policy learns, there
            # are more walks in each batch: so the memory is rarely replaced
            self._walks = make_walks(self.examples, min(2 * rows, max(rows, self._most)), self.compiled)
        return self._walks

    def _scratches(self, policy: Any) -> list[Scratch]:
        if not self._scratch:
            self._scratch = [self._fresh(policy) for _ in range(self.threads)]
        return self._scratch

    def _fresh(self, policy: Any) -> Scratch:
        return make_scratch(self.examples, 1, 1, self.compiled)

    # --- errors ---

    def _plain(self) -> LockStepDriver:
        """A driver that runs the same as plain Python and raises errors unchanged."""
        return LockStepDriver(self.space, self.examples, self.reference, compiled=False, bare=True)

    def _run(self, kernel: Kernel, work: Any, again: Again, indices: np.ndarray | None = None) -> None:
        if self._bare:
            kernel(False, *work[0])
        else:
            super()._run(kernel, work, again, indices)
