"""A small world for off-policy evaluation: logs of it, and what policies cost in it, computed exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lols
from lols.bandit.decider import Decider
from lols.bandit.entries import context_of
from lols.bandit.log import WHOLE, Decision, Entry, Loss
from lols.bandit.walk import EXPLOIT, EXPLORATIONS, REFERENCE, WalkPlan
from lols.engine.structures import FrozenPolicy
from lols.kernels.hashing import mix, unit
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from tests.bandit.small_bandit import LABELS, SPACE

BETA, WIDTH = 0.5, 0.3
OBJECTS = [{"words": words} for words in ([1, 2, 3], [4, 1], [5], [2, 5])]
TRUE = {1: 1, 2: 0, 3: 2, 4: 0, 5: 1}


class Entries:
    """A log that only reads, and counts how often it was read."""

    space = SPACE

    def __init__(self, entries: list[Entry]):
        self.entries, self.readings = entries, 0

    def replay(self, after: int = 0) -> Iterator[Entry]:
        self.readings += 1
        yield from self.entries

    def decisions(self) -> int:
        return sum(isinstance(entry, Decision) for entry in self.entries)


def policy_of(tag: Callable[[int], int]) -> FrozenPolicy:
    """A policy that gives each word of the small world a tag, whatever else there is."""
    learner = Learner(LearnerSettings("csoaa", "gd"), LABELS, averaged=False, compiled=False)
    weights = np.ones((len(TRUE), LABELS), np.float32)
    for k, word in enumerate(TRUE):
        weights[k, tag(word)] = 0.5
        weights[k, (tag(word) + 1) % LABELS] = 0.7
    features = np.array([lols.feature(0, word) for word in TRUE], np.int64)
    learner.load(learner.state() | {"shared.features": features, "shared.weights": weights})
    return learner.policy()


GOOD = policy_of(lambda word: TRUE[word])
MIDDLING = policy_of(lambda word: TRUE[word] if word % 2 else (TRUE[word] + 1) % LABELS)
POOR = policy_of(lambda word: (TRUE[word] + 2) % LABELS)


def loss_of(obj: Any, tags: list[int]) -> float:
    """The expected loss: wrong tags, and two equal ones side by side."""
    words = obj["words"]
    wrong = sum(tag != TRUE[word] for tag, word in zip(tags, words, strict=True)) / len(words)
    return 0.1 + 0.6 * wrong + 0.3 * any(a == b for a, b in itertools.pairwise(tags))


def logged(
    decider: Decider, policy: FrozenPolicy, mode: int, seed: int, rounds: int, *, share: float = 0.5,
    exploration: str = "uniform", noisy: bool = True,
) -> tuple[Entries, dict[int, Any]]:  # fmt: skip
    """A log of objects drawn at random, whose losses are 0 or 1 by chance, or the expected ones.

    Where steps are drawn, each has this share of exploration.
    """
    entries: list[Entry] = []
    objects = {}
    for k in range(rounds):
        obj = objects[k] = OBJECTS[int(unit(mix(mix(seed, 1), k)) * len(OBJECTS))]
        stream, epsilon = mix(mix(seed, 2), k), share * len(obj["words"])
        plan = WalkPlan(mode, stream, BETA, epsilon, EXPLORATIONS[exploration], WIDTH)
        output, decision = decider.walk(obj, policy, plan)
        loss = loss_of(obj, output)
        entries.append(decision._replace(id=str(k), number=k, context=context_of(obj)))
        entries.append(Loss(str(k), {WHOLE: float(unit(mix(mix(seed, 3), k)) < loss) if noisy else loss}))
    return Entries(entries), objects


def shown(decider: Decider, obj: Any, policy: FrozenPolicy, *, by_reference: bool = False) -> list[int]:
    return list(decider.walk(obj, policy, WalkPlan(REFERENCE if by_reference else EXPLOIT, 0, BETA, 0.0, 0, WIDTH))[0])


def exact_value(
    decider: Decider, policy: FrozenPolicy, *, share: float = 0.0, epsilon: float = 0.0, by_reference: bool = False
) -> float:
    """The expected loss of following a policy that looks at words only, over all structures.

    A step explores by a share, or by epsilon shared by all steps.
    """
    total = 0.0
    for obj in OBJECTS:
        own = shown(decider, obj, policy, by_reference=by_reference)
        for tags in itertools.product(range(LABELS), repeat=len(own)):
            chance = 1.0
            for tag, best in zip(tags, own, strict=True):
                explores = share + epsilon / len(own)
                chance *= explores / LABELS + (1 - explores) * (tag == best)
            total += chance * loss_of(obj, list(tags)) / len(OBJECTS)
    return total


def exact_deviation(decider: Decider, policy: FrozenPolicy, target: FrozenPolicy) -> float:
    """The expected loss of a deviation that the target chooses, of policies that look at words only."""
    total = 0.0
    for obj in OBJECTS:
        own, other = shown(decider, obj, policy), shown(decider, obj, target)
        rules = shown(decider, obj, policy, by_reference=True)
        for t in range(len(own)):
            for rest, share in ((rules, BETA), (own, 1 - BETA)):
                tags = [*own[:t], other[t], *rest[t + 1 :]]
                total += share * loss_of(obj, tags) / len(own) / len(OBJECTS)
    return total
