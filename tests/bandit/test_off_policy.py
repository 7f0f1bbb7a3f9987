"""Off-policy evaluation: kernels against a twin, estimates against exact values, intervals that cover, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import MemoryLog, SqliteLog, StructuredBandit
from lols.bandit.decider import Decider
from lols.bandit.follow import target_in
from lols.bandit.log import WHOLE, Decision, Event, Loss
from lols.bandit.off_policy import Evaluated, ExploredState, deviations, evaluate_policy
from lols.bandit.off_policy_rounds import stacked
from lols.bandit.retrace import Retracer
from lols.bandit.walk import EXPLOIT, EXPLORE, RANDOMISED
from lols.bandit.worlds.layout import layout_data, layout_loss, layout_reference, layout_space
from lols.errors import ConfigurationError, LolsError, SpaceError
from lols.kernels.hashing import mix, unit
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from tests.bandit.off_policy_world import (
    GOOD,
    MIDDLING,
    OBJECTS,
    POOR,
    TRUE,
    Entries,
    exact_deviation,
    exact_value,
    logged,
    loss_of,
    policy_of,
)
from tests.bandit.small_bandit import LABELS, RULES, SPACE


@pytest.fixture(scope="module")
def decider() -> Decider:
    return Decider(SPACE, RULES)


def assert_sound(found: list[Evaluated], exact: float, *, covered: float = 0.9) -> None:
    """Right on average, and within its intervals often enough."""
    for name in ("ips", "snips", "dr"):
        values, low, high = np.array([getattr(one, name)[:3] for one in found]).T
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(found)), name
        assert ((low <= exact) & (exact <= high)).mean() >= covered, name


def spread(found: list[Evaluated], name: str) -> float:
    return float(np.std([getattr(one, name).value for one in found]))


def whole(log: Any, policy: Any, objects: Any, **options: Any) -> Evaluated:
    return evaluate_policy(log, policy, objects, SPACE, **options)


def one_step(log: Any, policy: Any, objects: Any, **options: Any) -> Evaluated:
    return deviations(log, policy, **options)


# --- estimates against exact values -----------------------------------------------------------------------------------


def test_compiled_or_not_the_estimates_are_the_same() -> None:
    plain = Decider(SPACE, RULES, compiled=False)
    for mode, evaluate in ((RANDOMISED, whole), (EXPLORE, one_step)):
        log, objects = logged(plain, MIDDLING, mode, 1, 80)
        one, other = (evaluate(log, GOOD, objects, compiled=compiled) for compiled in (True, False))
        for mine, theirs in zip(one[:5], other[:5], strict=True):
            assert mine[:5] == pytest.approx(theirs[:5], rel=1e-5) and mine.warning == theirs.warning


@pytest.mark.slow
def test_the_value_of_whole_policies(decider: Decider) -> None:
    behaviour = exact_value(decider, MIDDLING, share=0.6)
    logs = [logged(decider, MIDDLING, RANDOMISED, seed, 140, share=0.6) for seed in range(200)]
    for epsilon, some in ((0.0, logs), (0.3, logs[::2])):
        found = [whole(log, GOOD, objects, epsilon=epsilon) for log, objects in some]
        exact = exact_value(decider, GOOD, epsilon=epsilon)
        assert_sound(found, exact)
        assert np.mean([one.logged.low <= behaviour <= one.logged.high for one in found]) > 0.9
        assert np.mean([one.difference.low <= exact - behaviour <= one.difference.high for one in found]) > 0.9
        assert np.mean([one.difference.high < 0 for one in found]) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("exploration", ["uniform", "boltzmann"])
def test_the_value_of_deviations(decider: Decider, exploration: str) -> None:
    logs = [logged(decider, MIDDLING, EXPLORE, seed, 80, exploration=exploration)[0] for seed in range(200)]
    assert_sound([deviations(log, GOOD) for log in logs], exact_deviation(decider, MIDDLING, GOOD))


@pytest.mark.slow
def test_a_bandit_that_learns_while_it_logs() -> None:
    """With one step there is nothing to roll in or out: the truth stays the same while chances follow the losses."""
    found, objects = [], [{"words": [word]} for word in TRUE]
    for seed in range(80):
        bandit = StructuredBandit(
            SPACE, RULES, epsilon=1.0, exploration="boltzmann", width=0.5, estimator="dr", seed=seed
        )
        for k in range(120):
            obj = objects[int(unit(mix(mix(seed, 4), k)) * len(objects))]
            page = bandit.decide(obj)
            bandit.learn(page.id, float(unit(mix(mix(seed, 5), k)) < loss_of(obj, page.output)))
        found.append(deviations(bandit.log, MIDDLING))
    assert_sound(found, float(np.mean([0.1 + 0.6 * (word % 2 == 0) for word in TRUE])))


@pytest.mark.slow
def test_a_good_regression_takes_noise_away(decider: Decider) -> None:
    for mode, evaluate in ((RANDOMISED, whole), (EXPLORE, one_step)):
        found = []
        for seed in range(30):
            log, objects = logged(decider, MIDDLING, mode, seed, 400, noisy=False)
            found.append(evaluate(log, POOR, objects))
        assert spread(found, "dr") < 0.6 * spread(found, "ips")


def test_a_policy_that_is_its_own_target_weighs_1() -> None:
    bandit = StructuredBandit(SPACE, RULES, epsilon=0.9, randomise="steps", seed=3)
    policy, objects = bandit.policy(), [OBJECTS[k % len(OBJECTS)] for k in range(100)]
    losses = [loss_of(obj, bandit.decide(obj).output) for obj in objects]
    for k, loss in enumerate(losses):  # only now, so that all were decided by the same policy
        bandit.learn(k, loss)
    found = evaluate_policy(bandit.log, policy, objects, bandit.space, epsilon=0.9)
    for one in (found.ips, found.snips, found.logged):
        assert one.value == pytest.approx(np.mean(losses), rel=1e-5) and one.effective == pytest.approx(100, rel=1e-5)
    assert found.dr.value == pytest.approx(np.mean(losses), abs=0.02) and found.warning is None
    assert deviations(bandit.log, policy).rounds == 100


@pytest.mark.slow
def test_rules_and_models_are_targets_too(decider: Decider) -> None:
    found = []
    for seed in range(50):
        log, objects = logged(decider, MIDDLING, RANDOMISED, seed, 120, share=0.8)
        found.append(whole(log, RULES, objects))
    assert_sound(found, exact_value(decider, GOOD, by_reference=True))
    data = [{"words": o["words"], "tags": [TRUE[word] for word in o["words"]]} for o in OBJECTS]
    model = lols.train(SPACE, data, lols.Reference(action=lambda x, y, s: y.tags[s[0]]), passes=3)
    assert whole(log, model, objects) == whole(log, model.policy, objects)
    explored, _ = logged(decider, MIDDLING, EXPLORE, 0, 50)
    assert deviations(explored, model) == deviations(explored, model.policy)


def test_functions_of_decisions_are_targets_of_deviations(decider: Decider) -> None:
    log, _ = logged(decider, MIDDLING, EXPLORE, 2, 200)

    def best(state: ExploredState) -> int:
        batch, legal, _ = stacked([Retracer(SPACE)(state.decision)])
        assert state.ids.tolist() == batch.slots.ids.tolist() and state.legal.all()
        return int(target_in(batch, GOOD, legal)[0].argmax())

    def smoothed(decision: ExploredState) -> np.ndarray:
        chances = np.full(LABELS, 0.1)
        chances[best(decision)] += 0.7
        return chances

    assert deviations(log, best) == deviations(log, GOOD)
    for one, other in zip(deviations(log, smoothed)[:5], deviations(log, GOOD, epsilon=0.3)[:5], strict=True):
        assert one[:5] == pytest.approx(other[:5])


def test_actions_with_features_of_their_own() -> None:
    requests = layout_data(150, 3, items=5, slots=3)
    bandit = StructuredBandit(layout_space(5), layout_reference(), epsilon=1.0, estimator="dr", advice=0.3, seed=2)
    for request in requests:
        page = bandit.decide(request)
        bandit.learn(page.id, layout_loss(request, page.output))
    found = deviations(bandit.log, bandit.policy())
    assert found.rounds == 150 and found.dr.low <= found.dr.value <= found.dr.high
    agreeing = [d for d in bandit.log.replay() if isinstance(d, Decision)]
    batch, legal, _ = stacked([Retracer(bandit.space)(d) for d in agreeing])
    target = target_in(batch, bandit.policy().final, legal)
    plain = target_in(batch, bandit.policy().final, legal, compiled=False)
    assert (target == plain).all() and (target.sum(axis=1) == 1).all() and (target[~legal] == 0).all()


# --- overlap ----------------------------------------------------------------------------------------------------------


def test_what_was_never_tried_is_said(decider: Decider) -> None:
    """Plausible are the best tag and the next one: POOR takes the third for odd words, MIDDLING's way for none."""
    for mode, evaluate in ((RANDOMISED, whole), (EXPLORE, one_step)):
        log, objects = logged(decider, GOOD, mode, 0, 2000, exploration="plausible", share=0.9)
        assert evaluate(log, MIDDLING, objects).warning is None
        with pytest.raises(LolsError, match="none of 2000 rounds showed what this policy would show"):
            evaluate(log, POOR, objects)
    partly = policy_of(lambda word: TRUE[word] if word != 5 else (TRUE[word] + 2) % LABELS)
    log, objects = logged(decider, GOOD, EXPLORE, 0, 2000, exploration="plausible")
    found = deviations(log, partly)
    assert found.warning == found.dr.warning == found.snips.warning and found.logged.warning is None
    assert found.warning is not None and "of what this policy does was never tried" in found.warning
    assert 30 < int(found.warning.split("%")[0].split()[-1]) < 45  # word 5 is met in 3 of 8 deviations


