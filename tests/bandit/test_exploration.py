"""Exploration: what is drawn, with which chances, and what the log says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import StructuredBandit
from lols.bandit.log import Decision
from tests.bandit.small_bandit import LABELS, bandit, request, run


def test_steps_that_are_drawn_have_chances() -> None:
    made = bandit(randomise="steps", exploration="uniform", epsilon=0.5, seed=2)
    run(made, 60)
    decisions = [entry for entry in made.log.replay() if isinstance(entry, Decision)]
    for d in decisions:
        assert d.explored and d.chances.size == d.actions.size and d.propensity == pytest.approx(np.prod(d.chances))
        share = 0.5 / d.actions.size
        for chance in d.chances:
            assert chance == pytest.approx(share / LABELS) or chance == pytest.approx(1 - share + share / LABELS)
        assert d.chance_action == pytest.approx(d.chances[d.step])
    guarded = bandit(randomise="steps", guard=True, epsilon=0.5)
    run(guarded, 60)
    shown = [entry for entry in guarded.log.replay() if isinstance(entry, Decision)]
    assert {d.guarded for d in shown} == {True, False}
    assert all(d.guarded != d.explored and np.isnan(d.propensity) == d.guarded for d in shown)


def uneven() -> lols.SearchSpace:
    """Action 0 ends at once; action 1 leads to three steps more, of which nothing depends."""

    def actions(x, s, legal):  # type: ignore[no-untyped-def]
        legal[0] = s[0] == 0 or (s[1] == 1 and s[0] < 4)
        legal[1] = s[0] == 0

    def step(x, s, a):  # type: ignore[no-untyped-def]
        s[0] += 1
        if s[0] == 1:
            s[1] = a

    def start(x, s):  # type: ignore[no-untyped-def]
        pass

    def features(x, s, out):  # type: ignore[no-untyped-def]
        lols.emit(out, lols.feature(0, s[0]))

    return lols.SearchSpace(
        start=start,
        actions=actions,
        step=step,
        features=features,
        loss=lambda x, y, s: 0.0,
        output=lambda x, s: int(s[1]),
        encode=lambda obj: lols.Example({"any": 1}),
        sizes=lols.Sizes(state=2, actions=2, features=1, steps=4),
    )


@pytest.mark.slow
def test_how_long_a_structure_gets_does_not_count() -> None:
    """The loss after action 1 is larger, though it is spread over four steps."""
    rules = lols.Reference(action=lambda x, y, s: 0 if s[0] > 0 else 1, needs_truth=False)
    options: dict[str, Any] = {"epsilon": 1.0, "exploration": "uniform", "advice": 0.0, "baseline": False, "seed": 5}
    made = StructuredBandit(uneven(), rules, randomise="steps", estimator="ips", update="ridge", **options)
    losses = []
    for _ in range(3000):
        shown = made.decide({})
        losses.append(0.6 if shown.output else 0.4)
        made.learn(shown.id, losses[-1])
    first = [d for d in made.log.replay() if isinstance(d, Decision) and d.step == 0]
    weighted = np.bincount([d.action for d in first], [losses[d.number] / d.chance_action for d in first])
    assert np.abs(weighted / len(first) - [0.4, 0.6]).max() < 0.12 and made.predict({}) == 0


def test_a_bag_that_agrees_does_not_deviate() -> None:
    made = bandit(exploration="bag", width=0.05, epsilon=0.7, seed=2)
    run(made, 1500)
    explored = [entry for entry in made.log.replay() if isinstance(entry, Decision) and entry.explored]
    early, late = (np.mean([d.chance_action for d in part]) for part in (explored[:100], explored[-100:]))
    assert late > 0.85 > early
    for d in explored:
        assert d.chance_action >= 0.05 / LABELS - 1e-12


def test_what_is_logged() -> None:
    made = bandit(epsilon=0.5, exploration="uniform")
    run(made, 60)
    decisions = [entry for entry in made.log.replay() if isinstance(entry, Decision)]
    assert [d.number for d in decisions] == list(range(60))
    explored = [d for d in decisions if d.explored]
    assert 15 < len(explored) < 45
    for d in explored:
        length = len(request(d.number)["words"])
        assert d.chance_step == 1 / length and d.chance_action == pytest.approx(1 / LABELS)
        assert 0 <= d.step < length and d.actions[d.step] == d.action
        assert d.object == request(d.number)
    assert all(d.step == -1 for d in decisions if not d.explored)
    assert [d.version for d in decisions] == [sum(d.explored for d in decisions[:k]) for k in range(60)]
