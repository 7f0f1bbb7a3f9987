"""Paying with few coins, as a program: the rule takes the largest coin that fits."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import lols

COINS = [25, 10, 7, 1]


def pay(search: Any, amount: int) -> tuple[int, ...]:
    paid: tuple[int, ...] = ()
    while left := amount - sum(paid):
        legal = [coin for coin in COINS if coin <= left]
        paid += (search.predict([("left", min(left, 60)), ("mod", left % 25)], legal, max(legal)),)
        search.loss(1)
    return paid


def pay_in_order(search: Any, amount: int) -> int:
    """Whatever is decided costs the same, so that nothing is better than the rule."""
    for _ in range(3):
        search.predict([amount], reference=0)
    search.loss(amount)
    return amount


def ponder(search: Any, amount: int) -> int:
    """Many decisions, each of which takes its time."""
    wrong = 0
    for step in range(30):
        time.sleep(0.002)
        wrong += search.predict([step % 3], reference=0)
    search.loss(30 - wrong)
    return wrong


def stumble(search: Any, amount: int) -> int:
    search.predict([amount], reference=0)
    if amount % 10 == 3:
        search.loss(-1)
    return amount


def crash(search: Any, amount: int) -> float:
    return search.predict([amount], reference=0) / (amount % 10 - 3)


PAYING = lols.Program(pay, labels=COINS)
SAME = lols.Program(pay_in_order, actions=2)
SLOW = lols.Program(ponder, actions=2)
STUMBLING, CRASHING = lols.Program(stumble, actions=2), lols.Program(crash, actions=2)


def draw(rng: np.random.Generator) -> int:
    """An amount to be paid."""
    return int(rng.integers(1, 100))
