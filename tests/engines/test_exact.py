"""Exact mode: workers do not change the result, whatever the learner; copies of a policy are the policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.engines import Processes, history, searcher, stage_one
from lols.engines.replica import Replica, Tracked, snapshot
from lols.training.learning import Learning
from lols.training.loop import Searcher, learn
from lols.training.sources import source_of
from tests.engines.small_problems import DATA, SPACE, InParts, Parts, fitted, same


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learner": "csoaa"},
        {"learner": "secoc"},
        {"learner": lols.LearnerSettings("hinge", "adagrad", bits=10, slack=0.0)},
        {"learner": lols.LearnerSettings("csoaa", "ridge", max_features=8)},
        {"learner": lols.LearnerSettings("csoaa", "sketch", directions=2)},
        {"algorithm": "searn"},
        {"beta": "auto", "teacher": "bad"},
        {"update": "perceptron", "returned": "last", "batch_size": 5},
        {"returned": "drawn", "batch_size": 1, "passes": 1},
        {"sample_steps": 2, "ties": "random"},
    ],
    ids=str,
)
def test_parts_of_batches_give_the_same_weights(options: dict[str, Any]) -> None:
    with_parts = fitted(Parts(), compiled=False, data=DATA[:12], **options)
    assert same(fitted(None, compiled=False, data=DATA[:12], **options), with_parts)


def test_features_of_actions_are_copied_too() -> None:
    space, data = choosing_space(), choosing_data(40)
    options = {"compiled": False, "space": space, "data": data}
    assert same(fitted(None, **options), fitted(Parts(), **options))


def choosing_space() -> lols.SearchSpace:
    """Choose one of several numbers, the smallest being the best: actions have features, states have none."""

    def actions(x: Any, s: Any, legal: Any) -> None:
        if s[0] == 0:
            legal[: len(x.numbers)] = True

    def step(x: Any, s: Any, a: Any) -> None:
        s[0] = a + 1

    def action_features(x: Any, s: Any, a: Any, out: Any) -> None:
        lols.emit(out, lols.feature(1, x.numbers[a]))
        lols.emit(out, lols.feature(2, x.numbers[a] % 3))

    def loss(x: Any, y: Any, s: Any) -> float:
        return float(x.numbers[s[0] - 1])

    return lols.SearchSpace(
        start=lambda x, s: None,
        actions=actions,
        step=step,
        features=lambda x, s, out: None,
        action_features=action_features,
        loss=loss,
        output=lambda x, s: int(s[0] - 1),
        encode=lambda obj: lols.Example({"numbers": obj}, {}),
        sizes=lols.Sizes(state=1, actions=lambda x: len(x.numbers), features=0, steps=1, action_features=2),
        teacher=lols.Reference(action=lambda x, y, s: 0),
    )


def choosing_data(count: int) -> list[list[int]]:
    """Lists of two to five numbers."""
    random = np.random.default_rng(1)
    return [random.integers(0, 12, size=2 + n % 4).tolist() for n in range(count)]


def test_a_program_runs_in_parts() -> None:
    program = lols.Program(tag_words, actions=3)
    data = [{"words": [n % 5, (n + 2) % 5], "tags": [n % 5 % 3, (n + 2) % 5 % 3]} for n in range(24)]
    models = [
        lols.train(program, data, passes=2, batch_size=8, compiled=False, engine=engine, progress=False)
        for engine in (None, Parts())
    ]
    assert models[0].report["progressive_loss"] == models[1].report["progressive_loss"]
    assert models[0].predict(data) == models[1].predict(data)


def tag_words(search: Any, x: Any) -> list[int]:
    """A tagger as a program."""
    tags: list[int] = []
    for k, word in enumerate(x["words"]):
        truth = x["tags"][k]
        tags.append(search.predict([("word", word), ("before", *tags[-1:])], reference=truth))
        search.loss(tags[k] != truth)
    return tags


def test_a_copy_follows_a_policy_by_its_changes() -> None:
    trainer = lols.Trainer(SPACE, lols.Reference(action=lambda x, y, s: y.tags[s[0]]), batch_size=8)
    source = source_of(trainer, DATA)
    learning = Learning(trainer, source.count, source.batch_size(trainer))
    with Searcher(learning, source) as searcher:
        searcher.turn_to(source.first, np.arange(4))
        learner = learning.policy.learner
        assert learner is not None
        copy, tracked = Replica(snapshot(learner.policy())), Tracked(learner.policy())
        sent = []

        def before(batch: Any) -> None:
            ids = _ids(batch)
            tracked.before(learner.policy(), ([copy.shared.touched(ids)], [copy.single.touched(ids[:0])]))

        searcher._found = before
        for _ in learn(learning, source, searcher):
            changes = tracked.after(learner.policy())
            assert changes is not None
            copy.apply(changes)
            sent.append(changes.nbytes)
            theirs, ours = snapshot(learner.policy()).shared, snapshot(copy.policy()).shared
            assert np.array_equal(theirs.features, ours.features)
            assert np.array_equal(theirs.weights.view(np.int32), ours.weights.view(np.int32))
    assert min(sent) < snapshot(learner.policy()).nbytes / 10  # later batches change little


def _ids(batch: Any) -> np.ndarray:
    slots, lessons = batch.lessons.slots, batch.lessons
    parts = [
        slots.ids[slots.start[at] : slots.stop[at]]
        for first, filled in zip(lessons.first, lessons.filled, strict=True)
        for at in range(first, first + filled)
    ]
    return np.concatenate(parts)


def test_processes_give_the_same_weights(tmp_path: Any) -> None:
    assert same(fitted(None, passes=1), fitted(Processes(workers=2), passes=1))


def test_workers_that_are_new_or_were_away_get_all_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "RECENT", 2)
    inner, seen = history.Version.follow, []

    def follow(self: Any, number: int | None, *how: Any) -> int:
        had = 0 if number is None else number - self.since
        seen.append((had, self.number - self.since, self.older is not None, len(self.changes)))
        return inner(self, number, *how)

    def forgetful(part: Any) -> Any:
        if part.version.number % 7 == 6:
            stage_one._STAGE = None  # a new worker
        elif part.version.number % 3 == 2:
            part = part._replace(run="another")  # another worker: this one misses what changes meanwhile
        kept = stage_one._STAGE
        try:
            return search(part)
        finally:
            if part.run == "another":
                stage_one._STAGE = kept

    search = searcher.search_part
    monkeypatch.setattr(searcher, "search_part", forgetful)
    monkeypatch.setattr(history.Version, "follow", follow)
    options: dict[str, Any] = {"compiled": False, "data": DATA[:30], "batch_size": 1, "passes": 1}
    assert same(fitted(None, **options), fitted(Parts(), **options))
    assert max(count for *_, count in seen) <= 4 and any(older and had > 0 for had, _, older, _ in seen)


def test_more_parts_than_examples() -> None:
    assert same(fitted(None, data=DATA[:2], compiled=False), fitted(Parts(), data=DATA[:2], compiled=False))


def test_an_error_names_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [*DATA[:20], {"words": [1, 2], "tags": [0, 77]}]
    lines = []
    for engine in (None, Parts()):
        with pytest.raises(lols.SpaceError) as error:
            fitted(engine, data=wrong, compiled=False, shuffle=False, roll_in="reference")
        lines.append(str(error.value))
    assert lines[0] == lines[1]
    assert "example 20" in lines[0]


def test_what_cannot_be_sent_is_named(tmp_path: Any) -> None:
    with open(tmp_path / "log", "w") as log:
        teacher = lols.Reference(action=lambda x, y, s: (log.name and 0) or y.tags[s[0]])
        trainer = lols.Trainer(SPACE, teacher, compiled=False, engine=Parts())
        with pytest.raises(lols.LolsError, match="`action` of the reference cannot be sent to workers"):
            trainer.fit(DATA, progress=False)


def test_functions_that_differ_on_a_worker_are_refused() -> None:
    trainer = lols.Trainer(SPACE, lols.Reference(action=lambda x, y, s: 0), compiled=False)
    source = source_of(trainer, DATA)
    with source.driver(trainer.new_policy(), trainer, source.first) as driver:
        signed = driver.portable().signed()
        with pytest.raises(lols.LolsError, match="`start` of the space is not the same on this worker"):
            signed._replace(digest="another").make()


def test_bytes_are_counted() -> None:
    trainer = lols.Trainer(SPACE, lols.Reference(action=lambda x, y, s: y.tags[s[0]]), compiled=False)
    source = source_of(trainer, DATA)
    learning = Learning(trainer, source.count, source.batch_size(trainer))
    with Searcher(learning, source) as searcher:
        searcher.turn_to(source.first, np.arange(4))
        searcher.send_to(InParts())
        by: Any = searcher._by
        for _ in learn(learning, source, searcher):
            pass
    assert by.batches == 5 * 60
    assert by.received > by.history.sent > 0
