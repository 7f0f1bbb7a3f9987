"""The ready-made neural estimators, on a tiny treebank: in Python, in files and on the command line."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.contract.examples import Examples
from lols.datasets.grammar import MadeSentence, write_conllu
from lols.engine.beam import beam_search
from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import write_tensors
from lols.tasks.parsing.explain import explain_parse
from lols.tasks.parsing.input import checked_trees
from lols.tasks.parsing.neural import PLACES, positions
from lols.tasks.parsing.space import DEPTH, NEXT, STACK, cell
from lols.tasks.parsing.treebank import taught
from lols.tasks.tagging.explain import explain_sentence
from lols.torch import TorchPolicy
from tests.cli.command_line import run

SMALL: dict[str, Any] = {"policy": "neural", "device": "cpu", "width": 12, "layers": 1, "passes": 6, "rate": 0.01}
NOUNS, VERBS = ("dog", "cat", "sun", "rain"), ("sees", "likes", "barks")
SHORT = [(["the", n, v], ["DET", "NOUN", "VERB"], [2, 3, 0], ["det", "nsubj", "root"]) for n in NOUNS for v in VERBS]
LONG = [
    (
        ["a", n, v, "the", m],
        ["DET", "NOUN", "VERB", "DET", "NOUN"],
        [2, 3, 0, 5, 3],
        ["det", "nsubj", "root", "det", "obj"],
    )
    for n in NOUNS
    for m in NOUNS
    for v in VERBS
]
TREEBANK = [MadeSentence(*columns) for columns in (*SHORT, *LONG)]
WORDS = [list(sentence.forms) for sentence in TREEBANK]
TAGGED = [[{"word": w, "upos": t} for w, t in zip(s.forms, s.upos)] for s in TREEBANK]
TAGS = [list(sentence.upos) for sentence in TREEBANK]
TREES = [list(zip(sentence.heads, sentence.relations)) for sentence in TREEBANK]
SPANS = [[{"DET": "B-N", "NOUN": "I-N"}.get(t, "O") for t in tags] for tags in TAGS]


@pytest.fixture(scope="module")
def parser() -> lols.Parser:
    return lols.Parser(**SMALL).fit(TAGGED, TREES, dev=(TAGGED[::8], TREES[::8]))


def test_a_parser_learns_arcs_and_labels_from_words_and_tags(parser: lols.Parser) -> None:
    assert parser.score(TAGGED, TREES) > 0.95
    assert parser.model_.space.fixed_actions == 3  # labels are given by the network after the search
    alone = [parser.predict_one(sentence) for sentence in TAGGED[:5]]
    assert parser.predict(TAGGED)[:5] == alone


def test_a_parser_under_a_bad_teacher_is_better_than_it() -> None:
    made = lols.Parser(**SMALL | {"reference": "bad", "passes": 5}).fit(TAGGED, TREES)
    assert made.evaluate(TAGGED, TREES).uas > 0.9


def test_a_parser_is_saved_loaded_and_pickled(parser: lols.Parser, tmp_path: Path) -> None:
    parser.save(tmp_path / "p.lols")
    loaded = lols.load(tmp_path / "p.lols")
    assert loaded.predict(TAGGED) == parser.predict(TAGGED) == pickle.loads(pickle.dumps(parser)).predict(TAGGED)
    assert loaded.device == "auto"  # wherever it was trained


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"width": 4000, "layers": 16}, "'encoder.lstm.bias_hh_l1' does not fit, the file has none"),
        ({"width": 13}, "has shape .* and this network has"),
        ({"width": 10**9}, "width is 1000000000; it must be at most 4,096"),
        ({"dropout": "x"}, "dropout is .x.: give a share from 0 to below 1"),
        ({"layers": 10**9}, "layers is 1000000000; it must be at most 16"),
    ],
)
def test_a_header_that_does_not_fit_its_arrays_allocates_nothing(
    options: dict[str, Any], says: str, parser: lols.Parser, tmp_path: Path
) -> None:
    header, tensors = parser.contents()
    header["task"]["options"] |= options
    write_tensors(tmp_path / "p.lols", "model", header, tensors)
    with pytest.raises(ModelFileError, match=says):
        lols.load(tmp_path / "p.lols")


def test_positions_are_those_of_stack_and_buffer(parser: lols.Parser) -> None:
    """The kernel against the definition, for all states of a search."""
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    policy = parser.model_.policy
    costs = policy.costs

    class Watching:
        def __init__(self) -> None:
            self.update = None

        def costs(self, states: Any) -> np.ndarray:
            lengths = np.array([len(TAGGED[e]) for e in states.example])
            seen.append((states.vectors.copy(), lengths, positions(states)))
            return costs(states)

    corpus = parser._corpus(TAGGED[:6])
    examples: Examples = parser.task_.examples(corpus)
    driver = parser.model_.driver(examples)
    driver.predict(Watching(), parser.model_.plan)
    for vectors, lengths, found in seen:
        assert found.shape == (len(vectors), PLACES)
        for s, length, row in zip(vectors, lengths, found):
            stack = [s[cell(k, STACK)] for k in range(s[DEPTH])]
            assert row.tolist() == [*([-1] * 3 + stack)[-3:], s[NEXT] if s[NEXT] < length else -1]


def test_a_tagger_learns_and_is_saved(tmp_path: Path) -> None:
    tagger = lols.Tagger(**SMALL).fit(WORDS, TAGS, dev=(WORDS[:8], TAGS[:8]))
    assert tagger.score(WORDS, TAGS) > 0.9
    tagger.save(tmp_path / "t.lols")
    assert lols.load(tmp_path / "t.lols").predict(WORDS) == tagger.predict(WORDS)
    assert all(0.0 < share <= 1.0 for share in tagger.predict_confidence(WORDS[:1])[0])


def test_networks_have_confidence_as_well(parser: lols.Parser) -> None:
    again = lols.Tagger(**SMALL).fit(WORDS, TAGS, dev=(WORDS, TAGS))
    tags, sure = again.predict(WORDS, confidence=True)
    assert tags == again.predict(WORDS) and again.evaluate(WORDS, TAGS).reliability.error < 0.1  # type: ignore[union-attr]
    trees = parser.predict(TAGGED)
    parser.calibrate_with(TAGGED, trees)
    made, sure = parser.predict(TAGGED, confidence=True)
    assert made == trees and np.concatenate(sure).min() > 0.5  # all are what was called right
    parser.model_.calibration = None


def test_a_tagger_of_spans_predicts_legal_ones_only() -> None:
    tagger = lols.Tagger(**SMALL | {"passes": 2}).fit(WORDS, SPANS)
    for tags in tagger.predict(WORDS):
        assert not any(now == "I-N" and before == "O" for before, now in zip(["O", *tags], tags))
    assert tagger.score(WORDS, SPANS) > 0.8


def test_a_pipeline_of_networks_from_file_to_file(tmp_path: Path) -> None:
    train, model = tmp_path / "train.conllu", tmp_path / "p.lols"
    write_conllu(train, TREEBANK)
    options = ["--policy", "neural", "--device", "cpu", "--width", 8, "--layers", 1, "--passes", 3, "--rate", 0.01]
    trained = run("train", "pipeline", train, "-o", model, "--folds", 2, *options)
    assert trained.exit_code == 0, trained.output
    loaded = lols.load(model)
    assert loaded.taggers_["upos"].policy == loaded.parser_.policy == "neural"
    assert [word["upos"] for word in loaded.predict(WORDS[:1])[0]] == TAGS[0]
    predicted = run("predict", model, train, "-o", tmp_path / "out.conllu", "--threads", 2)
    assert predicted.exit_code == 0, predicted.output


def test_a_killed_training_resumes_to_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_conllu(tmp_path / "train.conllu", TREEBANK)
    write_conllu(tmp_path / "dev.conllu", TREEBANK[:8])

    def train(resume: bool = False) -> Any:
        checkpoint = tmp_path / "checkpoint"
        monkeypatch.setattr("lols.training.trainer.Trainer.fit", every_batch)
        return lols.Parser(**SMALL | {"passes": 3}).fit_files(
            str(tmp_path / "train.conllu"), dev=str(tmp_path / "dev.conllu"), checkpoint=checkpoint, resume=resume
        )

    fit, update, updates = lols.Trainer.fit, TorchPolicy.update, []

    def every_batch(self: Any, *arguments: Any, **options: Any) -> Any:
        return fit(self, *arguments, **options | {"checkpoint_every": 0.0})

    def killed(self: Any, *lesson: Any) -> None:
        updates.append(1)
        if len(updates) == 11:
            raise KeyboardInterrupt
        update(self, *lesson)

    whole = train()
    (tmp_path / "checkpoint").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(TorchPolicy, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            train()
    resumed = train(resume=True)
    expected, found = whole.model_.policy.state(), resumed.model_.policy.state()
    assert all(np.array_equal(expected[name], found[name]) for name in expected)
    assert whole.model_.report["dev"] == resumed.model_.report["dev"]


def test_the_command_line_from_file_to_file(tmp_path: Path) -> None:
    train, model = tmp_path / "train.conllu", tmp_path / "p.lols"
    write_conllu(train, TREEBANK)
    options = ["--policy", "neural", "--device", "cpu", "--width", 8, "--layers", 1, "--passes", 2]
    trained = run("train", "parser", train, "-o", model, *options, "--json")
    assert trained.exit_code == 0, trained.output
    assert json.loads(trained.stdout)["features"] is None
    assert run("train", "parser", train, "-o", model, *options).exit_code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is said is not said twice
        went_on = run("train", "parser", train, "-o", tmp_path / "on.lols", "--from", model, "--passes", 1)
    assert went_on.exit_code == 0 and "goes on from its weights" in went_on.output
    assert "UAS" in run("evaluate", model, train).output
    assert run("predict", model, train, "-o", tmp_path / "out.conllu").exit_code == 0
    assert (tmp_path / "out.conllu").read_text().count("\n") == train.read_text().count("\n")
    assert "policy         of class lols.torch.policy:TorchPolicy" in run("inspect", model).output
    shown = run("explain", model, train)
    assert shown.exit_code == 0, shown.output
    assert "The network labels arcs after the search" in " ".join(shown.output.split())


def test_a_parse_is_explained_with_the_costs_of_the_specification(parser: lols.Parser) -> None:
    """The loss that is shown for each deviation, against rolling it out by hand."""
    sentence, tree = TAGGED[20], TREES[20]
    shown = explain_parse(parser, sentence, tree, roll_out="learned")
    assert [word.relation for word in shown.words] == [relation for _, relation in parser.predict_one(sentence)]
    arcs = [step.state["arc"] for step in shown.decisions]
    given = {arc["dependent"]: arc["relation"] for arc in arcs if arc is not None}
    assert all(shown.words[place - 1].relation == relation for place, relation in given.items())
    corpus = parser._corpus([sentence])
    trees = taught(parser.task_, *checked_trees([sentence], [tree]), corpus.offsets).trees
    examples = parser.task_.examples(corpus, trees)
    costs = lols.rollout_costs(parser.model_, parser.task_.space, examples, parser.task_.reference("optimal"), beta=0.0)
    for k, step in enumerate(shown.decisions):
        legal = costs.costs[k][np.isfinite(costs.costs[k])]
        assert sorted(move.loss for move in step.actions) == pytest.approx(sorted(legal))


def test_a_tagging_is_explained() -> None:
    tagger = lols.Tagger(**SMALL).fit(WORDS, TAGS)
    shown = explain_sentence(tagger, WORDS[20], ["DET", "DET", "VERB", "DET", "NOUN"], roll_out="learned")
    assert [decision.taken.action for decision in shown.decisions] == tagger.predict_one(WORDS[20])
    assert shown.loss == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "quadratic"}, "unknown policy 'quadratic': choose linear or neural"),
        ({"policy": "neural", "learner": "csoaa"}, "learner has no effect: it is for policy='linear'"),
        ({"width": 10}, "width has no effect: it is for policy='neural'"),
        ({"policy": "neural", "labelling": "joint"}, "labelling='joint' has no effect: a neural policy labels arcs"),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        lols.Parser(**options).fit(TAGGED, TREES)


def test_every_option_of_the_network_has_an_effect() -> None:
    def weights(**options: Any) -> list[bytes]:
        made = lols.Tagger(**SMALL | {"passes": 1} | options).fit(WORDS[:16], TAGS[:16])
        return [array.tobytes() for array in made.model_.policy.state().values()]

    plain = weights()
    assert weights() == plain
    for option in ({"precision": "bfloat16"}, {"width": 8}, {"layers": 2}, {"steps": 1}, {"rate": 0.5}, {"seed": 1}):
        assert weights(**option) != plain, option


def test_beams_of_networks(parser: lols.Parser) -> None:
    greedy = parser.predict(TAGGED[:5])
    for parser.beam in (4, 1):
        assert [len(tree) for tree in parser.predict(TAGGED[:5])] == [len(tree) for tree in greedy]
    examples = parser.task_.examples(parser._corpus(TAGGED[:5]))
    narrow, wide = (beam_search(parser.model_, examples, width=w, score="surprise") for w in (1, 4))
    run = parser.model_.run(examples)
    assert all(narrow.actions(i)[0].tolist() == run.actions(i).tolist() for i in range(5))
    assert all(wide.scores(i)[0] <= narrow.scores(i)[0] + 1e-5 for i in range(5))
