"""Pass mode: one shard is the plain run; the number of workers does not matter; weights and state are mixed as said."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import lols
from lols.engines import Files, InProcess, Processes
from lols.learners.changes import Detour, LearnerChanges, apply_changes
from lols.learners.mixing import mixed
from lols.learners.structures import ROUNDS
from lols.training import mixing
from lols.training.mixing import LEGS, Mixing, uninterrupted
from lols.training.order import evened
from lols.training.sources import source_of
from tests.engines.small_problems import DATA, SPACE, fitted, same


def shards(number: int, legs: int | None = None) -> InProcess:
    return InProcess(sync="pass", shards=number, legs=legs)


@pytest.mark.parametrize("options", [{}, {"learner": "csoaa"}, {"beta": "auto", "teacher": "bad"}], ids=str)
def test_one_shard_is_the_plain_run(options: dict[str, Any]) -> None:
    how = {"compiled": False, "data": DATA[:20], **options}
    plain = fitted(None, **how)
    assert same(plain, fitted(shards(1), **how))
    assert same(plain, fitted(shards(1, legs=3), **how))
    assert mixing._LEARNER is None and not mixing._SHARDS  # nothing stays in memory


def test_the_number_of_workers_does_not_matter() -> None:
    assert same(fitted(shards(3)), fitted(Processes(workers=2, sync="pass", shards=3)))


def test_more_shards_than_examples_and_an_example_each() -> None:
    how = {"compiled": False, "data": DATA[:3]}
    assert same(fitted(shards(3), **how), fitted(shards(50), **how))


def test_shards_learn() -> None:
    losses = fitted(shards(4), passes=4).model.report["progressive_loss"]  # type: ignore[attr-defined]
    assert losses[-1] < losses[0] / 4


def test_legs_of_a_shard_have_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [{"words": [k % 40] * length, "tags": [k % 5] * length} for k in range(8) for length in (1, 1, 12, 12)]
    steps, train = [], mixing.train_shard

    def noted(task: Any) -> Any:
        made = train(task)
        steps.append((task.pass_, made.steps))
        return made

    monkeypatch.setattr(mixing, "train_shard", noted)
    fitted(shards(2, legs=4), data=data, compiled=False, batch_size=2)
    assert len({number for pass_, number in steps if pass_}) == 1


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"algorithm": "searn"}, "sync='pass' cannot train searn"),
        ({"returned": "drawn"}, "sync='pass' cannot train"),
        ({"learner": lols.LearnerSettings("csoaa", "ridge")}, "ridge learners cannot be averaged"),
        ({"learner": lols.LearnerSettings("csoaa", "sketch")}, "sketch learners cannot be averaged"),
    ],
)
def test_what_cannot_be_mixed_is_refused(options: dict[str, Any], line: str) -> None:
    with pytest.raises(lols.LolsError, match=line):
        fitted(shards(2), **options)


def test_a_run_is_resumed_after_a_pass(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    whole = fitted(shards(3), passes=3)

    def stop(number: int, model: Any) -> None:
        if number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(shards(3), passes=3, checkpoint=file, after_pass=stop)
    assert file.exists()
    assert same(whole, fitted(shards(3), passes=3, checkpoint=file, resume=True))
    with pytest.raises(lols.LolsError, match="made with another number of shards"):
        fitted(shards(2), passes=3, checkpoint=file, resume=True)


def test_a_run_is_resumed_after_a_leg_of_the_first_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, legs, share = tmp_path / "checkpoint", [], Mixing._share
    whole = fitted(shards(3))

    def stop(self: Mixing, changes: LearnerChanges) -> None:
        legs.append(1)
        if len(legs) == LEGS + 3:
            raise KeyboardInterrupt
        share(self, changes)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Mixing, "_share", stop)
        fitted(shards(3), checkpoint=file)
    assert same(whole, fitted(shards(3), checkpoint=file, resume=True))
    monkeypatch.setattr("lols.training.mixing.FIRST", 2)
    with pytest.raises(lols.LolsError, match="made with another number of legs in the first pass"):
        fitted(shards(3), checkpoint=file, resume=True)


def test_an_interruption_waits_until_a_leg_is_complete() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        Thread(target=signal.raise_signal, args=(signal.SIGINT,)).start()  # another thread receives it
        time.sleep(0.05)
        done.append(1)
    assert done


def read_lines(path: str) -> list[Any]:
    """The objects of a file with one in each line."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_workers_read_their_own_files(tmp_path: Path) -> None:
    parts = [DATA[k::4] for k in range(4)]
    for k, part in enumerate([*parts, []]):
        (tmp_path / f"part-{k}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in part))
    files = Files(str(tmp_path / "part-[0-3].jsonl"), read_lines)
    whole = fitted(shards(4))
    assert same(whole, fitted(shards(4), data=files))
    assert same(whole, fitted(Processes(workers=2, sync="pass", shards=4), data=files))
    with_empty = fitted(shards(5), data=Files(str(tmp_path / "part-*.jsonl"), read_lines), batch_size=20)
    assert same(whole, with_empty)
    assert with_empty.model.about["examples"] == len(DATA)  # type: ignore[attr-defined]
    with pytest.raises(lols.LolsError, match="there are 4 files for 9 shards: give more files, or shards=4"):
        fitted(shards(9), data=files)


# --- how learners are mixed ---


class Began:
    """A learner that others go on from."""

    def __init__(self, **options: Any):
        teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
        self.trainer = lols.Trainer(SPACE, teacher, compiled=False, **options)
        self.source, self.policy = source_of(self.trainer, DATA), self.trainer.new_policy()
        self.learner: Any = self.policy.learner
        apply_changes(self.learner, self.changed_by([0, 1])[0])

    def changed_by(self, examples: list[int]) -> tuple[LearnerChanges, dict[str, np.ndarray]]:
        """What learning from examples changes, and the state after it; then the learner is what it was."""
        learner, indices = self.learner, np.array(examples)
        before, detour = learner.state(), Detour(learner)
        for one in indices:
            with self.source.driver(self.policy, self.trainer, self.source.first) as driver:
                at, beta = np.array([one]), np.ones(1)
                lessons = driver.make_lessons(at, at, learner.policy(), self.trainer.plan, beta, beta).lessons
                detour.before(lessons)
                learner.learn(lessons)
                detour.after(lessons)
        changes, after = detour.changes(), learner.state()
        detour.take_back()
        assert same_state(before, learner.state())
        return changes, after

    def mixed(self, changes: list[LearnerChanges], **how: Any) -> dict[str, np.ndarray]:
        """The state of the mixture."""
        apply_changes(self.learner, mixed(self.learner, changes, **how))
        made: dict[str, np.ndarray] = self.learner.state()
        return made


def same_state(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def by_feature(state: dict[str, np.ndarray], part: str) -> dict[int, np.ndarray]:
    rows = state[f"shared.{part}"].astype(np.float64)
    return dict(zip(state["shared.features"].tolist(), rows, strict=True))


@pytest.mark.parametrize(("by", "kind", "part"), [("rounds", "sum", 1), ("squares", "mean", 3), ("squares", None, 9)])
def test_mixing_is_what_its_description_says(by: str, kind: str | None, part: int) -> None:
    """The slow, obvious version, feature by feature."""
    began = Began(update="adagrad")
    base = began.learner.state()
    changes, after = zip(*(began.changed_by(examples) for examples in ([2, 3, 4], [5], [6, 7])), strict=True)
    made = began.mixed(list(changes), by=by, **({"squares": kind} if kind else {}))
    done = base["counters"][ROUNDS]
    rounds = [state["counters"][ROUNDS] - done for state in after]
    assert made["counters"][ROUNDS] == done + sum(rounds) == 8
    nothing = np.zeros(5)
    tables = {part: [by_feature(s, part) for s in (base, *after, made)] for part in ("weights", "squares", "sums")}
    for feature in made["shared.features"].tolist():
        old, *new, got = (table.get(feature, nothing) for table in tables["weights"])
        before, *gained, squares = (table.get(feature, nothing) for table in tables["squares"])
        first, *sums, last = (table.get(feature, nothing) for table in tables["sums"])
        gained = [each - before if feature in tables["squares"][k + 1] else nothing for k, each in enumerate(gained)]
        new = [each if feature in tables["weights"][k + 1] else old for k, each in enumerate(new)]
        total = np.sum(gained, axis=0)
        for column in range(5):
            if by == "squares" and total[column] > 0.0:
                shares = [each[column] / total[column] for each in gained]
            elif by == "squares":
                shares = [0.0] * 3
            else:
                shares = [each / sum(rounds) for each in rounds]
            expected = old[column] + sum(s * (w[column] - old[column]) for s, w in zip(shares, new, strict=True))
            assert got[column] == pytest.approx(expected, abs=1e-6)
            assert squares[column] == pytest.approx(before[column] + total[column] / part, rel=1e-5)
            begun = old[column] * (done + 1) - first[column]
            own = 0.0
            for k, share in enumerate(shares):
                if feature in tables["sums"][k + 1]:
                    whole = new[k][column] * (done + rounds[k] + 1) - sums[k][column]
                    own += share * ((whole - begun) / rounds[k] - old[column])
            seen = begun + sum(rounds) * (old[column] + own)
            assert got[column] * 9 - last[column] == pytest.approx(seen, abs=1e-4)


@pytest.mark.parametrize("options", [{"learner": "csoaa"}, {"learner": lols.LearnerSettings("hinge", bits=8)}], ids=str)
def test_what_one_learner_changed_is_all_of_the_mixture(options: dict[str, Any]) -> None:
    began = Began(**options)
    nothing, (changes, after) = Detour(began.learner).changes(), began.changed_by([2, 3, 4])
    assert nothing.nbytes == 0
    assert same_state(after, began.mixed([nothing, changes]))


def test_fixed_tables_are_mixed() -> None:
    began = Began(learner=lols.LearnerSettings("hinge", "adagrad", bits=8))
    began.learner.shared = began.learner.shared._replace(most=9)  # of growing tables only
    changes, after = zip(*(began.changed_by([k, k + 1]) for k in (2, 4)), strict=True)
    made = began.mixed(list(changes), by="rounds")
    expected = (after[0]["shared.weights"] + after[1]["shared.weights"]) / 2
    assert np.allclose(made["shared.weights"], expected, atol=1e-6)


def test_features_that_have_no_room_are_dropped() -> None:
    began = Began(learner=lols.LearnerSettings("hinge", "adagrad", max_features=40))
    made = began.mixed([began.changed_by([2 * k, 2 * k + 1])[0] for k in range(1, 5)])
    assert made["shared.features"].size == 40


def test_an_order_that_is_given_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(order: np.ndarray, work: np.ndarray, parts: int) -> np.ndarray:
        asked.append(parts)
        return evened(order, work, parts)

    monkeypatch.setattr("lols.training.mixing.evened", noted)
    for how in ({"shuffle": False}, {"neighbours": 2}):
        fitted(shards(2), passes=1, **how)
    assert set(asked) == {1}
