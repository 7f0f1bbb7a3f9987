"""Taggers on the command line: files in, the same files with one column replaced out; mistakes are one line."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import lols
from lols.cli import main
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.tagging import files as tagger_files
from lols.training import trainer
from tests.tasks.tagging.tagger_data import columns, conllu, sentences, spans, weights

WORDS, GOLD = sentences(40)
UNSEEN, UNSEEN_GOLD = sentences(15, seed=1)
CHUNK_WORDS, CHUNKS = spans(30)


class Ran(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


def run(*arguments: Any, stdin: bytes = b"") -> Ran:
    """What the installed command does, in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["lols", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as left:
            main()
            raise SystemExit(0)
    return Ran(int(left.value.code or 0), out.buffer.getvalue(), err.buffer.getvalue().decode())


def fine(*arguments: Any, stdin: bytes = b"") -> Ran:
    made = run(*arguments, stdin=stdin)
    assert made.code == 0 and made.err == "", made
    return made


def mistake(*arguments: Any, says: str, stdin: bytes = b"") -> None:
    """Exit code 2, and one line that says what is wrong."""
    made = run(*arguments, stdin=stdin)
    assert made.code == 2 and (made.out == b"" or arguments[0] == "train"), made
    assert made.err.startswith("lols: ") and made.err.count("\n") == 1 and made.err.endswith("\n"), made.err
    assert says in made.err


def train(*arguments: Any) -> dict[str, Any]:
    return fine("train", "tagger", *arguments, "--passes", 2, "--json").json


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "train.conllu").write_text(conllu(WORDS, GOLD))
    (made / "test.conllu").write_text(conllu(UNSEEN, UNSEEN_GOLD))
    (made / "chunks.txt").write_text(columns(CHUNK_WORDS, CHUNKS))
    return made


@pytest.fixture(scope="module")
def pos(folder: Path) -> Path:
    train(folder / "train.conllu", "-o", folder / "pos.lols")
    return folder / "pos.lols"


@pytest.fixture(scope="module")
def chunks(folder: Path) -> Path:
    train(folder / "chunks.txt", "-o", folder / "chunks.lols")
    return folder / "chunks.lols"


def with_column(text: str, index: int, tags: list[list[str]], separator: str = "\t") -> str:
    """The same lines with one column of the tokens replaced, one line at a time."""
    flat = [tag for sentence in tags for tag in sentence]
    made = []
    for line in text.split("\n"):
        end = "\r" if line.endswith("\r") else ""
        cells = line.removesuffix("\r").split(separator)
        if len(cells) > 1 and (separator == " " or len(cells) < 10 or cells[0].isdigit()):
            cells[index] = flat.pop(0)
        made.append(separator.join(cells) + end)
    assert not flat
    return "\n".join(made)


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
    monkeypatch.setitem(tagger_files.tag_pieces.__kwdefaults__, "size", 100)
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


def noisy(folder: Path) -> tuple[Path, Path]:
    """Files on which a pass before the last is best (see test_tagger.py)."""
    paths = folder / "noisy.conllu", folder / "noisy-dev.conllu"
    for path, data in zip(paths, (sentences(25, seed=6, noise=0.5), sentences(15, seed=7, noise=0.3)), strict=True):
        path.write_text(conllu(*data))
    return paths


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


# --- a training that was interrupted ----------------------------------------------------------------------------------


def interrupted(monkeypatch: pytest.MonkeyPatch, batches: int, *arguments: Any) -> None:
    """Train, with a checkpoint after every batch, until someone presses Ctrl-C."""
    done = []
    learn = trainer.TrainingRun.learn

    def until(run: Any, batch: Any) -> None:
        if len(done) == batches:
            raise KeyboardInterrupt
        if run.trainer.passes > 1:  # not the tiny training that has things compiled
            done.append(1)
        learn(run, batch)

    with monkeypatch.context() as patch:
        patch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        patch.setattr(trainer.TrainingRun, "learn", until)
        assert run("train", "tagger", *arguments).code not in (0, 2)
    assert len(done) == batches


TRAINING = ("--passes", 4, "--batch-size", 8, "--json")


