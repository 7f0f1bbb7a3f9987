"""From the trees of a treebank to those that the parser is trained on, and back.

The parser builds projective trees. Others are lifted (see `projective`): a lifted word's relation says,
after an arrow, which relation the head has that it was lifted from: `nmod↑obj`. Parsing turns that round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lols.errors import LolsError
from lols.tasks.parsing.projective import lift, lower
from lols.tasks.parsing.trees import single_root

ARROW = "↑"
UNLABELLED = "dep"
ROOT = "root"
SELDOM = 100_000  # words for each time that a way of lifting must be seen again to be told from others
RIGHT, LEFT, TOP = "right", "left", "top"  # sides of a head
OFTEN = 0.01  # the share of sentences with several roots from which on that is the treebank's style


class Trees(NamedTuple):
    """Dependency trees in columns: heads counted within the sentence, -1 for the root, and relations by number."""

    heads: np.ndarray
    relations: np.ndarray


class Relations:
    """The relations that a parser gives, those of lifted words among them.

    >>> known = Relations(["det", "nmod", "nmod↑obj", "obj"])
    >>> known.plain
    ['det', 'nmod', 'obj']
    """

    def __init__(self, names: Sequence[str]):
        self.names = list(names)
        self.plain = list(dict.fromkeys(name.partition(ARROW)[0] for name in names))

    @cached_property
    def _plain_of(self) -> np.ndarray:
        number = {name: k for k, name in enumerate(self.plain)}
        return np.array([number[name.partition(ARROW)[0]] for name in self.names], np.int64)

    @cached_property
    def _origin_of(self) -> np.ndarray:
        number = {name: k for k, name in enumerate(self.plain)}
        return np.array([number.get(name.partition(ARROW)[2], -1) for name in self.names], np.int64)

    def restore(self, trees: Trees, offsets: np.ndarray) -> Trees:
        """Trees as the treebank has them: lifted words lowered, relations numbered as in `plain`."""
        relations, origin = self._plain_of[trees.relations], self._origin_of[trees.relations]
        heads = lower(trees.heads, relations, origin, offsets) if (origin >= 0).any() else trees.heads
        return Trees(heads, relations)


class Projected(NamedTuple):
    """Trees as a parser can build them: projective, and with no more roots than it may give."""

    heads: np.ndarray
    numbers: np.ndarray  # of relations
    names: list[str]
    origin: np.ndarray  # the relation of the head that a lifted word had at first, -1 for others
    mended: np.ndarray  # sentences that had several roots

    @property
    def moved(self) -> np.ndarray:
        """The words that were lifted."""
        return np.flatnonzero(self.origin >= 0)


def projected(
    heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], offsets: np.ndarray, roots: str
) -> Projected:
    """Mend and lift trees whose relations are numbered by `names`; sentences have one root, or many."""
    heads, numbers, names, mended = with_roots(roots, heads, numbers, names, offsets)
    lifted = lift(heads, numbers, offsets)
    return Projected(lifted.heads, numbers, names, lifted.origin, mended)


class Counted(NamedTuple):
    """How often words have a relation, by where their head is and how they were lifted."""

    words: Counter[tuple[str, str, str]]  # relation, that of the head it was lifted from, side
    tops: Counter[str]  # the relations of roots
    nonprojective: int  # sentences that were lifted
    mended: np.ndarray  # sentences that had several roots

    @classmethod
    def of(cls, heads: np.ndarray, numbers: np.ndarray, found: Projected, offsets: np.ndarray) -> Counted:
        """The counts of a treebank, given how it was mended and lifted."""
        names, count = found.names, len(found.names)
        wrong = [name for name in names if ARROW in name]
        if wrong:
            raise LolsError(f"the relation '{wrong[0]}' holds an arrow, which stands for lifted words here; rename it")
        own = places_in_sentences(offsets)
        side = np.where(found.heads < 0, 0, np.where(found.heads < own, 1, 2))
        origin = np.where(found.origin >= 0, found.origin, count)
        keys = (found.numbers * (count + 1) + origin) * 3 + side
        words: Counter[tuple[str, str, str]] = Counter()
        for key, often in zip(*np.unique(keys, return_counts=True), strict=True):
            relation, rest = divmod(int(key), 3 * (count + 1))
            words[names[relation], [*names, ""][rest // 3], (TOP, RIGHT, LEFT)[rest % 3]] += int(often)
        roots = zip(*np.unique(numbers[heads == -1], return_counts=True), strict=True)
        tops = Counter({names[number]: int(often) for number, often in roots})
        crossed = np.unique(np.searchsorted(offsets, found.moved, side="right"))
        return cls(words, tops, crossed.size, found.mended)


class Prepared(NamedTuple):
    """What a parser is trained to build."""

    names: list[str]  # of its relations
    root: int
    right: list[int]  # relations of words after their head, and
    left: list[int]  # before it
    roots: str
    nonprojective: int  # sentences that were lifted
    lifted: int  # words
    rare: int  # of them, lifted in ways too rare to be learned: they stay where they are
    mended: np.ndarray  # sentences that had several roots

    @property
    def labels(self) -> int:
        """How many relations there are to tell apart."""
        return len({*self.right, *self.left})

    def facts(self) -> dict[str, int]:
        """What had to be changed."""
        return {
            "nonprojective": self.nonprojective,
            "lifted": self.lifted,
            "rare": self.rare,
            "mended": int(self.mended.size),
        }


def prepare(counted: Counted, tokens: int, roots: str) -> Prepared:
    """The relations that are learned from so many words, those of lifted words among them.

    >>> heads, names, offsets = np.array([-1, 3, 0, 0]), ["root", "a", "b", "c"], np.array([0, 4])
    >>> found = projected(heads, np.arange(4), names, offsets, "one")
    >>> made = prepare(Counted.of(heads, np.arange(4), found, offsets), 4, "one")
    >>> made.names, made.lifted
    (['a↑c', 'b', 'c', 'root'], 1)
    """
    ways: Counter[str] = Counter()
    for (relation, origin, _), often in counted.words.items():
        if origin:
            ways[f"{relation}{ARROW}{origin}"] += often
    root = max(counted.tops, key=lambda name: counted.tops[name]) if counted.tops else ROOT
    sides: dict[str, set[str]] = {RIGHT: set(), LEFT: set(), TOP: {root}}
    rare = 0
    for (relation, origin, side), often in counted.words.items():
        way = f"{relation}{ARROW}{origin}"
        kept = origin and ways[way] > tokens // SELDOM
        rare += often if origin and not kept else 0
        sides[side].add(way if kept else relation)
    names = sorted(set().union(*sides.values()))
    place = {name: k for k, name in enumerate(names)}
    right, left = (sorted(place[name] for name in sides[side]) for side in (RIGHT, LEFT))
    right = right or left or [place[root]]  # the last words must go somewhere
    lifted = sum(ways.values())
    return Prepared(names, place[root], right, left, roots, counted.nonprojective, lifted, rare, counted.mended)


def places_in_sentences(offsets: np.ndarray) -> np.ndarray:
    """The place of each word in its sentence."""
    made: np.ndarray = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], np.diff(offsets))
    return made


class Taught(NamedTuple):
    """True trees as a trained parser can be judged by them, and what was changed for that."""

    trees: Trees
    mended: int  # sentences that had several roots
    lifted: int  # words
    unseen: list[str]  # relations that the parser does not know, numbered -1


def taught(task: Any, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], offsets: np.ndarray) -> Taught:
    """Trees as training would prepare them for the task of a parser."""
    return taught_as(task.relations, task.labelling, projected(heads, numbers, names, offsets, task.roots))


def taught_as(relations: Sequence[str], labelling: str, found: Projected) -> Taught:
    """Projective trees with these relations."""
    moved, names, numbers = found.moved, found.names, found.numbers
    if labelling == "none":
        return Taught(Trees(found.heads, (found.heads < 0).astype(np.int64)), found.mended.size, moved.size, [])
    known = {name: k for k, name in enumerate(relations)}
    made = np.array([known.get(name, -1) for name in names], np.int64)[numbers]
    for k in moved.tolist():
        made[k] = known.get(f"{names[numbers[k]]}{ARROW}{names[found.origin[k]]}", made[k])
    unseen = {names[n] for n in np.unique(numbers[(made < 0) & (found.heads >= 0)]).tolist()}
    return Taught(Trees(found.heads, made), found.mended.size, moved.size, sorted(unseen))


def with_roots(
    roots: str, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    """Trees with one root each, if roots is "one", and which sentences were changed for that."""
    names = list(names)
    if roots != "one":
        return heads, numbers, names, np.zeros(0, np.int64)
    single, mended = single_root(heads, offsets)
    if mended.size:  # a word below another one is no root
        names = names if UNLABELLED in names else [*names, UNLABELLED]
        numbers = np.where(heads != single, names.index(UNLABELLED), numbers)
    return single, numbers, names, mended
