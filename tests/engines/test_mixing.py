"""Pass mode: one shard is the plain run; the number of workers does not matter; weights and state are mixed as said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.engines import Files, InProcess, Processes
from lols.learners.learner import Learner
from lols.learners.mixing import changes_since, mixed
from lols.learners.structures import ROUNDS
from tests.engines.small_problems import DATA, SPACE, fitted, same


def shards(number: int, legs: int | None = None) -> InProcess:
    return InProcess(sync="pass", shards=number, legs=legs)


@pytest.mark.parametrize("options", [{}, {"learner": "csoaa"}, {"beta": "auto", "teacher": "bad"}], ids=str)
def test_one_shard_is_the_plain_run(options: dict[str, Any]) -> None:
    how = {"compiled": False, "data": DATA[:20], **options}
    plain = fitted(None, **how)
    assert same(plain, fitted(shards(1), **how))
    assert same(plain, fitted(shards(1, legs=3), **how))


def test_the_number_of_workers_does_not_matter() -> None:
    assert same(fitted(shards(3)), fitted(Processes(workers=2, sync="pass", shards=3)))


def test_more_shards_than_examples_and_an_example_each() -> None:
    how = {"compiled": False, "data": DATA[:3]}
    assert same(fitted(shards(3), **how), fitted(shards(50), **how))


def test_shards_learn() -> None:
    losses = fitted(shards(4), passes=4).model.report["progressive_loss"]  # type: ignore[attr-defined]
    assert losses[-1] < losses[0] / 4


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"algorithm": "searn"}, "sync='pass' cannot train searn"),
        ({"returned": "drawn"}, "sync='pass' cannot train"),
        ({"learner": lols.LearnerSettings("csoaa", "ridge")}, "ridge learners cannot be averaged"),
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
    with_empty = fitted(shards(5), data=Files(str(tmp_path / "part-*.jsonl"), read_lines))
    assert same(whole, with_empty)
    assert with_empty.model.about["examples"] == len(DATA)  # type: ignore[attr-defined]
    with pytest.raises(lols.LolsError, match="there are 4 files for 9 shards: give more files, or shards=4"):
        fitted(shards(9), data=files)


# --- how states are mixed ---


def states(by_learner: dict[int, list[int]]) -> tuple[dict[str, np.ndarray], list[dict[str, np.ndarray]]]:
    """A state, and those of learners that went on from it on examples of their own."""
    trainer = lols.Trainer(SPACE, lols.Reference(action=lambda x, y, s: y.tags[s[0]]), compiled=False, update="adagrad")
    base = learned(trainer, None, [0, 1])
    return base, [learned(trainer, base, examples) for examples in by_learner.values()]


def learned(trainer: lols.Trainer, state: Any, examples: list[int]) -> dict[str, np.ndarray]:
    run = trainer.new_run(DATA)
    learner: Any = run.student.learner
    if state is not None:
        learner.load(state)
    indices = np.array(examples)
    with run.driver() as driver:
        beta = np.ones(indices.size)
        learner.learn(driver.make_lessons(indices, indices, learner.policy(), trainer.plan, beta, beta).lessons)
    found: dict[str, np.ndarray] = learner.state()
    return found


def by_feature(state: dict[str, np.ndarray], part: str) -> dict[int, np.ndarray]:
    rows = state[f"shared.{part}"].astype(np.float64)
    return dict(zip(state["shared.features"].tolist(), rows, strict=True))


@pytest.mark.parametrize("by", ["rounds", "squares"])
def test_mixing_is_what_its_description_says(by: str) -> None:
    """The slow, obvious version, feature by feature."""
    base, after = states({0: [2, 3, 4], 1: [5], 2: [6, 7]})
    made = mixed(base, [changes_since(base, state) for state in after], by=by, squares="sum")
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
            assert squares[column] == pytest.approx(before[column] + total[column], rel=1e-5)
            begun = old[column] * (done + 1) - first[column]
            own = 0.0
            for k, share in enumerate(shares):
                if feature in tables["sums"][k + 1]:
                    whole = new[k][column] * (done + rounds[k] + 1) - sums[k][column]
                    own += share * ((whole - begun) / rounds[k] - old[column])
            seen = begun + sum(rounds) * (old[column] + own)
            assert got[column] * 9 - last[column] == pytest.approx(seen, abs=1e-4)


def test_a_learner_that_saw_nothing_does_not_count() -> None:
    base, after = states({0: [2, 3]})
    changes = [changes_since(base, base), changes_since(base, after[0])]
    made = mixed(base, changes)
    order = np.argsort(after[0]["shared.features"]), np.argsort(made["shared.features"])
    assert np.array_equal(after[0]["shared.weights"][order[0]], made["shared.weights"][order[1]])
    assert changes[0].nbytes < changes[1].nbytes


def test_fixed_tables_are_mixed() -> None:
    settings = lols.LearnerSettings("hinge", "adagrad", bits=8)
    trainer = lols.Trainer(SPACE, lols.Reference(action=lambda x, y, s: y.tags[s[0]]), compiled=False, learner=settings)
    base = learned(trainer, None, [0, 1])
    after = [learned(trainer, base, [k, k + 1]) for k in (2, 4)]
    made = mixed(base, [changes_since(base, state) for state in after], by="rounds")
    expected = (after[0]["shared.weights"] + after[1]["shared.weights"]) / 2
    assert np.allclose(made["shared.weights"], expected, atol=1e-6)
    Learner(settings, 5, compiled=False).load(made)
