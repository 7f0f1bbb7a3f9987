"""The arithmetic of NumPy's numbers as compiled code has it: whole numbers wrap around, and no division by zero.

A column's number divided by zero is infinite in NumPy, and a remainder 0, where Python's own numbers and compiled code
raise a `ZeroDivisionError`. So plain Python runs within `as_compiled`.
"""

from __future__ import annotations

import dis
import sys
from typing import Any

import numpy as np

BINARY = dis.opmap["BINARY_OP"]
DIVISIONS = frozenset(
    instruction.arg
    for sign in ("/", "//", "%", "/=", "//=", "%=")
    for instruction in dis.get_instructions(compile(f"a {sign} b", "division", "exec"))
    if instruction.opcode == BINARY
)


def as_compiled() -> np.errstate:
    """A context in which NumPy's numbers are divided as compiled code does it.

    >>> one, zero = np.float64(1.0), np.int64(0)
    >>> with as_compiled():
    ...     print(np.log(0.0 * one), np.int64(1 << 62) * 2 < 0)
    ...     one / zero
    Traceback (most recent call last):
    ZeroDivisionError: division by zero
    """
    return np.errstate(over="ignore", under="ignore", invalid="call", divide="call", call=_refuse_division)


def _refuse_division(_kind: str, _flag: int) -> Any:
    """Raise an error if what NumPy warns of is a division; functions such as `np.log` give NaN or infinity."""
    frame = sys._getframe(1)
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] == BINARY and code[at + 1] in DIVISIONS:
        raise ZeroDivisionError("division by zero")
