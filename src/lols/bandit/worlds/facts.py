"""What worlds of sentences know of a word by its form: worked out once for each distinct word, then only looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np

__all__ = ["FACTS", "LOWER", "SHAPE", "SUFFIX", "WORD", "WordTable", "form_facts", "text_number"]

WORD, LOWER, SUFFIX, SHAPE, FACTS = 0, 1, 2, 5, 6  # the cells of a word: three suffixes of one to three characters
CAPITAL, CAPITALS, DIGIT, HYPHEN, LETTER = 1, 2, 4, 8, 16  # the bits of a shape


def text_number(text: str) -> int:
    """A signed 64-bit integer for a text, the same everywhere.

    >>> text_number("a") != text_number("b"), -(2**63) <= text_number("") < 2**63
    (True, True)
    """
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little", signed=True)


def form_facts(form: str) -> list[int]:
    """Numbers for a form: itself, in lower case, its last one, two and three characters, and its shape.

    >>> ate, Ate = form_facts("ate"), form_facts("Ate")
    >>> ate[WORD] == Ate[WORD], ate[LOWER] == Ate[LOWER], Ate[SHAPE]
    (False, True, 17)
    """
    lower = form.lower()
    shape = CAPITAL * form[:1].isupper() + CAPITALS * (len(form) > 1 and form.isupper())
    shape += DIGIT * any(map(str.isdigit, form)) + HYPHEN * ("-" in form) + LETTER * any(map(str.isalpha, form))
    return [text_number(form), text_number(lower), *(text_number(lower[-k:]) for k in (1, 2, 3)), shape]


class WordTable:
    """Rows of numbers, one for each distinct word, made when the word is first met.

    >>> lengths = WordTable(lambda word: [len(word), 7], 2)
    >>> lengths(["to", "be", "or"]).tolist(), lengths(["or"]).tolist()
    ([[2, 7], [2, 7], [2, 7]], [[2, 7]])
    """

    def __init__(self, facts: Callable[[str], Sequence[int]], width: int):
        self._facts = facts
        self._places: dict[str, int] = {}
        self._table = np.zeros((1024, width), np.int64)

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """The rows of some words."""
        places = self._places
        try:
            found = [places[word] for word in words]
        except KeyError:
            found = [self._place(word) for word in words]
        return self._table[found]

    def _place(self, word: str) -> int:
        place = self._places.get(word)
        if place is None:
            place = self._places[word] = len(self._places)
            if place == len(self._table):
                self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self._table[place] = self._facts(word)
        return place
