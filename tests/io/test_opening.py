"""Bytes that are text, against Python's decoder; files that cannot be read are tested with the formats."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import LolsError
from lols.io import opening
from lols.io.opening import compressing, first_bad_byte, read_text


@given(
    st.lists(st.one_of(st.text(max_size=90).map(str.encode), st.binary(max_size=3), st.just(b"a" * 64)), max_size=9),
    st.integers(4, 70),
)
def test_text_is_checked_as_python_does_it(parts: list[bytes], block: int) -> None:
    data = b"".join(parts)
    try:
        data.decode()
        wanted = -1
    except UnicodeDecodeError as error:
        wanted = error.start
    zero = data.find(b"\0")
    if zero >= 0 and (wanted < 0 or zero < wanted):
        wanted = zero
    assert first_bad_byte(data) == wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BLOCK", block)  # characters are cut where blocks end
        assert first_bad_byte(bytearray(data)) == first_bad_byte(memoryview(data)) == wanted


def test_a_whole_text(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"\xef\xbb\xbfa\r\n\xc3\xa9")
    assert read_text(path) == "a\r\né"
    for content, message in (
        (b"a\nb\xe9\n", f"{path}, line 2: byte 2 (0xe9) is not UTF-8; convert the file, e.g. with iconv"),
        (b"a\n\0", f"{path}, line 2: byte 1 is zero, so this is not text; give a text file"),
        ("a\n".encode("utf-16"), f"{path}, line 1: this is UTF-16; convert it to UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(LolsError) as caught:
            read_text(path)
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("module", "suffix"), [(gzip, ".gz"), (lzma, ".xz"), (bz2, ".bz2")])
def test_compressed_files_are_read_whatever_they_are_called(module: Any, suffix: str, tmp_path: Path) -> None:
    content = b"a\n" + os.urandom(3000).hex().encode()
    packed = module.compress(content)
    for name in (f"t{suffix}", "t.txt", f"t{suffix.upper()}"):
        path = tmp_path / name
        path.write_bytes(packed)
        assert read_text(path) == content.decode()
    path.write_bytes(module.compress(b""))
    assert read_text(path) == ""
    broken = packed[:1000] + bytes(100) + packed[1100:]
    for damaged in (packed[:2000], broken):
        path.write_bytes(damaged)
        with pytest.raises(LolsError, match=r"damaged compressed data \(.*\); make or fetch the file again"):
            read_text(path)
    path.write_bytes(content)
    with pytest.raises(LolsError, match=r"is not compressed by (gzip|xz|bzip2), as its name says; rename it"):
        read_text(path)
    written = io.BytesIO()
    with compressing(written, f"new{suffix}") as stream:
        stream.write(content)
    assert module.decompress(written.getvalue()) == content


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for content, message in (
        (b"\x28\xb5\x2f\xfd\x04\0", "is compressed by zstd, which is not read; decompress it first"),
        (b"PK\x03\x04\x14", "is a zip archive, which is not read; unpack it first, or save a spreadsheet as CSV"),
    ):
        path.write_bytes(content)
        with pytest.raises(LolsError, match=message):
            read_text(path)
    path.write_bytes(b"BZh9 is how bzip2 files begin\n")  # but not all of it
    assert read_text(path).startswith("BZh9")
