"""Taggers of rare spans: the loss that finds them, what O costs, and costs in the labels of the user."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols import Tagger
from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.tagging.explain import explain_sentence
from lols.tasks.tagging.outside import fit_outside, nothing_open, raised
from lols.tasks.tagging.spans import make_labels
from tests.cli.command_line import run
from tests.tasks.tagging.span_twin import convert
from tests.tasks.tagging.tagger_data import columns, weights
from tests.tasks.tagging.trained_taggers import CHUNK_WORDS, CHUNKS

Sentences = tuple[list[list[str]], list[list[str]]]
TEMPLATES = ["shape", "tag[-1]"]


def rare(count: int, seed: int, share: float = 0.4) -> Sentences:
    """Sentences in which one word of eight has a capital, and this share of those is a name: nothing tells which."""
    generator = np.random.default_rng(seed)
    words, tags = [], []
    for _ in range(count):
        capital = generator.random(10) < 0.125
        name = capital & (generator.random(10) < share)
        drawn = ["".join(chr(97 + n) for n in row) for row in generator.integers(0, 26, (10, 5))]
        words.append([w.capitalize() if c else w for w, c in zip(drawn, capital, strict=True)])
        tags.append(["B-N" if n else "O" for n in name])
    return words, tags


TRAIN, DEV, TEST = rare(300, 0), rare(150, 1), rare(150, 2)


def tagger(**options: Any) -> Tagger:
    return Tagger(**{"templates": TEMPLATES, "passes": 2, "progress": False} | options)


@pytest.fixture(scope="module")
def fitted() -> Tagger:
    return tagger(loss="hamming", keep_state=True).fit(*TRAIN, dev=DEV)


# --- without dev data -------------------------------------------------------------------------------------------------


def test_the_default_finds_spans_that_are_less_likely_than_none() -> None:
    before, now = (tagger(**options).fit(*TRAIN).evaluate(*TEST).spans for options in ({"loss": "hamming"}, {}))
    assert before.recall < 0.1
    assert now.recall > 0.9 and now.f1 > 0.5


def test_auto_is_f1_where_spans_are_rare() -> None:
    dense = [["B-N" if k % 3 else "O" for k in range(len(s))] for s in TRAIN[0]]
    for options, tags, loss in (
        ({}, TRAIN[1], "f1"),
        ({}, dense, "hamming"),
        ({"learner": "csoaa"}, TRAIN[1], "hamming"),
        ({"scheme": None}, TRAIN[1], "hamming"),
        ({"loss": "hamming"}, TRAIN[1], "hamming"),
        ({"loss": "f1"}, dense, "f1"),
    ):
        made = tagger(passes=1, **options).fit(TRAIN[0][:20], tags[:20])
        assert made.task_.loss == loss, options
        margin = made.model_.about["learner"]["margin"]
        assert margin == ("weighted" if loss == "f1" else "unit")
    stream = tagger().partial_fit(TRAIN[0][:20], TRAIN[1][:20], classes=["O", "B-N", "I-N"])
    assert stream.task_.loss == "hamming"


def test_files_of_the_loss_that_is_gone_still_predict(tmp_path: Path) -> None:
    made = tagger(loss="f1").fit(*TRAIN)
    made.save(tmp_path / "m.lols")
    header, tensors = read_tensors(tmp_path / "m.lols", "model")
    header["task"]["loss"] = header["task"]["options"]["loss"] = "spans"
    write_tensors(tmp_path / "old.lols", "model", header, tensors)
    old = lols.load(tmp_path / "old.lols")
    assert old.predict(TEST[0]) == made.predict(TEST[0])
    with pytest.raises(lols.LolsError, match="there is no loss 'spans' any more: "):
        tagger(loss="spans").fit(*TRAIN)


# --- what O costs -----------------------------------------------------------------------------------------------------


def test_dev_data_say_what_outside_costs(fitted: Tagger) -> None:
    plain = tagger(loss="hamming").fit(*TRAIN)
    before, now = plain.evaluate(*TEST).spans, fitted.evaluate(*TEST).spans
    assert before.recall < 0.1 and now.recall > 0.9 and now.f1 > 0.5
    found = fitted.model_.report["outside"]
    assert found["cost"] == fitted.outside_cost_ > 0.0 == plain.outside_cost_
    assert found["f1_before"] == plain.evaluate(*DEV).spans.f1
    assert found["f1"] == fitted.evaluate(*DEV).spans.f1 == max(found["f1"], found["f1_before"])


@pytest.mark.parametrize("templates", [TEMPLATES, ["lower", "tag[-1]", "tag[-2] & tag[-1]"], None])
@pytest.mark.parametrize("inner", ["bio", "bilou"])
def test_the_constant_is_of_o_alone_and_where_no_span_is_open(templates: list[str] | None, inner: str) -> None:
    made = tagger(templates=templates, inner_scheme=inner, passes=1).fit(*TRAIN)
    model, examples = made.model_, made.task_.examples(made._corpus(TEST[0]))
    small = 1e-4  # so that nothing else is decided
    one, other = (m.run(examples, scores=True) for m in (model, raised(model, made.task_, small)))
    assert (one.all_actions() == other.all_actions()).all()
    with np.errstate(invalid="ignore"):  # inf - inf where a label is illegal
        more = np.nan_to_num(other.all_costs().astype(float) - one.all_costs())
    outside = made.task_.inner_labels.index("O")
    free = np.ones((len(TEST[0]), 10), bool)
    taken = one.all_actions().reshape(free.shape)
    free[:, 1:] = np.isin(taken[:, :-1], [k for k, a in enumerate(made.task_.inner_labels) if a[0] in "OLU"])
    assert np.allclose(more[:, outside], np.where(free.ravel(), small, 0.0), atol=small / 20)
    assert free.any()
    assert not np.delete(more, outside, axis=1).any()
    back = raised(raised(model, made.task_, 0.5), made.task_, -0.5).run(examples, scores=True)
    assert np.allclose(np.nan_to_num(back.all_costs()), np.nan_to_num(one.all_costs()), atol=1e-6)


def test_templates_that_do_not_see_the_last_tag_alone_have_no_constant() -> None:
    made = tagger(templates=["word", "suffix1 & tag[-1]"]).fit(*TRAIN, dev=DEV)
    assert not nothing_open(made.task_).size and made.outside_cost_ == 0.0 and "outside" not in made.model_.report


def test_labels_that_were_added_later_have_it_too() -> None:
    task = tagger(passes=1, inner_scheme="bilou").fit(*TRAIN).task_
    wider = task.with_labels(["B-M", "I-M"])
    assert set(nothing_open(task)) < set(nothing_open(wider))
    assert (nothing_open(task).size, nothing_open(wider).size) == (4, 6)  # no tag, O, and L and U of each type


def test_nothing_is_fitted_where_nothing_can_be_found() -> None:
    nothing = (DEV[0], [["O"] * len(s) for s in DEV[0]])
    assert tagger().fit(*TRAIN, dev=nothing).outside_cost_ == 0.0
    assert tagger(learner="secoc", update="nag").fit(*TRAIN, dev=DEV).outside_cost_ == 0.0
    assert tagger(scheme=None).fit(*TRAIN, dev=DEV).outside_cost_ == 0.0


def test_everything_that_is_asked_agrees(fitted: Tagger, tmp_path: Path) -> None:
    words = TEST[0][:20]
    fitted.save(tmp_path / "m.lols")
    loaded = lols.load(tmp_path / "m.lols")
    assert loaded.outside_cost_ == fitted.outside_cost_
    for made in (fitted, loaded):
        predicted = made.predict(words)
        assert predicted == fitted.predict(words) and any("B-N" in tags for tags in predicted)
        assert made.predict(words, confidence=True)[0] == predicted
        assert [best[0][0] for best in made.predict_kbest(words, k=3)] == predicted
        for sentence, tags, costs in zip(words, predicted, made.predict_costs(words), strict=True):
            assert [made.classes_[k] for k in costs.argmin(axis=1)] == tags
            told = explain_sentence(made, sentence).decisions
            for decision in told:
                row = costs[decision.number - 1]
                assert decision.taken.predicted == pytest.approx(row.min(), abs=1e-6)
    said = run("inspect", tmp_path / "m.lols").stdout
    assert f"cost of O      {fitted.outside_cost_:g} more than was learned, fitted to dev data" in said
    assert "cost of O" not in run("explain", "lols").stdout


def test_learning_goes_on_from_what_was_learned_and_keeps_the_constant(fitted: Tagger, tmp_path: Path) -> None:
    passes, more = fitted.model_.about["best_pass"], rare(40, 7)
    assert passes == 1 or passes == fitted.passes
    plain = tagger(loss="hamming", keep_state=True, passes=2).fit(*TRAIN)
    for made in (fitted, plain):
        made.save(tmp_path / f"{made.outside_cost_ > 0}.lols")
    went_on, other = (lols.load(tmp_path / f"{name}.lols").partial_fit(*more) for name in (True, False))
    assert went_on.outside_cost_ == fitted.outside_cost_ and other.outside_cost_ == 0.0
    other.outside_cost_ = fitted.outside_cost_
    assert weights(went_on) == weights(other)  # the constant is added when the model is asked for


def test_learning_goes_on_from_weights_alone_without_the_constant(fitted: Tagger) -> None:
    bare = tagger(loss="hamming").fit(*TRAIN, dev=DEV)
    learned = bare._as_learned()
    bare.model_.learning = None
    with pytest.warns(UserWarning, match="starts from its weights alone"):
        bare.partial_fit([], [])
    assert bare.outside_cost_ == fitted.outside_cost_
    examples = bare.task_.examples(bare._corpus(TEST[0]))
    costs = [m.run(examples, scores=True).all_costs() for m in (learned, bare._as_learned())]
    assert np.allclose(*map(np.nan_to_num, costs), atol=1e-5)


def test_fit_goes_on_with_the_constant_and_begins_without_it(fitted: Tagger, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.lols")
    again = lols.load(tmp_path / "m.lols").set_params(warm_start=True, passes=1).fit(*rare(40, 7))
    assert again.outside_cost_ == fitted.outside_cost_ and again.evaluate(*TEST).spans.recall > 0.9
    anew = tagger(loss="hamming").fit(*TRAIN, dev=DEV).fit(*TRAIN)
    assert anew.outside_cost_ == 0.0 and anew.evaluate(*TEST).spans.recall < 0.1


def test_what_is_fitted_is_the_best_of_what_is_tried(fitted: Tagger) -> None:
    assert fit_outside(fitted.model_, _held(fitted)).cost == 0.0  # there is nothing left to gain


def _held(made: Tagger) -> Any:
    return made.task_.held_out(made._data(*DEV))


@pytest.mark.parametrize("value", ["much", None, float("inf"), [1.0]])
def test_a_forged_constant_is_refused(fitted: Tagger, tmp_path: Path, value: Any) -> None:
    fitted.save(tmp_path / "m.lols")
    header, tensors = read_tensors(tmp_path / "m.lols", "model")
    header["task"]["outside_cost"] = value
    write_tensors(tmp_path / "forged.lols", "model", header, tensors)
    with pytest.raises(ModelFileError, match="the task in the header is damaged"):
        lols.load(tmp_path / "forged.lols")


def test_the_command_says_it(tmp_path: Path) -> None:
    for name, part in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        (tmp_path / f"{name}.txt").write_text(columns(*part))
    command = ("train", "tagger", tmp_path / "train.txt", "--dev", tmp_path / "dev.txt", "-o", tmp_path / "m.lols")
    options = ("--use", "none", "--loss", "hamming", "--passes", 2)
    said = run(*command, *options)
    printed = said.stdout + said.stderr
    assert " more than was learned; dev F1 " in printed and ", without that " in printed
    made = json.loads(run(*command, *options, "--json").stdout)
    assert made["outside"]["f1"] > made["outside"]["f1_before"]
    scores = json.loads(run("evaluate", tmp_path / "m.lols", tmp_path / "test.txt", "--json").stdout)
    assert scores["recall"] > 0.5


# --- costs in the labels of the user ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "inner", "direction"),
    list(product(["bio", "iob1", "bilou"], ["bio", "bilou"], ["forward", "backward"])),
)
def test_predicted_costs_are_of_the_labels_in_the_file(scheme: str, inner: str, direction: str) -> None:
    gold = [convert(t, "bio", scheme) for t in CHUNKS]
    made = Tagger(scheme=scheme, inner_scheme=inner, direction=direction, passes=1, progress=False)
    made.fit(CHUNK_WORDS, gold)
    task, words = made.task_, CHUNK_WORDS[:12]
    assert made.classes_.tolist() == make_labels(scheme, ["B-NP", "B-VP"])
    for sentence, tags, costs in zip(words, made.predict(words), made.predict_costs(words), strict=True):
        assert costs.shape == (len(tags), len(made.classes_))
        assert (costs[np.arange(len(tags)), task.number(tags)] == costs.min(axis=1)).all()
        steps = made.scores([sentence])[0]
        order = range(len(tags)) if direction == "forward" else range(len(tags) - 1, -1, -1)
        if (scheme, direction) == (inner, "forward"):
            assert (costs == steps.costs).all()
            continue
        for step, place in enumerate(order):  # one action after the other is changed
            wanted = np.full(len(made.classes_), np.inf, np.float32)
            for a in np.flatnonzero(np.isfinite(steps.costs[step])):
                changed = steps.taken.copy()
                changed[step] = a
                label = task.labels_of(changed, np.array([0, len(tags)]))[place]
                wanted[label] = min(wanted[label], steps.costs[step, a])
            assert (costs[place] == wanted).all()


def test_weights_of_dense_spans_do_not_depend_on_auto() -> None:
    one, other = (Tagger(passes=1, progress=False, **o).fit(CHUNK_WORDS, CHUNKS) for o in ({}, {"loss": "hamming"}))
    assert one.task_.loss == "hamming" and weights(one) == weights(other)
