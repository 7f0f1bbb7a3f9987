"""The training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from lols.contract.examples import Examples
from lols.engine.structures import Batch
from lols.engines import Workers
from lols.engines.searcher import BatchSearcher
from lols.kernels.ahead import compile_ahead
from lols.kernels.kernel import DISABLED
from lols.learners.structures import SECOND_ORDER
from lols.training.learning import Learning
from lols.training.plans import check_scale
from lols.training.sources import Arriving, DataSource


def learn(learning: Learning, source: DataSource, searcher: Searcher) -> Iterator[None]:
    """Learn from a source; gives way after each batch.

    The examples of a batch are searched with the policy as it is, and then it learns from what was found: lines 2 to 14
    of Algorithm 1, where a batch is one example. What there is to learn from is the source's matter.
    """
    for _ in source.passes(learning):
        learning.begin_pass()
        for examples, order in source.parts(learning):
            searcher.turn_to(examples, order)
            for at, rounds in learning.batches(order, carries=source.carries):
                learning.take(searcher.search(at, rounds), searcher.driver)
                yield


def learn_on(learning: Learning, examples: Examples) -> None:
    """Learn from the next examples of a stream."""
    source = Arriving(examples, carries=learning.policy.has_weights)
    with Searcher(learning, source) as searcher:
        for _ in learn(learning, source, searcher):
            pass


class Searcher:
    """Searches batches of a source with the policy of a learning, here or by workers.

    The driver is kept as long as the examples are the same.

    Parameters
    ----------
    learning
        Whose policy it is.
    source
        Whose examples.
    first
        Whether training begins, so that kernels are compiled ahead and functions are looked over.
    found
        Is given what was found for each batch, before it is learned from.
    warns
        Whether it is said that costs are too large for the learner.

    """

    def __init__(
        self,
        learning: Learning,
        source: DataSource,
        *,
        first: bool = False,
        found: Callable[[Batch], None] | None = None,
        warns: bool = True,
    ):
        self.learning, self.source, self._first, self._found, self._warns = learning, source, first, found, warns
        self.workers: Workers | None = None
        self.driver: Any = None
        self._by: Any = None  # who makes lessons: the driver or what sends its batches to workers
        self._examples: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads of the driver."""
        if self.driver is not None:
            self.driver.close()
        self.driver = self._by = self._examples = None

    def turn_to(self, examples: Any, order: np.ndarray) -> None:
        """Search these examples from now on."""
        if examples is self._examples:
            return
        self.close()
        learning, recipe = self.learning, self.learning.recipe
        self.driver, self._examples = self.source.driver(learning.policy, recipe, examples), examples
        if self._first:
            if recipe.compiled and not DISABLED:
                compile_ahead(self.source.calls(learning.policy, self.driver, recipe))
            recipe.look_over(examples, self.driver)
            self._first = False
        if learning.unsettled:
            learning.settle(self.driver, self.source.looked_at(order))
        self._by = self.driver
        if self.workers is not None:
            self.send_to(self.workers)

    def send_to(self, workers: Workers) -> None:
        """Let workers search from now on."""
        self.workers, recipe = workers, self.learning.recipe
        if self.driver is not None:
            whole = recipe.settings.update in SECOND_ORDER
            self._by = BatchSearcher(workers, self.driver, self.learning.policy.sent, whole=whole)

    def search(self, at: np.ndarray, rounds: np.ndarray) -> Batch:
        """Search examples of a batch."""
        learning = self.learning
        recipe = learning.recipe
        batch: Batch = self._by.make_lessons(at, rounds, learning.asked, recipe.plan, *learning.betas(rounds))
        if self._warns and learning.done == 0 and learning.policy.has_weights and not recipe.unsettled:
            check_scale(recipe.settings, batch.lessons)
        if self._found is not None:
            self._found(batch)
        return batch

    def begin_again(self) -> None:
        """The policy is another one from now on, which workers must be told."""
        if self.workers is not None:
            self._by.begin_again()
