"""Bytes that are text, against Python's decoder; files that cannot be read are tested with the formats."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import LolsError
from lols.io import opening
from lols.io.opening import first_bad_byte, read_text


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
