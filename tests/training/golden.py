"""What small trainings learn, in numbers: `python -m tests.training.golden` stores them, once `LEARNING` is raised."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import lols
from lols.bandit import StructuredBandit
from lols.bandit.worlds.layout import layout_data, layout_reference, layout_space
from lols.contract.identity import LEARNING
from lols.datasets.grammar import generate
from tests.models_0_2 import problems

FILE = Path(__file__).with_name("golden.json")
MADE = generate(40, seed=5)
WORDS = [list(sentence.forms) for sentence in MADE]
TAGS = [list(sentence.upos) for sentence in MADE]
TAGGED = [[{"word": w, "upos": t} for w, t in zip(*pair, strict=True)] for pair in zip(WORDS, TAGS, strict=True)]
TREES = [list(zip(sentence.heads, sentence.relations, strict=True)) for sentence in MADE]
ROWS = [[age, colour] for age in range(20, 60) for colour in ("red", "blue")]
ANSWERS = ["no" if age < 40 else "yes" if colour == "red" else "ask" for age, colour in ROWS]


def own(**options: Any) -> Any:
    """A model of a task of one's own."""
    return lols.train(problems.Tagging, problems.DATA, passes=3, compiled=False, progress=False, **options)


def bandit(**options: Any) -> Any:
    """The policy of a bandit after some losses."""
    made = StructuredBandit(layout_space(), layout_reference(), seed=1, compiled=False, **options)
    for k, request in enumerate(layout_data(60)):
        made.learn(made.decide(request).id, (k * k % 7) / 7)
    return made.policy().final


TRAININGS: dict[str, Callable[[], Any]] = {
    "tagger": lambda: lols.Tagger(passes=2, calibrate=False).fit(WORDS, TAGS).model_.policy,
    "parser, bad teacher": lambda: lols.Parser(passes=2, reference="bad").fit(TAGGED, TREES).model_.policy,
    "classifier": lambda: (
        lols.CostSensitiveClassifier(passes=2, tree="order", numeric="bins", calibrate=False)
        .fit(ROWS, ANSWERS)
        .model_.policy
    ),
    "task": lambda: own().policy,
    "task, csoaa": lambda: own(learner="csoaa").policy,
    "task, beta auto": lambda: own(beta="auto", mix="expected").policy,
    "task, searn": lambda: own(algorithm="searn").policy,
    "program": lambda: (
        lols.train(lols.Program(problems.spell, 2), problems.LINES, passes=2, compiled=False, progress=False).policy
    ),
    "bandit": lambda: bandit(algorithm="deviations"),
    "bandit, gaps": bandit,
}


def told(policy: Any) -> dict[str, list[float]]:
    """Weights in few numbers: how many are not zero, their sum, and a sum in which each feature counts differently."""
    numbers = {}
    for name, table, stack in (
        ("shared", policy.shared, policy.stack),
        ("single", policy.single, policy.single_stack[:, :, np.newaxis]),
    ):
        taken = np.flatnonzero(table.rows >= 0)
        taken = taken[np.argsort(table.keys[taken])]
        weights = stack[:, table.rows[taken]].astype(np.float64)
        wave = np.cos(np.arange(weights.shape[1]))[:, np.newaxis] * (1.0 + np.arange(weights.shape[2]))
        numbers[name] = [float(np.count_nonzero(weights)), float(weights.sum()), float((weights * wave).sum())]
    return numbers


def golden() -> dict[str, Mapping[str, list[float]]]:
    """The numbers of all trainings."""
    return {name: told(train()) for name, train in TRAININGS.items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps({"learning": LEARNING, "weights": golden()}, indent=1) + "\n")
