"""Standard streams that are closed, and those that cannot encode what is printed: one line, or other characters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lols
from lols.cli.base import SPELLED, spelled
from tests.cli.calling import run
from tests.cli.option_files import write_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_files(tmp_path_factory.mktemp("streams"))
    for name in ("tagger", "parser", "classifier"):
        data = made / ("data.csv" if name == "classifier" else "data.conllu")
        trained = run("train", name, data, "-o", made / f"{name}.lols", "--passes", 1, "--algorithm", "lols")
        assert trained.code == 0, trained.err
    return made


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("name", ["tagger", "parser", "classifier"])
def test_what_cannot_be_encoded_is_spelled(folder: Path, name: str, encoding: str, tmp_path: Path) -> None:
    model, data = folder / f"{name}.lols", folder / ("data.csv" if name == "classifier" else "data.conllu")
    page = ["--html", tmp_path / "page.html"] if name != "classifier" else []
    for arguments in (
        ["inspect", model],
        ["certify", model, data],
        ["evaluate", model, data],
        ["explain", model, data, *page],
        ["train", name, data, "-o", tmp_path / "m.lols", "--passes", "1"],
    ):
        ran = run(*arguments, encoding=encoding)
        assert ran.code == 0 and ran.out.decode(encoding), ran.err


def test_algorithms_are_explained_in_any_encoding() -> None:
    for encoding in ("cp1252", "ascii"):
        assert "the reference with probability beta," in run("explain", "lols", encoding=encoding).out.decode(encoding)
    assert "the reference with probability β," in run("explain", "lols").out.decode()


def test_every_character_has_a_spelling() -> None:
    assert all(text.isascii() for text in SPELLED.values())
    assert spelled("⣀ β\udcff") == ": beta\\udcff"
    assert run("evaluate", "\udcff", "data").err == "lols: \\udcff: there is no such file\n"


CLOSED = {
    "explain lols >&-": "standard output: Bad file descriptor",
    "predict MODEL DATA >&-": "standard output: Bad file descriptor",
    "predict MODEL - <&-": "standard input: cannot be opened (Bad file descriptor); give a file that can be read",
    "predict MODEL nowhere 2>&-": "",
    "predict MODEL DATA >&- 2>&-": "",
}


@pytest.mark.parametrize("command", CLOSED)
def test_streams_that_are_closed(folder: Path, command: str) -> None:
    typed = command.replace("MODEL", "tagger.lols").replace("DATA", "data.conllu")
    ran = subprocess.run(
        f"'{sys.executable}' -m lols {typed}", shell=True, capture_output=True, text=True, cwd=folder, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (f"lols: {CLOSED[command]}\n" if CLOSED[command] else "")


def test_what_needs_no_stream_does_without(folder: Path) -> None:
    command = f"'{sys.executable}' -m lols predict tagger.lols data.conllu -o out.conllu <&- >&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=folder, check=False).returncode == 0
    assert (folder / "out.conllu").read_bytes().count(b"\n") == (folder / "data.conllu").read_bytes().count(b"\n")


def test_training_in_a_process_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    tagger = lols.Tagger(passes=1).fit([["a", "dog"]] * 4, [["D", "N"]] * 4)
    assert tagger.predict([["a", "dog"]]) == [["D", "N"]]
