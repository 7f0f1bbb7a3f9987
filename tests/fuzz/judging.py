"""What an entrance may do with a mutated input: take it, or refuse it in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lols.errors import LolsError
from tests.cli.calling import run

LONGEST = 1500  # characters of a message: the paths in it, the names it lists, pieces of the input


class Wrong(Exception):
    """The library did something else than to succeed or to refuse an input in one line."""


class Lost(Exception):
    """What was killed, or shared by threads, has lost something."""


def check_line(line: str, data: bytes) -> None:
    """Check an error message: one line, and not the whole input in it."""
    if "\n" in line or "\r" in line or not line.strip():
        raise Wrong(f"a message of {line.count(chr(10)) + 1} lines: {line[:500]!r}")
    whole = data.decode("utf-8", "replace").strip()
    if len(line) > LONGEST or (len(whole) > 100 and whole in line):
        raise Wrong(f"a message of {len(line)} characters: {line[:500]!r}")


def called(what: Callable[[], Any], data: bytes = b"") -> bool:
    """Whether a call took its input; otherwise it must have refused it in one line."""
    try:
        what()
    except LolsError as error:
        check_line(str(error), data)
        return False
    return True


def commanded(*arguments: Any, data: bytes = b"") -> bool:
    """The same for a command, which may say more on standard error, each time in a line of its own."""
    ran = run(*arguments)
    if ran.code not in (0, 2) or "Traceback" in ran.err:
        raise Wrong(f"exit code {ran.code}: {ran.err[:500]!r}")
    if ran.code == 2:
        *said, last = ran.err.removesuffix("\n").split("\n")
        if not all(line.startswith("lols: ") for line in (*said, last)):
            raise Wrong(f"standard error is not of single lines: {ran.err[:500]!r}")
        check_line(last, data)
    return ran.code == 0
