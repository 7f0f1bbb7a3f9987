"""lols.Pipeline: taggers and a parser in one, in Python and on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lols
from lols import Parser, Pipeline, Tagger
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.pipeline import estimator as module
from tests.cli.calling import fine, mistake, run
from tests.tasks.parsing.parser_files import conllu, flat, rows, weights, with_columns
from tests.tasks.parsing.test_parser import GOLD, TAGS, UNSEEN, UNSEEN_GOLD, WORDS, assert_trees, tagged

QUIET: dict[str, Any] = {"progress": False}


def pipeline(**options: Any) -> Pipeline:
    parts = {"tagger": Tagger(passes=2), "parser": Parser(passes=4)}
    return Pipeline(**(parts | {"folds": 2} | QUIET | options))


@pytest.fixture(scope="module")
def fitted() -> Pipeline:
    return pipeline().fit(tagged(WORDS), GOLD)


def wanted(words: list[list[str]], trees: list[list[tuple[int, str]]]) -> list[list[dict[str, Any]]]:
    return [
        [
            {"word": w, "upos": TAGS[w], "head": h, "deprel": r, "relation": r}
            for w, (h, r) in zip(sentence, tree, strict=True)
        ]
        for sentence, tree in zip(words, trees, strict=True)
    ]


# --- fit, predict, evaluate -------------------------------------------------------------------------------------------


def test_it_tags_and_parses(fitted: Pipeline) -> None:
    assert fitted.predict(UNSEEN) == wanted(UNSEEN, UNSEEN_GOLD) == fitted.predict(tagged(UNSEEN))
    found = fitted.evaluate(tagged(UNSEEN), UNSEEN_GOLD)
    assert found.tags == {"upos": 1.0} and found.trees.las == fitted.score(tagged(UNSEEN), UNSEEN_GOLD) == 1.0
    assert found.trees.words == sum(map(len, UNSEEN))
    without = fitted.evaluate(tagged(UNSEEN), UNSEEN_GOLD, punctuation=False).trees
    assert without.words == sum(w != "." for s in UNSEEN for w in s)
    assert fitted.predict([]) == [] and fitted.predict([[]]) == [[]]
    assert [len(s) for s in fitted.predict([[], ["dog"], []])] == [0, 1, 0]


def test_wrong_tags_are_counted(fitted: Pipeline) -> None:
    words = tagged(UNSEEN)
    words[0][0] = words[0][0] | {"upos": "NEVER-SEEN"}
    tokens = sum(map(len, UNSEEN))
    assert fitted.evaluate(words, UNSEEN_GOLD).tags == {"upos": pytest.approx((tokens - 1) / tokens)}


def test_scores_of_files_are_those_of_the_whole(fitted: Pipeline, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.lols")
    whole, cut = conllu(UNSEEN, UNSEEN_GOLD), 3
    whole = whole.replace("\tNOUN\t", "\tX\t", 2).replace("\tPUNCT\t", "\tX\t", 1)  # of the first sentences
    (tmp_path / "whole.conllu").write_text(whole)
    sentences = whole.split("\n\n")
    for name, part in (("a", sentences[:cut]), ("b", sentences[cut:])):
        (tmp_path / f"{name}.conllu").write_text("\n\n".join(part) + "\n\n")
    asked: Any = ("--no-punctuation", "--json")
    alone = fine("evaluate", tmp_path / "m.lols", tmp_path / "whole.conllu", *asked).json
    parts = fine("evaluate", tmp_path / "m.lols", tmp_path / "a.conllu", tmp_path / "b.conllu", *asked).json
    assert parts["tags"] == alone["tags"] and parts["tags"]["upos"] < 1.0
    assert [parts[name] for name in ("tokens", "uas", "las")] == [alone[name] for name in ("tokens", "uas", "las")]


def test_parameters(fitted: Pipeline) -> None:
    made = clone(fitted)
    assert made.folds == 2 and made.parser.passes == 4 and isinstance(made.tagger, Tagger)
    assert fitted.parser is not fitted.parser_ and "parser__passes" in made.get_params()
    with pytest.raises(NotFittedError, match="this Pipeline is not trained yet: call fit first"):
        made.predict(UNSEEN)
    with pytest.raises(NotFittedError):
        made.save("nowhere.lols")
    assert not Path("nowhere.lols").exists()


def seen_by_the_parser(monkeypatch: pytest.MonkeyPatch, made: Pipeline, words: Any, trees: Any, **fitting: Any) -> Any:
    """The tags that a pipeline's parser is trained on, by sentence."""
    found = []
    fit = Parser.fit_columns

    def spy(self: Parser, corpus: Any, *rest: Any, **more: Any) -> Parser:
        column = corpus.columns["upos"]
        strings = column.texts.strings()
        found.append([[strings[n] for n in column.numbers[a:b]] for a, b in zip(corpus.offsets, corpus.offsets[1:])])
        return fit(self, corpus, *rest, **more)

    monkeypatch.setattr(module.Parser, "fit_columns", spy)
    made.fit(words, trees, **fitting)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("folds", [2, 3])
