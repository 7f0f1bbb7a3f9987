"""Decisions and losses for the tests of a bandit's log. They follow from their id: processes need not exchange them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from lols.bandit.log import Decision, Loss, SqliteLog

IDENTITY = {"epsilon": 0.1, "space": {"name": "layout", "digest": "ab12"}}
ENVIRONMENT = os.environ | {  # for programs that import this file
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
}


def decision(k: int) -> Decision:
    rng = np.random.default_rng(k)
    n, actions, steps = int(rng.integers(0, 60)), 2 + k % 5, 1 + k % 7

    def floats(size: int) -> np.ndarray:
        return rng.random(size, dtype=np.float32)

    def longs(size: int) -> np.ndarray:
        return rng.integers(0, 2**40, size)

    bounds, legal = np.sort(rng.integers(0, n // 2 + 1, actions + 1)), floats(actions) < 0.5
    legal[k % actions] = True
    return Decision(
        *(k, True, k % steps, k % actions, k % 2 == 0, 1 / steps, 1 / actions, k // 2, -1, k % 3 == 0, rng.random()),
        *(longs(n), floats(n), bounds[:-1].copy(), bounds[1:].copy(), longs(n // 2), floats(n // 2)),
        *(legal, floats(actions), rng.integers(0, actions, steps).astype(np.int32), 1 - floats(steps)),
    )


def loss(k: int) -> Loss:
    return Loss(k, k % 11 / 10)


def made(kind: str, k: int) -> Decision | Loss:
    return decision(k) if kind == "decision" else loss(k)


def same(one: Decision | Loss, other: Decision | Loss) -> bool:
    """Equal bit for bit, whatever the fields are."""
    if type(one) is not type(other):
        return False
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        if isinstance(a, np.ndarray)
        else type(a) is type(b) and (a == b or (a != a and b != b)) and math.copysign(1, a) == math.copysign(1, b)
        for a, b in zip(one, other, strict=True)
    )


def assert_same(found: list[Decision | Loss], wanted: list[Decision | Loss]) -> None:
    assert len(found) == len(wanted)
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert same(one, other), f"entry {k}: {one} instead of {other}"


def sqlite_log(path: Path, **options: Any) -> SqliteLog:
    return SqliteLog(path, **({"identity": IDENTITY} | options))
