"""Sentences in columns, from files or from Python: one column per kind of string, and features that a user computed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from lols.contract.choosing import offsets_within, runs
from lols.contract.features import feature
from lols.errors import LolsError, short, shown
from lols.io.strings import Column, Texts, intern, texts_of
from lols.tasks.tokens.attributes import hash_text
from lols.tasks.tokens.encoding import Extra

WORD = "word"
LARGEST = 1e18  # of a feature's value: squares of it must fit single precision
_NAME = re.compile(r"[^\W\d][\w-]*")


class Corpus(NamedTuple):
    """The input of some sentences."""

    columns: dict[str, Column]
    offsets: np.ndarray  # int64 [sentences + 1]: the token at which each begins
    extra: Extra | None = None

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return int(self.offsets[-1])

    def backward(self) -> Corpus:
        """The same sentences, each from its end to its beginning."""
        order = backward(self.offsets)
        columns = {name: column._replace(numbers=column.numbers[order]) for name, column in self.columns.items()}
        extra = self.extra
        if extra is not None:
            at, first = runs(extra.first, order)
            extra = Extra(first, extra.ids[at], extra.values[at])
        return Corpus(columns, self.offsets, extra)

    def with_columns(self, names: Iterable[str]) -> Corpus:
        """The same sentences with all of these columns; those that are missing have empty strings."""
        missing = [name for name in names if name not in self.columns]
        empty = Column(np.zeros(self.tokens, np.int64), texts_of([""]))
        return self._replace(columns=self.columns | dict.fromkeys(missing, empty))

    def select(self, sentences: np.ndarray) -> Corpus:
        """The sentences with these numbers, in their order, without features that a user computed."""
        tokens, offsets = runs(self.offsets, sentences)
        columns = {name: column._replace(numbers=column.numbers[tokens]) for name, column in self.columns.items()}
        return Corpus(columns, offsets)

    def fingerprint(self, *more: np.ndarray) -> str:
        """Sixteen hexadecimal digits that change with the data."""
        digest = hashlib.sha256(self.offsets.tobytes())
        for name, column in self.columns.items():
            digest.update(name.encode() + column.numbers.tobytes())
            digest.update(b"\n".join(column.texts.pieces()))
        for array in more:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


def backward(offsets: np.ndarray) -> np.ndarray:
    """The order of tokens that turns every sentence round.

    >>> backward(np.array([0, 2, 5])).tolist()
    [1, 0, 4, 3, 2]
    """
    lengths = np.diff(offsets)
    return np.repeat(offsets[:-1] + offsets[1:] - 1, lengths) - np.arange(int(offsets[-1]))


def offsets_of(sentences: Sequence[Sequence[Any]]) -> np.ndarray:
    """Where each sentence begins among all tokens."""
    return offsets_within(np.fromiter(map(len, sentences), np.int64, len(sentences)))


def corpus_of(sentences: Sequence[Sequence[Any]]) -> Corpus:
    """Sentences as lists of strings, or of dictionaries: strings become columns, numbers features of their own.

    >>> made = corpus_of([["the", "dog"], ["the"]])
    >>> made.offsets.tolist(), made.columns["word"].numbers.tolist()
    ([0, 2, 3], [0, 1, 0])
    >>> made = corpus_of([[{"word": "the", "known": True, "length": 3}]])
    >>> list(made.columns), made.extra.values.tolist()
    (['word'], [1.0, 3.0])
    """
    offsets = offsets_of(sentences)
    tokens = list(chain.from_iterable(sentences))
    if all(isinstance(token, str) for token in tokens):
        return Corpus({WORD: intern(_checked(tokens, offsets))}, offsets)
    return _from_dictionaries(tokens, offsets)


def _checked(strings: Sequence[str], offsets: np.ndarray) -> Texts:
    try:
        return texts_of(strings)
    except UnicodeEncodeError:
        at = next(i for i, s in enumerate(strings) if any(0xD800 <= ord(c) < 0xE000 for c in s))
        raise LolsError(
            f"{_place(at, offsets)}: the string holds half of a surrogate pair, which is not text"
        ) from None


def _place(token: int, offsets: np.ndarray) -> str:
    sentence = int(np.searchsorted(offsets, token, side="right")) - 1
    return f"sentence {sentence}, word {token - int(offsets[sentence])}"


def _from_dictionaries(tokens: Sequence[Any], offsets: np.ndarray) -> Corpus:
    names: dict[str, None] = {}
    numbers: list[list[tuple[int, float]]] = []
    ids: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if not isinstance(token, Mapping):
            if isinstance(token, str):
                at = next(k for k, other in enumerate(tokens) if not isinstance(other, str))
            kind = type(tokens[at]).__name__
            raise LolsError(
                f"{_place(at, offsets)}: words are all strings, or all dictionaries of features; this one is {kind}"
            )
        own = []
        for name, value in token.items():
            if isinstance(value, str):
                if not _NAME.fullmatch(str(name)) or name in ("tag", "bias"):
                    raise LolsError(
                        f"{_place(at, offsets)}: a column cannot be called {str(name)!r}: take letters, digits, _ "
                        "and -, and neither tag nor bias"
                    )
                names[str(name)] = None
            elif isinstance(value, bool | int | float | np.number | np.bool_) and -LARGEST <= value <= LARGEST:
                own.append((ids.setdefault(str(name), feature(hash_text(str(name)))), float(value)))
            else:
                raise LolsError(
                    f"{_place(at, offsets)}: feature '{short(name)}' is {shown(value)}; give a string, a bool or a "
                    "finite number"
                )
        numbers.append([pair for pair in own if pair[1] != 0.0])
    columns = {
        name: intern(_checked([token.get(name, "") for token in tokens], offsets))
        for name in sorted(names, key=lambda name: (name != WORD, name))
    }
    extra = None
    if ids:
        flat: Iterable[tuple[int, float]] = list(chain.from_iterable(numbers))
        extra = Extra(
            offsets_of(numbers), np.array([i for i, _ in flat], np.int64), np.array([v for _, v in flat], np.float32)
        )
    return Corpus(columns, offsets, extra)


def sentence_counts(corpus: Corpus) -> dict[str, int]:
    """How large a corpus is."""
    return {"tokens": corpus.tokens, "sentences": corpus.offsets.size - 1}
