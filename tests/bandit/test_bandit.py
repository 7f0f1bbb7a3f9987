"""The structured bandit: deciding, losses that come late, twice or never, and a policy that its log rebuilds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import MemoryLog, SqliteLog, StructuredBandit
from lols.bandit.guard import Guard
from lols.bandit.log import Decision
from lols.bandit.worlds.layout import layout_data, layout_loss, layout_reference, layout_space
from lols.datasets.worlds import tagging_space
from lols.engine.compile.layout import Struct
from lols.errors import ConfigurationError, LolsError

LABELS = 3
SPACE = tagging_space(labels=LABELS)
RULES = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)


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


def arrays(parts: Any) -> list[np.ndarray]:
    return [a for part in parts for a in (arrays(part) if isinstance(part, tuple | Struct) else [np.asarray(part)])]


def same(one: StructuredBandit, other: StructuredBandit) -> None:
    for mine, theirs in zip(arrays(one.policy()), arrays(other.policy()), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert one.report() == other.report()


OPTIONS: list[dict[str, Any]] = [
    {"estimator": "ips", "exploit": "drawn"},
    {"estimator": "mtr", "exploit": "average"},
    {"estimator": "dr", "exploit": "last", "exploration": "boltzmann"},
    {"estimator": "direct", "exploration": "plausible"},
    {"learner": "hinge", "estimator": "ips"},
    {"exploration": "bag", "bag": 3},
    {"randomise": "steps", "epsilon": 0.3},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_gets_better_than_its_rules(options: dict[str, Any]) -> None:
    made = bandit(**options)
    run(made, 1500)
    rules = np.mean([loss(k, made.show_reference(request(k))) for k in range(60)])
    learned = np.mean([loss(k, made.predict(request(k))) for k in range(60)])
    assert learned < rules - 0.2


@pytest.mark.parametrize("options", OPTIONS[:3], ids=str)
def test_compiled_or_not(options: dict[str, Any]) -> None:
    one, other = bandit(**options), bandit(**options, compiled=False)
    assert run(one, 40) == run(other, 40)
    assert one.report() == other.report()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_log_rebuilds_the_bandit(options: dict[str, Any]) -> None:
    log = MemoryLog()
    made = bandit(**options, log=log)
    run(made, 60)
    for k in (60, 61, 62):
        made.decide(request(k))
    made.learn(61, 0.5)
    again = bandit(**options, log=log)
    same(made, again)
    # From here on both decide alike, and learn alike from what was still open.
    late = [made.decide(request(k)) for k in range(70, 90)]
    for entry in list(log.replay())[-20:]:
        assert isinstance(entry, Decision)
        again._take(entry)
    for one in (made, again):
        assert [one.predict(request(k)) for k in range(20)] == [made.predict(request(k)) for k in range(20)]
    assert [shown.id for shown in late] == list(range(63, 83))


def test_losses_come_late_in_any_order_twice_or_never() -> None:
    made = bandit()
    shown = [made.decide(request(k)) for k in range(30)]
    for k in reversed(range(0, 30, 2)):
        made.learn(shown[k].id, loss(k, shown[k].output))
    before = made.report()
    assert before["losses"] == 15 and before["decisions"] == 30
    made.learn(shown[4].id, 0.25)  # had one already
    after = made.report()
    assert after == before | {"ignored": 1}
    assert after["awaited"] == 15


def test_a_loss_may_be_waited_for_too_long() -> None:
    log = MemoryLog()
    made = bandit(patience=5, epsilon=1.0, log=log)
    for k in range(20):
        made.decide(request(k))
    assert made.report()["awaited"] == 5
    for k in (3, 17):
        made.learn(k, 0.5)
    report = made.report()
    assert (report["losses"], report["late"], report["policies"], report["awaited"]) == (2, 1, 2, 4)
    same(made, bandit(patience=5, epsilon=1.0, log=log))


def test_a_log_that_forgets_rebuilds_nothing() -> None:
    made = bandit(log=MemoryLog(keep=10))
    run(made, 20)
    with pytest.raises(LolsError, match="decision 0 is missing from the log"):
        bandit(log=made.log)


def test_steps_that_are_drawn_have_chances() -> None:
    made = bandit(randomise="steps", exploration="uniform", epsilon=0.5, seed=2)
    run(made, 60)
    decisions = [entry for entry in made.log.replay() if isinstance(entry, Decision)]
    for d in decisions:
        assert d.explored and d.chances.size == d.trail.size and d.propensity == pytest.approx(np.prod(d.chances))
        share = 0.5 / d.trail.size
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
    weighted = np.bincount([d.action for d in first], [losses[d.id] / d.chance_action for d in first])
    assert np.abs(weighted / len(first) - [0.4, 0.6]).max() < 0.12 and made.predict({}) == 0


def test_a_log_of_other_actions_is_refused(tmp_path: Path) -> None:
    with StructuredBandit(tagging_space(labels=5), RULES, epsilon=1.0, log=tmp_path / "a.log") as made:
        run(made, 5)
    with pytest.raises(ConfigurationError, match=r"space.actions is 5 in the log and 3 here"):
        StructuredBandit(SPACE, RULES, epsilon=1.0, log=tmp_path / "a.log")
    with (
        SqliteLog(tmp_path / "a.log", identity=None) as log,
        pytest.raises(LolsError, match="decision 0 has 5 actions and the space 3"),
    ):
        StructuredBandit(SPACE, RULES, epsilon=1.0, log=log)


def test_a_bag_that_agrees_does_not_deviate() -> None:
    made = bandit(exploration="bag", width=0.05, epsilon=0.7, seed=2)
    run(made, 1500)
    explored = [entry for entry in made.log.replay() if isinstance(entry, Decision) and entry.explored]
    early, late = (np.mean([d.chance_action for d in part]) for part in (explored[:100], explored[-100:]))
    assert late > 0.85 > early
    for d in explored:
        assert d.chance_action >= 0.05 / LABELS - 1e-12


def test_the_file_of_a_log_knows_its_bandit(tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    with bandit(log=path) as made:
        run(made, 30)
        kept = made.policy()
    with bandit(log=path, durability="power") as again:
        assert [a.tobytes() for a in arrays(again.policy())] == [a.tobytes() for a in arrays(kept)]
    with pytest.raises(ConfigurationError, match=r"settings.seed is 4 in the log and 5 here"):
        bandit(log=path, seed=5)
    with pytest.raises(ConfigurationError, match=r"guard"):
        bandit(log=path, guard=True)
    other = lols.Reference(action=lambda x, y, s: 1, needs_truth=False)
    with pytest.raises(ConfigurationError, match=r"reference.digest"):
        StructuredBandit(SPACE, other, epsilon=0.6, seed=4, log=path)
    with pytest.raises(ConfigurationError, match="durability has no effect"):
        bandit(durability="power")


def test_a_log_on_disk_goes_on_after_the_process(tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    with SqliteLog(path, identity={"seed": 4}) as log:
        run(bandit(log=log), 25)
    whole = bandit()
    run(whole, 40)
    with SqliteLog(path, identity={"seed": 4}) as log:
        made = bandit(log=log)
        run(made, 15, first=25)
        same(made, whole)


def test_what_is_logged() -> None:
    made = bandit(epsilon=0.5, exploration="uniform")
    run(made, 60)
    decisions = [entry for entry in made.log.replay() if isinstance(entry, Decision)]
    assert [d.id for d in decisions] == list(range(60))
    explored = [d for d in decisions if d.explored]
    assert 15 < len(explored) < 45
    for d in explored:
        length = len(request(d.id)["words"])
        assert d.chance_step == 1 / length and d.chance_action == pytest.approx(1 / LABELS)
        assert 0 <= d.step < length and d.trail[d.step] == d.action and d.legal.all() and d.ids.size
    assert all(d.step == -1 and d.ids.size == 0 for d in decisions if not d.explored)
    assert [d.version for d in decisions] == [sum(d.explored for d in decisions[:k]) for k in range(60)]


def test_bad_use() -> None:
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    with pytest.raises(ConfigurationError, match="the reference needs the truth"):
        StructuredBandit(SPACE, teacher)
    for options, says in (
        ({"epsilon": 1.5}, "epsilon is 1.5"),
        ({"epsilon": "fast"}, "decay:FROM:POWER"),
        ({"beta": -1.0}, "beta is -1.0"),
        ({"exploration": "wild"}, "choose uniform, boltzmann, plausible, bag"),
        ({"exploit": "best"}, "choose last, drawn, average"),
        ({"width": 0.0}, "width is 0.0"),
        ({"keep": 0}, "keep is 0"),
        ({"patience": 0}, "patience is 0"),
        ({"exploration": "bag", "bag": 1}, "bag is 1"),
        ({"exploration": "bag", "width": 1.5}, "width is 1.5; for a bag"),
        ({"exploration": "bag", "randomise": "steps"}, "leave randomise='steps' out"),
        ({"randomise": "all"}, "choose deviation, steps"),
        ({"epsilon": "theory:10:2"}, "theory:ROUNDS:STEPS:POLICIES"),
        ({"estimator": "mtr", "learner": "hinge"}, "use csoaa, not hinge"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            bandit(**options)
    with pytest.raises(ConfigurationError, match="part of Algorithm 2"):
        StructuredBandit.algorithm2(SPACE, RULES, estimator="dr")
    made = bandit()
    shown = made.decide(request(1))
    for wrong in (1.5, -0.1, float("nan"), float("inf")):
        with pytest.raises(LolsError, match="give a number from 0 to 1"):
            made.learn(shown.id, wrong)
    with pytest.raises(LolsError, match="unknown decision 7"):
        made.learn(7, 0.5)
    assert made.report()["losses"] == 0


def test_the_guard_trusts_what_is_better_and_only_that() -> None:
    rng = np.random.default_rng(1)
    for gap, trusted in ((0.1, True), (0.0, False), (-0.1, False)):
        guard = Guard()
        for _ in range(3000):
            guard.saw(float(rng.random() < 0.5), by_reference=True)
            guard.saw(float(rng.random() < 0.5 - gap), by_reference=False)
        assert guard.trusted == trusted
    guard = Guard(memory=200)
    for mean in (0.2, 0.8):  # better than the reference, then worse
        for _ in range(1000):
            guard.saw(0.5, by_reference=True)
            guard.saw(mean, by_reference=False)
        assert guard.trusted == (mean < 0.5)


def test_no_false_trust_in_one_that_is_no_better() -> None:
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(40):
        guard = Guard(memory=1e6)
        for _ in range(600):
            guard.saw(float(rng.random() < 0.5), by_reference=True)
            guard.saw(float(rng.random() < 0.5), by_reference=False)
            if guard.trusted:
                wrong += 1
                break
    assert wrong <= 3


def test_with_a_guard_the_reference_is_shown_until_the_policy_is_better() -> None:
    log = MemoryLog()
    made = bandit(guard=True, epsilon=0.4, estimator="mtr", log=log)
    run(made, 2500)
    assert made.report()["trusted"]
    shown = [entry for entry in log.replay() if isinstance(entry, Decision) and not entry.explored]
    early, late = shown[:40], shown[-400:]
    assert sum(d.guarded for d in early) > 0.6 * len(early)
    assert sum(d.guarded for d in late) < 0.4 * len(late)
    assert all(d.by_reference for d in shown if d.guarded)
    same(made, bandit(guard=True, epsilon=0.4, estimator="mtr", log=log))


def test_guards_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="confidence is 1"):
        Guard(confidence=1.0)
    with pytest.raises(ConfigurationError, match="memory is 3"):
        Guard(memory=3)


def test_algorithm_2_keeps_a_sample_of_its_policies() -> None:
    made = StructuredBandit.algorithm2(SPACE, RULES, epsilon=0.7, keep=5, seed=2)
    run(made, 200)
    assert len(made._student.kept) == 5
    drawn = [one.tobytes() for one in arrays(made.policy())]
    assert drawn == [one.tobytes() for one in arrays(made._student.snapshot())]  # the last, not one of the sample
    used = {entry.policy for entry in made.log.replay() if isinstance(entry, Decision) and not entry.explored}
    assert used == set(range(5))


def test_page_layout_with_features_of_actions() -> None:
    data = layout_data(3000, seed=3)
    made = StructuredBandit(layout_space(), layout_reference(), epsilon=0.4, estimator="mtr", exploit="average", seed=1)
    for page in data[:2600]:
        visible = {k: v for k, v in page.items() if k != "relevance"}
        shown = made.decide(visible)
        made.learn(shown.id, layout_loss(page, shown.output))
    held = data[2600:]
    learned = np.mean([layout_loss(p, made.predict(p)) for p in held])
    ignorant = StructuredBandit(layout_space(), layout_reference())  # does as the rules do
    assert learned < np.mean([layout_loss(p, ignorant.predict(p)) for p in held]) - 0.01


@pytest.mark.parametrize("options", [{}, {"exploit": "average"}, {"update": "nag"}, {"learner": "hinge"}], ids=str)
def test_with_advice_it_starts_out_as_its_rules(options: dict[str, Any]) -> None:
    rules = lols.Reference(action=lambda x, y, s: (x.words[s[0]] + s[0]) % 3, needs_truth=False)
    made = StructuredBandit(SPACE, rules, advice=0.1, epsilon=0.5, seed=3, **options)
    for k in range(40):
        assert made.predict(request(k)) == made.show_reference(request(k))
    run(made, 30)
    same(made, StructuredBandit(SPACE, rules, advice=0.1, epsilon=0.5, seed=3, log=made.log, **options))


def test_advice_beside_features_of_actions() -> None:
    made = StructuredBandit(layout_space(), layout_reference(), advice=0.1)
    for page in layout_data(40, seed=8, truth=False):
        assert made.predict(page) == made.show_reference(page)


def test_advice_needs_rules_that_do_not_draw() -> None:
    drawing = lols.Reference(action=lambda x, y, s, rng: int(lols.uniform(rng) < 0.5), needs_truth=False)
    with pytest.raises(ConfigurationError, match="never draws at random"):
        StructuredBandit(SPACE, drawing, advice=0.1)
    with pytest.raises(ConfigurationError, match="advice is -1"):
        bandit(advice=-1.0)


def test_a_baseline_takes_noise_away() -> None:
    """The same losses plus a constant: with a baseline nothing changes but rounding."""
    made = [bandit(baseline=True, estimator="ips", epsilon=1.0) for _ in range(2)]
    for k in range(300):
        shown = [one.decide(request(k)) for one in made]
        assert shown[0].output == shown[1].output
        cost = loss(k, shown[0].output) / 2
        for one, more in zip(made, (0.0, 0.25), strict=True):
            one.learn(k, cost + more)
    one, other = (m.policy().stack for m in made)
    assert np.allclose(one, other, atol=1e-4) and np.abs(one).max() > 0.05


def test_one_action_with_many_more_features_than_the_others() -> None:
    def lopsided(x, s, a, out):  # type: ignore[no-untyped-def]
        for k in range(80 if a == 1 else 1):
            lols.emit(out, lols.feature(90, a, k))

    space = replace(SPACE, action_features=lopsided, sizes=replace(SPACE.sizes, action_features=80))
    made = StructuredBandit(space, RULES, epsilon=1.0, estimator="ips", seed=3, compiled=False)
    run(made, 6)
    assert made.report()["policies"] == 7
