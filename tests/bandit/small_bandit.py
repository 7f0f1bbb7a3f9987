"""A small bandit that tags words, for tests: requests, losses, runs, and a comparison bit for bit."""

from __future__ import annotations

from typing import Any

import lols
from lols.bandit import StructuredBandit
from lols.datasets.worlds import tagging_space

LABELS = 3
SPACE = tagging_space(labels=LABELS)
UNKNOWN, FAR = 99, 98  # words that the rules stumble over


def rule(x, y, s):
    if x.words[s[0]] == UNKNOWN:
        raise ValueError("no rule for this word")
    return x.words[s[0] + 1000] if x.words[s[0]] == FAR else x.words[s[0]] % 2


RULES = lols.Reference(action=rule, needs_truth=False)  # the same in all tests, so that they share what is compiled


def request(k: int) -> dict[str, Any]:
    return {"words": [(k + j * j) % 6 for j in range(1 + k % 4)]}


def loss(k: int, tags: list[int]) -> float:
    return sum(tag != word % LABELS for tag, word in zip(tags, request(k)["words"], strict=True)) / len(tags)


def bandit(**options: Any) -> StructuredBandit:
    return StructuredBandit(SPACE, RULES, **{"epsilon": 0.6, "seed": 4, **options})


def run(made: StructuredBandit, rounds: int, first: int = 0) -> list[float]:
    losses = []
    for k in range(first, first + rounds):
        shown = made.decide(request(k))
        losses.append(loss(k, shown.output))
        made.learn(shown.id, losses[-1])
    return losses


def same(one: StructuredBandit, other: StructuredBandit) -> None:
    assert one.policy().digest() == other.policy().digest()
    assert one.report() == other.report()
