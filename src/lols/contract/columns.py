"""`Columns`: which entries of a dictionary are the input and which are the truth, in place of an `encode` function."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from lols.contract.space import Example
from lols.contract.texts import Labels, is_text, numbered, text
from lols.errors import ConfigurationError, SpaceError

Names = str | Iterable[str] | Mapping[str, Labels | None]


class Columns:
    """Which entries of an example, given as a dictionary, are columns of `x` and which are columns of `y`.

    Numbers and lists of numbers are taken as they are. Strings in `x` are hashed by `lols.text`; strings in `y` are
    numbered by their `lols.Labels`, which must be given. An example without any of the entries of `y` is unlabelled. If
    no `y` is named at all, the loss does not depend on a truth.

    Parameters
    ----------
    x
        Names of entries that the policy sees; or a dictionary from names to `Labels`, or to None for entries without
        labels.
    y
        The same for the truth.

    Examples
    --------
    >>> import lols
    >>> columns = lols.Columns(x="letters", y="ends")
    >>> columns.encode({"letters": [104, 105], "ends": [0, 1], "seen": "today"})
    Example(x={'letters': [104, 105]}, y={'ends': [0, 1]}, items=None)
    >>> columns.encode({"letters": [104, 105]}).y is None
    True
    >>> tags = lols.Labels("noun", "verb")
    >>> tagged = lols.Columns(x="words", y={"tags": tags}).encode({"words": ["cats", "eat"], "tags": ["noun", "verb"]})
    >>> tagged.y["tags"].tolist(), tagged.x["words"].tolist() == [lols.text("cats"), lols.text("eat")]
    ([0, 1], True)

    """

    def __init__(self, x: Names, y: Names = ()):
        self.x, self.y = _named("x", x), _named("y", y)
        if not self.x:
            raise ConfigurationError("Columns needs at least one name for x")
        both = set(self.x) & set(self.y)
        if both:
            raise ConfigurationError(f"column '{min(both)}' is in x and in y: the policy would see the truth")

    def __repr__(self) -> str:
        return f"Columns(x={tuple(self.x)!r}, y={tuple(self.y)!r})"

    def encode(self, obj: Any) -> Example:
        """The `Example` of a dictionary.

        Parameters
        ----------
        obj
            An object of the user.

        """
        if not isinstance(obj, Mapping):
            raise SpaceError(
                f"`columns` is for dictionaries, and this is {type(obj).__name__}: give a dictionary with "
                f"{_listed([*self.x, *self.y])}, or write `encode`"
            )
        x = {name: _value(obj, name, labels, "x") for name, labels in self.x.items()}
        if self.y and not any(name in obj for name in self.y):
            return Example(x)
        return Example(x, {name: _value(obj, name, labels, "y") for name, labels in self.y.items()})


def _named(side: str, names: Names) -> dict[str, Labels | None]:
    if isinstance(names, str):
        return {names: None}
    labels_of = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
    for name, labels in labels_of.items():
        if not isinstance(name, str):
            raise ConfigurationError(f"Columns.{side} holds {name!r}: give names of columns")
        if labels is not None and not isinstance(labels, Labels):
            raise ConfigurationError(f"Columns.{side}['{name}'] is {type(labels).__name__}: give lols.Labels, or None")
    return labels_of


def _value(obj: Mapping[str, Any], name: str, labels: Labels | None, side: str) -> Any:
    if name not in obj:
        close = difflib.get_close_matches(name, [key for key in obj if isinstance(key, str)], 1)
        why = f"did you mean '{close[0]}'?" if close else f"it has {_listed(list(obj))}"
        raise SpaceError(f"column '{name}' of {side} is missing: {why}")
    value = obj[name]
    if value is None:
        raise SpaceError(f"column '{name}' of {side} is None: give a number, or leave all columns of y out")
    if hasattr(value, "to_numpy"):  # a column of pandas or polars
        value = value.to_numpy()
    try:
        if labels is not None:
            return numbered(value, labels)
        if is_text(value):
            if side == "y":
                raise SpaceError(f"strings need numbers: give their labels, Columns(y={{'{name}': lols.Labels(...)}})")
            return text(value)
    except SpaceError as error:
        raise SpaceError(f"column '{name}' of {side}: {error}") from None
    return value


def _listed(names: list[Any]) -> str:
    return ", ".join(f"'{name}'" for name in names[:8]) or "nothing"
