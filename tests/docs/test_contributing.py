"""The worked examples of CONTRIBUTING.md run, and the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.blocks import run_blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"


def test_the_worked_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(PAGE)


def test_the_files_that_it_names_exist():
    paths = re.findall(r"`((?:src|tests|docs)/[\w/.-]+)`", PAGE.read_text("utf-8"))
    assert len(paths) > 20
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def test_every_folder_of_the_package_is_in_the_layout():
    layout = PAGE.read_text("utf-8").partition("## Layout")[2].partition("\n## ")[0]
    folders = {path.parent.name for path in (ROOT / "src" / "lols").glob("[a-z]*/*.py")}  # others have only caches
    assert folders - set(re.findall(r"`(\w+)/`", layout)) == set()
