"""Strings as numbers: `text` hashes them, for features; `Labels` numbers them, for actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, overload

import numpy as np

from lols.errors import SpaceError, shown
from lols.kernels.hashing import mix

SALT = 0x7A66
CACHED = 1 << 18  # hashes of this many distinct strings are cached
SHOWN = 6  # labels named in an error message


@overload
def text(string: str) -> int: ...  # type: ignore[overload-overlap]
@overload
def text(string: Iterable[str]) -> np.ndarray: ...
def text(string: str | Iterable[str]) -> int | np.ndarray:
    """Hash a string to a 64-bit integer, or each string of a list; the same in every process and version.

    Compiled functions work on numbers only, so words, names and categories are hashed in `encode`. That needs no
    vocabulary: a word that was never seen before has weights of zero.

    Parameters
    ----------
    string
        A string, or a list of strings.

    Examples
    --------
    >>> text("cat") == text("cat"), text("cat") == text("Cat")
    (True, False)
    >>> text(["the", "cat"]).tolist() == [text("the"), text("cat")]
    True
    """
    if isinstance(string, str):
        return _hash(str(string))
    if isinstance(string, bytes) or not isinstance(string, Iterable):
        raise SpaceError(f"lols.text takes a string or a list of strings, not {type(string).__name__}")
    strings = list(string)
    for k, entry in enumerate(strings):
        if not isinstance(entry, str):
            raise SpaceError(
                f"lols.text takes strings; entry {k} is {type(entry).__name__} ({shown(entry)}): use str() on it"
            )
    return np.array([_hash(str(entry)) for entry in strings], np.int64)


@lru_cache(CACHED)
def _hash(string: str) -> int:
    value = mix(SALT, len(string))
    for character in string:
        value = mix(value, ord(character))
    return value if value not in (0, 1) else 2  # 0 and 1 stand for "nothing" and "outside" in templates


class Labels:
    """The labels that a policy chooses among, numbered from 0 in the given order.

    Parameters
    ----------
    *names
        The labels, or one collection of them.

    Examples
    --------
    >>> tags = Labels("noun", "verb", "other")
    >>> tags.numbers(["verb", "noun"]).tolist(), tags.names([1, 0]), len(tags)
    ([1, 0], ['verb', 'noun'], 3)
    >>> Labels.of([{"tags": ["verb", "noun"]}, {"tags": ["verb"]}], "tags")
    Labels('noun', 'verb')

    """

    def __init__(self, *names: Any):
        labels: Any = names
        if len(names) == 1 and isinstance(names[0], Iterable) and not isinstance(names[0], str | bytes):
            labels = names[0]
        if isinstance(labels, set | frozenset):
            labels = _sorted(labels)  # the order of a set differs from process to process
        self._names = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
        try:
            self._numbers = {name: number for number, name in enumerate(self._names)}
        except TypeError as error:
            raise SpaceError(f"labels are strings, numbers or tuples of those ({error})") from None
        if len(self._numbers) < len(self._names):
            twice = next(name for k, name in enumerate(self._names) if name in self._names[:k])
            raise SpaceError(f"label {shown(twice)} is given twice: leave one out")

    @classmethod
    def of(cls, data: Any, column: str) -> Labels:
        """All labels in a column of the data (objects, columns or a frame), sorted, without missing values.

        Parameters
        ----------
        data
            The objects whose labels are collected.
        column
            The key or attribute that has the labels of an object.

        """
        from lols.contract.frames import column_of

        labels: set[Any] = set()
        for value in column_of(data, column):
            labels.update(label for label in (value if _is_list(value) else [value]) if not _is_missing(label))
        if not labels:
            raise SpaceError(f"column '{column}' has no labels: give data with the truth")
        return cls(_sorted(labels))

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Any:
        return iter(self._names)

    def __repr__(self) -> str:
        return f"Labels({', '.join(map(repr, self._names))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def number(self, name: Any) -> int:
        """The number of a label.

        Parameters
        ----------
        name
            A label.

        """
        try:
            return self._numbers[name]
        except (KeyError, TypeError):
            listed = ", ".join([*map(shown, self._names[:SHOWN]), *(["..."] if len(self) > SHOWN else [])])
            raise SpaceError(f"{shown(name)} is not one of the {len(self)} labels ({listed})") from None

    def numbers(self, names: Iterable[Any]) -> np.ndarray:
        """The numbers of several labels.

        Parameters
        ----------
        names
            Labels.

        """
        return np.array([self.number(name) for name in names], np.int64)

    def name(self, number: int) -> Any:
        """The label of a number.

        Parameters
        ----------
        number
            The number of a label.

        """
        return self.names((number,))[0]

    def names(self, numbers: Iterable[int]) -> list[Any]:
        """The labels of several numbers, for `output`.

        Parameters
        ----------
        numbers
            Numbers of labels.

        """
        count, names = len(self._names), []
        for number in numbers:
            if not 0 <= number < count:
                raise SpaceError(f"{number} is not the number of a label: they are numbered from 0 to {count - 1}")
            names.append(self._names[int(number)])
        return names


def _sorted(names: Iterable[Any]) -> list[Any]:
    try:
        return sorted(names, key=lambda name: (isinstance(name, str), name))
    except TypeError as error:
        raise SpaceError(f"these labels have no order ({error}): give them as a list, Labels([...])") from None


def _is_missing(name: Any) -> bool:
    return name is None or (isinstance(name, float | np.floating) and bool(np.isnan(name)))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray | Labels | set | frozenset) and not isinstance(value, str | bytes)


def is_text(value: Any) -> bool:
    """Whether a value is a string, or a list of strings."""
    if isinstance(value, str):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "U" or (value.dtype.kind == "O" and value.size > 0 and isinstance(value[0], str))
    return isinstance(value, Sequence) and not isinstance(value, bytes) and bool(value) and isinstance(value[0], str)


def numbered(value: Any, labels: Labels) -> Any:
    """A label or a list of labels as numbers."""
    if isinstance(value, Mapping):
        raise SpaceError(f"give a list of labels, not {type(value).__name__}")
    return labels.numbers(value) if _is_list(value) else labels.number(value)
