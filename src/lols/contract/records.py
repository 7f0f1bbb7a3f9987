"""Examples as named tuples whose class can be found again by its name.

A compiled kernel is kept under the layout of its arguments, in which classes are told by their names: two records with
the same columns are of one class, `lols.contract.records.Record__tags__words`, which is made when asked for.
"""

from __future__ import annotations

import keyword
from collections import namedtuple
from typing import Any

from lols.errors import SpaceError

__all__ = ["record_class"]

PREFIX = "Record__"


def record_class(fields: tuple[str, ...]) -> type:
    """Give the named tuple class with these fields.

    >>> record_class(("words", "tags"))([1, 2], [0, 0]).words
    [1, 2]
    """
    for field in fields:
        if not field.isidentifier() or keyword.iskeyword(field) or "__" in field or field.startswith("_"):
            raise SpaceError(f"'{field}' cannot name a column: use a plain identifier without a double underscore")
    name = PREFIX + "__".join(fields)
    return globals().get(name) or __getattr__(name)


def __getattr__(name: str) -> Any:
    if not name.startswith(PREFIX):
        raise AttributeError(name)
    made: Any = namedtuple(  # type: ignore[misc]
        name, name[len(PREFIX) :].split("__") if len(name) > len(PREFIX) else [], module=__name__
    )
    globals()[name] = made
    return made
