"""The structured bandit: deciding, losses that come late, twice or never, and a policy that its log rebuilds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.bandit import MemoryLog, SqliteLog, StructuredBandit
from lols.bandit.log import Decision
from lols.bandit.worlds.layout import layout_data, layout_loss, layout_reference, layout_space
from lols.datasets.worlds import tagging_space
from lols.errors import ConfigurationError, LolsError
from tests.bandit.small_bandit import RULES, SPACE, bandit, loss, request, run, same

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
    assert [shown.id for shown in late] == [str(k) for k in range(63, 83)]


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
    assert [made.learn(k, 0.5) for k in (3, 17, 17, 20)] == ["late", "accepted", "duplicate", "unknown"]
    report = made.report()
    assert (report["losses"], report["late"], report["policies"], report["awaited"]) == (2, 1, 2, 4)
    assert report["ignored"] == 1
    same(made, bandit(patience=5, epsilon=1.0, log=log))


def test_a_log_that_forgets_rebuilds_nothing() -> None:
    made = bandit(log=MemoryLog(keep=10))
    run(made, 20)
    with pytest.raises(LolsError, match="decision 0 is missing from the log"):
        bandit(log=made.log)


def test_a_log_of_other_actions_is_refused(tmp_path: Path) -> None:
    with StructuredBandit(tagging_space(labels=5), RULES, epsilon=1.0, log=tmp_path / "a.log") as made:
        run(made, 15)
    with pytest.raises(ConfigurationError, match=r"space.actions is 5 in the log and 3 here"):
        StructuredBandit(SPACE, RULES, epsilon=1.0, log=tmp_path / "a.log")
    with (
        SqliteLog(tmp_path / "a.log", identity=None) as log,
        pytest.raises(LolsError, match=r"decision .: its actions leave the space"),
    ):
        StructuredBandit(SPACE, RULES, epsilon=1.0, log=log)


def test_the_file_of_a_log_knows_its_bandit(tmp_path: Path) -> None:
    path, options = tmp_path / "shown.log", {"algorithm": "deviations"}
    with bandit(log=path, **options) as made:
        run(made, 30)
        kept = made.policy()
    with bandit(log=path, durability="power", **options) as again:
        assert again.policy().digest() == kept.digest()
    with pytest.raises(ConfigurationError, match=r"settings.advice is 0.1 in the log and 0.2 here.*relearn"):
        bandit(log=path, advice=0.2, **options)
    other = lols.Reference(action=lambda x, y, s: 1, needs_truth=False)
    with pytest.raises(ConfigurationError, match=r"space.source is .* its functions have changed"):
        StructuredBandit(SPACE, other, epsilon=0.6, seed=4, log=path, **options)  # its action is a feature: advice
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


def test_bad_use() -> None:
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    with pytest.raises(ConfigurationError, match="the reference needs the truth"):
        StructuredBandit(SPACE, teacher)
    for options, says in (
        ({"epsilon": 1.5}, "epsilon is 1.5"),
        ({"epsilon": "fast"}, "decay:FROM:POWER"),
        ({"beta": -1.0}, "beta is -1.0"),
        ({"exploration": "wild"}, "choose uniform, boltzmann, plausible, gap, bag"),
        ({"exploit": "best"}, "choose last, drawn, average"),
        ({"width": 0.0}, "width is 0.0"),
        ({"keep": 0, "exploit": "drawn"}, "keep is 0"),
        ({"keep": 5}, "keep has no effect: exploit is 'average', not 'drawn'"),
        ({"bag": 5}, "bag has no effect: exploration is 'plausible', not 'bag'"),
        ({"width": 0.2, "exploration": "uniform"}, "width has no effect: exploration is 'uniform'"),
        ({"beta": 0.5, "randomise": "steps"}, "beta has no effect: with randomise='steps'"),
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
    assert made.learn(7, 0.5) == made.learn("7", 0.5) == "unknown"
    for wrong_id in (None, "", "a" * 201, "two\nlines", 0.5, True):
        with pytest.raises(LolsError, match=r"the id of a decision is .*: give a text"):
            made.learn(wrong_id, 0.5)
    assert made.report()["losses"] == 0


def test_algorithm_2_keeps_a_sample_of_its_policies() -> None:
    made = StructuredBandit.algorithm2(SPACE, RULES, epsilon=0.7, keep=5, seed=2)
    run(made, 200)
    assert len(made._student.kept) == 5
    assert (made.policy().final.stack == made._student.snapshot().stack).all()  # the last, not one of the sample
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


def test_a_baseline_takes_noise_away() -> None:
    """The same losses plus a constant: with a baseline nothing changes but rounding."""
    made = [bandit(baseline=True, estimator="ips", epsilon=1.0) for _ in range(2)]
    for k in range(300):
        shown = [one.decide(request(k)) for one in made]
        assert shown[0].output == shown[1].output
        cost = loss(k, shown[0].output) / 2
        for one, more in zip(made, (0.0, 0.25), strict=True):
            one.learn(k, cost + more)
    one, other = (m.policy().final.stack for m in made)
    assert np.allclose(one, other, atol=1e-4) and np.abs(one).max() > 0.05


def test_one_action_with_many_more_features_than_the_others() -> None:
    def lopsided(x, s, a, out):  # type: ignore[no-untyped-def]
        for k in range(80 if a == 1 else 1):
            lols.emit(out, lols.feature(90, a, k))

    space = replace(SPACE, action_features=lopsided, sizes=replace(SPACE.sizes, action_features=80))
    made = StructuredBandit(space, RULES, epsilon=1.0, estimator="ips", seed=3, compiled=False)
    run(made, 6)
    assert made.report()["policies"] == 7
