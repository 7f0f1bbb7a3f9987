"""Inverse gap weighting on what a sketch knows, learning from all steps, and the pace of a new policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import BanditPolicy, Decider, MemoryLog, StructuredBandit
from lols.bandit.entries import Decision
from lols.bandit.pace import ALLOWED, ROUNDS, START, SafePace
from lols.bandit.retrace import Retracer
from lols.contract.features import emit, feature
from lols.engine.structures import FILLED
from lols.engine.table import lookup
from lols.errors import ConfigurationError
from tests.bandit.small_bandit import LABELS, RULES, SPACE, loss, request


def _actions(x: Any, s: Any, legal: Any) -> None:
    if s[0] < 2:
        for a in range(len(x.kind)):
            legal[a] = s[0] == 0 or a + 1 != s[1]


def _step(x: Any, s: Any, a: Any) -> None:
    s[0] += 1
    s[s[0]] = a + 1


def _features(x: Any, s: Any, out: Any) -> None:
    emit(out, feature(0, s[0]), 0.5)


def _action_features(x: Any, s: Any, a: Any, out: Any) -> None:
    emit(out, feature(1, x.kind[a]))
    emit(out, feature(2, x.kind[a], s[0]), x.size[a])


def _first(x: Any, y: Any, s: Any) -> int:
    return 1 if s[0] > 0 and s[1] == 1 else 0


PAGES = lols.SearchSpace(
    start=lambda x, s: None,
    actions=_actions,
    step=_step,
    features=_features,
    action_features=_action_features,
    loss=lambda x, y, s: 0.0,
    output=lambda x, s: [int(a) - 1 for a in s[1:]],
    encode=lambda page: lols.Example(page),
    sizes=lols.Sizes(state=3, actions=4, features=1, action_features=2, steps=2),
)
FIRST = lols.Reference(action=_first, needs_truth=False)


def page(number: int) -> dict[str, Any]:
    r = np.random.default_rng(number)
    return {"kind": r.integers(0, 5, 4).tolist(), "size": r.random(4).round(2).tolist()}


def lost(obj: Any, shown: list[int]) -> list[float]:
    return [0.2 * obj["kind"][a] for a in shown]


def taught(rounds: int, *, space: Any = PAGES, rules: Any = FIRST, **options: Any) -> StructuredBandit:
    bandit = StructuredBandit(space, rules, seed=3, **options)
    for number in range(rounds):
        obj = page(number) if space is PAGES else request(number)
        shown = bandit.decide(obj)
        if space is PAGES and number % 2:
            bandit.learn(shown.id, losses=lost(obj, shown.output))
        else:
            bandit.learn(shown.id, sum(lost(obj, shown.output)) / 2 if space is PAGES else loss(number, shown.output))
    return bandit


def matrix(sketched: Any, j: int, several: bool) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of a regression and its weights, over cells of both banks, one by one."""
    sketches, filled = sketched.sketches, int(sketched.sketches.counts[j, FILLED])
    banks = []
    for columns in (sketched.shared, sketched.single):
        own = slice(j, j + 1) if several else slice(None)
        banks.append((columns.sketch[:, own, :filled].reshape(-1, filled), columns.base[:, own].reshape(-1)))
    rows, base = np.concatenate([b[0] for b in banks]), np.concatenate([b[1] for b in banks])
    return sketches.ridge[j] * np.eye(base.size) + rows @ rows.T, base + rows @ sketches.shift[j, :filled]


