"""The page on neural policies: its examples run, and the network of one's own fits 25 lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import run_blocks

PAGE = Path(__file__).parents[2] / "docs" / "neural.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(PAGE)


def test_a_network_of_ones_own_is_short() -> None:
    block = re.search(r"```python\n([^`]*class Words.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    lines = [line for line in block[1].splitlines() if line]
    assert len(lines) <= 30 and len([line for line in lines if not line.startswith(("import", "from"))]) <= 25
