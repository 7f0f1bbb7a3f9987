"""What a network knows of strings: numbers of words, characters and given tags, one row for each word of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.contract.examples import Ragged
from lols.io.strings import Column
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.input import string_tensors, strings_of

__all__ = ["NetworkVocabulary"]

NOTHING, UNKNOWN, FIRST = 0, 1, 2  # numbers; those of the vocabulary begin with FIRST
LONGEST = 16  # characters of a word that are looked at
LEAST = 2  # times that a word must be seen


@dataclass(frozen=True)
class NetworkVocabulary:
    """Lower-case words that were seen twice, characters, and the values of further columns.

    >>> from lols.tasks.tokens.corpus import corpus_of
    >>> corpus = corpus_of([["The", "cat"], ["the", "dog"]])
    >>> known = NetworkVocabulary.of(corpus)
    >>> known.words, known.rows(corpus)[:, :4].tolist()
    (['the'], [[0, 2, 2, 3], [1, 1, 5, 6], [2, 2, 7, 3], [3, 1, 8, 9]])
    """

    words: list[str]
    characters: list[str]
    given: dict[str, list[str]]

    @classmethod
    def of(cls, corpus: Corpus, columns: Sequence[str] = ()) -> NetworkVocabulary:
        """The vocabulary of a corpus, with these further columns."""
        words, times = _strings(corpus.columns[WORD])
        seen: Counter[str] = Counter()
        letters: dict[str, None] = {}
        for word, count in zip(words, times.tolist()):
            seen[word.lower()] += count
            letters |= dict.fromkeys(word[:LONGEST])
        given = {name: _strings(corpus.columns[name])[0] for name in columns}
        return cls([word for word, count in seen.items() if count >= LEAST], list(letters), given)

    @property
    def width(self) -> int:
        """How many numbers describe a word."""
        return 2 + len(self.given) + LONGEST

    def sizes(self) -> dict[str, Any]:
        """How many numbers there are of each kind, as `lols.torch.sentences.NetworkSizes` takes them."""
        given = [FIRST + len(values) for values in self.given.values()]
        return {
            "words": FIRST + len(self.words),
            "characters": FIRST + len(self.characters),
            "given": given,
            "longest": LONGEST,
        }

    def rows(self, corpus: Corpus) -> np.ndarray:
        """A row for each word: its form in this corpus, its word, its given tags, its characters."""
        column = corpus.columns[WORD]
        forms = column.texts.strings()
        letters = {letter: FIRST + k for k, letter in enumerate(self.characters)}
        spelled = np.zeros((len(forms), LONGEST), np.int64)
        for k, form in enumerate(forms):
            cut = form[:LONGEST]
            spelled[k, : len(cut)] = [letters.get(letter, UNKNOWN) for letter in cut]
        numbers = [column.numbers, _numbers([form.lower() for form in forms], self.words)[column.numbers]]
        for name, values in self.given.items():
            other = corpus.columns.get(name)
            if other is None:
                numbers.append(np.full(column.numbers.size, UNKNOWN))
            else:
                numbers.append(_numbers(other.texts.strings(), values)[other.numbers])
        return np.concatenate([np.stack(numbers, axis=1), spelled[column.numbers]], axis=1)

    def column(self, corpus: Corpus) -> Ragged:
        """These rows as a column of examples."""
        return Ragged(self.rows(corpus).reshape(-1), corpus.offsets * self.width)

    # --- model files ---

    def tensors(self) -> dict[str, np.ndarray]:
        """The strings as arrays."""
        made = string_tensors("network.words", self.words) | string_tensors("network.characters", self.characters)
        for name, values in self.given.items():
            made |= string_tensors(f"network.given.{name}", values)
        return made

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray], columns: Sequence[str]) -> NetworkVocabulary:
        """What `tensors` made, with these further columns."""
        words, characters = (strings_of(f"network.{name}", tensors) for name in ("words", "characters"))
        return cls(words, characters, {name: strings_of(f"network.given.{name}", tensors) for name in columns})


def _strings(column: Column) -> tuple[list[str], np.ndarray]:
    """The distinct strings of a column, and how often each is there."""
    strings = column.texts.strings()
    return strings, np.bincount(column.numbers, minlength=len(strings))


def _numbers(strings: Sequence[str], known: Sequence[str]) -> np.ndarray:
    place = {string: FIRST + k for k, string in enumerate(known)}
    return np.array([place.get(string, UNKNOWN) for string in strings], np.int64)
