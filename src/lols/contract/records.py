"""Examples as named tuples whose classes can be found by name.

The name of an argument's class is part of the layout under which a compiled kernel is stored. Records with the same
columns therefore share one class, such as `lols.contract.records.Record__tags__words`, which is created on demand.
"""

from __future__ import annotations

import functools
import keyword
from collections import namedtuple
from typing import Any

from lols.errors import SpaceError

PREFIX = "Record__"


@functools.cache
def record_class(fields: tuple[str, ...]) -> type:
    """The named tuple class with these fields.

    >>> record_class(("words", "tags"))([1, 2], [0, 0]).words
    [1, 2]
    """
    for field in fields:
        if not field.isidentifier() or keyword.iskeyword(field) or "__" in field or "_" in (field[0], field[-1]):
            what = "use a plain identifier without a double underscore or one at its ends"
            raise SpaceError(f"'{field}' cannot name a column: {what}")
    name = PREFIX + "__".join(fields)
    return globals().get(name) or __getattr__(name)


def __getattr__(name: str) -> Any:
    """Create the class of this name, also when a pickled record asks for it."""
    if not name.startswith(PREFIX):
        raise AttributeError(name)
    joined = name.removeprefix(PREFIX)
    record: Any = namedtuple(name, joined.split("__") if joined else [], module=__name__)  # type: ignore[misc]
    record.__getattr__ = _missing  # type: ignore[attr-defined]
    globals()[name] = record
    return record


def _missing(record: Any, name: str) -> Any:
    """What a column that an example does not have comes to.

    >>> record_class(("words",))([1, 2]).topic
    Traceback (most recent call last):
        ...
    AttributeError: the example has no column 'topic', only words
    """
    raise AttributeError(f"the example has no column '{name}', only {', '.join(record._fields) or 'none at all'}")
