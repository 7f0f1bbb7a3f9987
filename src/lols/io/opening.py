"""Opening files, compressed by gzip or not, and saying in one line what is wrong with one."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from typing import Any

from lols.errors import LolsError

__all__ = ["opened", "reading", "reason"]

GZIP = b"\x1f\x8b"  # how a gzip file begins


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], name: str | None = None) -> Iterator[Any]:
    """The bytes of a file, uncompressed; `-` is standard input. Messages call it `name`, by default its path."""
    name = os.fspath(path) if name is None else name
    with contextlib.ExitStack() as stack:
        try:
            stream: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
            zipped = stream.peek(len(GZIP)).startswith(GZIP)
        except FileNotFoundError:
            raise LolsError(f"{name}: there is no such file; correct the name") from None
        except IsADirectoryError:
            raise LolsError(f"{name}: is a folder; give a file in it") from None
        except (OSError, ValueError) as error:
            raise LolsError(f"{name}: cannot be opened ({reason(error)}); give a file that can be read") from error
        if name.lower().endswith(".gz") and not zipped:
            raise LolsError(f"{name}: is not compressed by gzip, as its name says; rename it")
        yield stack.enter_context(gzip.GzipFile(fileobj=stream)) if zipped else stream


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Say in one line what is wrong with a file that cannot be read."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LolsError(f"{name}: damaged gzip data ({reason(error)}); make or fetch the file again") from error
    except OSError as error:
        raise LolsError(f"{name}: cannot be read ({reason(error)}); give a file that can be read") from error


def reason(error: Exception) -> str:
    """What an error says, in one line."""
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
