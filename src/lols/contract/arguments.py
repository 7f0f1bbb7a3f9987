"""Which of its arguments a function looks at, found in its byte code."""

from __future__ import annotations

import dis
from typing import Any

from lols.contract.state import own_function

LOADS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")  # of arguments, also for nested functions; not of attributes


def reads(function: Any, position: int) -> bool:
    """Whether a function mentions an argument, by position; one that is only passed on counts, too.

    >>> reads(lambda x, y, s: s[0] + x.y[0], 1), reads(lambda x, y, s: y.tags[s[0]], 1)
    (False, True)
    """
    function = own_function(function)
    name = function.__code__.co_varnames[position]
    loads = (i.argval for i in dis.get_instructions(function) if any(kind in i.opname for kind in LOADS))
    return any(name in value if isinstance(value, tuple) else name == value for value in loads)
