"""What users give to a tagger, and what its model files hold: checked, and brought into one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

import numpy as np

from lols.errors import LolsError, short, shown
from lols.io.strings import Texts, intern, texts_of
from lols.tasks.options import is_plain


def known_numbers(task: Any, names: Sequence[str]) -> np.ndarray:
    """Numbers of tags that must be among the classes."""
    numbers = task.number(names)
    if (numbers < 0).any():
        wrong = names[int(np.argmin(numbers))]
        raise LolsError(f"tag '{short(wrong)}' is not among the classes of the first call: name it there")
    return numbers


def check_options(options: Mapping[str, Any]) -> None:
    """Options in a model file must be of the types that they are written with."""
    whole, words = ("passes", "batch_size", "seed"), ("loss", "direction", "reference", "learner")
    for name, value in options.items():
        fits = is_plain(value)
        if name == "clusters":
            fits = value is None
        elif name in whole:
            fits = isinstance(value, int)
        elif name in words:
            fits = isinstance(value, str) and fits
        if not fits:
            raise ValueError(f"option '{name}' is {shown(value)}")


def is_list(value: Any) -> bool:
    """Whether something is a sequence of things, not one thing, nor a set without an order."""
    return (
        not isinstance(value, str | bytes | bytearray | Mapping | Set)
        and hasattr(value, "__len__")
        and hasattr(value, "__iter__")
    )


def checked_sentences(X: Any) -> Sequence[Any]:
    """Sentences as a list of lists."""
    if not is_list(X) or not all(map(is_list, X)):
        raise LolsError("sentences are lists of words: give a list of them, such as [['a', 'dog'], ...]")
    return list(X)


def checked_labels(X: Sequence[Any], y: Sequence[Sequence[str]]) -> list[str]:
    """All tags in one list; they must fit the sentences."""
    if not is_list(y) or not all(map(is_list, y)):
        raise LolsError("tags are lists of strings, one list for each sentence, such as [['DET', 'NOUN'], ...]")
    if len(X) != len(y):
        raise LolsError(f"there are {len(X)} sentences, but {len(y)} lists of tags")
    for k, (words, tags) in enumerate(zip(X, y, strict=True)):
        if len(words) != len(tags):
            raise LolsError(f"sentence {k} has {len(words)} words, but {len(tags)} tags")
        for tag in tags:
            if not isinstance(tag, str) or not tag or any(0xD800 <= ord(c) < 0xE000 for c in tag):
                raise LolsError(f"sentence {k}: tag {shown(tag)} is not a string with something in it")
    return [tag for tags in y for tag in tags]


def check_lengths(offsets: np.ndarray) -> None:
    """There must be sentences to learn from, and words in each."""
    lengths = np.diff(offsets)
    if lengths.size == 0:
        raise LolsError("there are no sentences to learn from: give at least one")
    if (lengths == 0).any():
        raise LolsError(f"sentence {int(np.argmin(lengths))} is empty: leave it out")


def numbered(labels: Any) -> tuple[np.ndarray, list[str]]:
    """Numbers of tags, and the tags that they number."""
    if isinstance(labels, tuple):
        return labels
    column = intern(texts_of(labels))
    return column.numbers, column.texts.strings()


def cut(flat: Any, offsets: np.ndarray) -> list[Any]:
    """One list or array per sentence again."""
    return [flat[a:b] for a, b in pairwise(offsets.tolist())]


def string_tensors(name: str, strings: list[str]) -> dict[str, np.ndarray]:
    """Strings as arrays of a model file."""
    made = texts_of(strings)
    return {name: made.buffer, f"{name}_end": made.end}


def strings_of(name: str, tensors: Mapping[str, np.ndarray]) -> list[str]:
    """Strings that `string_tensors` made into arrays."""
    try:
        return Texts.from_ends(tensors[name], tensors[f"{name}_end"]).strings()
    except ValueError as error:
        raise ValueError(f"the strings of '{name}' are damaged ({error})") from None
