"""How much memory the weights of a model file may take, whatever its header says."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping

import numpy as np

from lols.errors import ConfigurationError, ModelFileError

LEAST = 1 << 28  # bytes that any file may take
TIMES = (
    256  # how often it may take its own size: a weight that is alone on its page takes 4096 bytes, and 17 in the file
)
VARIABLE = "LOLS_MODEL_GB"


class Room:
    """The memory that is left for the weights of one file.

    Weights are stored without their zeros, so that a small file can stand for a large array. Pages of it that have no
    weights take no memory.

    Parameters
    ----------
    tensors
        The arrays of the file.

    """

    def __init__(self, tensors: Mapping[str, np.ndarray]):
        self.size = sum(array.nbytes for array in tensors.values())
        self.most = max(LEAST + TIMES * self.size, _allowed())
        self.taken = 0

    def take(self, size: int) -> None:
        """Take some bytes; raise an error if there are not as many."""
        self.taken += size
        if self.taken > self.most:
            gigabytes = math.ceil(self.taken / 1e8) / 10
            raise ModelFileError(
                f"its weights take {gigabytes} GB of memory, and the file has {self.size / 1e6:.1f} MB; if you trust "
                f"whoever made it, set {VARIABLE}={gigabytes} to load it"
            )

    def zeros(self, shape: tuple[int, ...], places: np.ndarray) -> np.ndarray:
        """Zeros of 32 bits, to be written at these places (of the flat array) only."""
        size = 4 * math.prod(shape)
        if self.taken + size <= self.most:
            self.take(size)
            return np.zeros(shape, np.float32)
        self.take(mmap.PAGESIZE * np.unique(places // (mmap.PAGESIZE // 4)).size)
        return _pages(size).reshape(shape)


def _pages(size: int) -> np.ndarray:
    """Zeros, of which a page takes memory when it is written. Those of NumPy come in huge pages."""
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(size // 4, np.float32)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{size / 1e9:,.1f} GB") from error
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.float32)


def _allowed() -> int:
    """The bytes that the user allows for any file."""
    text = os.environ.get(VARIABLE, "0")
    try:
        return int(float(text) * 1e9)
    except (ValueError, OverflowError):
        raise ConfigurationError(f"{VARIABLE} is {text!r}: give a number of gigabytes, such as 8") from None
