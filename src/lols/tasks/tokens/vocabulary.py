"""What a network knows of strings: numbers of words, their affixes, characters and given tags, a row for each word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lols.contract.examples import Ragged, Scalar
from lols.io.strings import Column, Texts
from lols.tasks.tokens.attributes import PREFIX, attribute, attribute_text
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.input import string_tensors, strings_of
from lols.tasks.tokens.pieces import Pieces
from lols.tasks.tokens.vectors import read_vectors

NOTHING, UNKNOWN, FIRST = 0, 1, 2  # numbers; those of the vocabulary begin with FIRST
MARKS = ("", " ")  # of characters: where a word begins and ends
LONGEST = 18  # characters of a word that are looked at, with these
LEAST = 2  # times that a word or an affix must be seen
AFFIXES = ("prefix3", "suffix2", "suffix3")  # attributes of words in lower case
ASPECTS = (*AFFIXES, "shape")


@dataclass(frozen=True)
class NetworkVocabulary:
    """Lower-case words that were seen twice, so their affixes and shapes, characters, and values of further columns.

    >>> from lols.tasks.tokens.corpus import corpus_of
    >>> corpus = corpus_of([["The", "cat"], ["the", "dog"]])
    >>> known = NetworkVocabulary.of(corpus)
    >>> known.words, known.aspects["shape"], known.rows(corpus)[:, :6].tolist()
    (['the'], ['x'], [[0, 2, 2, 2, 2, 1], [1, 1, 1, 1, 1, 2], [2, 2, 2, 2, 2, 2], [3, 1, 1, 1, 1, 2]])
    """

    words: list[str]
    characters: list[str]
    given: dict[str, list[str]]
    aspects: dict[str, list[str]] = field(default_factory=dict)  # by attribute
    vectors: list[str] = field(default_factory=list)  # words with a vector that was learned elsewhere
    vector_size: int = 0
    values: np.ndarray | None = field(default=None, repr=False, compare=False)  # these vectors, when learning begins
    pieces: Pieces | None = None  # what a pretrained encoder reads
    _last: list[Any] = field(default_factory=list, repr=False, compare=False)  # a pair: strings, what is known of them

    @classmethod
    def of(
        cls, corpus: Corpus, columns: Sequence[str] = (), *, vectors: str | None = None, encoder: str | None = None
    ) -> NetworkVocabulary:
        """The vocabulary of a corpus, with these further columns, a file of word vectors and an encoder's folder."""
        words, times = _strings(corpus.columns[WORD])
        seen: Counter[str] = Counter()
        letters: dict[str, None] = {}
        for word, count in zip(words, times.tolist()):
            seen[word.lower()] += count
            letters |= dict.fromkeys(word)
        given = {name: _strings(corpus.columns[name])[0] for name in columns}
        frequent = [word for word, count in seen.items() if count >= LEAST]
        aspects = {}
        for name in ASPECTS:
            counted: Counter[str] = Counter()
            for text, count in zip(_aspect(name, words), times.tolist()):
                counted[text] += count
            aspects[name] = [text for text, count in counted.items() if count >= LEAST and text]
        more: dict[str, Any] = {} if encoder is None else {"pieces": Pieces.of(encoder)}
        if vectors is not None:
            found = read_vectors(vectors, words)
            more |= {"vectors": found.words, "vector_size": found.values.shape[1], "values": found.values}
        return cls(frequent, [*MARKS, *letters], given, aspects, **more)

    def grown(self, corpus: Corpus) -> NetworkVocabulary:
        """The vocabulary with what a further corpus has more; what is known keeps its number."""
        more = NetworkVocabulary.of(corpus, [name for name in self.given if name in corpus.columns])
        given = {name: list(dict.fromkeys([*known, *more.given.get(name, ())])) for name, known in self.given.items()}
        words, characters = (
            [*dict.fromkeys([*a, *b])] for a, b in ((self.words, more.words), (self.characters, more.characters))
        )
        aspects = {name: [*dict.fromkeys([*known, *more.aspects[name]])] for name, known in self.aspects.items()}
        return replace(self, words=words, characters=characters, given=given, aspects=aspects, _last=[])

    @property
    def width(self) -> int:
        """How many numbers describe a word."""
        return 2 + len(self.given) + len(self.aspects) + bool(self.vectors) + LONGEST

    @property
    def folder(self) -> str | None:
        """Where the weights of a pretrained encoder are, when learning begins."""
        return None if self.pieces is None else self.pieces.folder

    def sizes(self) -> dict[str, Any]:
        """How many numbers there are of each kind, as `lols.torch.sentences.NetworkSizes` takes them."""
        given = [FIRST + len(values) for values in (*self.given.values(), *self.aspects.values())]
        return {
            "vectors": (1 + len(self.vectors), self.vector_size) if self.vectors else None,
            "encoder": None if self.pieces is None else self.pieces.config,
            "words": FIRST + len(self.words),
            "characters": FIRST + len(self.characters),
            "given": given,
            "longest": LONGEST,
        }

    def rows(self, corpus: Corpus) -> np.ndarray:
        """A row for each word: its form in this corpus, its word, given tags, affixes and shape, vector, characters."""
        column = corpus.columns[WORD]
        known, aspects, spelled, vector = self._forms(column.texts)
        numbers = [column.numbers, known[column.numbers]]
        for name, values in self.given.items():
            other = corpus.columns.get(name)
            if other is None:
                numbers.append(np.full(column.numbers.size, UNKNOWN))
            else:
                numbers.append(_numbers(other.texts.strings(), values)[other.numbers])
        numbers += [aspect[column.numbers] for aspect in aspects]
        if self.vectors:
            numbers.append(vector[column.numbers])
        return np.concatenate([np.stack(numbers, axis=1), spelled[column.numbers]], axis=1)

    def _forms(self, texts: Texts) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, np.ndarray]:
        """Word, aspects, characters and vector of each distinct string; parts of a corpus share them."""
        known: tuple[np.ndarray, list[np.ndarray], np.ndarray, np.ndarray]
        for last, known in self._last:  # a pair is replaced as a whole, because threads share it
            if last is texts:
                return known
        forms = texts.strings()
        letters = {letter: FIRST + k for k, letter in enumerate(self.characters)}
        spelled = np.zeros((len(forms), LONGEST), np.int64)
        for k, form in enumerate(forms):
            cut = marked(form)
            spelled[k, : len(cut)] = [letters.get(letter, UNKNOWN) for letter in cut]
        place = {word: 1 + k for k, word in enumerate(self.vectors)}
        vector = np.array([place.get(f, place.get(f.lower(), 0)) for f in forms], np.int64)
        words = _numbers([form.lower() for form in forms], self.words)
        aspects = [_numbers(_aspect(name, forms), values) for name, values in self.aspects.items()]
        known = words, aspects, spelled, vector
        self._last[:] = [(texts, known)]
        return known

    def columns(self, corpus: Corpus) -> dict[str, Ragged | Scalar]:
        """What a network reads, as columns of examples: these rows, and the pieces of a pretrained encoder."""
        made: dict[str, Ragged | Scalar] = {
            "network": Ragged(self.rows(corpus).reshape(-1), corpus.offsets * self.width)
        }
        return made if self.pieces is None else made | {"pieces": self.pieces.column(corpus)}

    def begin(self, encoder: Any) -> None:
        """Give a network's encoder of words the vectors that were learned elsewhere."""
        if self.values is not None:
            encoder.take_vectors(self.values)

    # --- model files ---

    def tensors(self) -> dict[str, np.ndarray]:
        """The strings as arrays."""
        made = string_tensors("network.words", self.words) | string_tensors("network.characters", self.characters)
        for name, values in self.given.items():
            made |= string_tensors(f"network.given.{name}", values)
        for name, values in self.aspects.items():
            made |= string_tensors(f"network.aspect.{name}", values)
        if self.vectors:
            made |= string_tensors("network.vectors", self.vectors)
            made["network.vector_size"] = np.array([self.vector_size])
        return made if self.pieces is None else made | self.pieces.tensors()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray], columns: Sequence[str]) -> NetworkVocabulary:
        """What `tensors` made, with these further columns."""
        words, characters = (strings_of(f"network.{name}", tensors) for name in ("words", "characters"))
        given = {name: strings_of(f"network.given.{name}", tensors) for name in columns}
        known = [name for name in ASPECTS if f"network.aspect.{name}" in tensors]
        aspects = {name: strings_of(f"network.aspect.{name}", tensors) for name in known}
        more: dict[str, Any] = {"aspects": aspects, "pieces": Pieces.from_tensors(tensors)}
        if "network.vectors" in tensors:
            more |= {"vectors": strings_of("network.vectors", tensors)}
            more |= {"vector_size": int(tensors["network.vector_size"][0])}
        return cls(words, characters, given, **more)


