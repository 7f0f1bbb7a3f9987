"""Targets that break each promise, for the tests of the fuzzer itself."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from lols.errors import LolsError
from tests.fuzz.judging import called

BAD = 3  # the case that goes wrong


class Bad:
    """All cases are refused, as they should be, but for one."""

    def __init__(self, what: Callable[[], Any]):
        self.what, self.case_number = what, 0

    def case(self, rng: Random) -> bool:
        number, self.case_number = self.case_number, self.case_number + 1
        return called(self.what if number == BAD else refuse, LONG.encode())


LONG = "a b c " * 50


def refuse(message: str = "x.csv, line 3: no such column; give another") -> None:
    raise LolsError(message)


def forget() -> None:
    {}["column"]


ERRORS: dict[str, Callable[[], Any]] = {
    "crash": lambda: ctypes.string_at(0),
    "hang": lambda: time.sleep(60),
    "other error": forget,
    "two lines": lambda: refuse("one\ntwo"),
    "whole input": lambda: refuse(f"cannot read {LONG}"),
    "long": lambda: refuse("b" * 3000),
    "memory": lambda: len(bytearray(b"1") * (100 << 20)),
    "exit": lambda: exit(1),
}


def maker(what: Callable[[], Any]) -> Callable[[Path], Bad]:
    return lambda folder: Bad(what)


TARGETS = {name: maker(what) for name, what in ERRORS.items()}