def expected(policy: BanditPolicy, decision: Decision, seen: Any) -> np.ndarray:
    """The chances of the actions taken, from matrices."""
    weights, settings = policy.final, policy.settings
    sketched, slots = weights.sketched, seen.lessons.slots
    several = sketched.sketches.counts.shape[0] > 1
    width, length, chances = weights.stack.shape[2], seen.taken.size, []
    for k in range(length):
        low = np.full(seen.legal.shape[1], np.inf)
        for a in np.flatnonzero(seen.legal[k]):
            covariance, own = matrix(sketched, int(a) if several else 0, several)
            columns = 1 if several else width
            z, unknown = np.zeros(own.size), 0.0
            parts = [(slots.ids, slots.values, slots.start[k], slots.stop[k], weights.shared, columns, 0)]
            if slots.action_start.size:
                first = weights.stack.shape[1] * columns
                span = slots.action_start[k, a], slots.action_stop[k, a]
                parts.append((slots.action_ids, slots.action_values, *span, weights.single, 1, first))
            for ids, values, start, stop, table, count, offset in parts:
                for n in range(start, stop):
                    row = int(lookup(table, ids[n]))
                    if row < 0:
                        unknown += float(values[n]) ** 2 / sketched.sketches.ridge[0 if not several else a]
                    else:
                        z[offset + row * count + (a if count > 1 else 0)] += values[n]
            variance = z @ np.linalg.solve(covariance, z) + unknown
            low[a] = own @ z - settings.optimism / length * np.sqrt(variance)
        gap = settings.gap * length * np.sqrt(policy.version + 1)
        each = np.where(seen.legal[k], 1.0 / (seen.legal[k].sum() + gap * (low - low.min())), 0.0)
        best = int(np.argmin(low))
        each[best] = 1.0 - (each.sum() - each[best])
        chances.append(each[seen.taken[k]])
    return np.array(chances)


@pytest.mark.parametrize(("space", "rules"), [(PAGES, FIRST), (SPACE, RULES)], ids=["features of actions", "tags"])
def test_chances_are_those_of_the_formula(space: Any, rules: Any, tmp_path: Path) -> None:
    bandit = taught(150, space=space, rules=rules, pace="free")
    bandit.policy().save(tmp_path / "p.safetensors")
    policy = BanditPolicy.load(tmp_path / "p.safetensors")
    decider, retracer = Decider(bandit.space, bandit.reference), Retracer(bandit.space)
    for number in range(20):
        obj = page(1000 + number) if space is PAGES else request(1000 + number)
        shown, decision = decider.decide(obj, policy, str(number))
        live, _ = decider.decide(obj, bandit._policy(), str(number))
        assert shown.output == live.output
        np.testing.assert_allclose(shown.chances, live.chances, rtol=1e-4)
        np.testing.assert_allclose(shown.chances, expected(policy, decision, retracer(decision)), rtol=2e-3)


@pytest.mark.uncompiled
def test_chances_add_up_whatever_the_pace_and_compiled_or_not() -> None:
    bandit = taught(40, pace="free", learner=lols.LearnerSettings("csoaa", "sketch", directions=2))
    deciders = [Decider(bandit.space, bandit.reference, compiled=compiled) for compiled in (True, False)]
    for steps in (0.3, 1.0, 2.0):
        policy = BanditPolicy(bandit._policy().weights, bandit.settings, {}, 40, 0.7, None, steps)
        chances: dict[tuple[int, ...], float] = {}
        count: dict[tuple[int, ...], int] = {}
        alone = 0
        for number in range(1500):
            shown, decision = deciders[0].decide(page(7), policy, str(number))
            chances[tuple(shown.output)] = decision.propensity
            count[tuple(shown.output)] = count.get(tuple(shown.output), 0) + 1
            alone += decision.by_reference
            if number < 30:
                again, same = deciders[1].decide(page(7), policy, str(number))
                assert again.output == shown.output and np.allclose(same.chances, decision.chances)
        assert 0.9 < sum(chances.values()) <= 1 + 1e-6 and min(chances.values()) > 0.0
        for output, times in count.items():
            assert abs(times / 1500 - chances[output]) < 0.05
        assert abs(alone / 1500 - (1.0 - steps / 2) ** 2) < 0.05


