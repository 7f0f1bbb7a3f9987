"""A mistake that the input shows is named before a model is loaded, which may take long."""

from __future__ import annotations

from pathlib import Path

import pytest

from lols.errors import LolsError
from lols.io.conll import glance
from tests.cli.calling import run

WORD = "1\tcat\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
EMPTY = "a sentence without any word begins here"


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_the_input_is_looked_at_before_the_model(command: str, tmp_path: Path) -> None:
    model, path = tmp_path / "m.lols", tmp_path / "in.conllu"
    model.write_bytes(b"no model")
    path.write_text(WORD + "# nothing\n\n")
    said = run(command, model, path)
    assert said.code == 2 and f"in.conllu, line 3: {EMPTY}" in said.err
    path.write_text(WORD)
    assert "m.lols" in run(command, model, path).err


def test_only_files_whose_names_say_what_they_are_are_looked_at(tmp_path: Path) -> None:
    for name in ("a.txt", "a.csv", "a"):
        (tmp_path / name).write_text("# nothing\n\n")
        glance(tmp_path / name)
    glance("-")
    glance(tmp_path / "nowhere.conllu")
    with pytest.raises(LolsError, match=EMPTY):
        (tmp_path / "a.conllu").write_text("# nothing\n\n")
        glance(tmp_path / "a.conllu")


def test_a_large_file_is_cut_between_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lols.io.conll.BLOCK", 50)
    path = tmp_path / "a.conllu"
    path.write_text(WORD * 9 + "# nothing\n\n")  # further on than the first piece
    glance(path)
    path.write_text(WORD + "# nothing\n\n" + WORD * 9)
    with pytest.raises(LolsError, match="line 3"):
        glance(path)
