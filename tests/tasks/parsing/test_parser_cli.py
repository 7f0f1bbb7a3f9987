"""Parsers on the command line: files in, the same files with other heads and relations out; mistakes are one line."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols import Parser
from lols.tasks.parsing import files as parser_files
from tests.cli.calling import fine, mistake
from tests.cli.interrupting import interrupted
from tests.tasks.parsing.parser_files import conllu, flat, rows, train, view, weights, with_columns
from tests.tasks.parsing.test_parser import (
    CROSSED,
    CROSSED_TREES,
    GOLD,
    SEVERAL,
    SEVERAL_TREES,
    TAGS,
    UNSEEN,
    UNSEEN_GOLD,
    WORDS,
    tagged,
)
from tests.tasks.parsing.test_parser import grammar as noisy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "train.conllu").write_text(conllu(WORDS, GOLD))
    (made / "test.conllu").write_text(conllu(UNSEEN, UNSEEN_GOLD))
    return made


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    train(folder / "train.conllu", "-o", folder / "m.lols")
    return folder / "m.lols"


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_conllu_comes_out_as_it_went_in_with_two_columns_replaced(model: Path, tmp_path: Path, ending: str) -> None:
    parser = lols.load(model)
    assert isinstance(parser, Parser) and parser.task_.columns == ("word", "upos", "xpos", "feats")
    bare = [[("_", "_")] * len(s) for s in UNSEEN]
    text = conllu(UNSEEN, bare).replace("\n", ending)
    (tmp_path / "in.conllu").write_bytes(text.encode())
    wanted = with_columns(text, flat(parser.predict(view(UNSEEN)))).encode()
    assert fine("predict", model, tmp_path / "in.conllu").out == wanted
    fine("predict", model, tmp_path / "in.conllu", "-o", tmp_path / "in.conllu")
    assert (tmp_path / "in.conllu").read_bytes() == wanted and os.listdir(tmp_path) == ["in.conllu"]
    assert b"1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpace" in wanted and b"1.1\te\te\tX\tX\t_\t_\t_\t0:root\t_" in wanted


def test_conllx(tmp_path: Path) -> None:
    lines = [line for line in conllu(WORDS, GOLD).split("\n") if not line.startswith(("#", "1-2", "1.1"))]
    text = "\n".join(lines)
    (tmp_path / "data.conllx").write_text(text)
    made = train(tmp_path / "data.conllx", "-o", tmp_path / "m.lols", "--use", "cpostag")
    assert made["tokens"] == sum(map(len, WORDS)) and lols.load(tmp_path / "m.lols").task_.columns[1:] == ("cpostag",)
    assert fine("predict", tmp_path / "m.lols", tmp_path / "data.conllx").out.decode() == text
    assert fine("evaluate", tmp_path / "m.lols", tmp_path / "data.conllx", "--json").json["las"] == 1.0


@pytest.mark.parametrize("between", ["\t", " "], ids=["tsv", "plain columns"])
def test_other_columns(tmp_path: Path, between: str) -> None:
    names, tsv = ["token", "pos", "gov", "rel"], between == "\t"
    rows = [
        "".join(f"{w}\t{TAGS[w]}\t{h}\t{r}\n" for w, (h, r) in zip(sentence, tree, strict=True))
        for sentence, tree in zip(WORDS, GOLD, strict=True)
    ]
    text = "\t".join(names) * tsv + "\n" * tsv + "\n".join(rows)
    path = tmp_path / ("data.tsv" if tsv else "data.txt")
    path.write_text(text.replace("\t", between))
    word, pos, head, relation = names if tsv else ("1", "2", "3", "4")
    train(
        path, "-o", tmp_path / "m.lols", "--word", word, "--head", head, "--relation", relation, "--use", f"pos={pos}"
    )
    parser = lols.load(tmp_path / "m.lols")
    assert parser.task_.columns == ("word", "pos")
    made = parser.predict([[{"word": w, "pos": TAGS[w]} for w in s] for s in WORDS])
    wanted = with_columns(text, flat(made, 2, 3), skip=tsv).replace("\t", between)
    assert fine("predict", tmp_path / "m.lols", path).out.decode() == wanted
    assert fine("evaluate", tmp_path / "m.lols", path, "--json").json["las"] > 0.97


def test_compressed_files_pipes_and_several_files(model: Path, folder: Path, tmp_path: Path) -> None:
    data, text = (folder / "train.conllu").read_bytes(), (folder / "test.conllu").read_bytes()
    (tmp_path / "in.conllu.gz").write_bytes(gzip.compress(text))
    wanted = fine("predict", model, folder / "test.conllu").out
    assert fine("predict", model, tmp_path / "in.conllu.gz").out == wanted
    assert fine("predict", model, "-", stdin=text).out == wanted
    fine("predict", model, folder / "test.conllu", "-o", tmp_path / "out.conllu.gz")
    assert gzip.decompress((tmp_path / "out.conllu.gz").read_bytes()) == wanted
    (tmp_path / "train.conllu.gz").write_bytes(gzip.compress(data))
    (tmp_path / "1.conllu").write_text(conllu(WORDS[:7], GOLD[:7]))
    (tmp_path / "2.conllu").write_text(conllu(WORDS[7:], GOLD[7:]))
    out = tmp_path / "m.lols"
    train(tmp_path / "train.conllu.gz", "-o", out)
    assert weights(out) == weights(model)
    train(tmp_path / "1.conllu", tmp_path / "2.conllu", "-o", out)
    assert weights(out) == weights(model)
    train("-", "-o", out, stdin=data)
    assert weights(out) == weights(model)
    assert lols.load(out).predict(view(UNSEEN)) == lols.Parser(passes=4, progress=False).fit(view(WORDS), GOLD).predict(
        view(UNSEEN)
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_and_threads_do_not_show(model: Path, folder: Path, threads: int, monkeypatch: Any) -> None:
    wanted = fine("predict", model, folder / "test.conllu").out
    monkeypatch.setitem(parser_files.TreebankFormat.pieces.__kwdefaults__, "size", 300)
    assert fine("predict", model, folder / "test.conllu", "--threads", threads).out == wanted


def test_columns_are_used_where_they_say_something(folder: Path, tmp_path: Path) -> None:
    def columns(text: str, *options: Any) -> tuple[str, ...]:
        (tmp_path / "in.conllu").write_text(text)
        train(tmp_path / "in.conllu", "-o", tmp_path / "m.lols", *options)
        return lols.load(tmp_path / "m.lols").task_.columns

    text = conllu(WORDS, GOLD)
    assert columns(text) == ("word", "upos", "xpos", "feats")
    assert columns(text, "--use", "none") == ("word",)
    assert columns(text, "--use", "lemma", "--use", "n=feats:Number") == ("word", "lemma", "n")
    assert columns(conllu(WORDS, GOLD, xpos="_").replace("Number=Sing", "_")) == ("word", "upos")
    same = {4: [TAGS[w] for s in WORDS for w in s]}
    assert columns(with_columns(text, same)) == ("word", "xpos", "feats")
    assert fine("evaluate", tmp_path / "m.lols", folder / "test.conllu", "--json").code == 0


def test_columns_that_training_had_may_be_left_out(model: Path, folder: Path) -> None:
    parser = lols.load(model)
    wanted = flat(parser.predict(UNSEEN))
    text = (folder / "test.conllu").read_text()
    assert fine("predict", model, folder / "test.conllu", "--use", "none").out.decode() == with_columns(text, wanted)
    made = fine("evaluate", model, folder / "test.conllu", "--use", "none", "--json").json
    assert made["uas"] == parser.evaluate(UNSEEN, UNSEEN_GOLD).uas


def test_columns_may_be_called_anything_but_word(model: Path, folder: Path, tmp_path: Path) -> None:
    made = train(folder / "train.conllu", "-o", tmp_path / "m.lols", "--use", "relation=lemma")
    assert made["relations"] == 7 and lols.load(tmp_path / "m.lols").task_.columns == ("word", "relation")
    mistake("train", "parser", folder / "train.conllu", "-o", tmp_path / "m.lols", "--use", "word=upos", says="word")
    Parser(passes=4, progress=False).fit(tagged(WORDS), GOLD).save(tmp_path / "m.lols")
    found = fine("evaluate", tmp_path / "m.lols", folder / "test.conllu", "--json").json
    assert found["las"] == lols.load(tmp_path / "m.lols").evaluate(tagged(UNSEEN), UNSEEN_GOLD).las


def test_relations_that_are_not_there(tmp_path: Path) -> None:
    bare = [[(head, "_") for head, _ in tree] for tree in GOLD]
    (tmp_path / "in.conllu").write_text(conllu(WORDS, bare))
    train(tmp_path / "in.conllu", "-o", tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols").task_.labelling == "none"
    made = fine("evaluate", tmp_path / "m.lols", tmp_path / "in.conllu", "--json").json
    assert made["uas"] == made["las"] == 1.0


# --- reports ----------------------------------------------------------------------------------------------------------


def test_training_with_json_prints_one_object(folder: Path, tmp_path: Path) -> None:
    words, trees = WORDS * 4 + CROSSED + SEVERAL[:1], GOLD * 4 + CROSSED_TREES + SEVERAL_TREES[:1]
    (tmp_path / "in.conllu").write_text(conllu(words, trees))
    made = train(tmp_path / "in.conllu", "-o", tmp_path / "m.lols", "--dev", folder / "test.conllu", "--patience", 3)
    assert made["tokens"] == sum(map(len, words)) and made["sentences"] == len(words)
    assert (made["nonprojective"], made["lifted"], made["mended"]) == (3, 3, 1)
    assert made["uas"] >= made["las"] == max(entry["las"] for entry in made["dev"])
    assert made["relations"] == 9 and made["actions"] > 8 and made["features"] > 0
    for name in ("seconds_reading", "seconds_compiling", "tokens_per_second"):
        assert made[name] >= 0
    assert made["seconds_total"] >= made["seconds_reading"] + made["seconds_compiling"] - 1e-6
    said = fine("train", "parser", tmp_path / "in.conllu", "-o", tmp_path / "m.lols", "--passes", 1).out.decode()
    said = re.sub(r"\s+", " ", said)
    assert "3 sentences (1.8 %) are not projective: 3 words were lifted" in said
    line = conllu(words, trees).split("\n").index("# sent_id = 163") + 4
    assert re.search(rf"1 sentences had several roots; .*in\.conllu, sentence 164 \(line {line}\)", said)


def test_evaluate_says_what_the_library_and_the_shared_task_say(folder: Path, tmp_path: Path) -> None:
    train(folder / "train.conllu", "-o", tmp_path / "m.lols", "--use", "none")
    words, trees = noisy(30, seed=9, noise=0.3)
    (tmp_path / "gold.conllu").write_text(conllu(words, trees))
    parser = lols.load(tmp_path / "m.lols")
    for options, counted in (((), True), (("--no-punctuation",), False)):
        made = fine("evaluate", tmp_path / "m.lols", tmp_path / "gold.conllu", "--json", *options).json
        wanted = parser.evaluate(words, trees, punctuation=counted)
        assert made["tokens"] == wanted.words and made["sentences"] == wanted.sentences
        for name in ("uas", "las", "clas", "las_full", "exact_heads", "exact"):
            assert made[name] == getattr(wanted, name) and 0 < made[name] < 1
        assert {"seconds_reading", "seconds_compiling", "seconds_total", "tokens_per_second", "relations"} <= set(made)
    assert "UAS" in (text := fine("evaluate", tmp_path / "m.lols", tmp_path / "gold.conllu").out.decode())
    assert f"LAS {100 * parser.evaluate(words, trees).las:.2f}" in text
    beamed = fine("evaluate", tmp_path / "m.lols", tmp_path / "gold.conllu", "--json", "--beam", 3).json
    assert beamed["uas"] == parser.set_params(beam=3).evaluate(words, trees).uas
    udeval = pytest.importorskip("udtools.udeval")
    fine("predict", tmp_path / "m.lols", tmp_path / "gold.conllu", "-o", tmp_path / "system.conllu")
    loaded = []
    for name in ("gold.conllu", "system.conllu"):
        with open(tmp_path / name) as file:
            loaded.append(udeval.load_conllu(file, name, {}))
    theirs = udeval.evaluate(*loaded)
    ours = fine("evaluate", tmp_path / "m.lols", tmp_path / "gold.conllu", "--json").json
    for name in ("uas", "las", "clas"):
        assert ours[name] == pytest.approx(theirs[name.upper()].f1)


# --- a training that was interrupted ----------------------------------------------------------------------------------


@pytest.mark.thinned(2)
@pytest.mark.parametrize("batches", [1, 9, 22])
@pytest.mark.parametrize("dev", [False, True])
def test_an_interrupted_training_goes_on(tmp_path: Path, batches: int, dev: bool, monkeypatch: Any) -> None:
    data, held = tmp_path / "data.conllu", tmp_path / "dev.conllu"
    data.write_text(conllu(*noisy(25, seed=6, noise=0.5)))
    held.write_text(conllu(*noisy(15, seed=7, noise=0.3)))
    options = (data, "--passes", 6, "--batch-size", 8, "--json", *(("--dev", held) if dev else ()), "-o")
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    made = fine("train", "parser", *options, whole).json
    interrupted(monkeypatch, batches, "parser", *options, resumed)
    assert not resumed.exists() and (tmp_path / "resumed.lols.checkpoint").exists()
    mistake("train", "parser", *options, resumed, "--resume", "--seed", 5, says="made with another seed")
    again = fine("train", "parser", *options, resumed, "--resume").json
    assert weights(resumed) == weights(whole)
    assert [again.get(k) for k in ("dev", "best_pass", "passes")] == [
        made.get(k) for k in ("dev", "best_pass", "passes")
    ]
    assert sorted(os.listdir(tmp_path)) == ["data.conllu", "dev.conllu", "resumed.lols", "whole.lols"]


# --- mistakes ---------------------------------------------------------------------------------------------------------


FINE = rows((1, "a", 2, "x"), (2, "b", 0, "root"))


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (FINE + rows((1, "a", 2, "x"), (2, "b", 1, "y")), [], "bad.conllu, line 4: word 1 of sentence 2 is on a cycle"),
        (rows((1, "a", 3, "x"), (2, "b", 0, "y")), [], "line 1: the head '3' is not a word of sentence 1 (of length"),
        (rows((1, "a", -1, "x"), (2, "b", 0, "y")), [], "line 1: the head '-1' is not a word of sentence 1"),
        (rows((1, "a", 1, "x"), (2, "b", 0, "y")), [], "line 1: word 1 of sentence 1 is its own head"),
        (rows((1, "a", "?", "x"), (2, "b", 0, "y")), [], "bad.conllu, line 1: the head '?' is not a number"),
        (rows((1, "a", "_", "_")), [], "bad.conllu, line 1: the head '_' is not a number"),
        (rows((1, "a", 0, "x"), (3, "b", 1, "y")), [], "line 2: word 2 of its sentence has the number 3; number the"),
        (rows((2, "a", 0, "x")), [], "line 1: word 1 of its sentence has the number 2; number the words from 1"),
        (rows(("x", "a", 0, "x")), [], "bad.conllu, line 1: the id 'x' is not a CoNLL-U id"),
        (rows(("x", "a", 0, "x")), ["--format", "conllx"], "bad.conllu, line 1: "),
        (rows(("9" * 25, "a", 0, "x")), [], "bad.conllu, line 1: "),
        (rows((1, "a", 2, "a↑b"), (2, "b", 0, "root")), [], "bad.conllu, line 1: the relation 'a↑b' holds an arrow"),
        (rows((1, "a", 2, ""), (2, "b", 0, "root")), [], "bad.conllu, line 1: its relation is empty"),
        ("", [], "bad.conllu: there is no token in it; give"),
        ("# nothing\n\n", [], "bad.conllu, line 1: a sentence without any word begins here"),
        *((FINE, [option, "zz"], "bad.conllu: there is no column 'zz'; ask for id, form")
          for option in ("--head", "--relation", "--word", "--use")),
        (FINE, ["--template", "zz"], "template 'zz': 'zz' is not an atom"),
        (FINE, ["--template", "S0.nothing"], "template 'S0.nothing': there is no attribute or column 'nothing'"),
        (FINE, ["--templates", "nowhere"], "nowhere: there is no such file"),
        (FINE, ["--patience", "2"], "patience has no effect: there are no dev data to get better on"),
        (FINE, ["--dev", "nowhere"], "nowhere: there is no such file"),
        (FINE, ["--roots", "x"], "unknown roots 'x': choose auto, one or many"),
        (FINE, ["--labelling", "x"], "unknown labelling 'x': choose auto, joint, second, none"),
        (FINE, ["--reference", "x"], "unknown reference 'x': choose one of optimal, suboptimal, bad"),
        (FINE, ["--algorithm", "x"], "unknown algorithm 'x'"),
        (FINE, ["--format", "xml"], "bad.conllu: there is no format 'xml'"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_learned_from(content: str, options: list[str], says: str, tmp_path: Path) -> None:
    path, model = tmp_path / "bad.conllu", tmp_path / "m.lols"
    path.write_text(content)
    model.write_bytes(b"the old model")
    mistake("train", "parser", path, "-o", model, *options, says=says)
    assert model.read_bytes() == b"the old model" and sorted(os.listdir(tmp_path)) == ["bad.conllu", "m.lols"]


def test_mistakes_in_the_options(model: Path, folder: Path, tmp_path: Path) -> None:
    test, out = folder / "test.conllu", tmp_path / "out"
    says = "--column has no effect: the model is a parser"
    mistake("predict", model, test, "-o", out, "--column", "upos", says=says)
    mistake("evaluate", model, test, "--column", "upos", says=says)
    mistake("predict", model, test, "-o", out, "--beam", 0, says="--beam is 0; it must be at least 1")
    mistake("evaluate", model, test, "--beam", -1, says="--beam is -1; it must be at least 1")
    mistake("predict", model, test, "-o", out, "--use", "zz", says="--use zz has no effect: the model uses")
    mistake(
        "predict",
        model,
        test,
        "-o",
        tmp_path / "no" / "out",
        says="out: cannot be written; name a file in an existing",
    )
    mistake("train", "parser", test, "-o", tmp_path / "no" / "m.lols", says="m.lols: there is no folder")
    lols.Tagger(passes=1, progress=False).fit(WORDS, [[TAGS[w] for w in s] for s in WORDS]).save(tmp_path / "tags.lols")
    mistake("predict", tmp_path / "tags.lols", test, "--beam", 2, says="--beam has no effect: the model is a tagger")
    (tmp_path / "bare.conllu").write_text(conllu(UNSEEN, [[("_", "_")] * len(s) for s in UNSEEN]))
    mistake("evaluate", model, tmp_path / "bare.conllu", says="bare.conllu, line 4: the head '_' is not a number")
    (tmp_path / "ids.conllu").write_text(rows((5, "dog", 0, "_")))
    mistake("predict", model, tmp_path / "ids.conllu", "-o", out, says="ids.conllu, line 1: word 1 of its sentence has")
    (tmp_path / "half.conllu").write_text(conllu(UNSEEN, UNSEEN_GOLD) + "1\tbroken\n")
    mistake("predict", model, tmp_path / "half.conllu", "-o", out, says="2 columns, but CoNLL-U has 10")
    (tmp_path / "bad.lols").write_bytes(model.read_bytes()[:-9])
    mistake("predict", tmp_path / "bad.lols", test, "-o", out, says="bad.lols: ")
    assert not out.exists() and not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_predictions_are_those_of_the_numbers_in_the_file(model: Path, folder: Path) -> None:
    parser = lols.load(model)
    data = parser_files.treebank(
        parser_files.read_treebank([folder / "test.conllu"], parser.file_columns), parser.columns_
    )
    made = parser.predict_columns(data.corpus)
    wanted = [arc for tree in parser.predict(view(UNSEEN)) for arc in tree]
    assert list(zip((made.heads + 1).tolist(), [parser.relations_[r] for r in made.relations], strict=True)) == wanted
    assert np.array_equal(data.heads, [h - 1 for tree in UNSEEN_GOLD for h, _ in tree])
    assert [data.names[n] for n in data.numbers] == [r for tree in UNSEEN_GOLD for _, r in tree]