def test_all_steps_learn_from_losses_of_their_own_or_from_that_of_the_whole() -> None:
    def learned(**given: Any) -> dict[str, np.ndarray]:
        bandit = StructuredBandit(PAGES, FIRST, seed=1)
        for number in range(9):
            shown = bandit.decide(page(number))
            if "parts" in given:
                for step, value in enumerate(lost(page(number), shown.output)):
                    bandit.learn(shown.id, losses={step: value})
            else:
                bandit.learn(shown.id, **given)
        assert bandit._student.learner.report()["states"] == 18
        return bandit._student.learner.state()

    whole, same = learned(loss=0.25), learned(losses=[0.25, 0.25])
    assert np.array_equal(whole["single.weights"], same["single.weights"])
    assert not np.array_equal(learned(loss=0.5)["single.weights"], whole["single.weights"])
    learned(parts=True)


def test_a_policy_that_is_worse_than_the_rules_gets_few_steps_and_one_that_is_better_all() -> None:
    worse, better, unknown = SafePace(), SafePace(), SafePace()
    draw = np.random.default_rng(1)
    for pace, cost in ((worse, 0.6), (better, 0.2)):
        for _ in range(3000):
            alone = draw.random() > pace.steps * (1.0 - pace.compared)
            pace.saw(float(draw.random() < (0.3 if alone else cost)), by_reference=bool(alone), steps=1)
    assert better.steps == 1.0 and worse.steps < 0.3
    lost = worse.total - 0.3 * (worse.rounds - worse.reference)
    assert lost < 6 * ALLOWED * 0.3 * 3000 and ROUNDS < 3000
    unknown.saw(1.0, by_reference=False, steps=4)
    assert unknown.steps == START  # the loss of the reference is not known
    again = SafePace()
    again.load(worse.state())
    assert again.state() == worse.state()


def test_the_start_is_safe() -> None:
    bandit, shown, rules = StructuredBandit(PAGES, FIRST, seed=5), 0.0, 0.0
    for number in range(1000):
        obj = page(number)
        obj["kind"][:2] = [0, 0]  # the rules are right
        answer = bandit.decide(obj)
        value = sum(lost(obj, answer.output)) / 2 + 0.1
        shown, rules = shown + value, rules + 0.1
        bandit.learn(answer.id, value)
    assert shown < 1.15 * rules
    assert bandit.predict(obj) == [0, 1] or sum(lost(obj, bandit.predict(obj))) == 0.0


def test_an_apprentice_learns_from_what_the_rules_show() -> None:
    log = MemoryLog()
    bandit = StructuredBandit(PAGES, FIRST, guard=True, epsilon=0.0, seed=2, log=log)
    for number in range(300):
        obj = page(number)
        shown = bandit.decide(obj)
        assert shown.output == bandit.show_reference(obj)
        bandit.learn(shown.id, losses=lost(obj, shown.output))
    learned = [sum(lost(page(n), bandit.predict(page(n)))) for n in range(300, 400)]
    rules = [sum(lost(page(n), bandit.show_reference(page(n)))) for n in range(300, 400)]
    assert np.mean(learned) < 0.6 * np.mean(rules)
    assert 0.0 < bandit.report()["agreement"] < 0.8


def test_options_that_make_no_sense_are_refused() -> None:
    for options, why in (
        ({"algorithm": "best"}, "unknown algorithm 'best'"),
        ({"algorithm": "gaps", "width": 0.2}, "width has no effect: the algorithm is 'gaps'"),
        ({"randomise": "steps", "gap": 5.0}, "gap has no effect: the algorithm is 'deviations'"),
        ({"algorithm": "paper", "guard": True}, "guard is part of Algorithm 2"),
        ({"pace": "fast"}, "unknown pace 'fast'"),
        ({"optimism": -1.0}, "optimism is -1.0"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            StructuredBandit(SPACE, RULES, **options)
    assert StructuredBandit(SPACE, RULES).settings.exploration == "gap"
    assert StructuredBandit(SPACE, RULES, update="nag").settings.exploration == "plausible"
    assert StructuredBandit(SPACE, RULES, algorithm="paper").settings.estimator == "ips"
    assert LABELS == 3