def test_poor_overlap_is_said(decider: Decider) -> None:
    log, objects = logged(decider, GOOD, RANDOMISED, 0, 200, share=0.1)
    found = whole(log, MIDDLING, objects)
    assert found.warning is not None and "poor overlap: 200 rounds are worth" in found.warning
    assert found.dr.effective < 30


# --- logs -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_losses_may_come_late_and_the_log_is_read_twice(decider: Decider, tmp_path: Path) -> None:
    log, objects = logged(decider, MIDDLING, RANDOMISED, 5, 60)
    decided = [entry for entry in log.entries if isinstance(entry, Decision)]
    losses = [entry for entry in log.entries if isinstance(entry, Loss)]
    late = Entries([*decided, *reversed(losses)])
    expected = whole(log, GOOD, objects)
    assert whole(late, GOOD, objects) == expected and late.readings == 2
    memory = MemoryLog()
    with SqliteLog(tmp_path / "shown.log", identity={}) as disk:
        for entry in late.entries:
            assert memory.append(entry) and disk.append(entry)
        assert whole(memory, GOOD, objects) == whole(disk, GOOD, objects) == expected


def test_rounds_that_say_nothing_are_left_out_and_counted(decider: Decider) -> None:
    log, objects = logged(decider, MIDDLING, RANDOMISED, 5, 90)
    other, _ = logged(decider, MIDDLING, EXPLORE, 6, 90)
    entries, none = [], np.zeros(0, np.float32)
    for k in range(90):
        decision, loss = log.entries[2 * k : 2 * k + 2]
        assert isinstance(decision, Decision)
        if k % 3 == 1:
            found = other.entries[2 * k]
            assert isinstance(found, Decision)
            decision = found
        if k % 3 == 2:
            decision = decision._replace(step=-1, guarded=True, chances=none)
        entries += [decision, loss] if k % 10 else [decision]
    mixed = Entries(entries)
    drawn = {k: objects[k] for k in range(0, 90, 3) if k % 10}  # no other objects are asked for
    found_whole, found_steps = whole(mixed, GOOD, drawn), deviations(mixed, GOOD)
    assert found_whole.rounds == 27 and found_whole.left_out == 81 - 27
    assert found_steps.rounds == 54 and found_steps.left_out == 81 - 54


