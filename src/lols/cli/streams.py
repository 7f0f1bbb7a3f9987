"""The standard streams as the commands want them: all three there, and able to take every character."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
from typing import Any, NoReturn

SPELLING = "lols.spelling"  # the name of the error handler
# What cannot be encoded is written so; in tables, where width matters, a character for a character.
SPELLED = {
    "α": "alpha", "β": "beta", "δ": "delta", "ε": "epsilon", "π": "pi", "Γ": "Gamma", "Π": "Pi", "Σ": "Sigma",
    "→": ">", "↑": "^", "−": "-", "–": "-", "—": "-", "…": ".", "·": ".", "±": "+", "×": "x", "√": "sqrt ",
    "≈": "~", "≥": ">=", "∈": "in", "²": "^2", "✓": "+", "✗": "x", "●": "o", "○": ".", "◐": "o", "◑": "o", "◔": "o",
    "─": "-", "━": "-", "┄": "-", "│": "|", "┃": "|", "└": "`", "├": "|", "█": "#", "╸": "-", "╺": "-",
    "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
BRAILLE, END = "\u2800", "\u28ff"  # the dots of pictures


def spelled(text: str) -> str:
    r"""A text in ASCII.

    >>> spelled("β → 1"), spelled("Müller"), spelled("⠀⣀")
    ('beta > 1', 'M\\xfcller', ' :')
    """
    return "".join(_spelled(character) for character in text)


def _spelled(character: str) -> str:
    if BRAILLE <= character <= END:
        return " " if character == BRAILLE else ":"
    return SPELLED.get(character) or character.encode("ascii", "backslashreplace").decode()


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelled(error.object[error.start : error.end]), error.end


codecs.register_error(SPELLING, _spell)


class Closed(io.RawIOBase):
    """A stream that was closed before the command began: reading and writing fail."""

    def readable(self) -> bool:
        """It can be asked to read."""
        return True

    def writable(self) -> bool:
        """It can be asked to write."""
        return True

    def readinto(self, _buffer: Any) -> NoReturn:
        """Fail."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def write(self, _data: Any) -> NoReturn:
        """Fail."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def prepare_streams() -> None:
    """Replace streams that are closed, and let the others take every character.

    Python has None for a stream that is closed. What would be written to standard error is then lost; the others fail
    when they are used, as those of other programs do. Their numbers are taken, or the next file would have them.
    """
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue
        with contextlib.suppress(OSError):
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(Closed()))
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(Closed(), write_through=True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "replace":
            stream.reconfigure(errors=SPELLING)
