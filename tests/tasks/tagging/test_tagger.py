"""lols.Tagger: scikit-learn's habits, what it is given, what it gives, and that one seed gives one result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from lols import Tagger
from lols.errors import ConfigurationError, LolsError
from tests.tasks.tagging.tagger_data import TAGS, sentences, weights
from tests.tasks.tagging.trained_taggers import GOLD, WORDS, tagger

# --- scikit-learn's habits --------------------------------------------------------------------------------------------


def test_parameters_can_be_read_changed_and_cloned() -> None:
    made = Tagger(passes=3, seed=7, loss="f1")
    params = made.get_params()
    assert params["passes"] == 3 and params["seed"] == 7 and params["rate"] is None
    assert clone(made).get_params() == params
    assert made.set_params(passes=4, seed=8) is made and made.passes == 4 and made.get_params()["seed"] == 8
    with pytest.raises(ValueError, match="Invalid parameter 'speed'"):
        made.set_params(speed=1)
    assert "passes=4" in repr(made)


def test_fit_keeps_the_parameters_and_a_clone_knows_nothing(fitted: Tagger) -> None:
    assert fitted.get_params() == tagger().get_params()
    fresh = clone(fitted)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)
    check_is_fitted(fitted)


def test_a_tagger_that_knows_nothing_says_so(tmp_path: Path) -> None:
    made = tagger()
    calls = [
        lambda: made.predict(WORDS),
        lambda: made.predict([]),
        lambda: made.predict_one(["a"]),
        lambda: made.predict_costs(WORDS),
        lambda: made.predict_confidence(WORDS),
        lambda: made.predict_kbest(WORDS),
        lambda: made.score(WORDS, GOLD),
        lambda: made.evaluate(WORDS, GOLD),
        lambda: made.save(tmp_path / "m.lols"),
        lambda: made.classes_,
        lambda: made.action_labels_,
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match="this Tagger is not trained yet: call fit first"):
            call()


def failed_fit(made: Tagger) -> None:
    with pytest.raises(ConfigurationError, match="unknown algorithm"):
        made.set_params(algorithm="nothing").fit(WORDS, GOLD)


def failed_stream(made: Tagger) -> None:
    with pytest.raises(ConfigurationError, match="linear schedule"):
        made.set_params(beta="linear:1:0").partial_fit(WORDS, GOLD, classes=sorted(set(TAGS.values())))


def failed_tags(made: Tagger) -> None:
    with pytest.raises(LolsError, match=r"'\?' is not among the classes"):
        made.partial_fit([["a"]], [["?"]], classes=["A", "B"])


@pytest.mark.parametrize("fail", [failed_fit, failed_stream, failed_tags])
def test_a_tagger_whose_training_failed_knows_nothing_either(fail: Any) -> None:
    made = tagger()
    fail(made)
    with pytest.raises(NotFittedError):
        made.predict(WORDS)


# --- fit, predict, score ----------------------------------------------------------------------------------------------


def test_it_learns_what_can_be_learned(fitted: Tagger) -> None:
    words, gold = sentences(20, seed=1)
    assert fitted.predict(words) == gold and fitted.score(words, gold) == 1.0
    assert fitted.predict_one(["the", "old", "dog"]) == ["DET", "ADJ", "NOUN"]
    assert fitted.classes_.tolist() == sorted(set(TAGS.values()))
    assert fitted.fit(WORDS, GOLD) is fitted


def test_empty_sentences_have_no_tags(fitted: Tagger, chunker: Tagger) -> None:
    for made in (fitted, chunker):
        assert made.predict([]) == [] and made.predict([[]]) == [[]] and made.predict_one([]) == []
        one, *rest = made.predict([[], ["the", "dog"], [], ["a"]])
        assert one == rest[1] == [] and [len(r) for r in rest] == [2, 0, 1]
        assert [rest[0]] == made.predict([["the", "dog"]])
        assert [c.shape[0] for c in made.predict_costs([[], ["a"], []])] == [0, 1, 0]
        assert [c.shape for c in made.predict_costs([[]])] == [(0, len(made.action_labels_))]
        assert [c.tolist() for c in made.predict_confidence([[], []])] == [[], []]
        assert made.predict_kbest([[]]) == [[([], 0.0)]]
        best = made.predict_kbest([[], ["a"]], k=2)
        assert best[0] == [([], 0.0)] and len(best[1]) == 2


def test_predictions_do_not_depend_on_company(fitted: Tagger) -> None:
    words, _ = sentences(10, seed=2)
    assert fitted.predict(words) == [fitted.predict_one(w) for w in words]


def test_words_never_seen_are_tagged_by_their_looks() -> None:
    words = [[f"{stem}{end}"] for stem in ("walk", "talk", "bark", "jump", "look") for end in ("ing", "ed")] * 3
    gold = [["G" if w[0].endswith("ing") else "D"] for w in words]
    assert tagger(passes=4).fit(words, gold).predict([["dancing", "danced"]]) == [["G", "D"]]


def test_evaluate_counts_as_by_hand(fitted: Tagger) -> None:
    words = [["the", "dog"], ["xyzzy", "barks", "sleeps"], ["a"]]
    gold = [["DET", "VERB"], ["NOUN", "VERB", "VERB"], ["?"]]
    made, found = fitted.predict(words), fitted.evaluate(words, gold)
    right = [a == b for x, y in zip(made, gold, strict=True) for a, b in zip(x, y, strict=True)]
    assert (found.tokens, found.sentences) == (6, 3)
    assert found.accuracy == pytest.approx(sum(right) / 6) == pytest.approx(1 - found.error)
    assert found.accuracy == fitted.score(words, gold)
    assert found.sentence_accuracy == pytest.approx(sum(x == y for x, y in zip(made, gold, strict=True)) / 3)
    assert found.unknown_tokens == 1 and found.unknown_accuracy == float(made[1][0] == "NOUN")
    assert found.unseen_labels == ("?",) and found.spans is None
    assert found.tags["?"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1}
    wrong = sum(n for _, _, n in found.confusions)
    assert wrong == 6 - sum(right) and ("?", made[2][0], 1) in found.confusions
    verbs = sum(tag == "VERB" for tags in made for tag in tags)
    assert found.tags["VERB"]["count"] == 3 and found.tags["VERB"]["precision"] == pytest.approx(2 / verbs)


def test_evaluate_counts_spans_as_conlleval_does(chunker: Tagger) -> None:
    words = [["the", "old", "dog", "sleeps"], ["Ann"]]
    made = chunker.predict(words)
    assert made == [["B-NP", "I-NP", "I-NP", "B-VP"], ["B-NP"]]
    found = chunker.evaluate(words, [["B-NP", "I-NP", "O", "B-VP"], ["B-PER"]]).spans
    assert (found.correct, found.predicted, found.gold) == (1, 3, 3)
    assert found.f1 == pytest.approx(1 / 3) and found.by_type["VP"].f1 == 1.0


def test_an_unseen_label_that_is_no_span_is_never_right(chunker: Tagger) -> None:
    assert chunker.predict([["Ann"]]) == [["B-NP"]]
    assert chunker.evaluate([["Ann"]], [["NP"]]).spans.correct == 0


def test_an_unseen_label_may_look_like_anything(chunker: Tagger) -> None:
    assert chunker.evaluate([["Ann", "sleeps"]], [["B-", "B-VP"]]).spans.correct == 1


# --- dictionaries -----------------------------------------------------------------------------------------------------


def test_numbers_and_bools_are_features() -> None:
    words = [[{"word": "x", "n": n, "up": up}] for n in (-1.0, 0.5, 1) for up in (True, False)] * 8
    gold = [["A" if w[0]["up"] else "B" if w[0]["n"] > 0 else "C"] for w in words]
    made = tagger(passes=20).fit(words, gold)
    assert made.score(words, gold) == 1.0


def test_a_number_need_not_have_words_beside_it() -> None:
    made = tagger(passes=5).fit([[{"n": 1.0}, {"n": -1.0}]] * 9, [["P", "M"]] * 9)
    assert made.predict([[{"n": 2.0}, {"n": -0.5}, {"n": 1}]]) == [["P", "M", "P"]]
    assert made.evaluate([[{"n": 1.0}]], [["P"]]).unknown_tokens == 0


def test_further_columns_are_looked_at_and_may_be_missing_later() -> None:
    words = [[{"word": "x", "pos": p}] for p in "NVN"] * 9
    made = tagger().fit(words, [[w[0]["pos"] * 2] for w in words])
    assert made.predict(words[:3]) == [["NN"], ["VV"], ["NN"]]
    assert made.task_.columns == ("word", "pos")
    assert len(made.predict_one(["x", "y"])) == 2
    assert len(made.predict_one([{"pos": "N"}, {"word": "x", "other": "y"}])) == 2


def test_the_order_of_keys_does_not_matter() -> None:
    one = [[{"word": w, "pos": TAGS[w], "n": len(w)} for w in s] for s in WORDS]
    other = [[dict(reversed(t.items())) for t in s] for s in one]
    assert weights(tagger().fit(one, GOLD)) == weights(tagger().fit(other, GOLD))


def test_templates_may_name_columns_and_nothing_else() -> None:
    words = [[{"word": w, "pos": w[0]} for w in s] for s in WORDS]
    made = tagger(templates=["pos", "pos[-1] & tag[-1]"]).fit(words, GOLD)
    assert made.task_.templates == ["pos", "pos[-1] & tag[-1]"]
    assert tagger(templates="word\nlower[-1]  # before").fit(WORDS, GOLD).score(WORDS, GOLD) == 1.0
    with pytest.raises(ConfigurationError, match="there is no attribute or column 'pos'; columns: word"):
        tagger(templates=["pos"]).fit(WORDS, GOLD)


def test_templates_of_tags_only() -> None:
    made = tagger(templates=["tag[-1]"], passes=5).fit([["a", "b", "a", "b"]] * 9, [["A", "B", "A", "B"]] * 9)
    assert made.predict([["x"] * 4]) == [["A", "B", "A", "B"]]


@pytest.mark.parametrize("name", ["tag", "bias", "my column", "2nd", ""])
def test_a_column_that_no_template_can_name_is_named(name: str) -> None:
    words = [[{"word": "a", name: "x"}, {"word": "b", name: "y"}]]
    with pytest.raises(LolsError) as caught:
        tagger().fit(words, [["A", "B"]])
    assert f"a column cannot be called {name!r}" in str(caught.value)


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        ([["a"]], [["A"], ["B"]], "there are 1 sentences, but 2 lists of tags"),
        ([["a"], ["b", "c"]], [["A"], ["B"]], "sentence 1 has 2 words, but 1 tags"),
        ([["a", "b"]], [["A", 3]], "sentence 0: tag 3 is not a string with something in it"),
        ([["a", "b"]], [["A", None]], "sentence 0: tag None is not a string with something in it"),
        ([["a", "b"]], [["A", ""]], "sentence 0: tag '' is not a string with something in it"),
        ([["a", "b"]], [["A", "A"]], "there is only one label, ['A']: nothing can be learned; check the column"),
        ([], [], "there are no sentences to learn from: give at least one"),
        ([["a"], []], [["A"], []], "sentence 1 is empty: leave it out"),
        ("a b", ["A", "B"], "sentences are lists of words: give a list of them, such as [['a', 'dog'], ...]"),
        (["a", "b"], ["A", "B"], "sentences are lists of words: give a list of them, such as [['a', 'dog'], ...]"),
        ([[{"word": "a", "n": float("nan")}]], [["A"]], "sentence 0, word 0: feature 'n' is nan; give a string"),
        ([[1, 2]], [["A", "B"]], "sentence 0, word 0: words are all strings, or all dictionaries of features"),
        ([["a", "\ud800"]], [["A", "B"]], "sentence 0, word 1: the string holds half of a surrogate pair"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_from_is_named(X: Any, y: Any, says: str) -> None:
    for call in (lambda: tagger().fit(X, y), lambda: tagger().fit(WORDS, GOLD, dev=(X, y))):
        if "only one" in says or "no sentences" in says or "is empty" in says:
            call = lambda: tagger().fit(X, y)  # noqa: E731
        with pytest.raises(LolsError) as caught:
            call()
        assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([["a"], "bc"], [["A"], ["B", "C"]]),
        ([["a", "b"]], ["AB"]),
        ([["a", "b"]], [["A", "\ud800"]]),
        ([["a", "b"]], None),
        ([3], [["A"]]),
        (None, [["A"]]),
    ],
    ids=["a sentence is a string", "tags are a string", "half a pair", "no tags", "a sentence is a number", "none"],
)
def test_other_things_are_refused_too(X: Any, y: Any) -> None:
    with pytest.raises(LolsError):
        tagger().fit(X, y)


def test_no_sentences_to_choose_on_is_a_mistake() -> None:
    with pytest.raises(LolsError):
        tagger().fit(WORDS, GOLD, dev=([], []))


@pytest.mark.parametrize("patience", [0, -1])
def test_patience_is_at_least_one_pass(patience: int) -> None:
    with pytest.raises(ConfigurationError, match="patience"):
        tagger(patience=patience).fit(WORDS, GOLD, dev=(WORDS, GOLD))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"passes": 0}, "passes is 0; it must be at least 1"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
        ({"learner": "best"}, "unknown learner 'best': choose one of"),
        ({"algorithm": "best"}, "unknown algorithm 'best': choose one of"),
        ({"reference": "best"}, "unknown reference 'best': choose one of optimal, suboptimal, bad"),
        ({"scheme": "best"}, "unknown scheme 'best': choose auto, bio, iob1, bilou, bioes, or None"),
        ({"direction": "best"}, "unknown direction 'best': choose one of forward, backward"),
        ({"loss": "best"}, "unknown loss 'best': choose one of hamming, f1"),
        ({"loss": "f1"}, "loss 'f1' needs span labels such as B-NP and I-NP; these are plain tags"),
        ({"rate": -1.0}, "the learning rate is -1.0; it must be positive"),
        ({"algorithm": "dagger", "beta": 0.5}, "beta has no effect"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tagger(**options).fit(WORDS, GOLD)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_k_must_be_positive_and_words_there_to_evaluate(fitted: Tagger) -> None:
    with pytest.raises(ConfigurationError, match="k is 0; it must be at least 1"):
        fitted.predict_kbest(WORDS, k=0)
    with pytest.raises(LolsError, match="there are no words to evaluate on"):
        fitted.evaluate([[]], [[]])
