"""Taggers on the command line: mistakes are one line; and the command as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.io import whole_file
from lols.tasks.tagging import files as tagger_files
from tests.cli.calling import fine, mistake
from tests.tasks.tagging.tagger_data import conllu, weights
from tests.tasks.tagging.tagger_files import UNSEEN, UNSEEN_GOLD

WORD_ROW = "1\tdog\t_\tNOUN\t_\t_\t0\t_\t_\t_\n"
# Files that no command reads, with options and what is said.
UNREADABLE: list[tuple[Any, list[str], str]] = [
    (WORD_ROW + "2\tbarks\n", [], "bad.conllu, line 2: 2 columns, but CoNLL-U has 10; separate"),
    (b"1\tcaf\xe9" + WORD_ROW[5:].encode(), [], "bad.conllu, line 1: byte 6 (0xe9) is not UTF-8; convert"),
    (WORD_ROW + "\n# nothing\n\n" + WORD_ROW, [], "bad.conllu, line 3: a sentence without any word begins here; "),
    ("", [], "bad.conllu: there is no token in it; give"),
]


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        *UNREADABLE,
        (WORD_ROW.replace("dog", ""), [], "bad.conllu, line 1: the word in column 2 is empty; write it"),
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
    ("content", "options", "says"),
    [
        ("A dog barks.\n", [], "line 1: 3 columns, and 'barks.' is the only label; if this is text, write one word"),
        ("A dog barks.\n", ["--format", "columns"], "there is only one label, ['barks.']"),
        ("dog\nbarks\n", [], "text.txt, line 1: one column, and so no labels; write one word and its label on each"),
    ],
)
def test_text_is_not_labelled(content: str, options: list[str], says: str, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(content)
    mistake("train", "tagger", path, "-o", tmp_path / "m.lols", *options, says=says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--dev", "nothing.conllu"], "nothing.conllu: there is no such file; correct the name"),
        (["--templates", "nothing"], "nothing: there is no such file"),
        (["--template", "sufix3"], "template 'sufix3': there is no attribute or column 'sufix3'; columns: word"),
        (["--clusters", "nothing"], "nothing: there is no such file"),
        (["--scheme", "bilu"], "unknown scheme 'bilu': choose"),
        (["--loss", "spans"], "there is no loss 'spans' any more: it found fewer rare spans; use f1 or hamming"),
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
        (tmp_path, f"{tmp_path}: is a folder; name a file in it"),
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
        *UNREADABLE,
        (WORD_ROW, ["--word", "token"], "bad.conllu: there is no column 'token'; ask for"),
        (WORD_ROW, ["--column", "pos"], "bad.conllu: there is no column 'pos'; ask for"),
        (WORD_ROW, ["--use", "pos"], "--use pos has no effect: the model uses words only"),
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
    monkeypatch.setitem(tagger_files.TaggedFormat.pieces.__kwdefaults__, "size", 100)
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
    mistake("predict", pos, data, "-o", tmp_path, says=f"{tmp_path}: cannot be written; name a file in an existing")
    mistake("predict", pos, data, "-o", tmp_path / "a" / "b", says="cannot be written; name a file in an existing")
    mistake("predict", pos, data, "--json", says="--json and the predictions cannot both go to standard output: name a")
    assert os.listdir(tmp_path) == []
    fine("predict", pos, data, "-o", "/dev/null")


@pytest.mark.parametrize("output", ["o" * 300, "/dev/full"], ids=["a name too long", "a full device"])
def test_other_outputs_that_cannot_be_written(pos: Path, folder: Path, tmp_path: Path, output: str) -> None:
    mistake("predict", pos, folder / "test.conllu", "-o", tmp_path / output, says="cannot be written")


def test_a_folder_that_may_not_be_written(pos: Path, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(whole_file, "_temporary", forbidden)
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
    found = tagger_files.TaggedFormat(tagger.columns_).read([folder / "test.conllu"])
    numbers = tagger.predict_columns(found.corpus)
    assert [tagger.classes_[n] for n in numbers] == [t for s in tagger.predict(UNSEEN) for t in s]
    assert np.array_equal(tagger.task_.number(found.names)[found.numbers], numbers)


def test_text_is_not_taken_for_tokens(pos: Path, chunks: Path, folder: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "raw.txt", tmp_path / "out"
    path.write_text("the dog sees a cat\n")
    wide = "5 columns, but the tagger was trained on 3"
    for model, why in ((pos, "5 columns, and none of them is 'upos'"), (chunks, wide)):
        mistake("predict", model, path, "-o", out, says=f"raw.txt, line 1: {why}")
    for format, why in (("words", "5 words instead of one"), ("tsv", "'the dog sees a cat' has spaces in it")):
        mistake("predict", pos, path, "-o", out, "--format", format, says=f"raw.txt, line 1: {why}; write one")
    assert not out.exists()
    said = fine("predict", pos, path, "--format", "columns").out.decode()  # asked for: the first column is the word
    assert said.startswith("the dog sees a cat ")
    path.write_text("the\ndog\n\nAnn\n")
    wanted = [tag for tags in lols.load(pos).predict([["the", "dog"], ["Ann"]]) for tag in tags]
    for options in ([], ["--format", "words"]):
        said = fine("predict", pos, path, *options).out.decode()
        assert said == "the {}\ndog {}\n\nAnn {}\n".format(*wanted)


def test_the_width_of_a_training_file_is_remembered(folder: Path, tmp_path: Path) -> None:
    model, path = tmp_path / "m.lols", tmp_path / "in.txt"
    wide = "".join(f"{line} x\n" if line else "\n" for line in (folder / "chunks.txt").read_text().split("\n"))
    path.write_text(wide)
    fine("train", "tagger", path, "-o", model, "--column", "3", "--passes", 1)
    assert lols.load(model).columns_.width == 4
    fine("predict", model, path)
    path.write_text("the dog sees a cat\n")
    mistake("predict", model, path, says="in.txt, line 1: 5 columns, but the tagger was trained on 4; if this is text")


def test_words_with_spaces_are_fine_between_tabs(pos: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.conllu"
    path.write_text(WORD_ROW.replace("dog", "New York"))
    assert b"1\tNew York\t_\t" in fine("predict", pos, path).out
