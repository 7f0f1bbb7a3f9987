"""Threads that share a model: they ask it at the same time, and each keeps what it is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any


def asked_by_threads(ask: Callable[[Any], Any], inputs: Sequence[Any], threads: int = 4, rounds: int = 1) -> list[Any]:
    """What each thread was told of each input; each begins with another one."""
    together, before = Barrier(threads), sys.getswitchinterval()

    def work(first: int) -> list[Any]:
        together.wait(60.0)
        told: list[Any] = [None] * len(inputs)
        for k in range(rounds * len(inputs)):
            at = (first + k) % len(inputs)
            told[at] = ask(inputs[at])
        return told

    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, range(threads)))
    finally:
        sys.setswitchinterval(before)
