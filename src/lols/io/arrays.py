"""Arrays in files: read into memory, never mapped, so that a file may be overwritten while it is read.

A process that uses what is mapped is killed (SIGBUS) when somebody shortens the file. What is read here is private: a
file that changes meanwhile ends in an error, or in numbers that a checksum over what was read does not fit.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

TYPES = {  # of safetensors, as NumPy has them
    **{"BOOL": "|b1", "I8": "|i1", "U8": "|u1", "I16": "<i2", "U16": "<u2", "I32": "<i4", "U32": "<u4"},
    **{"I64": "<i8", "U64": "<u8", "F16": "<f2", "F32": "<f4", "F64": "<f8"},
}
MOST_HEADER = 100_000_000  # bytes, as the format has it
BLOCK = 1 << 24  # bytes of a table that are read at a time
SHORT = "it ends before its arrays do"


class Stored(NamedTuple):
    """Where an array lies in a safetensors file, counted from the end of the header."""

    begin: int
    end: int
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def read_safetensors(file: BinaryIO) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The metadata and the arrays of a safetensors file; a `ValueError` says what is wrong with it.

    >>> import io; from safetensors.numpy import save
    >>> read_safetensors(io.BytesIO(save({"a": np.arange(3)}, metadata={"made": "here"})))
    ({'made': 'here'}, {'a': array([0, 1, 2])})
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(size - 8, MOST_HEADER):
        raise ValueError("it does not begin with the length of a header")
    header = json.loads(file.read(length).decode())
    metadata = header.pop("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict):
        raise ValueError("its header is no list of arrays")
    stored, at = sorted(_stored(name, place) for name, place in header.items()), 0
    for each in stored:
        if each.begin != at or each.end - at != each.dtype.itemsize * math.prod(each.shape):
            raise ValueError(f"its array '{each.name}' does not lie where it should")
        at = each.end
    if at != size - 8 - length:
        raise ValueError(SHORT if at > size - 8 - length else "there is more behind its arrays")
    return metadata, {each.name: _read(file, each.shape, each.dtype) for each in stored}


def _stored(name: str, place: Any) -> Stored:
    """Where an array lies, by what the header of the file says."""
    try:
        begin, end = place["data_offsets"]
        dtype, shape = np.dtype(TYPES[place["dtype"]]), place["shape"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"its array '{name}' has no type, shape or place that is known") from None
    if not isinstance(shape, list) or any(type(number) is not int or number < 0 for number in (begin, end, *shape)):
        raise ValueError(f"its array '{name}' has a shape or a place of other things than numbers")
    return Stored(begin, end, name, dtype, tuple(shape))


def _read(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """The next array of a file."""
    array = np.empty(shape, dtype)
    if file.readinto(array.reshape(-1).view(np.uint8)) != array.nbytes:  # type: ignore[attr-defined]
        raise ValueError(SHORT)
    return array


class ArrayFile(NamedTuple):
    """An array of NumPy in an open file (`.npy`), of which some rows can be read."""

    file: BinaryIO
    begin: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool  # in Fortran's order

    @classmethod
    def of(cls, file: BinaryIO) -> ArrayFile:
        """The table in a file; a `ValueError` says why there is none."""
        versions: Mapping[tuple[int, int], Any] = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        version = np.lib.format.read_magic(file)
        if version not in versions:
            raise ValueError("it is no array of numbers")
        shape, by_columns, dtype = versions[version](file)
        begin = file.tell()
        if dtype.hasobject or file.seek(0, os.SEEK_END) - begin < dtype.itemsize * math.prod(shape):
            raise ValueError(SHORT)
        return cls(file, begin, shape, dtype, by_columns)

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Some rows of a table with two dimensions, in ascending order; only what has some of them is read."""
        count, width = self.shape[::-1] if self.by_columns else self.shape
        found = np.empty((chosen.size, self.shape[1]), self.dtype)
        size = width * self.dtype.itemsize
        step = max(1, BLOCK // max(size, 1))
        for low in range(0, count, step):
            high = min(low + step, count)
            a, b = (0, chosen.size) if self.by_columns else np.searchsorted(chosen, (low, high))
            if a == b:
                continue
            self.file.seek(self.begin + low * size)
            block = _read(self.file, (high - low, width), self.dtype)
            if self.by_columns:
                found[:, low:high] = block[:, chosen].T
            else:
                found[a:b] = block[chosen[a:b] - low]
        return found
