"""What a bandit learns from parts of losses, and what lasts: snapshots, settings that change, logs that are read."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lols.bandit import BanditPolicy, Decider, MemoryLog, SqliteLog, StructuredBandit
from lols.bandit.log import WHOLE, Decision, Event, Loss
from lols.errors import ConfigurationError, LolsError, ModelFileError
from tests.bandit.killed_bandits import KINDS
from tests.bandit.small_bandit import RULES, SPACE, bandit, loss, request, run, same

PLAIN: dict[str, Any] = {"compiled": False}
ALL = [kind for kind in KINDS if kind != "power"]


def of(kind: str, **options: Any) -> StructuredBandit:
    return bandit(**{**KINDS[kind], **PLAIN, **options})


# --- losses of steps ---


def test_losses_of_steps_in_parts_are_as_good_as_all_at_once() -> None:
    """Each part counts once, and what is known is not asked for again."""
    made = bandit(randomise="steps", epsilon=0.9, **PLAIN)
    shown = made.decide({"words": [1, 2, 3]})
    assert made.learn(shown.id, losses=[None, 1.0, None]) == "accepted"
    assert made.report()["losses"] == 0 and made.report()["awaited"] == 1
    assert made.learn(shown.id, losses={1: 0.5}) == "duplicate"
    assert made.learn(shown.id, losses=[0.5, 1.0, None]) == "accepted"
    assert made.learn(shown.id, losses={2: 0.0}) == "accepted"
    report = made.report()
    assert (report["losses"], report["loss"], report["awaited"], report["ignored"]) == (1, 0.5, 0, 2)
    assert made.learn(shown.id, 0.25) == "accepted"  # of the whole, too: known already as a mean
    assert made.report()["losses"] == 1 and made.learn(shown.id, 0.25, [0.0, 0.0, 0.0]) == "duplicate"
    assert made.log.parts(shown.id) == {0: 0.5, 1: 1.0, 2: 0.0, WHOLE: 0.25}


def test_a_loss_of_the_step_that_explored_says_more_than_one_of_the_whole() -> None:
    whole, steps = (bandit(randomise="steps", epsilon=0.9, exploration="uniform", **PLAIN) for _ in range(2))
    for k in range(60):
        for made in (whole, steps):
            shown = made.decide(request(k))
            wrong = [float(tag != word % 3) for tag, word in zip(shown.output, request(k)["words"], strict=True)]
            if made is whole:
                made.learn(shown.id, sum(wrong) / len(wrong))
            else:
                made.learn(shown.id, losses=wrong)
    held = [sum(loss(k, made.predict(request(k))) for k in range(60)) for made in (whole, steps)]
    assert held[1] < held[0] - 1, held
    assert whole.report()["losses"] == steps.report()["losses"] == 60


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "no loss is given"),
        ({"losses": []}, "no loss is given"),
        ({"losses": [None]}, "no loss is given"),
        ({"losses": [0.5] * 4}, "decision '0': it has 3 steps, and there are losses of more"),
        ({"losses": [0.5, None, None, None]}, "it has 3 steps, and there are losses of more"),
        ({"losses": {3: 0.5}}, "it has 3 steps"),
        ({"losses": {-1: 0.5}}, "give the numbers of steps, from 0"),
        ({"losses": {"a": 0.5}}, "give the numbers of steps, from 0"),
        ({"losses": "abc"}, "give a list of numbers"),
        ({"losses": 0.5}, "give a list of numbers"),
        ({"losses": [0.5, float("nan")]}, "loss nan: give a number from 0 to 1"),
        ({"loss": float("inf"), "losses": [0.5]}, "loss inf: give a number from 0 to 1"),
    ],
)
def test_losses_that_are_refused(given: dict[str, Any], says: str) -> None:
    made = bandit(**PLAIN)
    made.decide({"words": [1, 2, 3]})
    with pytest.raises(LolsError, match=says) as caught:
        made.learn(0, **given)
    assert "\n" not in str(caught.value) and made.log.parts("0") == {}


def test_a_structure_that_is_not_shown_at_once_is_not_awaited() -> None:
    made = bandit(**PLAIN)
    for k in range(3):
        made.decide(request(k), f"visit {k}", activate=False)
    assert made.report()["awaited"] == 0
    assert [made.activate(f"visit {k}") for k in (1, 1, 7)] == ["accepted", "duplicate", "unknown"]
    assert made.report()["awaited"] == 1
    assert made.learn("visit 2", 0.5) == made.learn("visit 1", 0.5) == "accepted"  # a loss says that it was shown
    assert made.report()["losses"] == 2 and made.report()["awaited"] == 0
    assert made.activate("visit 2") == "duplicate"
    same(made, bandit(log=made.log, **PLAIN))


# --- snapshots ---


@pytest.mark.parametrize("kind", ALL)
def test_a_snapshot_is_what_a_replay_would_learn(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "shown.log"
    with of(kind, log=path, snapshot_every=17) as made:
        run(made, 30)
        made.decide(request(30))
        made.learn(made.decide({"words": [1, 2]}).id, losses={0: 0.5})
        kept = [snapshot.place for snapshot in made.log.snapshots()]
        assert len(kept) == 3 and [s.state is not None for s in made.log.snapshots()] == [False, False, True]
    with SqliteLog(path, identity=None) as log:
        memory = MemoryLog()
        for entry in log.replay():
            memory.append(entry)
    replayed = of(kind, log=memory)
    with of(kind, log=path) as again:
        assert again._snapped == kept[-1] > 0
        same(again, replayed)
        for k in range(31, 50):  # and goes on alike
            one, other = again.decide(request(k), f"more {k}"), replayed.decide(request(k), f"more {k}")
            assert one == other
            for each in (again, replayed):
                each.learn(one.id, loss(k, one.output))
        same(again, replayed)


def test_a_log_that_is_closed_after_much_has_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lols.bandit.bandit.FEWEST", 20)
    for rounds, snapshots in ((5, 0), (10, 1), (2, 1)):
        with bandit(log=tmp_path / "shown.log", **PLAIN) as made:
            run(made, rounds, made.report()["decisions"])
        with SqliteLog(tmp_path / "shown.log", identity=None) as log:
            assert len(log.snapshots()) == snapshots
    path = tmp_path / "shown.log"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE snapshots SET state = x'00'")
    connection.close()
    with pytest.raises(ModelFileError, match="the snapshot at entry 30 is damaged"):
        bandit(log=path, **PLAIN)


# --- settings that change ---


def test_settings_that_may_change_on_the_way_are_events(tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    stages: list[dict[str, Any]] = [{}, {"seed": 9, "epsilon": 0.9}, {"guard": True, "baseline": False}, {"width": 0.3}]
    for k, options in enumerate(stages):
        with bandit(log=path, algorithm="deviations", **PLAIN, **options) as made:
            run(made, 20, 20 * k)
            digest, report = made.policy().digest(), made.report()
            assert (made.guard is not None) == ("guard" in options)
    with SqliteLog(path, identity=None) as log:
        entries = list(log.replay())
        assert log.about("settings") is not None and '"seed": 4' in log.about("settings")  # type: ignore[operator]
    events = [entry.value for entry in entries if isinstance(entry, Event)]
    assert [event["settings"]["seed"] for event in events] == [9, 4, 4]
    assert [event["guard"] is not None for event in events] == [False, True, False]
    with bandit(log=path, algorithm="deviations", **PLAIN, **stages[-1]) as again:
        assert (again.policy().digest(), again.report()) == (digest, report)
        assert again.log.place() == len(entries)  # nothing has changed


def test_settings_that_shape_what_is_learned_may_not_change(tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    bandit(log=path, algorithm="deviations", **PLAIN).close()
    for options, name in (
        ({"estimator": "dr"}, "settings.estimator"),
        ({"update": "adagrad"}, "settings.learner"),
        ({"exploration": "bag"}, "settings.members"),
        ({"exploit": "last"}, "settings.exploit"),
    ):
        with pytest.raises(ConfigurationError, match=rf"{name}.* in the log and .*lols bandit relearn"):
            bandit(log=path, **PLAIN, **options)


# --- a log that is read while it is written to ---


def test_a_log_is_read_while_it_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "shown.log"
    with bandit(log=path, **PLAIN) as made:
        run(made, 10)
        with SqliteLog(path, identity=None) as reader, sqlite3.connect(path) as plain:
            assert len(list(reader.replay())) == 20
            run(made, 5, 10)
            assert len(list(reader.replay())) == 30
            count, mean = plain.execute("SELECT count(*), avg(loss) FROM decisions JOIN outcomes USING (id)").fetchone()
            assert count == 15 and mean == pytest.approx(made.report()["mean_loss"])
            with pytest.raises(LolsError, match=r"shown\.log: the log was opened to read it"):
                reader.append(Loss("0", {0: 0.5}))
            with pytest.raises(LolsError, match=r"shown\.log: another process is writing to this log"):
                bandit(log=path, **PLAIN)
        plain.close()
        run(made, 1, 15)
    assert {file.name for file in tmp_path.iterdir()} == {"shown.log"}


# --- policies ---


@pytest.mark.parametrize("kind", ["default", "drawn", "guard", "bag", "steps"])
def test_a_saved_policy_decides_as_its_bandit(tmp_path: Path, kind: str) -> None:
    made = of(kind)
    run(made, 50)
    path = tmp_path / "policy.safetensors"
    made.policy().save(path)
    policy, decider = BanditPolicy.load(path), Decider(made.space, made.reference, compiled=False)
    assert policy.digest() == made.policy().digest() and policy.schema == made.policy().schema
    for k in range(20):
        shown, decision = decider.decide(request(k), policy, f"visit {k}")
        kept = made.decide(request(k), f"visit {k}")
        assert shown == kept
        stored = made.log.find(f"visit {k}")
        assert stored is not None and decision.version == stored.version == made.report()["policies"] - 1
    assert not any(isinstance(entry, Decision) and entry.baseline is None for entry in made.log.replay())


def test_a_damaged_policy_is_refused(tmp_path: Path) -> None:
    from lols.io.model_file import read_tensors, write_tensors

    path = tmp_path / "policy.safetensors"
    made = StructuredBandit(SPACE, RULES, **PLAIN)
    run(made, 20)
    made.policy().save(path)
    header, tensors = read_tensors(path, "policy of a bandit")
    for name, change in (
        ("current.shared.features", lambda a: a.repeat(2)),
        ("current.chances", lambda a: a.repeat(2)),
        ("current.single.weights", lambda a: a.astype("f8")),
        ("current.shared.shift", lambda a: a + 7),
        ("current.thresholds", lambda a: a + 1),
    ):
        write_tensors(path, "policy of a bandit", header, {**tensors, name: change(tensors[name])})
        with pytest.raises(ModelFileError, match=r"policy\.safetensors: the policy is damaged") as caught:
            BanditPolicy.load(path)
        assert "\n" not in str(caught.value)
