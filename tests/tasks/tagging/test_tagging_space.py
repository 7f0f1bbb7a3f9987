"""The search spaces of tagging: they keep the contract, teachers know best, losses are what their names say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols import Tagger
from lols.contract.checks import check_space
from lols.contract.examples import Examples
from lols.errors import ConfigurationError, LolsError
from lols.kernels.dual import bind
from lols.tasks.tagging.spans import automaton, make_labels
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import corpus_of
from lols.training.trainer import TRICKS, Trainer
from tests.tasks.tagging.span_twin import legal, legal_sequences, spans_of_legal

TEACHERS = ["optimal", "suboptimal", "bad"]
DIRECTIONS = ["forward", "backward"]
LOSSES = ["hamming", "f1"]
TEMPLATES = ["word", "suffix1", "word[-1] & word", "tag[-1]", "tag[-1] & tag[-2] & word", "tag[-3]"]
WORDS = [["a", "b", "a"], ["b"], ["c", "a", "b", "b"]]
PLAIN = [["X", "Y", "Z"], ["Y"], ["Z", "Z", "X", "Y"]]
SPANS = {
    "bio": [["B-P", "I-P", "O"], ["B-Q"], ["O", "B-Q", "B-Q", "I-Q"]],
    "bilou": [["B-P", "L-P", "O"], ["U-Q"], ["O", "U-Q", "B-Q", "L-Q"]],
}


def task_of(tags: list[list[str]], scheme: str | None = None, **options: Any) -> TaggingTask:
    return TaggingTask(sorted({t for s in tags for t in s}), scheme=scheme, templates=TEMPLATES, **options)


def examples_of(task: TaggingTask, words: list[list[str]], tags: list[list[str]]) -> Examples:
    return task.examples(corpus_of(words), task.number([t for s in tags for t in s]))


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize("teacher", TEACHERS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_plain_tags_keep_the_contract(teacher: str, direction: str) -> None:
    task = task_of(PLAIN, direction=direction)
    assert check_space(task.space, examples_of(task, WORDS, PLAIN), task.reference(teacher), rollouts=10) == []


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("teacher", TEACHERS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scheme", SPANS)
def test_spans_keep_the_contract(teacher: str, direction: str, loss: str, scheme: str) -> None:
    task = task_of(SPANS[scheme], scheme, direction=direction, loss=loss)
    examples = examples_of(task, WORDS, SPANS[scheme])
    assert check_space(task.space, examples, task.reference(teacher), rollouts=10) == []


def test_one_set_of_functions_serves_all_labels_and_templates() -> None:
    one = task_of(PLAIN)
    other = TaggingTask(["A", "B"], templates=["shape", "bias"], columns=["word", "pos"])
    spans = TaggingTask(["B-A", "I-A"], scheme="bilou")
    digests = {bind("Space", t.space.functions()).digest for t in (one, other, spans)}
    assert len(digests) == 1


# --- losses, by hand --------------------------------------------------------------------------------------------------


def ends(task: TaggingTask, examples: Examples, number: int, length: int) -> Iterator[tuple[list[str], float, float]]:
    """All legal taggings of an example in the order of tagging, with their loss and the sum of their costs."""
    space = task.space
    x, y = examples.example(number)[:2]
    for actions in legal_sequences(task.machine, length):
        state = np.zeros(6 + length, np.int64)
        space.start(x, state)
        spent = 0.0
        for a in actions:
            allowed = np.zeros(len(task.inner_labels), np.bool_)
            space.actions(x, state, allowed)
            assert allowed[a]
            spent += space.cost(x, y, state, a) if space.cost else 0.0
            space.step(x, state, a)
        yield [task.inner_labels[a] for a in actions], float(space.loss(x, y, state)), spent


@pytest.mark.uncompiled
@pytest.mark.parametrize("scheme", ["bio", "bilou"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_losses_are_what_their_names_say(scheme: str, direction: str) -> None:
    labels = make_labels(scheme, ["B-P", "B-Q"])
    machine = automaton(scheme, labels)
    every = [[labels[a] for a in actions] for actions in legal_sequences(machine, 3)]
    golds = every[:: max(1, len(every) // 9)]
    words = [["a", "b", "c"]] * len(golds)
    tasks = {loss: TaggingTask(labels, scheme=scheme, direction=direction, loss=loss) for loss in LOSSES}
    made = {loss: examples_of(task, words, golds) for loss, task in tasks.items()}
    for k in range(len(golds)):
        truth = next(tags for tags, loss, _ in ends(tasks["hamming"], made["hamming"], k, 3) if loss == 0)
        spans = spans_of_legal(truth)
        for tags, loss, spent in ends(tasks["hamming"], made["hamming"], k, 3):
            assert loss == spent == sum(a != b for a, b in zip(tags, truth, strict=True))
        for tags, loss, spent in ends(tasks["f1"], made["f1"], k, 3):
            found = spans_of_legal(tags)
            assert loss == spent == 0.5 * len(found - spans) + 1.5 * len(spans - found)


@pytest.mark.uncompiled
def test_the_loss_f1_is_least_where_f1_is_highest_at_its_level() -> None:
    """Of all that could be said, what has an F1 above the level costs less than what has one below it."""
    gold = 4
    at_level = 0.5 * (4 - 2) + 1.5 * (gold - 2)  # two right ones of four: F1 = 1/2
    for correct in range(gold + 1):
        for found in range(correct, 12):
            loss, f1 = 0.5 * (found - correct) + 1.5 * (gold - correct), 2 * correct / (found + gold)
            assert (loss < at_level) == (f1 > 0.5) and (loss > at_level) == (f1 < 0.5)


# --- teachers ---------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize("loss", ["hamming", "f1"])
@pytest.mark.parametrize("scheme", ["bio", "bilou", None])
@settings(max_examples=8)
@given(st.data())
def test_costs_in_closed_form_are_those_of_the_best_completions(
    loss: str, scheme: str | None, data: st.DataObject
) -> None:
    labels = make_labels(scheme, ["B-P", "B-Q"]) if scheme else ["X", "Y"]
    if scheme is None and loss == "f1":
        return
    task = TaggingTask(labels, scheme=scheme, loss=loss, direction=data.draw(st.sampled_from(DIRECTIONS)))
    every = list(legal_sequences(automaton(scheme, labels), 3))
    gold = [labels[a] for a in data.draw(st.sampled_from(every))]
    examples = examples_of(task, [["a", "b", "c"]], [gold])
    x, y = examples.example(0)[:2]
    reference = task.reference("optimal")
    totals = dict(zip(legal_sequences(task.machine, 3), (t[1] for t in ends(task, examples, 0, 3)), strict=True))
    for length in range(3):
        for prefix in {actions[:length] for actions in totals}:
            state, spent = np.zeros(9, np.int64), 0.0
            for a in prefix:
                spent += task.space.cost(x, y, state, a)
                task.space.step(x, state, a)
            costs = np.zeros(len(task.inner_labels), np.float32)
            reference.costs(x, y, state, costs)
            best = {
                a: min((v for s, v in totals.items() if s[: length + 1] == (*prefix, a)), default=None)
                for a in range(costs.size)
            }
            for a, least in best.items():
                assert least is None or spent + costs[a] == least
            known = [v for v in best.values() if v is not None]
            assert best[reference.action(x, y, state)] == min(known)


def sentences(seed: int, labels: list[str], count: int = 12) -> tuple[list[list[str]], list[list[str]]]:
    """Random words, and tags that depend on them somewhat; not always legal ones."""
    generator = np.random.default_rng(seed)
    words, tags = [], []
    for _ in range(count):
        drawn = generator.integers(0, 8, generator.integers(1, 8))
        words.append([f"w{k}" for k in drawn])
        noise = generator.integers(0, 2, drawn.size) * generator.integers(0, 9, drawn.size)
        tags.append([labels[int(k + n) % len(labels)] for k, n in zip(drawn, noise, strict=True)])
    return words, tags


def weights(task: TaggingTask, examples: Examples, tricks: dict[str, bool], **options: Any) -> tuple[bytes, Any]:
    trainer = Trainer(task.space, task.reference("optimal"), passes=2, batch_size=4, tricks=tricks, **options)
    model = trainer.fit(examples, progress=False)
    return model.policy.stack.tobytes(), model.report["progressive_loss"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("scheme", "loss"), [(None, "hamming"), ("bio", "hamming"), ("bio", "f1"), ("bilou", "f1")])
@pytest.mark.parametrize("roll_out", ["reference", "mixture"])
def test_costs_in_closed_form_are_those_of_real_roll_outs(
    direction: str, scheme: str | None, loss: str, roll_out: str
) -> None:
    labels = make_labels(scheme, ["B-P", "B-Q"]) if scheme else ["X", "Y", "Z"]
    task = TaggingTask(labels, scheme=scheme, loss=loss, direction=direction, templates=TEMPLATES)
    for seed in range(3):
        examples = examples_of(task, *sentences(seed, labels))
        made = [weights(task, examples, {"closed_form": on}, roll_out=roll_out, seed=seed) for on in (True, False)]
        assert made[0] == made[1]
        assert np.frombuffer(made[0][0], np.float32).any()


@pytest.mark.parametrize(("scheme", "loss"), [(None, "hamming"), ("bilou", "hamming"), ("bio", "f1")])
@pytest.mark.parametrize("prune", [None, 2])
def test_tagging_needs_no_trick(scheme: str | None, loss: str, prune: int | None) -> None:
    labels = make_labels(scheme, ["B-P", "B-Q"]) if scheme else ["X", "Y", "Z"]
    task = TaggingTask(labels, scheme=scheme, loss=loss, templates=TEMPLATES)
    examples = examples_of(task, *sentences(5, labels))
    plain = weights(task, examples, dict.fromkeys(TRICKS, False), prune=prune)
    for trick in (None, *TRICKS):
        assert weights(task, examples, {trick: False} if trick else {}, prune=prune) == plain


@pytest.mark.uncompiled
def test_compiled_and_plain_python_learn_the_same() -> None:
    task = task_of(SPANS["bio"], "bio", loss="f1", direction="backward")
    examples = examples_of(task, WORDS, SPANS["bio"])
    assert weights(task, examples, {}, compiled=True) == weights(task, examples, {}, compiled=False)


# --- only what is legal -----------------------------------------------------------------------------------------------


def legal_by_hand(tags: list[str], scheme: str) -> bool:
    """Read letters from left to right, without the library."""
    opened = None
    for tag in [*tags, "O"]:
        prefix, kind = tag[0], tag[2:]
        if prefix == "I" or (prefix in "LE" and scheme in ("bilou", "bioes")):
            if opened != kind:
                return False
        elif opened is not None and scheme in ("bilou", "bioes"):
            return False
        opened = kind if prefix in "BI" else None
    return True


@settings(max_examples=15)
@given(
    st.integers(0, 999),
    st.sampled_from(["bio", "bilou", "bioes"]),
    st.sampled_from([*DIRECTIONS, "auto"]),
    st.sampled_from(["hamming", "f1"]),
)
def test_only_legal_sequences_are_predicted(seed: int, scheme: str, direction: str, loss: str) -> None:
    labels = make_labels(scheme, ["B-P", "B-Q"])
    words, tags = sentences(seed, labels)  # often illegal, so that the tagger would like to be
    assert not all(legal(t, scheme) for t in tags)
    tagger = Tagger(scheme=scheme, direction=direction, loss=loss, passes=1, progress=False)
    tagger.fit(words, tags)
    for seen in tagger.predict(words + sentences(seed + 1, labels)[0]):
        assert legal(seen, scheme) and legal_by_hand(seen, scheme), seen
    if loss == "hamming":
        for best in tagger.predict_kbest(words[:3], k=4):
            assert all(legal_by_hand(made, scheme) for made, _ in best)


# --- tasks ------------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("inner", ["bio", "bilou", "bioes"])
@pytest.mark.parametrize("scheme", ["bio", "iob1", "bilou", "bioes"])
@settings(max_examples=15)
@given(st.data())
def test_labels_come_back_from_actions(direction: str, inner: str, scheme: str, data: st.DataObject) -> None:
    labels = make_labels(scheme, ["B-P", "B-Q"])
    task = TaggingTask(labels, scheme=scheme, inner_scheme=inner, direction=direction)
    drawn = data.draw(st.lists(st.lists(st.integers(0, len(labels) - 1), max_size=5), min_size=1, max_size=3))
    offsets = np.cumsum([0, *map(len, drawn)]).astype(np.int64)
    numbers = np.array([n for s in drawn for n in s], np.int64)
    back = task.labels_of(task.actions_of(numbers, offsets), offsets)
    for k, sentence in enumerate(drawn):
        tags = [task.labels[n] for n in sentence]
        made = [task.labels[n] for n in back[offsets[k] : offsets[k + 1]]]
        assert legal(made, scheme)
        assert made == tags or not legal(tags, scheme)


@pytest.mark.uncompiled
def test_a_task_comes_back_from_its_description() -> None:
    for task in (
        TaggingTask(["X", "Y"]),
        TaggingTask(["B-P", "I-P"], scheme="iob1", loss="f1", direction="backward", columns=["word", "pos"]),
        TaggingTask(["U-P", "O"], scheme="bilou", inner_scheme="bio", loss="f1", templates=["word", "tag[-1]"]),
    ):
        facts, tensors = task.describe()
        again = TaggingTask.from_description(facts | {"options": {}}, tensors)
        assert again.describe() == task.describe()
        assert again.inner_labels == task.inner_labels and again.layout == task.layout


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("labels", "options", "says"),
    [
        (["X", "Y"], {"direction": "up"}, "unknown direction 'up': choose one of forward, backward"),
        (["X", "Y"], {"loss": "accuracy"}, "unknown loss 'accuracy': choose one of hamming, f1"),
        (["B-X"], {"loss": "spans"}, "there is no loss 'spans' any more: "),
        (["X", "Y"], {"loss": "f1"}, "loss 'f1' needs span labels such as B-NP and I-NP; these are plain tags"),
        (["X", "Y"], {"scheme": "bio"}, "'X' is not a span label: write it as O or as PREFIX-TYPE, such as B-PER"),
        (["B-X"], {"scheme": "bilu"}, "unknown scheme 'bilu': choose one of"),
        (["B-X"], {"scheme": "bio", "inner_scheme": "iob1"}, "the scheme 'iob1' has no automaton"),
        (["X"], {}, "there is only one label, ['X']: nothing can be learned; check the column"),
        (["O"], {"scheme": "bio"}, "there is only one label, ['O']: nothing can be learned; check the column"),
        ([], {}, "there is only one label, []: nothing can be learned"),
        (["X", "Y"], {"templates": []}, "there are no templates"),
    ],
)
def test_tasks_that_make_no_sense_are_refused(labels: list[str], options: dict[str, Any], says: str) -> None:
    with pytest.raises(LolsError) as caught:
        TaggingTask(labels, **options)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)
    assert isinstance(caught.value, ConfigurationError) or "only one label" in says


@pytest.mark.uncompiled
def test_a_teacher_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigurationError, match="unknown reference 'best': choose one of optimal, suboptimal, bad"):
        TaggingTask(["X", "Y"]).reference("best")
