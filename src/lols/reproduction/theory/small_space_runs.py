"""The library's own training on small spaces, and each round's policy, read from the weights.

With one feature for what a policy sees, and a weight for it and each action, the policies that cost regression can
express are all tables of actions: the class of `random_space`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.features import emit
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory.small_spaces import SmallSpace
from lols.training.stream import Stream
from lols.training.trainer import Trainer

__all__ = ["layered_reference", "layered_space", "start_example", "train_lols"]

ACTIONS = 3
"""The most actions of a space that the engine is run on."""

RIDGE = LearnerSettings("csoaa", "ridge", max_features=16)


def train_lols(
    space: SmallSpace,
    rounds: int,
    beta: float,
    *,
    seed: int,
    learner: LearnerSettings = RIDGE,
    compiled: bool = True,
) -> np.ndarray:
    """Train in a small space, one example a round, and count how often each policy of its class was the current one.

    The class must have all tables of what is seen, as that of `random_space` has; start states are drawn at random.

    >>> from lols.reproduction.theory.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=2, actions=2)
    >>> counts = train_lols(space, 20, 0.5, seed=1, compiled=False)
    >>> int(counts.sum()), counts.size == len(space.policies)
    (20, True)
    """
    if space.actions > ACTIONS or space.seen is None:
        raise ConfigurationError(f"the engine runs on spaces of random_space with at most {ACTIONS} actions")
    trainer = Trainer(
        layered_space(), layered_reference(), learner=learner, batch_size=1, seed=seed, beta=beta, compiled=compiled,
    )  # fmt: skip
    stream = Stream(trainer)
    inputs = [Examples(trainer.space, [start_example(space, s)]) for s in range(space.start.size)]
    starts = np.random.default_rng((seed, rounds)).choice(space.start.size, rounds, p=space.start)
    numbers = {tuple(table): n for n, table in enumerate(space.policies.tolist())}
    counts = np.zeros(len(numbers))
    for start in starts:
        counts[numbers[_greedy(stream.learner.policy(), space)]] += 1
        stream.learn(inputs[start])
    return counts


def _greedy(policy: Any, space: SmallSpace) -> tuple[int, ...]:
    """What a policy does at each state: the action of least predicted cost, the first of several."""
    assert space.seen is not None
    actions = []
    for what in space.seen.tolist():
        row = int(lookup(policy.shared, what))
        actions.append(0 if row < 0 else int(policy.stack[0, row, : space.actions].argmin()))
    return tuple(actions)


# --- small spaces for the engine --------------------------------------------------------------------------------------


def layered_space() -> SearchSpace:
    """Small spaces as one search space: its tables come with the example, and an output is an end state."""
    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        loss=_loss,
        output=_output,
        encode=_encode,
        sizes=Sizes(state=2, actions=ACTIONS, features=1, steps=lambda x: x.steps),
        name="lols.theory:small_space_runs",
    )


def layered_reference() -> Reference:
    """The reference of whichever space it is."""
    return Reference(action=_reference_action, name="table")


def start_example(space: SmallSpace, start: int) -> dict[str, Any]:
    """A space with one of its start states, as the engine is given it."""
    return {
        "shown": {
            "follow": space.follow.reshape(-1).tolist(), "seen": np.asarray(space.seen).tolist(), "start": start,
            "steps": space.steps, "actions": space.actions,
        },
        "truth": {"losses": space.losses.tolist(), "reference": space.reference.tolist()},
    }  # fmt: skip


def _encode(obj: dict[str, Any]) -> Example:
    return Example(obj["shown"], obj["truth"])


def _start(x, s):
    s[1] = x.start


def _actions(x, s, legal):
    if s[0] < x.steps:
        legal[: x.actions] = True


def _step(x, s, a):
    s[0] += 1
    s[1] = x.follow[s[1] * x.actions + a]


def _features(x, s, out):
    emit(out, x.seen[s[1]])


def _loss(x, y, s):
    return y.losses[s[1] - len(x.seen)]


def _reference_action(x, y, s):
    return y.reference[s[1]]


def _output(x: Any, s: np.ndarray) -> int:
    return int(s[1]) - len(x.seen)
