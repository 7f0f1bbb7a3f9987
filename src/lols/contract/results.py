"""What the functions of a space return, and what is said where it is something else."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.misused_parts import misused_part, returned_part
from lols.contract.state import own_function
from lols.contract.user_frames import is_users
from lols.errors import one_line
from lols.kernels.digest import plain

RETURNED = {
    "loss": "a number",
    "cost": "a number",
    "key": "a whole number",
    "action": "the number of an action",
}
NUMBERS = (int, float, np.number, np.bool_)


class ResultError(TypeError):
    """A function returned something else than it must: "returns nothing, and must return a number (task.py:7)"."""


def check_result(name: str, function: Any, result: Any) -> None:
    """Raise a `ResultError` if a function of a space or reference, by its name in the contract, returned no number."""
    if name in RETURNED and not (isinstance(result, NUMBERS) or (isinstance(result, np.ndarray) and not result.ndim)):
        kind = "nothing" if result is None else "an array" if isinstance(result, np.ndarray) else type(result).__name__
        raise ResultError(wrong_result(name, function, kind))


def wrong_result(name: str, function: Any, kind: str) -> str:
    """What is said about a function that returned something of another kind."""
    code, advice = own_function(function).__code__, returned_part(name, function)
    said, line = ("", code.co_firstlineno) if advice is None else (f": {advice[0]}", advice[1])
    return f"returns {kind}, and must return {RETURNED[name]}{said} ({code.co_filename}:{line})"


def checked_result(name: str, function: Any) -> Any:
    """The same function, which looks at what it returns."""

    def checked(*arguments: Any) -> Any:
        result = function(*arguments)
        try:
            check_result(name, function, result)
        except ResultError as error:
            raise ResultError(f"`{shown_name(name, function)}` {error}") from None
        return result

    if plain(function).__code__.co_argcount == 4:  # a reference with four arguments is given a random stream
        return lambda x, y, s, last: checked(x, y, s, last)
    return checked


def shown_name(name: str, function: Any) -> str:
    """The name of a function as the user wrote it: that of a task's teacher, or else that of the contract."""
    own = own_function(function).__name__
    return own if own.startswith("reference") else name


def with_advice(error: BaseException, name: str, function: Any) -> str:
    """An error of a function in one line, with what to write instead if it takes a part of the state wrongly."""
    said, trace = one_line(error), error.__traceback__
    if isinstance(error, TypeError | ValueError | AttributeError):
        places = []
        while trace is not None:
            places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        own = own_function(function).__code__.co_filename
        for file, line in reversed(places):
            if file != own and not is_users(file):
                continue
            advice = misused_part(name, function, file, {line})
            if advice is not None:
                return said if advice[0] in said else f"{said.rstrip('.')}: {advice[0]}"
    return said
