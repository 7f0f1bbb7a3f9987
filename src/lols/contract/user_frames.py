"""The user's line behind an error or a warning: the innermost frame that does not belong to a library."""

from __future__ import annotations

import os
import sysconfig
import traceback
from functools import cache
from types import CodeType

from lols.errors import LIBRARY


@cache
def is_users(filename: str) -> bool:
    """Whether a file is the user's own, rather than part of this library, an installed one, or Python itself.

    >>> is_users("/home/me/spelling.py"), is_users(__file__)
    (True, False)
    """
    if filename.startswith("<frozen"):
        return False
    path = os.path.abspath(filename)
    if "site-packages" in path or "dist-packages" in path:
        return False
    paths = sysconfig.get_paths()
    installed = (paths["purelib"], paths["platlib"], paths["stdlib"])
    return not path.startswith((LIBRARY, *(folder + os.sep for folder in installed)))


def user_line(error: BaseException, code: CodeType | None = None) -> str:
    """File and line of an error in the user's code, `" (file.py:12)"`; empty if the error did not come from there.

    With `code`, only frames from that function's own frame inwards count. If none of them is in a file of the user's,
    the line in the function itself is given, which covers the spaces of this library, too.
    """
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own: list[tuple[CodeType, int]] = []
    if code is not None:
        calls = [k for k, (called, _) in enumerate(frames) if called is code]
        own, frames = [frames[k] for k in calls[-1:]], frames[calls[0] :] if calls else []
    own = [pair for pair in frames if is_users(pair[0].co_filename)] or own
    return f" ({own[-1][0].co_filename}:{own[-1][1]})" if own else ""
