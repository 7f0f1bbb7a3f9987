"""The library's own Algorithms 1 and 2 on small spaces: each round's policy, read from the weights, and exact regrets.

With one feature for what a policy sees, and a weight for it and each action, the policies that cost regression can
express are all tables of actions. The averaged policy is one of a run's policies, drawn once and then followed to the
end, as in the paper's proof. So J of it is the mean of their J; and what one other action at step t would cost it,
E[Q(s, π)], is the mean over policies of what that action costs each of them at the states that it comes to.
"""

# The first argument of a task's functions is an input, not an object.
# mypy: disable-error-code="attr-defined, arg-type, index"
from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

import numpy as np

from lols.bandit.bandit import StructuredBandit
from lols.bandit.entries import Decision
from lols.bandit.exploring import theory_epsilon
from lols.bandit.log import MemoryLog
from lols.bandit.retrace import Retracer
from lols.contract.examples import Examples
from lols.contract.features import emit
from lols.contract.space import Example, Sizes
from lols.contract.task import Task
from lols.datasets.small_spaces import SmallSpace, ladder_space
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.reproduction.theory.theorem3 import Sides, sides
from lols.training.stream import Stream
from lols.training.trainer import Trainer

BETA = 0.5
SLOPE = -1 / 3  # Corollary 2: the regret falls at least as the third root of the rounds
RIDGE = LearnerSettings("csoaa", "ridge", max_features=64)  # one for each state of the largest space
LARGEST = 62  # bits of a policy's code


# --- Algorithm 1 -----------------------------------------------------------------------------------------------------


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


# --- Algorithm 2 -----------------------------------------------------------------------------------------------------


class Lives(NamedTuple):
    """The policies of a run in their order, and for how many rounds each was the current one."""

    codes: np.ndarray  # int64: bit k is the action where k is seen
    rounds: np.ndarray
    epsilon: float


def tables_of(space: SmallSpace, codes: np.ndarray) -> np.ndarray:
    """Policies as tables of actions: policies x states.

    >>> from lols.datasets.small_spaces import ladder_space
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
    """
    states, losses = space.reference.size, space.losses
    if states > LARGEST:
        raise ConfigurationError(f"a space of {states} states: take at most {LARGEST}")
    if not ((losses >= 0.0) & (losses <= 1.0)).all():
        raise ConfigurationError("a loss is not from 0 to 1: scale the losses of the end states")
    epsilon = theory_epsilon(rounds, space.actions, space.steps, float(space.actions) ** states)
    log = MemoryLog(keep=2)  # a decision and its loss
    bandit = StructuredBandit.algorithm2(
        Layers, Layers.teacher, epsilon=epsilon, beta=beta, learner=learner, log=log,
        seed=seed, compiled=compiled,
    )  # fmt: skip
    retracer = Retracer(bandit.space, compiled=compiled)
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
            feature = int(retracer(decision).slot_features(0)[0])
            codes.append(_changed(codes[-1], feature, bandit.policy().final, rows, states))
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


def run_sides(space: SmallSpace, lives: Lives, beta: float = 0.5) -> Sides:
    """Both sides of Theorem 3 at the average over the current policies of all rounds."""
    codes, which = np.unique(lives.codes, return_inverse=True)
    return sides(space, np.bincount(which, weights=lives.rounds), beta, tables_of(space, codes))


class Slope(NamedTuple):
    """The slope of a straight line through points on logarithmic scales, its height at one round, and an interval."""

    value: float
    height: float
    low: float
    high: float


def log_log_slope(rounds: Sequence[int], regrets: Sequence[Sequence[float]], *, draws: int = 2000) -> Slope:
    """Fit log10 of the mean regret over seeds to log10 N; the 95 % interval is from drawing the seeds again.

    NaN where a mean is not positive: there is no line then.

    >>> made = log_log_slope([10, 100, 1000], [[0.9, 1.1], [0.1, 0.1], [0.012, 0.008]])
    >>> round(made.value, 3), made.low < made.value < made.high
    (-1.0, True)
    """
    means = np.array([np.mean(runs) for runs in regrets])
    chance = np.random.default_rng(0)
    again = np.stack([chance.choice(np.asarray(runs), (draws, len(runs))).mean(axis=1) for runs in regrets])
    if not (means > 0.0).all():
        return Slope(*[float("nan")] * 4)
    x = np.log10(np.asarray(rounds, np.float64))
    value, height = np.polyfit(x, np.log10(means), 1)
    again = again[:, (again > 0.0).all(axis=0)]
    low, high = np.percentile(np.polyfit(x, np.log10(again), 1)[0], [2.5, 97.5])
    return Slope(float(value), float(10.0**height), float(low), float(high))


def regret_curve(rounds: tuple[int, ...], seeds: int, compiled: bool = True) -> dict[str, Any]:
    """The left side of Theorem 3 for the bandit, computed exactly, and its slope on logarithmic scales.

    >>> found = regret_curve((50, 200), 2, False)
    >>> found["rounds"], len(found["values"][0])
    ([50, 200], 2)
    """
    space = ladder_space()
    values = []
    for n in rounds:
        runs = (run_algorithm2(space, n, seed=seed, beta=BETA, compiled=compiled) for seed in range(seeds))
        values.append([float(run_sides(space, lives, BETA).left) for lives in runs])
    slope = log_log_slope(rounds, values)
    return {
        "rounds": list(rounds),
        "seeds": list(range(seeds)),
        "values": values,
        "means": [fmean(v) for v in values],
        "slope": {name: float(value) for name, value in slope._asdict().items()},
        "bound": SLOPE,
    }
