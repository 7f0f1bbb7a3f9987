"""The installed command, called in this process."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import Any, NamedTuple

import pytest

from lols.cli import main


class Ran(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


def run(*arguments: Any, stdin: bytes = b"") -> Ran:
    """What the installed command does, in this process."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)
        for errors in ("strict", "backslashreplace")  # as Python opens them
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["lols", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as left:
            main()
            raise SystemExit(0)
    return Ran(int(left.value.code or 0), out.buffer.getvalue(), err.buffer.getvalue().decode())


PROGRESS = re.compile(r"lols: (training|calibrating|certifying)(,| goes on).*\n")


def fine(*arguments: Any, stdin: bytes = b"") -> Ran:
    """No complaints; how far it is may have been said."""
    made = run(*arguments, stdin=stdin)
    assert made.code == 0 and PROGRESS.sub("", made.err) == "", made
    return made


def mistake(*arguments: Any, says: str, stdin: bytes = b"") -> None:
    """Exit code 2, and one line that says what is wrong."""
    made = run(*arguments, stdin=stdin)
    assert made.code == 2 and (made.out == b"" or arguments[0] == "train"), made
    assert made.err.startswith("lols: ") and made.err.count("\n") == 1 and made.err.endswith("\n"), made.err
    assert says in made.err
