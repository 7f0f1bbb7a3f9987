"""Run the Python blocks of a page, in order and with shared names, and compare what they print with the page."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# A Python block, and the text block after it, if there is one: the expected output. So are its lines "# > ...", and
# "# ~ ..." if numbers may be others.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


NUMBER = re.compile(r"[-+]?\d[\d.,]*\d|\d")


class Block(NamedTuple):
    """A Python block of a page: the line of its first line, its code, and what the page says it prints."""

    line: int
    code: str
    prints: str
    roughly: bool = False

    def is_printed_by(self, printed: str) -> bool:
        """Whether this is what the page says."""
        if not self.roughly:
            return printed == self.prints
        return NUMBER.sub("#", printed) == NUMBER.sub("#", self.prints)


def python_blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        said = re.findall(r"^# ([>~]) ?(.*)$", block[1], re.MULTILINE)
        lines, roughly = "".join(f"{line}\n" for _, line in said), any(mark == "~" for mark, _ in said)
        yield Block(text.count("\n", 0, block.start(1)) + 1, block[1], block[2] or lines, roughly)


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
        assert block.is_printed_by(said), f"{page.name}, line {block.line}: prints something else:\n{said}"
    return names
