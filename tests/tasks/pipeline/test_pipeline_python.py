"""A pipeline in Python: texts and sentences in, sentences out; what notebooks show; how a sentence is decided."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols import Parser, Pipeline, Tagger
from lols.errors import LolsError
from lols.io import Sentence
from tests.cli.calling import fine, mistake
from tests.tasks.parsing.parser_files import conllu
from tests.tasks.parsing.test_parser import GOLD, WORDS, tagged


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    parts = {"tagger": Tagger(passes=2), "parser": Parser(passes=4)}
    return Pipeline(**parts, folds=1, progress=False).fit(tagged(WORDS), GOLD)


def test_texts_words_and_sentences(pipeline: Pipeline) -> None:
    words = WORDS[0]
    (wanted,) = pipeline.predict([words])
    for given in (words, [words], tagged(WORDS)[0], " ".join(words)):
        (made,) = pipeline(given)
        assert made.words == words and made.tree == [(w["head"], w["relation"]) for w in wanted]
        assert made.tags("upos") == [w["upos"] for w in wanted]
    (made,) = pipeline("x", tokenizer=lambda text: [words])
    assert made.words == words and pipeline([]) == [] and pipeline("") == []
    with pytest.raises(LolsError, match="give a text, or the words of a sentence in a list"):
        pipeline([["a"], []])


TEXT = "give a text, or the words of a sentence in a list, or a list of such sentences"
WRONG: list[tuple[Any, str]] = [
    *((given, TEXT) for given in (None, 5, True, b"a b", {"word": "a"}, {"a"}, [["a"], []], ["a", ["b"]], iter(["a"]))),
    *((given, "sentence 0, word 0: None is no word") for given in ([None], [[None]])),
    *((given, "sentence 0, word 1: None is no word") for given in (["b", None], [["b", None]], ("b", None))),
    *((given, "sentence 0, word 1: '' is no word") for given in (["b", ""], [["b", ""]])),
    ([["a"], ["b", 5]], "sentence 1, word 1: 5 is no word: give a string with something in it"),
    ([["a", float("nan")]], "sentence 0, word 1: nan is no word"),
    ([[b"a"]], "sentence 0, word 0: b'a' is no word"),
    ([[["a"]]], r"sentence 0, word 0: \['a'\] is no word"),
    ([{"form": "a"}], "sentence 0, word 0: {'form': 'a'} is no word"),
    ([{"word": None}], "sentence 0, word 0: {'word': None} is no word"),
]


@pytest.mark.parametrize(("given", "says"), WRONG)
def test_what_is_no_text_and_no_words(pipeline: Pipeline, given: Any, says: str) -> None:
    for call in (pipeline, pipeline.explain):
        with pytest.raises(LolsError, match=says):
            call(given)
    if given not in ([["b", ""]], [["a"], []], [{"form": "a"}]):  # these can be predicted, but not be written as files
        with pytest.raises(LolsError):
            pipeline.predict(given)


def test_mistakes_of_calls(pipeline: Pipeline) -> None:
    with pytest.raises(LolsError, match="sentence 0, word 0: None is no word"):
        pipeline("x", tokenizer=lambda text: [[None]])
    with pytest.raises(LolsError, match="a sentence that the tokenizer gives is 'x'"):
        pipeline("x", tokenizer=lambda text: ["x"])
    with pytest.raises(LolsError, match="tokenizer is 'nltk': give a function"):
        pipeline("x", tokenizer="nltk")
    with pytest.raises(LolsError, match="explain shows one sentence; there are 0 here"):
        pipeline.explain("")
    with pytest.raises(LolsError, match="calibrate"):
        pipeline(WORDS[0], confidence=True)


def test_calls_and_predictions_use_the_same_names(pipeline: Pipeline) -> None:
    (made,), (wanted,) = pipeline(WORDS[0]), pipeline.predict([WORDS[0]])
    assert made.tags("deprel") == [w["deprel"] for w in wanted] == [w["relation"] for w in wanted]
    assert [*made.columns] == ["form", "upos", "head", "deprel"]
    for taken in ("head", "deprel", "relation"):
        words = [[word | {taken: "X"} for word in sentence] for sentence in tagged(WORDS)]
        with pytest.raises(LolsError, match=f"a column of tags cannot be called {taken}"):
            Pipeline(tags=[taken], progress=False).fit(words, GOLD)


def test_calls_give_confidence_as_predict_does() -> None:
    parts = {"tagger": Tagger(passes=2, calibrate=True), "parser": Parser(passes=2, calibrate=True)}
    sure = Pipeline(**parts, folds=1, progress=False).fit(tagged(WORDS * 8), GOLD * 8)
    made, confidence = sure(WORDS[:2], confidence=True)
    assert [s.words for s in made] == WORDS[:2] and made == sure(WORDS[:2])
    _, wanted = sure.predict(WORDS[:2], confidence=True)
    for ours, theirs in zip(confidence, wanted, strict=True):
        assert [*ours] == ["upos", "head"] and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_sentences_of_files_keep_their_columns(pipeline: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(conllu(WORDS[:3], GOLD[:3]))
    sentences = lols.io.read_conllu(tmp_path / "a.conllu")
    made = pipeline(sentences)
    assert [s.columns["misc"] for s in made] == [s.columns["misc"] for s in sentences]
    assert [s.comments for s in made] == [s.comments for s in sentences]
    lols.io.write_conllu(tmp_path / "b.conllu", made)
    assert lols.io.read_conllu(tmp_path / "b.conllu")[0].tree == made[0].tree
    assert pipeline.score(sentences, [s.tree for s in sentences]) == pipeline.score(tagged(WORDS[:3]), GOLD[:3])


def test_notebooks_draw_trees_models_and_explanations(pipeline: Pipeline) -> None:
    words = ["<script>", "dog", "."]
    (made,) = pipeline(words)
    report = pipeline.explain(words, [(2, "det"), (0, "root"), (2, "punct")])
    shown = [made._repr_html_(), pipeline.model_._repr_html_(), report._repr_html_()]
    assert shown[0].startswith("<svg") and "&lt;script&gt;" in shown[0]
    assert "<table" in shown[1] and "loss while learning" in shown[1] and "sandbox" in shown[2]
    assert not any("<script" in each for each in shown)


def test_a_pipeline_explains_itself(pipeline: Pipeline, tmp_path: Path) -> None:
    file, model = tmp_path / "a.conllu", tmp_path / "m.lols"
    file.write_text(conllu(WORDS[:2], GOLD[:2]))
    pipeline.save(model)
    found = fine("explain", model, file, "--sentence", 1, "--json").json
    assert [w["word"] for w in found["words"]] == WORDS[0] and found["decisions"]
    direct = pipeline.explain(Sentence({"form": WORDS[0]}), GOLD[0]).as_dict()
    assert json.loads(json.dumps(direct["decisions"])) == found["decisions"]
    tags = fine("explain", model, file, "--part", "upos", "--json").json
    shown = lols.load(model).explain_file(str(file), part="upos")._repr_html_()
    assert "sandbox" in shown and 'class="sentence"' in html.unescape(shown)
    assert [word["word"] for word in tags["words"]] == WORDS[0]
    mistake("explain", model, file, "--part", "xyz", says="there is no part 'xyz'; choose from upos and parser")