def test_every_sentence_is_tagged_by_taggers_that_did_not_see_it(folds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    words, trees = [*WORDS[:11], ["zzz", "sees"]], [*GOLD[:11], [(2, "nsubj"), (0, "root")]]
    gold = [[TAGS.get(w, "RARE") for w in s] for s in words]
    data = [[{"word": w, "upos": t} for w, t in zip(*pair, strict=True)] for pair in zip(words, gold, strict=True)]
    found = seen_by_the_parser(monkeypatch, pipeline(folds=folds, seed=5), data, trees)
    fold = np.arange(12) * folds // 12
    for k in range(folds):
        rest = [n for n in range(12) if fold[n] != k]
        tagger = Tagger(passes=2, seed=5, **QUIET).fit([words[n] for n in rest], [gold[n] for n in rest])
        part = [n for n in range(12) if fold[n] == k]
        assert [found[n] for n in part] == tagger.predict([words[n] for n in part])
    assert found[11][0] != "RARE"
    assert seen_by_the_parser(monkeypatch, pipeline(folds=1), data, trees) == gold


def test_dev_sentences_choose_all_parts(fitted: Pipeline) -> None:
    made = pipeline().fit(tagged(WORDS), GOLD, dev=(tagged(UNSEEN), UNSEEN_GOLD))
    report = made.parser_.model_.report["dev"]
    assert len(report) == 4 and len(made.taggers_["upos"].model_.report["dev"]) == 2
    assert max(entry["las"] for entry in report) == made.score(tagged(UNSEEN), UNSEEN_GOLD)


def test_one_seed_gives_one_file_on_any_number_of_threads(fitted: Pipeline, tmp_path: Path) -> None:
    fitted.save(tmp_path / "1.lols")
    pipeline().fit(tagged(WORDS), GOLD).save(tmp_path / "2.lols")
    pipeline(threads=2).fit(tagged(WORDS), GOLD).save(tmp_path / "3.lols")
    assert (tmp_path / "1.lols").read_bytes() == (tmp_path / "2.lols").read_bytes()
    assert weights(tmp_path / "1.lols") == weights(tmp_path / "3.lols")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"folds": 0}, "folds is 0; it must be from 1 to the number of sentences"),
        ({"folds": 41}, "folds is 41"),
        ({"tags": ["xpos"]}, "there is no column xpos to learn"),
        ({"tags": []}, "there is no column of tags to learn"),
        ({"tags": ["word"]}, "word"),
        ({"parser": Parser(labelling="?")}, "unknown labelling"),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any], says: str) -> None:
    with pytest.raises(LolsError, match=says):
        pipeline(**options).fit(tagged(WORDS), GOLD)