def test_rounds_that_a_policy_has_learned_from_are_passed_over(decider: Decider) -> None:
    for mode, evaluate in ((RANDOMISED, whole), (EXPLORE, one_step)):
        log, objects = logged(decider, MIDDLING, mode, 7, 90)
        rest = Entries(
            [
                entry._replace(id=str(int(entry.id) - 30), **({"number": k // 2 - 30} if k % 2 == 0 else {}))
                for k, entry in enumerate(log.entries)
                if not isinstance(entry, Event) and k >= 60
            ]
        )
        later = evaluate(log, GOOD, objects, since=30)
        assert later == evaluate(rest, GOOD, {k - 30: obj for k, obj in objects.items()}) and later.rounds == 60
        held = MemoryLog(keep=120)  # forgets the first decisions
        held.space = SPACE
        for entry in log.entries:
            held.append(entry)
        assert evaluate(held, GOOD, objects) == later


def test_refusals() -> None:
    decider = Decider(SPACE, RULES, compiled=False)
    explored, objects = logged(decider, MIDDLING, EXPLORE, 0, 6)
    drawn, _ = logged(decider, MIDDLING, RANDOMISED, 0, 6)
    unexplored, _ = logged(decider, MIDDLING, EXPLOIT, 0, 6)

    def refused(evaluate: Any, log: Any, *arguments: Any, match: str, kind: type = LolsError, **options: Any) -> None:
        with pytest.raises(kind, match=match) as caught:
            evaluate(log, *arguments, compiled=False, **options)
        assert "\n" not in str(caught.value)

    for evaluate in (whole, one_step):
        refused(evaluate, MemoryLog(), GOOD, objects, match="the log is empty")
        no_losses = Entries([entry for entry in drawn.entries if isinstance(entry, Decision)])
        refused(evaluate, no_losses, GOOD, objects, match="none of 6 decisions of the log has a loss yet")
        refused(evaluate, drawn, GOOD, objects, epsilon=1.5, match="epsilon is 1.5", kind=ConfigurationError)
        refused(evaluate, drawn, GOOD, objects, epsilon=float("nan"), match="epsilon is nan", kind=ConfigurationError)
        refused(evaluate, drawn, GOOD, objects, confidence=1.0, match="confidence is 1.0", kind=ConfigurationError)
        refused(evaluate, drawn, GOOD, objects, since=6, match="since is 6: the log holds", kind=ConfigurationError)
        refused(evaluate, drawn, "best", objects, match="policy is a str: give", kind=ConfigurationError)
        strange = Entries([*drawn.entries[:1], Loss("0", {WHOLE: float("nan")})])
        refused(evaluate, strange, GOOD, objects, match="loss nan: give a number")
    refused(whole, explored, GOOD, objects, match='none of the 6 .* a chance of 0: log with randomise="steps"')
    refused(whole, unexplored, GOOD, objects, match="none of the 6 decisions with a loss was drawn step by step")
    refused(one_step, unexplored, GOOD, objects, match="none of the 6 decisions with a loss explored")
    refused(whole, drawn, GOOD, {0: objects[0]}, match="there is no object for decision 1")
    refused(whole, drawn, GOOD, [objects[0]], match="there is no object for decision 1")
    wrong = dict(objects) | {3: {"words": [1, 2, 3, 4]}}
    refused(whole, drawn, GOOD, wrong, match="decision 3: its trail leaves the space at step")
    shorter = dict(objects) | {k: {"words": [1]} for k, obj in objects.items() if len(obj["words"]) > 1}
    refused(whole, drawn, GOOD, shorter, match="decision . leaves|its trail leaves the space at step 1")
    refused(whole, drawn, GOOD, dict(objects) | {4: None}, match="the object of decision 4", kind=SpaceError)
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    refused(whole, drawn, teacher, objects, match="must not need the truth", kind=ConfigurationError)
    bad_rules = lols.Reference(action=lambda x, y, s: 17, needs_truth=False)
    refused(
        whole, drawn, bad_rules, objects, match="decision 0, step 0: the reference takes action 17", kind=SpaceError
    )
    more = Learner(LearnerSettings("csoaa", "gd"), 4, compiled=False).policy()
    for evaluate, log in ((whole, drawn), (one_step, explored)):
        refused(evaluate, log, more, objects, match="the policy has 4 actions and the .* 3", kind=ConfigurationError)
    refused(one_step, explored, lambda d: 3, objects, match="decision 0: the policy takes action 3, which is not legal")
    refused(one_step, explored, lambda d: [0.5, 0.5], objects, match="give a chance for each of 3 actions")
    refused(one_step, explored, lambda d: [0.5, np.nan, 0.5], objects, match="give a chance for each of 3 actions")
    refused(one_step, explored, lambda d: [0.5, 0.1, 0.1], objects, match="add up to 0.7")
    decision = explored.entries[0]
    assert isinstance(decision, Decision)
    for changed, match in (
        ({"chance_action": 0.0}, "decision 0: its action cannot have been taken with the chance 0.0"),
        ({"actions": decision.actions + 9, "action": decision.action + 9}, "decision 0: its actions leave the space"),
    ):
        refused(one_step, Entries([decision._replace(**changed), Loss("0", {WHOLE: 0.5})]), GOOD, objects, match=match)
    walked = drawn.entries[0]
    assert isinstance(walked, Decision)
    zero = Entries([walked._replace(chances=walked.chances * 0), Loss("0", {WHOLE: 0.5})])
    refused(whole, zero, GOOD, objects, match="decision 0: its actions cannot have been taken with the chances")
