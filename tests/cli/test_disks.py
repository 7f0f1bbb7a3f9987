"""Disks that are full or read-only, outputs that take nothing: one line, exit code 2, and nothing lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lols import LolsError, Tagger
from lols.io import model_file, whole_file
from lols.training import trainer
from lols.training.learning import Learning
from tests.cli.calling import fine, mistake
from tests.tasks.tagging.tagger_data import conllu, sentences

FULL = os.strerror(errno.ENOSPC)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("disks") / "train.conllu"
    path.write_text(conllu(*sentences(12)))
    return path


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, FULL)


def test_a_folder_where_nothing_can_be_written_is_found_before_training(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def read_only(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *more, **options)

    monkeypatch.setattr(whole_file.os, "open", read_only)
    monkeypatch.setattr(Learning, "take", pytest.fail)
    says = "m.lols: cannot be written: Read-only file system"
    mistake("train", "tagger", data, "-o", tmp_path / "m.lols", says=says)
    words, tags = sentences(12)
    with pytest.raises(LolsError, match=r"run.checkpoint: cannot be written: Read-only"):
        Tagger(passes=1).fit_columns(*columns(words, tags), checkpoint=tmp_path / "run.checkpoint")


def columns(words: list[list[str]], tags: list[list[str]]) -> tuple[Any, list[str]]:
    return Tagger()._corpus(words), [tag for sentence in tags for tag in sentence]


def test_a_disk_that_is_full_in_the_end_loses_no_checkpoint(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    model = tmp_path / "m.lols"
    arguments = ("train", "tagger", data, "--passes", 2, "--batch-size", 4, "--json", "-o")
    fine(*arguments, tmp_path / "whole.lols")
    monkeypatch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
    write, sizes = model_file.write_whole, []

    def small(path: Any, content: bytes) -> None:
        sizes.append(len(content))
        with monkeypatch.context() as patch:
            if str(path).endswith("m.lols") or len(sizes) == 3:
                patch.setattr(whole_file.os, "fsync", full)
            write(path, content)

    monkeypatch.setattr(model_file, "write_whole", small)
    mistake(*arguments, model, says=f"m.lols.checkpoint: cannot be written: {FULL}")
    mistake(*arguments, model, "--resume", says=f"m.lols: cannot be written: {FULL}")
    assert sorted(os.listdir(tmp_path)) == ["m.lols.checkpoint", "whole.lols"]
    monkeypatch.undo()
    fine(*arguments, model, "--resume")
    assert model.read_bytes() == (tmp_path / "whole.lols").read_bytes()


def test_predictions_on_a_full_disk(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, out = tmp_path / "m.lols", tmp_path / "out.conllu"
    fine("train", "tagger", data, "--passes", 1, "--json", "-o", model)
    out.write_text("old")
    mistake("predict", model, data, "-o", "/dev/full", says=f"/dev/full: cannot be written: {FULL}")
    monkeypatch.setattr(whole_file.os, "fsync", full)
    mistake("predict", model, data, "-o", out, says=f"out.conllu: cannot be written: {FULL}")
    assert out.read_text() == "old" and sorted(os.listdir(tmp_path)) == ["m.lols", "out.conllu"]


@pytest.mark.parametrize("arguments", [["--version"], ["train", "--help"], ["predict", "m.lols", "train.conllu"]])
def test_a_standard_output_that_is_full(data: Path, arguments: list[str]) -> None:
    model = data.parent / "m.lols"
    if not model.exists():
        fine("train", "tagger", data, "--passes", 1, "--json", "-o", model)
    with open("/dev/full", "wb") as nowhere:
        command = [sys.executable, "-m", "lols", *arguments]
        ran = subprocess.run(
            command, stdout=nowhere, stderr=subprocess.PIPE, text=True, cwd=data.parent, check=False, timeout=120
        )
    assert (ran.returncode, ran.stderr) == (2, f"lols: standard output: {FULL}\n")


LONG = "9" * 400


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--passes", LONG], "passes is a number of about 400 digits; it must be at most 1,000,000"),
        (["--threads", LONG], "threads is a number of about 400 digits; it must be at most 1,024"),
        (["--seed", LONG], "seed is a number of about 400 digits"),
        (["--prune", LONG, "--algorithm", "lols"], "prune is a number of about 400 digits"),
        (["--patience", LONG, "--dev", "DATA"], "patience is a number of about 400 digits"),
        (["--template", f"word[{LONG * 12}]"], "is not an atom"),
        (["--column", LONG * 12], "there is no column 99999999999999999999, there are 10 columns"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_whole_numbers_of_many_digits_are_mistakes(data: Path, tmp_path: Path, arguments: list[str], says: str) -> None:
    given = [str(data) if each == "DATA" else each for each in arguments]
    mistake("train", "tagger", data, "-o", tmp_path / "m.lols", *given, says=says)
    assert os.listdir(tmp_path) == []
