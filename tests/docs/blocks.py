"""Run the Python blocks of a page, in order and with shared names, and compare what they print with the page."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

# A Python block, and the text block after it, if there is one: the expected output. So are its lines "# > ...".
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def run_blocks(page: Path, *, alone: bool = False) -> dict[str, object]:
    """Run all blocks of a page, each of them `alone` or with the names of those before; the names that they define."""
    text = page.read_text("utf-8")
    names: dict[str, object] = {}
    for block in BLOCK.finditer(text):
        if alone or not names:
            names = {"__name__": "__main__"}  # as a script, so that compiled code can be cached
        printed = io.StringIO()
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block[1], str(page), "exec")  # so that errors name the line of the page
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        said = "".join(f"{line}\n" for line in re.findall(r"^# > ?(.*)$", block[1], re.MULTILINE))
        assert printed.getvalue() == (block[2] or said), f"{page.name}, line {line + 1}: prints something else"
    return names
