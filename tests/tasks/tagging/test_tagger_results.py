"""What a tagger predicts: costs, confidence, the best pass; clusters, schemes and directions; the same every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lols
from lols import Tagger
from lols.errors import LolsError
from tests.tasks.tagging.span_twin import convert, legal
from tests.tasks.tagging.tagger_data import sentences, spans, weights
from tests.tasks.tagging.trained_taggers import CHUNK_WORDS, CHUNKS, GOLD, WORDS, tagger

# --- costs, confidence, the k best ------------------------------------------------------------------------------------


def test_the_cheapest_tag_is_predicted(fitted: Tagger) -> None:
    words, _ = sentences(15, seed=3)
    for costs, tags in zip(fitted.predict_costs(words), fitted.predict(words), strict=True):
        assert np.isfinite(costs).all() and costs.shape == (len(tags), len(fitted.action_labels_))
        assert [fitted.action_labels_[a] for a in costs.argmin(axis=1)] == tags


def test_illegal_tags_cost_infinitely_much(chunker: Tagger) -> None:
    words, _ = spans(15, seed=3)
    names = chunker.classes_
    for costs, tags in zip(chunker.predict_costs(words), chunker.predict(words), strict=True):
        assert [names[a] for a in costs.argmin(axis=1)] == tags
        for k, row in enumerate(costs):
            before = tags[k - 1][2:] if k else ""
            illegal = {n for n in names if n[0] == "I" and n[2:] != before}
            assert {n for n, c in zip(names, row, strict=True) if np.isinf(c)} == illegal


@pytest.mark.parametrize("scheme", ["bio", "bilou", "iob1"])
def test_costs_are_in_text_order_from_either_end(scheme: str) -> None:
    gold = [convert(t, "bio", scheme) for t in CHUNKS]
    for direction in ("forward", "backward"):
        made = tagger(direction=direction, scheme=scheme).fit(CHUNK_WORDS, gold)
        for words in CHUNK_WORDS[:9]:
            labels = made.predict_costs([words])[0].argmin(axis=1)
            assert [made.classes_[n] for n in labels] == made.predict_one(words)


def test_confidence_is_a_share(fitted: Tagger, chunker: Tagger) -> None:
    for made, words in ((fitted, WORDS), (chunker, CHUNK_WORDS)):
        for row, costs in zip(made.predict_confidence(words), made.predict_costs(words), strict=True):
            assert (row > 0).all() and (row <= 1).all()
            lead = np.sort(costs, axis=1)
            sure = (lead[:, 1] - lead[:, 0])[np.isfinite(lead[:, 1])]
            assert row.shape == (len(costs),) and (row[np.isinf(lead[:, 1])] == 1.0).all()
            assert (row[np.isfinite(lead[:, 1])][sure > 5] > 0.9).all()


def test_the_temperature_is_fitted_to_dev_data() -> None:
    words, gold = sentences(40, seed=5, noise=0.4)
    sure = tagger().fit(WORDS, GOLD, dev=(WORDS, GOLD))
    unsure = tagger().fit(WORDS, GOLD, dev=(words, gold))
    assert sure.temperature_ < unsure.temperature_
    mean = [np.concatenate(t.predict_confidence(WORDS)).mean() for t in (sure, unsure)]
    assert mean[0] > mean[1] > 0


def test_the_best_of_k_is_the_prediction(fitted: Tagger, chunker: Tagger) -> None:
    for made, words in ((fitted, sentences(9, seed=4)[0]), (chunker, spans(9, seed=4)[0])):
        for best, tags in zip(made.predict_kbest(words, k=4), made.predict(words), strict=True):
            assert best[0][0] == tags
            scores = [score for _, score in best]
            assert scores == sorted(scores) and scores[0] >= 0
            different = {tuple(t) for t, _ in best}
            assert len(different) == len(best) and all(len(t) == len(tags) for t in different)
            assert len(best) == 4 or len(tags) == 1
        assert [b[0] for b in made.predict_kbest(words, k=2)] == [b[0] for b in made.predict_kbest(words, k=4)]


# --- the dev data -----------------------------------------------------------------------------------------------------


def test_the_best_pass_is_kept() -> None:
    words, gold = sentences(25, seed=6, noise=0.5)
    dev = sentences(15, seed=7, noise=0.3)
    made = tagger(passes=6).fit(words, gold, dev=dev)
    history = made.model_.report["dev"]
    values = [entry["accuracy"] for entry in history]
    assert [entry["pass"] for entry in history] == [1, 2, 3, 4, 5, 6]
    assert made.score(*dev) == pytest.approx(max(values)) and len(set(values)) > 1
    stopped = tagger(passes=int(np.argmax(values)) + 1).fit(words, gold)
    assert values[-1] < max(values), "choose data on which it matters"
    assert stopped.predict(dev[0]) == made.predict(dev[0])


def test_patience_ends_the_training() -> None:
    words, gold = sentences(25, seed=6, noise=0.5)
    dev = sentences(15, seed=7, noise=0.3)
    every = [e["accuracy"] for e in tagger(passes=8).fit(words, gold, dev=dev).model_.report["dev"]]
    for patience in (1, 2):
        made = tagger(passes=8, patience=patience).fit(words, gold, dev=dev)
        values = [e["accuracy"] for e in made.model_.report["dev"]]
        assert values == every[: len(values)] and len(values) < 8
        assert len(values) - 1 - int(np.argmax(values)) == patience
        assert made.score(*dev) == pytest.approx(max(values))


def test_the_report_is_about_all_passes() -> None:
    words, gold = sentences(25, seed=6, noise=0.5)
    made = tagger(passes=6).fit(words, gold, dev=sentences(15, seed=7, noise=0.3))
    assert len(made.model_.report["progressive_loss"]) == len(made.model_.report["dev"]) == 6


def test_spans_are_chosen_by_f1() -> None:
    made = tagger(passes=3).fit(CHUNK_WORDS, CHUNKS, dev=spans(9, seed=2))
    history = made.model_.report["dev"]
    assert made.evaluate(*spans(9, seed=2)).spans.f1 == pytest.approx(max(e["f1"] for e in history))


def test_labels_of_the_dev_data_may_be_new() -> None:
    made = tagger().fit(WORDS, GOLD, dev=([["the", "dog"]], [["DET", "?"]]))
    assert [e["accuracy"] for e in made.model_.report["dev"]] == [0.5, 0.5]
    assert "?" not in made.classes_.tolist()


# --- clusters ---------------------------------------------------------------------------------------------------------


def test_clusters_tell_of_words_never_seen(tmp_path: Path) -> None:
    clusters = {"zig": "0011", "zag": "0011", "zug": "0011", "mip": "1100", "mop": "1100", "map": "1100"}
    words, gold = [["zig", "mip"], ["mop", "zag"]] * 9, [["Z", "M"], ["M", "Z"]] * 9
    templates = ["cluster", "cluster.prefix2", "tag[-1]"]
    made = tagger(clusters=clusters, templates=templates).fit(words, gold)
    assert made.predict([["map", "zug", "map"]]) == [["M", "Z", "M"]]
    made.save(tmp_path / "m.lols")
    loaded = Tagger.load(tmp_path / "m.lols")
    assert loaded.clusters == clusters
    assert loaded.predict([["map", "zug", "unknown"]])[0][:2] == ["M", "Z"]
    assert "cluster.prefix4" in tagger(clusters=clusters).fit(words, gold).task_.templates


def test_a_file_of_clusters(tmp_path: Path) -> None:
    from lols.tasks.tagging.clusters import read_clusters

    path = tmp_path / "paths"
    path.write_bytes(b"0010\tdog\t12\r\ncat\tpet\n\n")
    assert read_clusters(str(path)) == {"dog": "0010", "cat": "pet"}
    for content, says in ((b"a b\n", ", line 1: 1 columns; write"), (b"", ": there are no clusters in it")):
        path.write_bytes(content)
        with pytest.raises(LolsError) as caught:
            read_clusters(str(path))
        assert str(caught.value).startswith(f"{path}{says}")
    path.write_bytes(b"caf\xe9\t1\n")
    for name, says in ((path, "line 1: byte 4 .* is not UTF-8"), (tmp_path / "nothing", "there is no such file")):
        with pytest.raises(LolsError, match=says) as caught:
            read_clusters(str(name))
        assert "\n" not in str(caught.value)


# --- schemes and directions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["auto", "forward", "backward"])
@pytest.mark.parametrize("scheme", ["bio", "iob1", "bilou", "bioes"])
def test_spans_come_out_in_the_scheme_in_which_they_went_in(scheme: str, direction: str) -> None:
    gold = [convert(t, "bio", scheme) for t in CHUNKS]
    made = tagger(direction=direction, passes=5).fit(CHUNK_WORDS, gold)
    assert made.task_.scheme == scheme
    assert made.task_.direction == ("backward" if direction == "auto" else direction)
    assert made.predict(CHUNK_WORDS) == gold and made.score(CHUNK_WORDS, gold) == 1.0
    assert made.evaluate(CHUNK_WORDS, gold).spans.f1 == 1.0
    assert all(legal(t, scheme) for t in made.predict(spans(20, seed=9)[0]))


@pytest.mark.parametrize("inner", ["bio", "bilou"])
def test_the_inner_scheme_does_not_show(inner: str) -> None:
    gold = [convert(t, "bio", "iob1") for t in CHUNKS]
    made = tagger(inner_scheme=inner, passes=5).fit(CHUNK_WORDS, gold)
    assert made.predict(CHUNK_WORDS) == gold
    assert {label[0] for label in made.action_labels_} == set("O" + {"bio": "BI", "bilou": "BILU"}[inner])


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_tags_are_in_text_order(direction: str) -> None:
    words, gold = sentences(30, seed=8)
    made = tagger(direction=direction).fit(words, gold)
    assert made.predict(words) == gold
    assert all(b[0][0] == g for b, g in zip(made.predict_kbest(words[:9], k=2), gold, strict=False))


def test_places_count_along_the_direction() -> None:
    # The tag of x is what stands after it, so that forward word[+1] and backward word[-1] see it.
    words = [["x", w] for w in "abab"] * 5
    gold = [[w.upper(), "-"] for _, w in words]
    assert tagger(direction="forward", templates=["word & word[+1]"]).fit(words, gold).score(words, gold) == 1.0
    assert tagger(direction="backward", templates=["word & word[-1]"]).fit(words, gold).score(words, gold) == 1.0
    assert tagger(direction="forward", templates=["word & word[-1]"]).fit(words, gold).score(words, gold) < 1.0


def test_plain_tags_with_hyphens_are_plain_where_wanted() -> None:
    gold = [["B-NP" if t == "DET" else "I-NP" for t in s] for s in GOLD]
    made = tagger(scheme=None).fit(WORDS, gold)
    assert made.task_.scheme is None and made.predict(WORDS) == gold


def test_the_loss_of_spans_learns_too() -> None:
    made = tagger(loss="f1", passes=5).fit(CHUNK_WORDS, CHUNKS)
    assert made.evaluate(CHUNK_WORDS, CHUNKS).spans.f1 == 1.0


# --- one seed, one result ---------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights() -> None:
    words, gold = sentences(40, noise=0.2)
    one = weights(tagger(seed=3).fit(words, gold))
    assert weights(tagger(seed=3).fit(words, gold)) == one
    assert weights(tagger(seed=3, threads=2).fit(words, gold)) == one
    assert weights(tagger(seed=4).fit(words, gold)) != one
    again = tagger(seed=9).fit(WORDS, GOLD).set_params(seed=3)
    assert weights(again.fit(words, gold)) == one


def test_threads_predict_the_same(fitted: Tagger, tmp_path: Path) -> None:
    words = sentences(50, seed=12)[0]
    fitted.save(tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols", threads=2).predict(words) == fitted.predict(words)


def test_other_algorithms_and_learners_can_be_chosen() -> None:
    for options in ({"algorithm": "dagger"}, {"roll_out": "reference"}, {"learner": "csoaa"}, {"prune": None}):
        assert tagger(passes=3, **options).fit(WORDS, GOLD).score(WORDS, GOLD) > 0.9
