"""Files in pieces and pieces in files: worked through in order on one or several threads, or joined."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from lols.contract.threads import Threads, chosen_threads
from lols.io.conll import Sentences

PIECE = 1 << 22
Given = TypeVar("Given")
Made = TypeVar("Made")


def in_order(work: Callable[[Given], Made], pieces: Iterable[Given], threads: Threads) -> Iterator[Made]:
    """What `work` makes of each piece; no more pieces are read ahead than two for each thread.

    >>> list(in_order(len, ["a", "bb"], threads=2))
    [1, 2]
    """
    threads = chosen_threads(threads)
    if threads == 1:
        yield from map(work, pieces)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Made]] = deque()
        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextlib.contextmanager
def one_thread(*models: Any) -> Iterator[None]:
    """Let models use one thread each for a while, because several threads call them."""
    before = [model.threads for model in models]
    for model in models:
        model.threads = 1
    try:
        yield
    finally:
        for model, threads in zip(models, before, strict=True):
            model.threads = threads


def joined(files: Sequence[Sentences]) -> Sentences:
    """Several files as one."""
    if len(files) == 1:
        return files[0]
    sizes = np.cumsum([0, *(f.buffer.size for f in files)])
    tokens = np.cumsum([0, *(f.lines.size for f in files)])
    first, pairs = files[0], list(zip(files, sizes, strict=False))
    offsets = [f.offsets[:-1] + n for f, n in zip(files, tokens, strict=False)]
    return first._replace(
        buffer=np.concatenate([f.buffer for f in files]),
        offsets=np.concatenate([*offsets, tokens[-1:]]),
        lines=np.concatenate([f.lines for f in files]),
        begin=np.concatenate([f.begin + n for f, n in pairs], axis=1),
        end=np.concatenate([f.end + n for f, n in pairs], axis=1),
    )


def gathered(files: Iterable[Iterable[Sentences]], room: int) -> Iterator[list[Sentences]]:
    """Pieces of files with sentences, put together until they have `room` bytes of text; nothing is kept here."""
    held: list[Sentences] = []
    size = 0
    for piece in itertools.chain.from_iterable(files):
        if piece.lines.size == 0:
            continue
        held.append(piece)
        size += piece.buffer.size
        del piece
        if size >= room:
            ready, held, size = [held], [], 0
            yield ready.pop()
    if held:
        yield held


def line_of(files: Sequence[Sentences], token: int) -> str:
    """File and line of a token of several files, in words."""
    for one in files:
        if token < one.lines.size:
            return f"{one.path}, line {one.lines[token]}"
        token -= one.lines.size
    raise IndexError(token)
