"""Exact mode: workers search parts of a batch, and what they found is put together in order."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import Any

import numpy as np

from lols.engine.drivers.adapted import adapted
from lols.engine.drivers.portable import check_sendable
from lols.engine.lessons import FeatureRuns, lessons_of, slots_of
from lols.engine.structures import Batch, Plan
from lols.engines.history import History
from lols.engines.protocol import Workers
from lols.engines.replica import Tracked, snapshot
from lols.engines.stage_one import PartLessons, PartOfBatch, SearchedProblem, search_part

OWN_PARTS = (
    4  # of a batch for policies of the user's: fixed, because their arithmetic may depend on what comes together
)


class BatchSearcher:
    """Stage 1 by workers, with the interface of a driver: `make_lessons` gives what the driver itself would give.

    Parameters
    ----------
    workers
        Who searches.
    driver
        The driver of this process: what it is made of, and its data, are sent to the workers once.
    policy
        The policy of the user that is trained, if it is not the linear one.
    whole
        Whether learning changes more weights than those of the lessons' features, so that all are sent each time.

    """

    def __init__(self, workers: Workers, driver: Any, policy: Any = None, *, whole: bool = False):
        self.workers, self.driver, self.policy, self.always_whole = workers, driver, policy, whole
        self.run, self.history = uuid.uuid4().hex, History(workers)
        self.received = self.batches = 0  # bytes of lessons, and how many batches
        if policy is not None:
            check_sendable(f"the policy {type(policy).__name__}", policy)
        self._problem = workers.share(SearchedProblem(driver.portable().signed(), policy))
        self._whole_bytes = 0
        self._tracked: Tracked | None = None

    def begin_again(self) -> None:
        """The policy is another one from now on, so that the next batch sends it as a whole."""
        self._tracked = None

    def make_lessons(
        self,
        indices: np.ndarray,
        rounds: np.ndarray,
        policy: Any,
        plan: Plan,
        beta: np.ndarray,
        beta_in: np.ndarray,
    ) -> Batch:
        """Search the examples of a batch, and put the lessons of its parts together."""
        self._send(policy)
        common = self.run, self._problem, self.history.now
        parts = [
            PartOfBatch(*common, indices[part], rounds[part], plan, beta[part], beta_in[part])
            for part in self._cut(indices)
        ]
        found = list(self.workers.map(search_part, parts, len(parts)))
        self.received += sum(lessons.nbytes for lessons in found)
        self.batches += 1
        if self._tracked is not None:
            touched = ([each.shared for each in found], [each.single for each in found])
            self._tracked.before(policy, touched)
        return self._joined(found, indices, rounds, beta, beta_in)

    def _cut(self, indices: np.ndarray) -> list[slice]:
        """Parts of a batch with about the same number of steps: one for each worker, at most one for each example."""
        count = min(indices.size, OWN_PARTS if self.policy is not None else max(self.workers.alive, 1))
        total = np.cumsum(self.driver.work_of(indices))
        wanted = total[-1] * np.arange(1, count) / count
        cuts = np.unique(np.searchsorted(total, wanted)).tolist()
        bounds = [0, *(cut for cut in cuts if 0 < cut < indices.size), indices.size]
        return [slice(low, high) for low, high in pairwise(bounds)]

    def _send(self, policy: Any) -> None:
        """Share what has changed in the policy, or all of it where that is less."""
        if self.policy is None:
            changes = None if self._tracked is None else self._tracked.after(policy)
            if changes is not None and self.history.has_room(changes.nbytes, self._whole_bytes):
                self.history.add(changes, changes.nbytes)
                return
            whole: Any = snapshot(policy)
            self._whole_bytes = whole.nbytes
            self._tracked = None if self.always_whole else Tracked(policy, compiled=self.driver.compiled)
        else:
            whole = adapted(policy).state()
            self._whole_bytes = sum(array.nbytes for array in whole.values())
        self.history.begin(whole, self._whole_bytes)

    def _joined(
        self, parts: list[PartLessons], indices: np.ndarray, rounds: np.ndarray, beta: np.ndarray, beta_in: np.ndarray
    ) -> Batch:
        """The batch as one process would have made it, but for the gaps between lessons."""
        parts = [part._replace(values=ones(part.values, part.ids)) for part in parts]
        parts = [part._replace(action_values=ones(part.action_values, part.action_ids)) for part in parts]
        columns = [np.concatenate(each) for each in zip(*(part[:11] for part in parts))]
        filled, losses, lengths, ids, values, learned, weight, action_lengths, action_ids, action_values, taken = (
            columns
        )
        own = FeatureRuns.between(_bounds(lengths), ids, values)
        by_action = FeatureRuns.between(_bounds(action_lengths), action_ids, action_values)
        costs = np.zeros((weight.size, learned.shape[1]), learned.dtype)
        costs[weight > 0.0] = learned
        lessons = lessons_of(
            slots_of(own, costs, weight, by_action),
            np.cumsum(filled) - filled,
            filled,
            example=indices,
            widest=own.widest,
            widest_action=by_action.widest,
        )
        batch = Batch(rounds, beta, beta_in, np.arange(indices.size), losses, lessons)
        self.driver.adopt(batch, taken)
        return batch


def ones(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The values of features, which were left out if all are 1."""
    return values if values.size == ids.size else np.ones(ids.size, values.dtype)


def _bounds(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
