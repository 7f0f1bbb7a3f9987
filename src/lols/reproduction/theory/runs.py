"""The library's own training and its bandit on small spaces, and each round's policy, read from the weights.

With one feature for what a policy sees, and a weight for it and each action, the policies that cost regression can
express are all tables of actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lols.bandit.bandit import StructuredBandit
from lols.bandit.exploring import theory_epsilon
from lols.bandit.log import Decision, MemoryLog
from lols.contract.examples import Examples
from lols.contract.features import emit
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory.small_spaces import SmallSpace
from lols.training.stream import Stream
from lols.training.trainer import Trainer

__all__ = [
    "RIDGE", "Lives", "engine_reference", "engine_space", "run_algorithm2", "start_examples", "tables_of",
    "train_lols",
]  # fmt: skip

RIDGE = LearnerSettings("csoaa", "ridge", max_features=64)  # one for each state of the largest space
LARGEST = 62  # bits of a policy's code


def train_lols(space: SmallSpace, rounds: int, beta: float, *, seed: int, compiled: bool = True) -> np.ndarray:
    """Train in a small space, one example a round, and count how often each policy of its class was the current one.

    The class must have all tables of what is seen, as that of `random_space` has; start states are drawn at random.

    >>> from lols.reproduction.theory.small_spaces import random_space
    >>> space = random_space(np.random.default_rng(0), steps=2, actions=2)
    >>> counts = train_lols(space, 20, 0.5, seed=1, compiled=False)
    >>> int(counts.sum()), counts.size == len(space.policies)
    (20, True)
    """
    trainer = Trainer(
        engine_space(space.actions), engine_reference(), learner=LearnerSettings("csoaa", "ridge", max_features=16),
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


# --- the bandit -------------------------------------------------------------------------------------------------------


class Lives(NamedTuple):
    """The policies of a run in their order, and for how many rounds each was the current one."""

    codes: np.ndarray  # int64: bit k is the action where k is seen
    rounds: np.ndarray
    epsilon: float


def tables_of(space: SmallSpace, codes: np.ndarray) -> np.ndarray:
    """Policies as tables of actions: policies x states.

    >>> from lols.reproduction.theory.small_spaces import ladder_space
    >>> tables_of(ladder_space((0.8, 0.4), steps=2), np.array([0b100_011])).tolist()
    [[1, 0, 1, 0, 0, 1]]
    """
    return codes[:, np.newaxis] >> np.asarray(space.seen) & 1


def run_algorithm2(
    space: SmallSpace,
    rounds: int,
    *,
    seed: int,
    beta: float = 0.5,
    learner: LearnerSettings = RIDGE,
    compiled: bool = True,
) -> Lives:
    """Run the paper's Algorithm 2 in a space of `tree_space`, exploring as Corollary 2 says, and record its policies.

    What it sees is a loss of 0 or 1, whose expectation is the loss of the end state.

    >>> from lols.reproduction.theory.small_spaces import ladder_space
    >>> lives = run_algorithm2(ladder_space(), 20, seed=1, compiled=False)
    >>> int(lives.rounds.sum()), lives.epsilon
    (20, 1.0)
    """
    states, losses = space.reference.size, space.losses
    if states > LARGEST:
        raise ConfigurationError(f"a space of {states} states: take at most {LARGEST}")
    if not ((losses >= 0.0) & (losses <= 1.0)).all():
        raise ConfigurationError("a loss is not from 0 to 1: scale the losses of the end states")
    epsilon = theory_epsilon(rounds, space.actions, space.steps, float(space.actions) ** states)
    log = MemoryLog(keep=2)  # a decision and its loss
    bandit = StructuredBandit.algorithm2(
        engine_space(space.actions), engine_reference(), epsilon=epsilon, beta=beta, learner=learner, log=log,
        seed=seed, compiled=compiled,
    )  # fmt: skip
    chance = np.random.default_rng((seed, rounds))
    starts, luck = chance.integers(space.start.size, size=rounds), chance.random(rounds)
    objects = [{"shown": example["shown"]} for example in start_examples(space)]
    rows: dict[int, int] = {}
    codes, lived = [0], [0]  # without weights, ties go to the first action
    for i in range(rounds):
        lived[-1] += 1
        shown = bandit.decide(objects[starts[i]])
        bandit.learn(shown.id, float(luck[i] < losses[shown.output]))
        if shown.explored:
            decision = next(log.replay())
            assert isinstance(decision, Decision)
            codes.append(_changed(codes[-1], int(decision.ids[0]), bandit.policy(), rows, states))
            lived.append(0)
    return Lives(np.array(codes, np.int64), np.array(lived, np.int64), epsilon)


def _changed(code: int, seen: int, policy: Any, rows: dict[int, int], states: int) -> int:
    """A policy's code after a round, which changes the weights of one state only; `rows` has those known so far."""
    if seen not in rows:
        row = int(lookup(policy.shared, seen))
        if row < 0 or row in rows.values():
            raise ConfigurationError(f"{states} states do not fit the learner's table: give it more room")
        rows[seen] = row
    first, second = policy.stack[0, rows[seen]]
    return code & ~(1 << seen) | int(second < first) << seen


# --- small spaces for the engine --------------------------------------------------------------------------------------


def engine_space(actions: int) -> SearchSpace:
    """Small spaces as one search space: its tables come with the example, and an output is an end state."""
    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        loss=_loss,
        output=_output,
        encode=_encode,
        sizes=Sizes(state=2, actions=actions, features=1, steps=lambda x: x.steps),
        name="lols.theory:small_spaces",
    )


def engine_reference() -> Reference:
    """The reference of whichever space it is."""
    return Reference(action=_reference_action, needs_truth=False, name="table")


def start_examples(space: SmallSpace) -> list[dict[str, Any]]:
    """A space with each of its start states, as the engine is given it."""
    tables = {"follow": space.follow.reshape(-1), "seen": np.asarray(space.seen), "reference": space.reference}
    sizes = {"steps": space.steps, "actions": space.actions}
    truth = {"losses": space.losses}
    return [{"shown": {**tables, **sizes, "start": start}, "truth": truth} for start in range(space.start.size)]


def _encode(obj: dict[str, Any]) -> Example:
    return Example(obj["shown"], obj.get("truth"))


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
    return x.reference[s[1]]


def _output(x: Any, s: np.ndarray) -> int:
    return int(s[1]) - len(x.seen)
