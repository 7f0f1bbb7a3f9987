"""The errors a user meets: each is one line that names the place and the fix."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

LIBRARY = str(Path(__file__).parent) + os.sep

MOST = 80  # characters of a text in a message
LONGEST = 4000  # characters of a message
OF_FILE = 1200  # the same where what it repeats may be anything that a file holds


def short(text: object, most: int = MOST) -> str:
    """A text of the user's as messages repeat it: its beginning, if it is long.

    >>> short("a" * 100, 10)
    'aaaaaaa...'
    """
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 3] + "..."


def shown(value: object) -> str:
    """The same in quotes: what `repr` gives of the beginning.

    >>> shown("a b"), shown("b" * 100)[-6:]
    ("'a b'", "bb...'")
    """
    if isinstance(value, str):
        return repr(short(value))
    try:
        return short(" ".join(repr(value).split()))
    except Exception:  # whole numbers of thousands of digits have no `repr`, nor do some objects
        return f"a value of type {type(value).__name__}"


def lines_of(error: BaseException) -> list[str]:
    """What an error says, without empty lines; its class if it says nothing.

    >>> lines_of(ValueError("too long\\n\\nsee above\\n")), lines_of(OSError())
    (['too long', 'see above'], ['OSError'])
    """
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


def _without_middle(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 600]} ... {text[-500:]}"


def one_line(error: BaseException) -> str:
    """The type and the message of an error in one line.

    >>> one_line(KeyError("ends"))
    "KeyError: 'ends'"
    """
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class LolsError(ValueError):
    """Base of all errors that are the input's fault rather than the library's.

    The message is never longer than anybody reads: of a longer one, the middle is left out.

    Parameters
    ----------
    message
        One line: the place, what is wrong, and the fix.

    """

    def __init__(self, message: object = ""):
        super().__init__(_without_middle(str(message), LONGEST))


class SpaceError(LolsError):
    """A search space or a reference broke the contract: says which function, which example, which step.

    Parameters
    ----------
    message
        The function, where it was seen, and how to mend it.

    """


class ConfigurationError(LolsError):
    """Options that contradict each other, or that a space cannot honour.

    Parameters
    ----------
    message
        The option, and what to choose in its place.

    """


class ModelFileError(LolsError):
    """A model or checkpoint file that cannot be read: truncated, edited, or of another kind.

    The message is one line, whatever names and texts of the file it repeats.

    Parameters
    ----------
    message
        The file, what is wrong with it, and the fix.

    """

    def __init__(self, message: object = ""):
        super().__init__(_without_middle(" ".join(str(message).splitlines()), OF_FILE))


def warn(note: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this library, however deep inside it this is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARY):
        frame, level = frame.f_back, level + 1
    warnings.warn(note, kind, stacklevel=level)
