"""What `make dist` tries: an example of a page as a program of its own, in another folder."""

from __future__ import annotations

import sys

import pytest

from scripts.try_wheel import run, try_example
from tests.docs.blocks import Block, python_blocks


def test_an_example_must_print_what_its_page_says(tmp_path):
    try_example(sys.executable, Block(7, "print(1 + 1)\n", "2\n"), tmp_path)
    with pytest.raises(SystemExit, match="the example of line 7 printed:\n2\nin place of:\n3"):
        try_example(sys.executable, Block(7, "print(1 + 1)\n", "3\n"), tmp_path)
    with pytest.raises(SystemExit, match="exit code 1"):
        try_example(sys.executable, Block(7, "raise ValueError\n", ""), tmp_path)


def test_programs_see_nothing_of_this_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("LOLS_CHECK", "0")
    names = "PYTHONPATH", "LOLS_CHECK", "XDG_CACHE_HOME"
    printed = run(sys.executable, "-c", f"import os; print(*map(os.environ.get, {names}))", folder=tmp_path)
    assert printed.split() == ["None", "None", str(tmp_path / "cache")]


def test_blocks_know_their_lines_and_what_they_print(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n```python\nprint(1)\n# > 1\n```\n\n```python\nprint(2)\n```\n\n```text\n2\n```\n")
    assert list(python_blocks(page)) == [Block(4, "print(1)\n# > 1\n", "1\n"), Block(9, "print(2)\n", "2\n")]
