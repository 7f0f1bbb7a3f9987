"""Streams: however the data is cut, the result is that of one pass in the given order, bit for bit."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols import Tagger
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError, LolsError
from lols.training.stream import Stream
from lols.training.trainer import Trainer
from tests.tasks.tagging.tagger_data import TAGS, sentences, spans, weights

CLASSES = sorted(set(TAGS.values()))
WORDS, GOLD = sentences(35, noise=0.2)
SIZES = [1, 3, 32]


def tagger(**options: Any) -> Tagger:
    return Tagger(**({"passes": 1, "shuffle": False, "progress": False} | options))


def streamed(cuts: list[int], words: Any = WORDS, gold: Any = GOLD, classes: Any = CLASSES, **options: Any) -> Tagger:
    made = tagger(**options)
    places = [0, *sorted(cuts), len(words)]
    for k, (begin, end) in enumerate(itertools.pairwise(places)):
        made.partial_fit(words[begin:end], gold[begin:end], classes=classes if k == 0 else None)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stream")


@functools.cache
def whole(size: int) -> dict[str, Any]:
    """What every stream with this batch size must give."""
    return weights(tagger(batch_size=size).fit(WORDS, GOLD))


@settings(max_examples=25)
@given(st.lists(st.integers(0, len(WORDS)), max_size=6), st.sampled_from(SIZES))
def test_any_cut_of_the_data_gives_the_weights_of_one_pass(cuts: list[int], size: int) -> None:
    assert weights(streamed(cuts, batch_size=size)) == whole(size)


def test_the_batch_size_is_part_of_the_result() -> None:
    assert len({repr(whole(size)) for size in SIZES}) == len(SIZES)


def test_one_by_one_is_the_same() -> None:
    made = tagger(batch_size=3).partial_fit([], [], classes=CLASSES)
    for words, tags in zip(WORDS, GOLD, strict=True):
        assert made.learn_one(words, tags) is made
    assert weights(made) == whole(3)


@settings(max_examples=8)
@given(st.lists(st.integers(0, len(WORDS)), min_size=1, max_size=4), st.sampled_from(SIZES))
def test_predicting_in_between_changes_nothing(folder: Path, cuts: list[int], size: int) -> None:
    made = tagger(batch_size=size)
    places = [0, *sorted(cuts), len(WORDS)]
    for begin, end in itertools.pairwise(places):
        made.partial_fit(WORDS[begin:end], GOLD[begin:end], classes=CLASSES)
        assert [len(t) for t in made.predict(WORDS[:5])] == [len(t) for t in WORDS[:5]]
        made.predict_confidence(WORDS[:2])
        made.save(folder / "between.lols")
    assert weights(made) == whole(size)


def test_a_saved_model_stays_as_it_was_when_the_stream_goes_on() -> None:
    made = streamed([], WORDS[:20], GOLD[:20])
    before, model = made.predict(WORDS), made.model_
    kept = model.policy.stack.tobytes()
    made.partial_fit(WORDS[20:], GOLD[20:])
    assert model.policy.stack.tobytes() == kept
    made.predict(WORDS)
    assert before == streamed([], WORDS[:20], GOLD[:20]).predict(WORDS)


def test_threads_do_not_change_a_stream() -> None:
    assert weights(streamed([5, 20], batch_size=32, threads=2)) == whole(32)


@pytest.mark.parametrize(
    "options", [{"algorithm": "cloning"}, {"learner": "csoaa"}, {"beta": "auto"}, {"mix": "rollout"}]
)
def test_other_choices_stream_as_well(options: dict[str, Any]) -> None:
    wanted = weights(tagger(batch_size=3, **options).fit(WORDS, GOLD))
    assert weights(streamed([1, 2, 17], batch_size=3, **options)) == wanted


def test_spans_stream_as_well() -> None:
    words, tags = spans(20)
    classes = sorted({t for s in tags for t in s})
    for direction in ("forward", "backward"):
        options = {"direction": direction, "batch_size": 3, "scheme": "bio"}
        wanted = weights(tagger(**options).fit(words, tags))
        assert weights(streamed([4, 9], words, tags, classes, **options)) == wanted


# --- what a stream knows ----------------------------------------------------------------------------------------------


def test_the_first_call_needs_all_tags() -> None:
    says = "the first call of partial_fit needs classes: all tags that there can be"
    with pytest.raises(ConfigurationError, match=says):
        tagger().partial_fit(WORDS, GOLD)
    with pytest.raises(ConfigurationError, match=says):
        tagger().learn_one(WORDS[0], GOLD[0])


def test_a_tag_that_was_not_named_is_refused() -> None:
    made = streamed([], WORDS, GOLD, batch_size=3)
    with pytest.raises(LolsError, match=r"tag '\?' is not among the classes of the first call: name it there"):
        made.partial_fit([["the", "dog"]], [["DET", "?"]])
    assert weights(made) == whole(3)


def test_mistakes_in_a_stream_are_named() -> None:
    made = streamed([], batch_size=3)
    for words, tags, says in (
        ([["a"]], [], "there are 1 sentences, but 0 lists of tags"),
        ([["a"], []], [["DET"], []], "sentence 1 is empty: leave it out"),
        ([["a"]], [["DET", "DET"]], "sentence 0 has 1 words, but 2 tags"),
        ([["a"]], [[3]], "sentence 0: tag 3 is not a string"),
    ):
        with pytest.raises(LolsError, match=says):
            made.partial_fit(words, tags)
    assert weights(made) == whole(3)
    with pytest.raises(LolsError, match="there is only one label"):
        tagger().partial_fit(WORDS, GOLD, classes=["DET"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"algorithm": "searn"}, "searn needs to know how much data there is: use fit"),
        ({"beta": "linear:1:0"}, "a linear schedule needs to know how much data there is: use fit, or another beta"),
    ],
)
def test_what_needs_the_end_cannot_stream(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        streamed([], **options)


def test_nothing_may_come_first_and_in_between() -> None:
    made = tagger(batch_size=3).partial_fit([], [], classes=CLASSES)
    assert len(made.predict_one(["the", "dog"])) == 2
    assert made.classes_.tolist() == CLASSES
    made.partial_fit(WORDS, GOLD).partial_fit([], [])
    assert weights(made) == whole(3)


def test_vocabulary_and_tokens_add_up(folder: Path) -> None:
    made = streamed([9, 20])
    assert sorted(made.vocabulary_) == sorted({w for s in WORDS for w in s})
    made.save(folder / "m.lols")
    assert lols.load(folder / "m.lols").model_.about["tokens"] == sum(map(len, WORDS))
    assert made.evaluate([["the", "xyzzy"]], [["DET", "NOUN"]]).unknown_tokens == 1


# --- after fit, after load --------------------------------------------------------------------------------------------


def test_a_stream_goes_on_where_fit_ended() -> None:
    fitted = tagger(batch_size=5).fit(WORDS[:20], GOLD[:20])  # four whole batches
    fitted.partial_fit(WORDS[20:], GOLD[20:])
    assert weights(fitted) == weights(tagger(batch_size=5).fit(WORDS, GOLD))


def test_it_goes_on_after_several_passes_and_unlearns() -> None:
    made = Tagger(passes=3, progress=False).fit(WORDS, [["DET"] * (len(t) - 1) + ["NOUN"] for t in GOLD])
    before = made.score(WORDS, GOLD)
    for _ in range(8):
        made.partial_fit(WORDS, [["DET" if t not in ("DET", "NOUN") else t for t in s] for s in GOLD])
    assert made.score(WORDS, GOLD) > before


def test_fit_after_a_stream_starts_anew() -> None:
    made = streamed([], WORDS[:9], [["DET"] * len(t) for t in WORDS[:9]], batch_size=3)
    assert weights(made.fit(WORDS, GOLD)) == whole(3)


def test_a_loaded_tagger_goes_on_from_its_weights_or_exactly(folder: Path) -> None:
    made = tagger(batch_size=3).fit(WORDS[:21], GOLD[:21])
    made.save(folder / "m.lols")
    loaded = Tagger.load(folder / "m.lols")
    assert loaded.predict(WORDS) == made.predict(WORDS)
    with pytest.warns(UserWarning, match="m.lols has no learner's state: learning starts from its weights alone"):
        loaded.learn_one(WORDS[0], GOLD[0])
    assert loaded.predict(WORDS[:1]) == GOLD[:1]
    with pytest.warns(UserWarning, match="fit begins anew and forgets what .*m.lols has learned"):
        assert weights(Tagger.load(folder / "m.lols").fit(WORDS, GOLD)) == whole(3)
    made.set_params(keep_state=True).save(folder / "m.lols")
    loaded = Tagger.load(folder / "m.lols").partial_fit(WORDS[21:], GOLD[21:])
    for each in (loaded, made):
        each.keep_state = False
    assert weights(loaded) == weights(made.partial_fit(WORDS[21:], GOLD[21:])) == whole(3)


# --- the stream itself ------------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.lists(st.integers(0, 20), max_size=4), st.sampled_from([1, 4, 50]), st.sampled_from([0.5, "auto"]))
def test_any_space_can_stream(cuts: list[int], size: int, beta: Any) -> None:
    space, teacher = tagging_space(labels=3), tagging_references()["optimal"]
    data = tagging_data(20, labels=3, words=9)
    trainer = Trainer(space, teacher, passes=1, batch_size=size, shuffle=False, beta=beta)
    wanted = trainer.fit(data, progress=False)
    stream = Stream(trainer)
    places = [0, *sorted(cuts), 20]
    for begin, end in itertools.pairwise(places):
        if end > begin:
            stream.learn(lols.Examples(space, data[begin:end]))
    made = stream.model()
    assert made.policy.stack.tobytes() == wanted.policy.stack.tobytes()
    assert made.report["progressive_loss"] == pytest.approx(wanted.report["progressive_loss"])
    if 20 % size == 0:  # or else the stream waits for the rest of the batch
        assert made.report["beta"] == wanted.report["beta"]


def test_a_stream_needs_a_batch_size() -> None:
    trainer = Trainer(tagging_space(labels=3), tagging_references()["optimal"])
    with pytest.raises(ConfigurationError, match="a stream has no end to derive the batch size from: give batch_size"):
        Stream(trainer)