@pytest.mark.parametrize("batches", [1, 5, 12, 19])
def test_an_interrupted_training_goes_on(folder: Path, tmp_path: Path, batches: int, monkeypatch: Any) -> None:
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    fine("train", "tagger", folder / "train.conllu", "-o", whole, *TRAINING)
    interrupted(monkeypatch, batches, folder / "train.conllu", "-o", resumed, *TRAINING)
    assert sorted(os.listdir(tmp_path)) == ["resumed.lols.checkpoint", "whole.lols"]
    made = fine("train", "tagger", folder / "train.conllu", "-o", resumed, *TRAINING, "--resume").json
    assert made["passes"] == 4 and len(made["progressive_loss"]) == 4
    assert weights(resumed) == weights(whole)
    assert sorted(os.listdir(tmp_path)) == ["resumed.lols", "whole.lols"]


@pytest.mark.parametrize("batches", [3, 4, 5, 12, 23])
def test_an_interrupted_training_with_dev_data_goes_on(tmp_path: Path, batches: int, monkeypatch: Any) -> None:
    data, dev = noisy(tmp_path)
    options = (data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o")  # four batches in a pass
    whole, resumed = tmp_path / "whole.lols", tmp_path / "resumed.lols"
    made = fine("train", "tagger", *options, whole, "--json").json
    assert made["best_pass"] < 6
    interrupted(monkeypatch, batches, *options, resumed)
    assert not resumed.exists()
    again = fine("train", "tagger", *options, resumed, "--json", "--resume").json
    assert weights(resumed) == weights(whole)
    assert [again[k] for k in ("dev", "best_pass", "passes")] == [made[k] for k in ("dev", "best_pass", "passes")]
    interrupted(monkeypatch, batches, *options, resumed)
    assert "best on the dev file" in fine("train", "tagger", *options, resumed, "--resume").out.decode()
    assert sorted(os.listdir(tmp_path)) == ["noisy-dev.conllu", "noisy.conllu", "resumed.lols", "whole.lols"]


def test_the_best_pass_may_be_newer_than_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, dev = noisy(tmp_path)
    options = (data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o")
    whole, resumed, checkpoint = (tmp_path / name for name in ("whole.lols", "m.lols", "m.lols.checkpoint"))
    fine("train", "tagger", *options, whole, "--json")
    interrupted(monkeypatch, 5, *options, resumed)
    old = checkpoint.read_bytes()
    interrupted(monkeypatch, 21, *options, resumed)
    checkpoint.write_bytes(old)
    fine("train", "tagger", *options, resumed, "--json", "--resume")
    assert weights(resumed) == weights(whole)


@pytest.mark.parametrize("history", [None, 3, ["?"], [{"pass": 1}]], ids=["none", "a number", "words", "no accuracy"])
def test_what_was_best_so_far_may_be_damaged(tmp_path: Path, history: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data, dev = noisy(tmp_path)
    options = (data, "--dev", dev, "--passes", 6, "--batch-size", 8, "-o", tmp_path / "m.lols")
    interrupted(monkeypatch, 9, *options)
    kept = tmp_path / "m.lols.checkpoint.best"
    header, tensors = read_tensors(kept, "model")
    header["task"]["history"] = history
    write_tensors(kept, header.pop("kind"), header, tensors)
    mistake("train", "tagger", *options, "--resume", says=str(kept))


def test_resuming_with_other_options_is_a_mistake(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    model = tmp_path / "m.lols"
    interrupted(monkeypatch, 3, folder / "train.conllu", "-o", model, *TRAINING)
    says = "m.lols.checkpoint: made with another seed; resume with the same data and options, or delete it"
    again = ("-o", model, *TRAINING, "--resume")
    mistake("train", "tagger", folder / "train.conllu", *again, "--seed", 1, says=says)
    mistake("train", "tagger", folder / "test.conllu", *again, says="made with another data")
    assert os.listdir(tmp_path) == ["m.lols.checkpoint"]


PROGRAM = """
import sys
from lols.training import trainer
trainer.Trainer.fit.__kwdefaults__["checkpoint_every"] = 0.0
from lols.cli import main
main()
"""


@pytest.mark.slow
def test_a_training_that_was_killed_goes_on(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "big.conllu").write_text(conllu(*sentences(3000, seed=3, noise=0.2)))
    arguments = ["train", "tagger", str(tmp_path / "big.conllu"), "--passes", "3", "--batch-size", "8", "--json", "-o"]
    model, checkpoint = tmp_path / "killed.lols", tmp_path / "killed.lols.checkpoint"
    started = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments, str(model)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 180
        while not checkpoint.exists() and started.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
    assert checkpoint.exists() and not model.exists()
    fine(*arguments, model, "--resume")
    fine(*arguments, tmp_path / "whole.lols")
    assert weights(model) == weights(tmp_path / "whole.lols")


# --- mistakes ---------------------------------------------------------------------------------------------------------

WORD_ROW = "1\tdog\t_\tNOUN\t_\t_\t0\t_\t_\t_\n"


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (WORD_ROW + "2\tbarks\n", [], "bad.conllu, line 2: 2 columns, but CoNLL-U has 10; separate"),
        (WORD_ROW.replace("dog", ""), [], "bad.conllu, line 1: the word in column 2 is empty; write it"),
        (b"1\tcaf\xe9" + WORD_ROW[5:].encode(), [], "bad.conllu, line 1: byte 6 (0xe9) is not UTF-8; convert"),
        (WORD_ROW + "\n# nothing\n\n" + WORD_ROW, [], "bad.conllu, line 3: a sentence without any word begins here; "),
        ("", [], "bad.conllu: there is no token in it; give"),
        (WORD_ROW, ["--column", "pos"], "bad.conllu: there is no column 'pos'; ask for id, form"),
        (WORD_ROW, ["--column", "11"], "bad.conllu, line 1: there is no column 11, there are 10 columns; ask for"),
        (WORD_ROW, ["--word", "token"], "bad.conllu: there is no column 'token'; ask for id, form"),
        (WORD_ROW, ["--use", "pos"], "bad.conllu: there is no column 'pos'; ask for id, form"),
        (WORD_ROW, ["--column", "xpos"], "bad.conllu, line 1: there are no labels in column 'xpos'; name another"),
        (WORD_ROW, ["--column", "feats:Case"], "bad.conllu, line 1: there are no labels in column 'feats:Case'; na"),
        (WORD_ROW, [], "there is only one label, ['NOUN']: nothing can be learned; check the column"),
        (WORD_ROW + WORD_ROW.replace("NOUN", ""), [], "bad.conllu, line 2: the label in column 'upos' is empty; fill"),
        (WORD_ROW, ["--format", "xml"], "bad.conllu: there is no format 'xml'; use one of conllu, conllx, colu"),
        (WORD_ROW, ["--header"], "bad.conllu: CoNLL-U has no header; leave it out"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_learned_from(content: Any, options: list[str], says: str, tmp_path: Path) -> None:
    path, model = tmp_path / "bad.conllu", tmp_path / "m.lols"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    model.write_bytes(b"the old model")
    mistake("train", "tagger", path, "-o", model, *options, says=says)
    assert model.read_bytes() == b"the old model" and sorted(os.listdir(tmp_path)) == ["bad.conllu", "m.lols"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--dev", "nothing.conllu"], "nothing.conllu: there is no such file; correct the name"),
        (["--templates", "nothing"], "nothing: cannot be read"),
        (["--template", "sufix3"], "template 'sufix3': there is no attribute or column 'sufix3'; columns: word"),
        (["--clusters", "nothing"], "nothing: cannot be read"),
        (["--scheme", "bilu"], "unknown scheme 'bilu': choose"),
        (["--loss", "f1"], "loss 'f1' needs span labels such as B-NP and I-NP; these are plain tags"),
        (["--algorithm", "x"], "unknown algorithm 'x': choose one of"),
        (["--learner", "x"], "unknown learner 'x': choose one of"),
        (["--reference", "x"], "unknown reference 'x': choose one of"),
        (["--passes", "0"], "passes is 0; it must be at least 1"),
        (["--batch-size", "0"], "batch_size is 0; it must be at least 1"),
        (["--threads", "0"], "threads is 0; it must be at least 1"),
        (["--rate", "-1"], "the learning rate is -1.0; it must be positive"),
        (["--beta", "x"], "cannot read beta 'x'"),
    ],
)
def test_options_that_make_no_sense(
    options: list[str], says: str, folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    mistake("train", "tagger", folder / "train.conllu", "-o", "m.lols", *options, "--json", says=says)
    assert os.listdir(tmp_path) == []


def test_models_that_cannot_be_written_are_refused_at_once(folder: Path, tmp_path: Path) -> None:
    data = folder / "train.conllu"
    for output, says in (
        (tmp_path, f"{tmp_path}: is a folder; name a file in it with -o"),
        (tmp_path / "a" / "m.lols", f"{tmp_path / 'a' / 'm.lols'}: there is no folder {tmp_path / 'a'}; make it first"),
    ):
        mistake("train", "tagger", data, "-o", output, says=says)
    mistake("train", "tagger", tmp_path / "no.conllu", "-o", tmp_path / "m", says="no.conllu: there is no such file")
    mistake("train", "tagger", tmp_path, "-o", tmp_path / "m", says="is a folder; give a file in it")
    mistake("train", "tagger", data, tmp_path / "no.conllu", "-o", tmp_path / "m", says="no.conllu: there is no such")
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_too_long_for_a_model(folder: Path, tmp_path: Path) -> None:
    mistake("train", "tagger", folder / "train.conllu", "-o", tmp_path / ("m" * 300), says="cannot be written")


def test_a_dev_file_without_labels(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "dev.conllu").write_text(conllu(UNSEEN, [["_"] * len(s) for s in UNSEEN]))
    says = (
        "dev.conllu, line 4: there are no labels in column 'upos'; name another with --column, or give a labelled file"
    )
    data = (folder / "train.conllu", "--dev", tmp_path / "dev.conllu", "-o", tmp_path / "m.lols")
    mistake("train", "tagger", *data, says=says)


def test_standard_input_needs_named_columns(folder: Path, tmp_path: Path) -> None:
    text = (folder / "train.conllu").read_bytes()
    mistake("train", "tagger", "-", "-o", tmp_path / "m.lols", stdin=text, says="standard input: name the columns with")
    options = ("--column", "upos", "--use", "none", "--passes", 2, "--json")
    fine("train", "tagger", "-", "-o", tmp_path / "m.lols", *options, stdin=text)
    fine("train", "tagger", folder / "train.conllu", "-o", tmp_path / "n.lols", *options)
    assert weights(tmp_path / "m.lols") == weights(tmp_path / "n.lols")


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (WORD_ROW + "2\tbarks\n", [], "bad.conllu, line 2: 2 columns, but CoNLL-U has 10; separate"),
        (b"1\tcaf\xe9" + WORD_ROW[5:].encode(), [], "bad.conllu, line 1: byte 6 (0xe9) is not UTF-8; convert"),
        (WORD_ROW + "\n# nothing\n\n" + WORD_ROW, [], "bad.conllu, line 3: a sentence without any word begins here; "),
        ("", [], "bad.conllu: there is no token in it; give"),
        (WORD_ROW, ["--word", "token"], "bad.conllu: there is no column 'token'; ask for"),
        (WORD_ROW, ["--column", "pos"], "bad.conllu: there is no column 'pos'; ask for"),
        (WORD_ROW, ["--use", "pos"], "bad.conllu: there is no column 'pos'; ask for"),
        (None, [], "bad.conllu: there is no such file; correct the name"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_tagged(content: Any, options: list[str], says: str, pos: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "bad.conllu", tmp_path / "out.conllu"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    out.write_bytes(b"the old output")
    mistake("predict", pos, path, "-o", out, *options, says=says)
    assert out.read_bytes() == b"the old output"
    mistake("predict", pos, path, *options, says=says)
    mistake("evaluate", pos, path, *options, says=says)
    assert set(os.listdir(tmp_path)) <= {"bad.conllu", "out.conllu"}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_mistake_far_down_leaves_no_half_of_a_file(
    pos: Path, tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tagger_files.tag_pieces.__kwdefaults__, "size", 100)
    text = conllu(UNSEEN, UNSEEN_GOLD)
    (tmp_path / "bad.conllu").write_text(text + "1\tdog\n")
    line = text.count("\n") + 1
    for out in ("new.conllu", "old.conllu"):
        (tmp_path / "old.conllu").write_text("old")
        mistake("predict", pos, tmp_path / "bad.conllu", "-o", tmp_path / out, "--threads", threads,
                says=f"bad.conllu, line {line}: 2 columns, but CoNLL-U has 10")  # fmt: skip
        assert (tmp_path / "old.conllu").read_text() == "old"
        assert sorted(os.listdir(tmp_path)) == ["bad.conllu", "old.conllu"]


def test_outputs_that_cannot_be_written(pos: Path, folder: Path, tmp_path: Path) -> None:
    data = folder / "test.conllu"
    mistake("predict", pos, data, "-o", tmp_path, says=f"{tmp_path}: cannot be written; name a file in a folder that")
    mistake("predict", pos, data, "-o", tmp_path / "a" / "b", says="cannot be written; name a file in a folder that is")
    mistake("predict", pos, data, "--json", says="--json and the predictions cannot both go to standard output: name a")
    assert os.listdir(tmp_path) == []
    fine("predict", pos, data, "-o", "/dev/null")


@pytest.mark.parametrize("output", ["o" * 300, "/dev/full"], ids=["a name too long", "a full device"])
def test_other_outputs_that_cannot_be_written(pos: Path, folder: Path, tmp_path: Path, output: str) -> None:
    mistake("predict", pos, folder / "test.conllu", "-o", tmp_path / output, says="cannot be written")


def test_a_folder_that_may_not_be_written(pos: Path, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    import tempfile

    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", forbidden)
    mistake("predict", pos, folder / "test.conllu", "-o", tmp_path / "out", says="cannot be written: Permission denied")


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_models_that_cannot_be_read(command: str, folder: Path, tmp_path: Path) -> None:
    mistake(command, tmp_path / "no.lols", folder / "test.conllu", says="no.lols: there is no such file")
    (tmp_path / "bad.lols").write_bytes(b"not a model")
    mistake(command, tmp_path / "bad.lols", folder / "test.conllu", says="bad.lols: not a readable lols file")


def test_labels_that_training_never_showed(pos: Path, tmp_path: Path) -> None:
    gold = [list(t) for t in UNSEEN_GOLD]
    gold[2][0] = "INTJ"
    (tmp_path / "test.conllu").write_text(text := conllu(UNSEEN, gold))
    line = next(k for k, row in enumerate(text.split("\n"), 1) if "\tINTJ\t" in row)
    says = f"test.conllu, line {line}: label 'INTJ' was never seen in training; name the right column with --column, or"
    mistake("evaluate", pos, tmp_path / "test.conllu", says=says)
    made = fine("evaluate", pos, tmp_path / "test.conllu", "--unseen", "wrong", "--json").json
    tokens = sum(map(len, UNSEEN))
    assert made["unseen_labels"] == ["INTJ"] and made["accuracy"] == pytest.approx((tokens - 1) / tokens)
    assert "INTJ" in fine("evaluate", pos, tmp_path / "test.conllu", "--unseen", "wrong").out.decode()
    mistake("evaluate", pos, tmp_path / "test.conllu", "--unseen", "x", says="--unseen is 'x': choose error or wrong")


def test_a_file_without_labels_cannot_be_evaluated(pos: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.conllu").write_text(conllu(UNSEEN, [["_"] * len(s) for s in UNSEEN]))
    says = "bare.conllu, line 4: there are no labels in column 'upos'; name another with --column, or give a labelled"
    mistake("evaluate", pos, tmp_path / "bare.conllu", says=says)


# --- for real ---------------------------------------------------------------------------------------------------------


def test_the_installed_command(pos: Path, folder: Path, tmp_path: Path) -> None:
    def command(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
        code = "from lols.cli import main; main()"
        return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, **options)

    text = (folder / "test.conllu").read_bytes()
    piped = command("predict", pos, "-", input=text)
    assert (piped.returncode, piped.stderr) == (0, b"")
    assert piped.stdout == fine("predict", pos, folder / "test.conllu").out
    wrong = command("predict", pos, tmp_path / "nothing", "-o", tmp_path / "out")
    assert wrong.returncode == 2 and wrong.stdout == b""
    assert wrong.stderr == f"lols: {tmp_path / 'nothing'}: there is no such file; correct the name\n".encode()
    assert os.listdir(tmp_path) == []
    missing = command("train", "tagger", folder / "train.conllu")
    assert missing.returncode == 2 and b"--output" in missing.stderr


def test_a_reader_that_leaves_early_is_no_mistake(pos: Path, tmp_path: Path) -> None:
    (tmp_path / "long.conllu").write_text(conllu(UNSEEN, UNSEEN_GOLD) * 200)
    code = "from lols.cli import main; main()"
    started = subprocess.Popen(
        [sys.executable, "-c", code, "predict", str(pos), str(tmp_path / "long.conllu")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert started.stdout is not None and started.stderr is not None
    assert started.stdout.read(10) == b"# sent_id "
    started.stdout.close()
    assert started.stderr.read() == b"" and started.wait() == 0


def test_predictions_are_those_of_the_numbers_in_the_file(pos: Path, folder: Path) -> None:
    tagger = lols.load(pos)
    found = tagger_files.read_tagged([folder / "test.conllu"], tagger.columns_)
    numbers = tagger.predict_columns(found.corpus)
    assert [tagger.classes_[n] for n in numbers] == [t for s in tagger.predict(UNSEEN) for t in s]
    assert np.array_equal(tagger.task_.number(found.names)[found.numbers], numbers)