def marked(word: str) -> list[str]:
    """The characters of a word between marks; of a long word, the first and the last.

    >>> "".join(marked("incomprehensibilities"))
    'incomprebilities '
    """
    most = LONGEST - len(MARKS)
    cut = word if len(word) <= most else word[: most // 2] + word[-(most // 2) :]
    return [MARKS[0], *cut, MARKS[1]]


def _strings(column: Column) -> tuple[list[str], np.ndarray]:
    """The distinct strings of a column, and how often each is there."""
    strings = column.texts.strings()
    return strings, np.bincount(column.numbers, minlength=len(strings))


def _aspect(name: str, words: Sequence[str]) -> list[str]:
    """An affix or the shape of words, empty for those that are too short."""
    which: Any = attribute(name)
    if name not in AFFIXES:
        return [attribute_text(which, word) or "" for word in words]
    size = which.size  # slices, because this takes a share of the time of parsing
    cut = slice(size) if which.kind == PREFIX else slice(-size, None)
    return [word[cut] if len(word) >= size else "" for word in map(str.lower, words)]


def _numbers(strings: Sequence[str], known: Sequence[str]) -> np.ndarray:
    place = {"": NOTHING} | {string: FIRST + k for k, string in enumerate(known)}
    return np.array([place.get(string, UNKNOWN) for string in strings], np.int64)
