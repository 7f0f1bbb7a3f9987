"""Decisions and losses for tests of a log. They follow from their number, so that processes need not exchange them."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from lols.bandit.log import WHOLE, Decision, Entry, Loss, SqliteLog
from lols.bandit.seen import Seen, seen_of

IDENTITY = {"labels": 3, "space": {"name": "layout", "source": "ab12"}}
ENVIRONMENT = os.environ | {  # for programs that import this file
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
}


def states(k: int, steps: int, actions: int) -> Seen:
    """States with features of their own and of their actions, in every second decision."""
    rng = np.random.default_rng(k)
    n, by_action = int(rng.integers(0, 9)), k % 2 == 1
    bounds = np.sort(rng.integers(0, n + 1, 2 * steps))
    own = np.sort(rng.integers(0, n + 1, 2 * steps * actions * by_action)).reshape(-1, 2 * actions)
    legal = rng.random((steps, actions)) < 0.5
    legal[:, k % actions] = True
    return seen_of(
        start=bounds[::2].copy(),
        stop=bounds[1::2].copy(),
        ids=rng.integers(0, 2**40, n),
        values=rng.random(n, dtype=np.float32),
        action_start=own[:, ::2].reshape(-1, actions).copy(),
        action_stop=own[:, 1::2].reshape(-1, actions).copy(),
        action_ids=rng.integers(0, 2**40, n),
        action_values=rng.random(n, dtype=np.float32),
        legal=legal,
        taken=np.full(steps, k % actions),
        chances=1 - rng.random(steps),
        steps=np.arange(steps),
    )


def decision(k: int) -> Decision:
    rng = np.random.default_rng(k)
    actions, steps = 2 + k % 5, 1 + k % 7
    taken = rng.integers(0, actions, steps).astype(np.int32)
    taken[k % steps] = k % actions
    return Decision(
        id=str(k) if k % 3 else f"event-{k}",
        number=k,
        time=1e9 + k / 7,
        context=None if k % 4 == 1 else f'{{"words":[{k},{k + 1}],"name":"ä{k}"}}',
        actions=taken,
        chances=1 - rng.random(steps * (k % 2), dtype=np.float32),
        baseline=None if k % 5 == 0 else rng.integers(0, actions, steps).astype(np.int32),
        step=k % steps,
        action=k % actions,
        by_reference=k % 2 == 0,
        chance_step=1 / steps,
        chance_action=1 / actions,
        version=k // 2,
        policy=-1,
        guarded=k % 3 == 0,
        propensity=rng.random() if k % 2 else math.nan,
        active=k % 6 != 5,
        seen=states(k, steps, actions) if k % 4 == 1 else None,
    )


def loss(k: int) -> Loss:
    """A loss of the whole, or of some steps, or both."""
    whole, steps = {WHOLE: k % 11 / 10}, {step: (k + step) % 3 / 2 for step in range(k % 3)}
    return Loss(decision(k).id, {**(whole if k % 3 != 2 else {}), **steps}, 1e9 + k)


def made(kind: str, k: int) -> Entry:
    return decision(k) if kind == "decision" else loss(k)


def same(one: Any, other: Any) -> bool:
    """Equal bit for bit, but for the time."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Seen):
        return all(same(a, other.compact()[name]) for name, a in one.compact().items())
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, tuple) and hasattr(one, "_fields"):
        return all(name == "time" or same(a, b) for name, a, b in zip(one._fields, one, other, strict=True))
    return bool(one == other or (one != one and other != other))


def assert_same(found: list[Entry], wanted: list[Entry]) -> None:
    assert len(found) == len(wanted)
    for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert same(one, other), f"entry {k}: {one} instead of {other}"


def sqlite_log(path: Path, **options: Any) -> SqliteLog:
    return SqliteLog(path, **({"identity": IDENTITY} | options))
