"""Files worked through piece by piece, on one or several threads, the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["PIECE", "in_order"]

PIECE = 1 << 24
Given = TypeVar("Given")
Made = TypeVar("Made")


def in_order(work: Callable[[Given], Made], pieces: Iterable[Given], threads: int) -> Iterator[Made]:
    """What `work` makes of each piece; no more pieces are read ahead than there are threads.

    >>> list(in_order(len, ["a", "bb"], threads=2))
    [1, 2]
    """
    if threads == 1:
        yield from map(work, pieces)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Made]] = deque()
        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
