"""Run the Python blocks of a page, in order and with shared names, and compare what they print with the page."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# A Python block, and the text block after it, if there is one: the expected output. So are its lines "# > ...".
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A Python block of a page: the line of its first line, its code, and what the page says it prints."""

    line: int
    code: str
    prints: str


def python_blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        said = "".join(f"{line}\n" for line in re.findall(r"^# > ?(.*)$", block[1], re.MULTILINE))
        yield Block(text.count("\n", 0, block.start(1)) + 1, block[1], block[2] or said)


def run_blocks(page: Path, *, alone: bool = False) -> dict[str, object]:
    """Run all blocks of a page, each of them `alone` or with the names of those before; the names that they define."""
    names: dict[str, object] = {}
    for block in python_blocks(page):
        if alone or not names:
            names = {"__name__": "__main__"}  # as a script, so that compiled code can be cached
        printed = io.StringIO()
        above = "\n" * (block.line - 1)  # so that errors name the line of the page
        code = compile(above + block.code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        said = printed.getvalue()
        assert said == block.prints, f"{page.name}, line {block.line}: prints something else:\n{said}"
    return names
