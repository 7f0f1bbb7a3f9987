"""Operations on many bytes at once, as plain Python; `backend` has the compiled versions."""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK, WORD = 64, 8


def word_at(buffer: Any, at: Any) -> Any:
    """Eight bytes as one word, the first one lowest."""
    return np.uint64(int.from_bytes(buffer[at : at + WORD].tobytes(), "little"))


def equal_bits(buffer: Any, at: Any, byte: Any) -> Any:
    """Which of 64 bytes equal a byte."""
    return word_at(np.packbits(buffer[at : at + BLOCK] == byte, bitorder="little"), 0)


def rare_bits(buffer: Any, at: Any) -> Any:
    """Which of 64 bytes are zero or not ASCII."""
    return word_at(np.packbits(buffer[at : at + BLOCK].view(np.int8) <= 0, bitorder="little"), 0)


def lowest_bit(bits: Any) -> int:
    """The place of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def copy(out: Any, target: Any, source: Any, begin: Any, end: Any) -> None:
    """Copy a part of one array of bytes into another one."""
    out[target : target + end - begin] = source[begin:end]
