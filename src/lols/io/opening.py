"""Opening files, compressed by gzip or not, and one-line errors for files that cannot be read or are not text."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import os
import sys
import zlib
from collections.abc import Iterator
from typing import Any

from lols.errors import LolsError

__all__ = ["BOM", "first_bad_byte", "not_text", "opened", "read_text", "reading", "reason"]

GZIP = b"\x1f\x8b"  # the first bytes of a gzip file
BOM = b"\xef\xbb\xbf"  # the byte order mark with which some programs begin UTF-8 text
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # the byte order marks of UTF-16
BLOCK = 1 << 18  # bytes decoded at a time


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
    """Turn the errors of reading a file into one line that names it."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise LolsError(f"{name}: damaged gzip data ({reason(error)}); make or fetch the file again") from error
    except OSError as error:
        raise LolsError(f"{name}: cannot be read ({reason(error)}); give a file that can be read") from error


def reason(error: Exception) -> str:
    """The message of an error, in one line."""
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:200]


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a whole file, without its byte order mark."""
    with opened(path) as stream, reading(os.fspath(path)):
        data: bytes = stream.read()
    if (place := first_bad_byte(data)) >= 0:
        raise not_text(data, place, os.fspath(path), 1 + data.count(b"\n", 0, place))
    return data.removeprefix(BOM).decode()


def first_bad_byte(data: bytes | bytearray | memoryview) -> int:
    """The place of the first byte that is zero or not UTF-8, or -1.

    >>> first_bad_byte("é".encode()), first_bad_byte(b"ab\\xe9"), first_bad_byte(b"\\xc3\\xa9\\0")
    (-1, 2, 2)
    """
    view, at = memoryview(data), 0
    while at < len(view):
        block, final = view[at : at + BLOCK], at + BLOCK >= len(view)
        wrong = -1
        try:
            text, used = codecs.utf_8_decode(block, "strict", final)
        except UnicodeDecodeError as error:
            wrong = error.start
            text, used = codecs.utf_8_decode(block[:wrong])
        if (zero := text.find("\0")) >= 0:
            return at + len(text[:zero].encode())
        if wrong >= 0:
            return at + wrong
        at += used
    return -1


def not_text(data: bytes | bytearray | memoryview, place: int, path: str, line: int) -> LolsError:
    """The error for a byte that is zero or not UTF-8, at a place in this line, which begins in `data`."""
    view = memoryview(data)
    if line == 1 and bytes(view[:2]) in UTF16:
        return LolsError(f"{path}, line 1: this is UTF-16; convert it to UTF-8, e.g. with iconv -f utf-16 -t utf-8")
    byte = place - bytes(view[:place]).rfind(b"\n")
    if view[place] == 0:
        return LolsError(f"{path}, line {line}: byte {byte} is zero, so this is not text; give a text file")
    what = f"byte {byte} (0x{view[place]:02x}) is not UTF-8"
    return LolsError(f"{path}, line {line}: {what}; convert the file, e.g. with iconv -f latin1 -t utf-8")
