"""Opening files, compressed or not, and one-line errors for files that cannot be read or are not text."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import importlib
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lols.errors import LolsError

BOM = b"\xef\xbb\xbf"  # the byte order mark with which some programs begin UTF-8 text
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # the byte order marks of UTF-16
BLOCK = 1 << 18  # bytes decoded at a time


class Compression(NamedTuple):
    """A way to compress files that Python reads and writes."""

    name: str
    suffix: str
    first: tuple[bytes, ...]  # what files begin with
    module: str
    file: str


COMPRESSIONS = (
    Compression("gzip", ".gz", (b"\x1f\x8b",), "gzip", "GzipFile"),
    Compression("xz", ".xz", (b"\xfd7zXZ\0",), "lzma", "LZMAFile"),
    # Three letters and a digit could begin a text; the next six bytes are π, or for an empty file its square root.
    Compression(
        "bzip2",
        ".bz2",
        tuple(b"BZh%d%s" % (k, rest) for k in range(1, 10) for rest in (b"1AY&SY", b"\x17rE8P\x90")),
        "bz2",
        "BZ2File",
    ),
)
LONGEST_FIRST = 10  # bytes that tell what a file is compressed by
UNREAD = {  # the first bytes of files that are not read, and what to do with them
    b"\x28\xb5\x2f\xfd": "compressed by zstd, which is not read; decompress it first, e.g. with zstd -d",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive, which is not read; unpack it first",
    b"PK\x03\x04": "a zip archive, which is not read; unpack it first, or save a spreadsheet as CSV",
}


@contextlib.contextmanager
def opened(path: str | os.PathLike[str], name: str | None = None) -> Iterator[Any]:
    """The bytes of a file, uncompressed; `-` is standard input. Messages call it `name`, by default its path."""
    name = os.fspath(path) if name is None else name
    with contextlib.ExitStack() as stack:
        try:
            stream: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
            first = stream.peek(LONGEST_FIRST)[:LONGEST_FIRST]
        except FileNotFoundError:
            raise LolsError(f"{name}: there is no such file; correct the name") from None
        except IsADirectoryError:
            raise LolsError(f"{name}: is a folder; give a file in it") from None
        except (OSError, ValueError) as error:
            raise LolsError(f"{name}: cannot be opened ({reason(error)}); give a file that can be read") from error
        if (why := next((text for magic, text in UNREAD.items() if first.startswith(magic)), None)) is not None:
            raise LolsError(f"{name}: is {why}")
        found = next((each for each in COMPRESSIONS if first.startswith(each.first)), None)
        named = _named_compression(name)
        if named is not None and found is not named:
            raise LolsError(f"{name}: is not compressed by {named.name}, as its name says; rename it")
        yield stream if found is None else stack.enter_context(_compressed_file(found, stream, name, "rb"))


def _compressed_file(compression: Compression, file: Any, name: str, mode: str, **options: Any) -> Any:
    try:
        kind = getattr(importlib.import_module(compression.module), compression.file)
    except ImportError:
        raise LolsError(f"{name}: this Python was built without {compression.name}; decompress it first") from None
    return kind(fileobj=file, mode=mode, **options) if kind is gzip.GzipFile else kind(file, mode)


def _named_compression(name: str) -> Compression | None:
    return next((each for each in COMPRESSIONS if name.lower().endswith(each.suffix)), None)


def is_compressed(stream: Any) -> bool:
    """Whether a stream that `opened` gave is decompressed as it is read."""
    return not isinstance(stream, io.BufferedReader)


def without_compression(name: str) -> str:
    """The name of a file without the suffix of its compression, in lower case.

    >>> without_compression("EWT.conllu.gz"), without_compression("ewt.conllu")
    ('ewt.conllu', 'ewt.conllu')
    """
    found = _named_compression(name)
    return name.lower() if found is None else name.lower().removesuffix(found.suffix)


@contextlib.contextmanager
def compressing(file: Any, name: str) -> Iterator[Any]:
    """A stream that writes to a file what the suffix of its name asks for: compressed bytes, or plain ones."""
    found = _named_compression(name)
    if found is None:
        yield file
        return
    options = {"filename": Path(name).stem, "mtime": 0} if found.name == "gzip" else {}
    with _compressed_file(found, file, name, "wb", **options) as stream:
        yield stream


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn the errors of reading a file into one line that names it."""
    try:
        yield
    except _errors_of_compression() as error:
        raise damaged(name, error) from error
    except OSError as error:
        if error.errno is None:  # of bzip2's data, not of the disk
            raise damaged(name, error) from error
        raise LolsError(f"{name}: cannot be read ({reason(error)}); give a file that can be read") from error


def _errors_of_compression() -> tuple[type[Exception], ...]:
    of_xz = sys.modules.get("lzma")  # unless it was imported, it has raised nothing
    return (EOFError, zlib.error, gzip.BadGzipFile, *(() if of_xz is None else (of_xz.LZMAError,)))


def damaged(name: str, error: Exception) -> LolsError:
    """The error for compressed data that cannot be decompressed."""
    return LolsError(f"{name}: damaged compressed data ({reason(error)}); make or fetch the file again")


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
