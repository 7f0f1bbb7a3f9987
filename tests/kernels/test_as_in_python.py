"""Arithmetic gives the same result compiled and not: the same number, or an error in both."""

from __future__ import annotations

import math
from math import sqrt as root
from typing import Any

import numpy as np
import pytest

import lols
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.predictions import Predictions
from lols.errors import SpaceError
from lols.training.trainer import Trainer

DOMAIN, RANGE, ZERO = (
    "ValueError: math domain error",
    "OverflowError: math range error",
    "ZeroDivisionError: division by",
)


def choose(x: Any) -> Any:
    """One expression for each case, so that all of them are compiled once."""
    v, k, nothing = x.v, x.k, x.nothing
    nan = x.infinite - x.infinite
    if x.case == 0:
        return 1.0 if math.log(v) > 1.0 else 2.0
    if x.case == 1:
        return 1.0 if root(v) > 1.0 else 2.0
    if x.case == 2:
        return 1.0 if math.exp(1000.0 * v * v) > 1.0 else 2.0
    if x.case == 3:
        return 1.0 if math.pow(v, 0.5) > 1.0 else 2.0
    if x.case == 4:
        return 1.0 if int(nan) > 1 else 2.0
    if x.case == 5:
        return 1.0 if math.floor(nan) > 1 else 2.0
    if x.case == 6:
        return 1.0 if round(nan) > 1 else 2.0
    if x.case == 7:
        return 1.0 if v / nothing > 1.0 else 2.0
    if x.case == 8:
        return 1.0 if k // nothing > 1 else 2.0
    if x.case == 9:
        return 1.0 if k % nothing > 1 else 2.0
    if x.case == 10:
        return 1.0 if nothing / nothing > 1.0 else 2.0
    if x.case == 11:
        return 1.0 if math.sin(x.infinite) > 1.0 else 2.0
    if x.case == 12:
        return 1.0 if math.log(nothing) > 1.0 else 2.0
    if x.case == 13:
        return float((-7 * k) // 2 + 100) + ((-7 * k) % 4) / 8 + math.floor(v * 2.5) + math.ceil(v * 0.5) + 20
    if x.case == 14:
        return math.sqrt(-v) + math.exp(v) + math.log(k) + math.pow(k, 2) + int(v * 2.5) + round(v * 3.7) + 20
    if x.case == 15:
        return 1.0 if np.log(v) > 1.0 or np.sqrt(v) > 1.0 else 2.0
    if x.case == 16:
        return 1.0 if math.exp(1000.0 * v) > 0.0 else 2.0 + math.atan(x.infinite) + math.exp(-math.log(math.inf))
    return 0.0


class Arithmetic(lols.Task):
    sizes = lols.Sizes(state=1, actions=1, features=0, steps=1)

    def encode(case):
        return lols.Example({"case": case, "v": -1.0, "k": 3, "nothing": 0, "infinite": 0.0})

    def actions(x, s, legal):
        legal[0] = s[0] == 0

    def step(x, s, a):
        s[0] = 1

    def features(x, s, out):
        pass

    def loss(x, y, s):
        return choose(x)

    def output(x, s):
        return None

    def reference(x, y, s):
        return 0


def outcome(case: int, compiled: bool) -> Any:
    """The loss, or the error."""
    examples = lols.Examples(Arithmetic, [case])
    examples.x.infinite.values[:] = np.inf
    policy = Trainer(Arithmetic, compiled=compiled).untrained().policy
    with FusedDriver(Arithmetic.space, examples, compiled=compiled) as driver:
        try:
            return float(driver.losses(Predictions(examples, compiled), policy)[0])
        except SpaceError as error:
            return str(error)


@pytest.mark.parametrize(
    ("case", "error"),
    [
        *((case, DOMAIN) for case in (0, 1, 3, 11, 12)),
        (2, RANGE),
        *((case, "ValueError: cannot convert float NaN to integer") for case in (4, 5, 6)),
        *((case, ZERO) for case in (7, 8, 9, 10)),
    ],
)
def test_what_python_refuses_is_refused_in_kernels_too(case: int, error: str) -> None:
    said = outcome(case, compiled=True)
    assert said == outcome(case, compiled=False)
    assert said.startswith(f"example 0: `loss` failed with {error}") and "test_as_in_python.py:" in said


@pytest.mark.parametrize("case", [13, 14, 15, 16])
def test_other_numbers_are_the_same(case: int) -> None:
    assert isinstance(outcome(case, True), float) and outcome(case, True) == outcome(case, False)
