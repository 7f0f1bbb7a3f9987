"""The library's own training on small spaces, and each round's policy, read from the weights.

With one feature for what a policy sees, and a weight for it and each action, the policies that cost regression can
express are all tables of actions.
"""

# The first argument of a task's functions is an input, not an object.
# mypy: disable-error-code="attr-defined, arg-type, index"
from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lols.contract.examples import Examples
from lols.contract.features import emit
from lols.contract.space import Example, Sizes
from lols.contract.task import Task
from lols.engine.table import lookup
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory.small_spaces import SmallSpace
from lols.training.stream import Stream
from lols.training.trainer import Trainer


class Layers(Task):
    """Small spaces as one task: the tables come with the example, and an output is an end state."""

    settings: ClassVar[dict[str, int]] = {"actions": 2}
    needs_truth = False

    def sizes(settings):
        return Sizes(state=2, actions=settings.actions, features=1, steps=lambda x: x.steps)

    def encode(obj):
        return Example(obj["shown"], obj.get("truth"))

    def start(x, s):
        s[1] = x.start

    def actions(x, s, legal):
        legal[:] = s[0] < x.steps

    def step(x, s, a):
        s[0] += 1
        s[1] = x.follow[s[1] * x.actions + a]

    def features(x, s, out):
        emit(out, x.seen[s[1]])

    def loss(x, y, s):
        return y.losses[s[1] - len(x.seen)]

    def output(x, s):
        return int(s[1]) - len(x.seen)

    def reference(x, y, s):
        return x.reference[s[1]]


def start_examples(space: SmallSpace) -> list[dict[str, Any]]:
    """A space with each of its start states, as the task is given it."""
    tables = {"follow": space.follow.reshape(-1), "seen": np.asarray(space.seen), "reference": space.reference}
    shown, truth = {**tables, "steps": space.steps}, {"losses": space.losses}
    return [{"shown": {**shown, "start": start}, "truth": truth} for start in range(space.start.size)]


def train_lols(space: SmallSpace, rounds: int, beta: float, *, seed: int, compiled: bool = True) -> np.ndarray:
    """Train in a small space, one example a round, and count how often each policy of its class was the current one.

    The class must have all tables of what is seen, as that of `random_space` has; start states are drawn at random.
    """
    trainer = Trainer(
        Layers(actions=space.actions), Layers.teacher, learner=LearnerSettings("csoaa", "ridge", max_features=16),
        batch_size=1, seed=seed, beta=beta, compiled=compiled,
    )  # fmt: skip
    stream = Stream(trainer)
    inputs = [Examples(trainer.space, [example]) for example in start_examples(space)]
    starts = np.random.default_rng((seed, rounds)).choice(space.start.size, rounds, p=space.start)
    numbers = {tuple(table): n for n, table in enumerate(space.listed.tolist())}
    counts = np.zeros(len(numbers))
    for start in starts:
        counts[numbers[_greedy(stream.learner.policy(), space)]] += 1
        stream.learn(inputs[start])
    return counts


def _greedy(policy: Any, space: SmallSpace) -> tuple[int, ...]:
    """What a policy does at each state: the action of least predicted cost, the first of several."""
    rows = [int(lookup(policy.shared, what)) for what in np.asarray(space.seen).tolist()]
    return tuple(0 if row < 0 else int(policy.stack[0, row, : space.actions].argmin()) for row in rows)