def test_data_that_does_not_fit(fitted: Pipeline) -> None:
    with pytest.raises(LolsError, match="column of tags"):
        pipeline().fit(WORDS, GOLD)
    with pytest.raises(LolsError, match="word"):
        pipeline(folds=1).fit([[{"upos": "X"}, {"upos": "Y"}]], [[2, 0]])
    with pytest.raises(LolsError, match="upos"):
        pipeline().fit(tagged(WORDS), GOLD, dev=(UNSEEN, UNSEEN_GOLD))
    with pytest.raises(LolsError, match="upos"):
        fitted.evaluate(UNSEEN, UNSEEN_GOLD)
    with pytest.raises(LolsError, match="word"):
        fitted.predict([[{"upos": "X"}]])
    with pytest.raises(LolsError, match="no words"):
        fitted.evaluate([], [])
    with pytest.raises(LolsError, match="sentence 0: word 0 is on a cycle"):
        pipeline().fit(tagged([["dog", "sees"]]), [[2, 1]])
    with pytest.raises(ConfigurationError):
        tags = [[{"word": w, "parser": TAGS[w]} for w in s] for s in WORDS]
        pipeline(tags=["parser"], folds=1).fit(tags, GOLD)


# --- model files ------------------------------------------------------------------------------------------------------


def test_a_model_file_holds_all_of_it(fitted: Pipeline, tmp_path: Path) -> None:
    path = tmp_path / "m.lols"
    fitted.save(path)
    for made in (Pipeline.load(path), lols.load(path, threads=2)):
        assert isinstance(made, Pipeline) and made.predict(UNSEEN) == fitted.predict(UNSEEN)
        assert made.folds == 2 and made.seed == 0
        made.save(tmp_path / "again.lols")
        assert weights(tmp_path / "again.lols") == weights(path)
    with pytest.raises(ModelFileError, match="not a parser"):
        Parser.load(path)
    fitted.parser_.save(path)
    with pytest.raises(ModelFileError, match="not a pipeline"):
        Pipeline.load(path)


def edit(path: Path, change: Any) -> None:
    header, arrays = read_tensors(path, "model")
    arrays = dict(arrays)
    change(header, arrays)
    write_tensors(path, header.pop("kind"), header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda h, t: h.pop("parts"),
        lambda h, t: h["parts"].pop("upos"),
        lambda h, t: h["parts"].pop("parser"),
        lambda h, t: h.update(parts=[1]),
        lambda h, t: h["parts"].update(parser=7),
        lambda h, t: h["parts"].update(upos=None),
        lambda h, t: h["parts"].update(parser=h["parts"]["upos"]),
        lambda h, t: h["parts"]["parser"].pop("task"),
        lambda h, t: h["parts"]["parser"]["task"].update(root=-1),
        lambda h, t: h["task"].pop("tags"),
        lambda h, t: h["task"].update(tags=3),
        lambda h, t: h["task"].update(tags=["upos", "xpos"]),
        lambda h, t: h["task"].update(tags=[]),
        lambda h, t: h["task"].update(files=None),
        lambda h, t: h["task"]["files"].update(use="x"),
        lambda h, t: h["task"]["files"].update(use=[1]),
        lambda h, t: h["task"]["files"].update(word=1),
        lambda h, t: h["task"].update(name="tagger"),
        lambda h, t: t.pop("parser/chances"),
        lambda h, t: t.update({"upos/chances": np.zeros(0)}),
        lambda h, t: t.pop("upos/task.vocabulary"),
    ],
)
def test_damaged_files_are_told_in_one_line(fitted: Pipeline, tmp_path: Path, change: Any) -> None:
    fitted.save(tmp_path / "m.lols")
    edit(tmp_path / "m.lols", change)
    with pytest.raises(ModelFileError, match=r"m\.lols: ") as found:
        lols.load(tmp_path / "m.lols")
    assert "\n" not in str(found.value)


