"""The user's line behind an error: the innermost place of a traceback that is not inside a library."""

from __future__ import annotations

import os
import sysconfig
import traceback
from functools import cache
from pathlib import Path
from types import CodeType

__all__ = ["is_users", "place_of", "said"]


@cache
def is_users(filename: str) -> bool:
    """Whether a file is the user's own, rather than of this library, an installed one, or Python itself.

    >>> is_users("/home/me/spelling.py"), is_users(__file__)
    (True, False)
    """
    if filename.startswith("<frozen"):
        return False
    path = os.path.abspath(filename)
    paths = sysconfig.get_paths()
    if any(path.startswith(paths[name] + os.sep) for name in ("purelib", "platlib")):
        return False
    if "site-packages" in path or "dist-packages" in path:
        return False
    library = str(Path(__file__).parent.parent)
    return not path.startswith((library + os.sep, paths["stdlib"] + os.sep))


def place_of(error: BaseException, code: CodeType | None = None) -> str:
    """File and line of an error in the user's code, `" (file.py:12)"`, or nothing if it did not come from there.

    With the `code` of the function that was called, its own line is the answer where no other is the user's: functions
    of this library's own spaces are found that way, too.
    """
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [pair for pair in frames if is_users(pair[0].co_filename)]
    if code is not None:
        inside = [k for k, (made, _) in enumerate(frames) if made is code]
        own = [pair for pair in frames[inside[0] :] if is_users(pair[0].co_filename)] if inside else []
        own = own or [frames[k] for k in inside[-1:]]
    if not own:
        return ""
    made, line = own[-1]
    return f" ({made.co_filename}:{line})"


def said(error: BaseException) -> str:
    """An error as one line: its type, and what it says.

    >>> said(KeyError("ends"))
    "KeyError: 'ends'"
    """
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
