"""Taggers on the command line: files in, the same files with one column replaced out."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest

import lols
from lols.tasks.tagging import files as tagger_files
from tests.cli.calling import fine
from tests.tasks.tagging.tagger_data import columns, conllu, spans, weights
from tests.tasks.tagging.tagger_files import GOLD, UNSEEN, UNSEEN_GOLD, WORDS, noisy, train, with_column

# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_conllu_comes_out_as_it_went_in_with_one_column_replaced(pos: Path, tmp_path: Path, ending: str) -> None:
    made = lols.load(pos).predict(UNSEEN)
    text = conllu(UNSEEN, [["_"] * len(s) for s in UNSEEN]).replace("\n", ending)
    path = tmp_path / "in.conllu"
    path.write_bytes(text.encode())
    wanted = with_column(text, 3, made).encode()
    assert fine("predict", pos, path).out == wanted
    assert fine("predict", pos, path, "-o", tmp_path / "out.conllu").out == b""
    assert (tmp_path / "out.conllu").read_bytes() == wanted
    assert b"1-2\tdu\t_\t_\t_" in wanted and b"1.1\te\te\tX\tX" in wanted and b"# sent_id = 3" in wanted


def test_conllx(tmp_path: Path) -> None:
    lines = [line for line in conllu(WORDS, GOLD).split("\n") if not line.startswith(("#", "1-2", "1.1"))]
    text = "\n".join(lines)
    path = tmp_path / "data.conllx"
    path.write_text(text)
    made = train(path, "-o", tmp_path / "m.lols", "--column", "cpostag")
    assert made["labels"] == 4 and made["tokens"] == sum(map(len, WORDS))
    found = fine("predict", tmp_path / "m.lols", path).out.decode()
    assert found == with_column(text, 3, lols.load(tmp_path / "m.lols").predict(WORDS))
    assert fine("evaluate", tmp_path / "m.lols", path, "--json").json["accuracy"] > 0.95


def test_plain_columns_use_what_stands_before_the_labels(chunks: Path, folder: Path, tmp_path: Path) -> None:
    tagger = lols.load(chunks)
    assert tagger.columns_.use == {"column2": "2"} and tagger.columns_.label == "3"
    words, gold = spans(9, seed=4)
    text = columns(words, gold)
    (tmp_path / "in.txt").write_text(text)
    made = tagger.predict([[{"word": w, "column2": w[0]} for w in s] for s in words])
    assert fine("predict", chunks, tmp_path / "in.txt").out.decode() == with_column(text, 2, made, " ")
    assert train(folder / "chunks.txt", "-o", tmp_path / "m.lols", "--use", "none")["scheme"] == "bio"
    assert lols.load(tmp_path / "m.lols").columns_.use == {}


def test_plain_columns_without_labels_get_one_more(folder: Path, tmp_path: Path) -> None:
    train(folder / "chunks.txt", "-o", tmp_path / "m.lols", "--use", "none", "--column", "3")
    (tmp_path / "in.txt").write_text("the x\ndog  y\n\nAnn z\n")
    made = lols.load(tmp_path / "m.lols").predict([["the", "dog"], ["Ann"]])
    wanted = f"the x {made[0][0]}\ndog  y {made[0][1]}\n\nAnn z {made[1][0]}\n"
    assert fine("predict", tmp_path / "m.lols", tmp_path / "in.txt").out.decode() == wanted


def test_tsv_with_a_header(tmp_path: Path) -> None:
    text = "token\tlen\ttag\n" + columns(WORDS, GOLD, between="\t")
    path = tmp_path / "data.tsv"
    path.write_text(text)
    made = train(path, "-o", tmp_path / "m.lols", "--word", "token", "--column", "tag", "--use", "first=len")
    assert made["labels"] == 4
    tagger = lols.load(tmp_path / "m.lols")
    assert tagger.task_.columns == ("word", "first")
    found = fine("predict", tmp_path / "m.lols", path).out.decode()
    wanted = tagger.predict([[{"word": w, "first": w[0]} for w in s] for s in WORDS])
    head, rest = text.split("\n", 1)
    assert found == head + "\n" + with_column(rest, 2, wanted)
    assert fine("evaluate", tmp_path / "m.lols", path, "--json").json["accuracy"] > 0.95


def test_compressed_files_and_pipes(pos: Path, folder: Path, tmp_path: Path) -> None:
    text = (folder / "test.conllu").read_bytes()
    (tmp_path / "in.conllu.gz").write_bytes(gzip.compress(text))
    wanted = fine("predict", pos, folder / "test.conllu").out
    assert fine("predict", pos, tmp_path / "in.conllu.gz").out == wanted
    assert fine("predict", pos, "-", "--format", "conllu", stdin=text).out == wanted
    assert fine("predict", pos, "-", stdin=gzip.compress(text)).out == wanted
    fine("predict", pos, folder / "test.conllu", "-o", tmp_path / "out.conllu.gz")
    assert gzip.decompress((tmp_path / "out.conllu.gz").read_bytes()) == wanted
    (tmp_path / "train.conllu.gz").write_bytes(gzip.compress((folder / "train.conllu").read_bytes()))
    train(tmp_path / "train.conllu.gz", "-o", tmp_path / "m.lols")
    assert weights(tmp_path / "m.lols") == weights(pos)
    scores = fine("evaluate", pos, "-", "--json", stdin=text).json
    assert scores["accuracy"] == fine("evaluate", pos, folder / "test.conllu", "--json").json["accuracy"]


def test_several_files_are_one(pos: Path, tmp_path: Path) -> None:
    (tmp_path / "1.conllu").write_text(conllu(WORDS[:7], GOLD[:7]))
    (tmp_path / "2.conllu").write_text(conllu(WORDS[7:], GOLD[7:]))
    train(tmp_path / "1.conllu", tmp_path / "2.conllu", "-o", tmp_path / "m.lols")
    assert weights(tmp_path / "m.lols") == weights(pos)


@pytest.mark.parametrize("threads", [1, 2])
def test_pieces_and_threads_do_not_show(pos: Path, folder: Path, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = fine("predict", pos, folder / "test.conllu").out
    monkeypatch.setitem(tagger_files.TaggedFormat.pieces.__kwdefaults__, "size", 100)
    assert fine("predict", pos, folder / "test.conllu", "--threads", threads).out == wanted


# --- labels elsewhere -------------------------------------------------------------------------------------------------


def test_labels_among_the_features(tmp_path: Path) -> None:
    case = {"NOUN": "Case=Nom|Number=Sing", "DET": "Case=Acc", "VERB": "Tense=Past", "ADJ": "_"}
    lines = []
    for words, tags in zip(WORDS, GOLD, strict=True):
        lines += [f"{k}\t{w}\t_\t{t}\t_\t{case[t]}\t0\t_\t_\t_" for k, (w, t) in enumerate(zip(words, tags), 1)] + [""]
    text = "\n".join(lines) + "\n"
    (tmp_path / "in.conllu").write_text(text)
    train(tmp_path / "in.conllu", "-o", tmp_path / "m.lols", "--column", "feats:Case")
    assert lols.load(tmp_path / "m.lols").classes_.tolist() == ["Acc", "Nom", "_"]
    assert fine("predict", tmp_path / "m.lols", tmp_path / "in.conllu").out.decode() == text
    bare = text.replace("Case=Nom|Number=Sing", "Number=Sing").replace("Case=Acc", "_")
    (tmp_path / "bare.conllu").write_text(bare)
    assert fine("predict", tmp_path / "m.lols", tmp_path / "bare.conllu").out.decode() == text
    assert fine("evaluate", tmp_path / "m.lols", tmp_path / "in.conllu", "--json").json["accuracy"] == 1.0


def test_labels_among_the_rest(folder: Path, tmp_path: Path) -> None:
    train(folder / "train.conllu", "-o", tmp_path / "m.lols", "--column", "misc:NER")
    text = (folder / "test.conllu").read_text()
    assert fine("predict", tmp_path / "m.lols", folder / "test.conllu").out.decode() == text
    bare = re.sub(r"NER=\w+\|", "", text)
    (tmp_path / "bare.conllu").write_text(bare)
    made = fine("predict", tmp_path / "m.lols", tmp_path / "bare.conllu").out.decode()
    tags = iter([tag for sentence in UNSEEN_GOLD for tag in sentence])
    assert made == re.sub(r"Id=\d+", lambda found: f"{found[0]}|NER={next(tags)}", bare)


def test_further_columns_are_used_by_name(folder: Path, tmp_path: Path) -> None:
    train(
        folder / "train.conllu", "-o", tmp_path / "m.lols", "--use", "xpos", "--use", "morph=feats", "--use", "misc:Id"
    )
    tagger = lols.load(tmp_path / "m.lols")
    assert tagger.columns_.use == {"xpos": "xpos", "morph": "feats", "misc_Id": "misc:Id"}
    assert set(tagger.task_.columns) == {"word", "xpos", "morph", "misc_Id"}
    assert fine("evaluate", tmp_path / "m.lols", folder / "test.conllu", "--json").json["accuracy"] == 1.0


def test_templates_from_a_file_and_one_more(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("# mine\nword\nsuffix1..2\n")
    train(
        folder / "train.conllu", "-o", tmp_path / "m.lols", "--templates", tmp_path / "t.txt", "--template", "tag[-1]"
    )
    assert [t for t in lols.load(tmp_path / "m.lols").task_.templates if not t.startswith("#")] == [
        "word", "suffix1..2", "tag[-1]",
    ]  # fmt: skip
    train(folder / "train.conllu", "-o", tmp_path / "n.lols", "--template", "word[-1] & word[+1]")
    assert lols.load(tmp_path / "n.lols").task_.templates[-1] == "word[-1] & word[+1]"


def test_clusters_from_a_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "paths").write_text("0\tthe\t9\n0\ta\t9\n10\tdog\t3\n")
    train(folder / "train.conllu", "-o", tmp_path / "m.lols", "--clusters", tmp_path / "paths")
    tagger = lols.load(tmp_path / "m.lols")
    assert tagger.clusters == {"the": "0", "a": "0", "dog": "10"} and "cluster" in tagger.task_.columns
    assert fine("evaluate", tmp_path / "m.lols", folder / "test.conllu", "--json").json["accuracy"] == 1.0


# --- the library does the same ----------------------------------------------------------------------------------------


def test_the_command_trains_what_the_library_trains(pos: Path) -> None:
    assert weights(lols.Tagger(passes=2, progress=False).fit(WORDS, GOLD)) == weights(pos)


def test_evaluate_says_what_the_library_says(chunks: Path, folder: Path, pos: Path) -> None:
    made = fine("evaluate", pos, folder / "test.conllu", "--json").json
    wanted = lols.load(pos).evaluate(UNSEEN, UNSEEN_GOLD).as_dict()
    assert {k: made[k] for k in wanted} == json.loads(json.dumps(wanted))
    assert made["seconds_total"] >= made["seconds_reading"] >= 0 and "f1" not in made
    made = fine("evaluate", chunks, folder / "chunks.txt", "--json").json
    assert 0.9 < made["f1"] <= 1 and set(made["types"]) == {"NP", "VP"}
    text = fine("evaluate", chunks, folder / "chunks.txt").out.decode()
    assert text.startswith("accuracy ") and "F1" in text and "span type" in text


def test_training_with_json_prints_one_object(folder: Path, tmp_path: Path) -> None:
    made = train(folder / "train.conllu", "-o", tmp_path / "m.lols", "--dev", folder / "test.conllu", "--patience", 5)
    assert made["tokens"] == sum(map(len, WORDS)) and made["sentences"] == len(WORDS) and made["scheme"] is None
    assert made["accuracy"] == 1.0 and made["best_pass"] in (1, 2) and len(made["dev"]) == 2 and "f1" not in made
    for name in ("seconds_reading", "seconds_compiling", "seconds_total", "tokens_per_second"):
        assert made[name] >= 0
    assert made["seconds_total"] >= made["seconds_reading"] + made["seconds_compiling"] - 1e-6
    spans_made = train(folder / "chunks.txt", "-o", tmp_path / "n.lols", "--dev", folder / "chunks.txt")
    assert spans_made["f1"] > 0.9 and spans_made["scheme"] == "bio"


def test_prediction_with_json_prints_one_object(pos: Path, folder: Path, tmp_path: Path) -> None:
    made = fine("predict", pos, folder / "test.conllu", "-o", tmp_path / "out", "--json").json
    assert made["tokens"] == sum(map(len, UNSEEN)) and made["output"] == str(tmp_path / "out")
    assert made["tokens_per_second"] > 0 and made["seconds_total"] >= made["seconds_compiling"] >= 0


def test_training_without_json_says_what_happens(folder: Path, tmp_path: Path) -> None:
    made = fine("train", "tagger", folder / "train.conllu", "-o", tmp_path / "m.lols", "--passes", 2,
                "--dev", folder / "test.conllu").out.decode()  # fmt: skip
    assert f"40 sentences, {sum(map(len, WORDS))} tokens, 4 labels in column upos" in made
    assert "best on the dev file: pass" in made and "m.lols written" in made and "dev accuracy" in made
    spent = re.search(
        r"^(\S+) s: (\S+) reading, (\S+) compiling, (\S+) learning and scoring the dev file \(\S+ tokens/s\)$",
        made,
        re.M,
    )
    assert spent is not None
    total, *parts = map(float, spent.groups())
    assert total == pytest.approx(sum(parts), abs=0.2)


def test_the_bar_names_what_it_counts() -> None:
    units = [each.PROBLEM.DEFAULTS.unit for each in (lols.Tagger, lols.Parser, lols.CostSensitiveClassifier)]
    assert units == ["tokens", "steps", "steps"]


def test_all_passes_are_counted(tmp_path: Path) -> None:
    data, dev = noisy(tmp_path)
    made = fine("train", "tagger", data, "--dev", dev, "-o", tmp_path / "m.lols", "--passes", 6, "--json").json
    assert len(made["dev"]) == 6 and made["best_pass"] < 6
    assert made["passes"] == 6


def test_predicting_into_the_file_itself_is_fine(pos: Path, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.conllu"
    path.write_text(conllu(UNSEEN, [["_"] * len(s) for s in UNSEEN]))
    wanted = fine("predict", pos, path).out
    fine("predict", pos, path, "-o", path)
    assert path.read_bytes() == wanted and os.listdir(tmp_path) == ["in.conllu"]
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