def test_truncated_files(fitted: Pipeline, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.lols")
    whole = (tmp_path / "m.lols").read_bytes()
    for size in (0, 7, len(whole) // 3, len(whole) - 1):
        (tmp_path / "m.lols").write_bytes(whole[:size])
        with pytest.raises(ModelFileError):
            Pipeline.load(tmp_path / "m.lols")


# --- the command line -------------------------------------------------------------------------------------------------


def train(*arguments: Any) -> dict[str, Any]:
    return fine("train", "pipeline", *arguments, "--folds", 2, "--passes", 4, "--json").json


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "train.conllu").write_text(conllu(WORDS, GOLD))
    (made / "test.conllu").write_text(conllu(UNSEEN, UNSEEN_GOLD))
    found = train(made / "train.conllu", "-o", made / "m.lols", "--dev", made / "test.conllu")
    assert found["tags"] == ["upos", "xpos", "feats"] and found["folds"] == 2 and found["las"] == 1.0
    assert found["tokens"] == sum(map(len, WORDS)) and (found["nonprojective"], found["mended"]) == (0, 0)
    assert sorted(os.listdir(made)) == ["m.lols", "test.conllu", "train.conllu"]
    return made


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_five_columns_are_replaced_and_all_else_stays(folder: Path, tmp_path: Path, ending: str) -> None:
    count = sum(map(len, UNSEEN))
    gold = conllu(UNSEEN, UNSEEN_GOLD)
    text = with_columns(gold, {k: ["?"] * count for k in (3, 4, 5, 6, 7)}).replace("\n", ending)
    (tmp_path / "in.conllu").write_bytes(text.encode())
    made = fine("predict", folder / "m.lols", tmp_path / "in.conllu").out.decode()
    words = [word for s in lols.load(folder / "m.lols").predict(UNSEEN) for word in s]
    trees = [[(word["head"], word["relation"]) for word in words]]
    tags = {k: [word[name] for word in words] for k, name in ((3, "upos"), (4, "xpos"), (5, "feats"))}
    assert made == with_columns(text, tags | flat(trees)) == gold.replace("\n", ending)
    assert fine("predict", folder / "m.lols", "-", "--beam", 3, stdin=text.encode()).code == 0
    pieces = lols.load(folder / "m.lols")
    asked = pieces.asked("predict", {})
    found = list(pieces.predict_pieces(tmp_path / "in.conllu", *asked, threads=2, size=300))
    assert len(found) > 2 and b"".join(data for data, _ in found).decode() == made
    assert sum(tokens for _, tokens in found) == count


def test_evaluate_says_what_the_library_says(folder: Path) -> None:
    made = fine("evaluate", folder / "m.lols", folder / "test.conllu", "--json").json
    assert made["tags"] == {"upos": 1.0, "xpos": 1.0, "feats": 1.0}
    assert made["uas"] == made["las"] == 1.0 and made["tokens"] == sum(map(len, UNSEEN))
    assert {"clas", "seconds_reading", "seconds_compiling", "seconds_total", "tokens_per_second"} <= set(made)
    said = fine("evaluate", folder / "m.lols", folder / "test.conllu").out.decode()
    assert "upos 100.00" in said and "LAS 100.00" in said


def test_tags_can_be_chosen(folder: Path, tmp_path: Path) -> None:
    found = train(folder / "train.conllu", "-o", tmp_path / "m.lols", "--tags", "xpos, upos")
    assert found["tags"] == ["xpos", "upos"]
    text = (folder / "test.conllu").read_text()
    assert fine("predict", tmp_path / "m.lols", folder / "test.conllu").out.decode() == text


def test_mistakes_are_found_before_the_taggers_are_trained(tmp_path: Path) -> None:
    data, model = tmp_path / "in.conllu", tmp_path / "m.lols"
    data.write_text(conllu(WORDS, GOLD))
    for options, says in [
        (("--labelling", "?"), "unknown labelling '?'"),
        (("--roots", "?"), "unknown roots '?'"),
        (("--reference", "?"), "unknown reference '?'"),
        (("--folds", 0), "folds is 0"),
        (("--folds", 99), "folds is 99"),
        (("--patience", 2), "patience has no effect"),
        (("--tags", "zz"), "there is no column 'zz'"),
        (("--tags", "feats:Number"), "feats:Number"),
        (("-o", tmp_path / "no" / "m.lols"), "there is no folder"),
    ]:
        mistake("train", "pipeline", data, "-o", model, *options, says=says)
        assert b"a tagger" not in run("train", "pipeline", data, "-o", model, *options).out
    data.write_text(rows((1, "a", 2, "x"), (2, "b", 1, "y")))
    mistake("train", "pipeline", data, "-o", model, says="in.conllu, line 1: word 1 of sentence 1 is on a cycle")
    assert os.listdir(tmp_path) == ["in.conllu"]


def test_mistakes_in_prediction(folder: Path, tmp_path: Path) -> None:
    model, out = folder / "m.lols", tmp_path / "out"
    mistake("predict", model, folder / "test.conllu", "-o", out, "--column", "upos", says="--column has no effect")
    mistake("predict", model, folder / "test.conllu", "-o", out, "--beam", 0, says="--beam is 0")
    (tmp_path / "in.tsv").write_text("form\tupos\ndog\tX\n")
    mistake("predict", model, tmp_path / "in.tsv", "-o", out, says="2 columns, and none of them is 'head'")
    (tmp_path / "bad.lols").write_bytes(model.read_bytes()[:-5])
    mistake("predict", tmp_path / "bad.lols", folder / "test.conllu", "-o", out, says="bad.lols: ")
    assert not out.exists() and not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_words_alone_become_a_treebank(folder: Path, tmp_path: Path) -> None:
    model, path = folder / "m.lols", tmp_path / "words.txt"
    whole = (folder / "test.conllu").read_text().split("\n\n")[0]
    words = [line.split("\t")[1] for line in whole.split("\n") if line[0].isdigit()]
    path.write_text("\n".join(words) + "\n\n\n" + words[0] + "\n\n\n")
    parsed = lols.load(model).predict([words])[0]
    blank = {"upos": 3, "xpos": 4, "feats": 5, "head": 6, "relation": 7}
    for options in ([], ["--format", "words"]):
        sentences = fine("predict", model, path, *options).out.decode().split("\n\n")
        assert len(sentences) == 3 and sentences[2] == ""
        for k, (line, wanted) in enumerate(zip(sentences[0].split("\n"), parsed, strict=True), 1):
            cells = line.split("\t")
            assert len(cells) == 10 and cells[:2] == [str(k), words[k - 1]]
            assert all(cells[at] == str(wanted.get(name, "_")) for name, at in blank.items())
    path.write_text(" ".join(words) + "\n")
    says = (
        f"words.txt, line 1: {len(words)} columns, and none of them is 'head'; give CoNLL-U, or one word on each line"
    )
    mistake("predict", model, path, says=says)


def test_pipelines_made_in_python_know_files_too(fitted: Pipeline, folder: Path, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.lols")
    found = fine("evaluate", tmp_path / "m.lols", folder / "test.conllu", "--json").json
    assert found["tags"] == {"upos": 1.0} and found["las"] == 1.0
    text = (folder / "test.conllu").read_text()
    assert fine("predict", tmp_path / "m.lols", folder / "test.conllu").out.decode() == text
    (tmp_path / "ids.conllu").write_text(rows((5, "dog", 0, "_")))
    mistake("predict", tmp_path / "m.lols", tmp_path / "ids.conllu", says="ids.conllu, line 1: word 1 of its sentence")


def test_trees_are_trees(fitted: Pipeline) -> None:
    random = np.random.default_rng(0)
    words = [list(map(str, random.choice([*TAGS, "new"], random.integers(1, 12)))) for _ in range(30)]
    assert_trees([[(word["head"], word["relation"]) for word in s] for s in fitted.predict(words)])
