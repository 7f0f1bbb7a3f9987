"""Whether functions are still the same, for model files: whatever module they are in, and whatever runs them.

`digest` is stricter: it also changes with the versions of Python's, NumPy's and the library's own code, since
compiled code must never be stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from lols.contract.digest import _describe, plain, reached_helpers

__all__ = ["source_digest"]


def source_digest(functions: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change when a function, a helper, or a constant that one of them reads changes.

    A file that was run as a script and is imported later holds the same functions, under another module's name; and an
    object that shows nothing but its address is the same.

    >>> def one(s):
    ...     return s + 1
    >>> before = likeness({"step": one})
    >>> one.__module__ = "somewhere.else"
    >>> likeness({"step": one}) == before, likeness({"step": lambda s: s + 2}) == before
    (True, False)
    """
    digest, seen = hashlib.sha256(), dict[int, int]()
    for name in sorted(functions):
        function = functions[name]
        digest.update(f"\0{name}=".encode())
        modules = {str(getattr(one, "__module__", "")).encode() for one in (plain(function), *_helpers(function))}
        for part in _describe(function, seen):
            digest.update(b"" if part in modules or b" at 0x" in part else part)
    return digest.hexdigest()[:16]


def _helpers(function: Any) -> list[Any]:
    return list(reached_helpers(function)) if isinstance(plain(function), FunctionType) else []
