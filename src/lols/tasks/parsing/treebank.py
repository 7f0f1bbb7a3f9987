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
from lols.tasks.parsing.trees import check_trees, single_root

ARROW = "↑"
UNLABELLED = "dep"
ROOT = "root"
SELDOM = 100_000  # words for each time that a way of lifting must be seen again to be told from others
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


class Prepared(NamedTuple):
    """A treebank as the parser is trained on it."""

    trees: Trees
    names: list[str]  # of its relations
    root: int
    right: list[int]  # relations of words after their head, and
    left: list[int]  # before it
    roots: str
    nonprojective: int  # sentences that were lifted
    lifted: int  # words
    rare: int  # of them, lifted in ways too rare to be learned: they stay where they are
    mended: np.ndarray  # sentences that had several roots


def prepare(heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], offsets: np.ndarray, roots: str) -> Prepared:
    """Mend and lift trees; `names` are numbered by `numbers`. With roots="auto", the trees say how many there may be.

    >>> heads, names = np.array([-1, 3, 0, 0]), ["root", "a", "b", "c"]
    >>> made = prepare(heads, np.arange(4), names, np.array([0, 4]), "one")
    >>> made.names, made.trees.heads.tolist(), made.lifted
    (['a↑c', 'b', 'c', 'root'], [-1, 0, 0, 0], 1)
    """
    wrong = [name for name in names if ARROW in name]
    if wrong:
        raise LolsError(f"the relation '{wrong[0]}' holds an arrow, which stands for lifted words here; rename it")
    found = check_trees(heads, offsets)
    several = found.roots > 1
    if roots == "auto":
        roots = "many" if several.mean() > OFTEN else "one"
    root_name = _most(numbers[heads == -1], names) if (heads == -1).any() else ROOT
    heads, numbers, names, mended = with_roots(roots, heads, numbers, names, offsets)
    lifted = lift(heads, numbers, offsets)
    pairs, code = list(names), numbers.copy()
    moved = np.flatnonzero(lifted.origin >= 0)
    crossed = np.unique(np.searchsorted(offsets, moved, side="right"))  # sentences
    how = [f"{names[numbers[k]]}{ARROW}{names[lifted.origin[k]]}" for k in moved.tolist()]
    counts = Counter(how)
    kept = [counts[name] > heads.size // SELDOM for name in how]
    for k, name, often in zip(moved.tolist(), how, kept, strict=True):
        if often:
            if name not in pairs:
                pairs.append(name)
            code[k] = pairs.index(name)
    used = sorted({*(pairs[k] for k in np.unique(code).tolist()), root_name})
    place = {name: k for k, name in enumerate(used)}
    relations = np.array([place.get(name, -1) for name in pairs], np.int64)[code]
    own = np.arange(heads.size) - np.repeat(offsets[:-1], np.diff(offsets))
    right = np.unique(relations[(lifted.heads >= 0) & (lifted.heads < own)]).tolist()
    left = np.unique(relations[lifted.heads > own]).tolist()
    return Prepared(
        Trees(lifted.heads, relations),
        used,
        place[root_name],
        right or left or [place[root_name]],  # the last words must go somewhere
        left,
        roots,
        crossed.size,
        moved.size,
        kept.count(False),
        mended,
    )


class Taught(NamedTuple):
    """True trees as a trained parser can be judged by them, and what was changed for that."""

    trees: Trees
    mended: int  # sentences that had several roots
    lifted: int  # words
    unseen: list[str]  # relations that the parser does not know, numbered -1


def taught(task: Any, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], offsets: np.ndarray) -> Taught:
    """Trees as training would prepare them for the task of a parser."""
    heads, numbers, names, mended = with_roots(task.roots, heads, numbers, names, offsets)
    lifted = lift(heads, numbers, offsets)
    moved = np.flatnonzero(lifted.origin >= 0)
    if task.labelling == "none":
        return Taught(Trees(lifted.heads, (lifted.heads < 0).astype(np.int64)), mended.size, moved.size, [])
    known = {name: k for k, name in enumerate(task.relations)}
    relations = np.array([known.get(name, -1) for name in names], np.int64)[numbers]
    for k in moved.tolist():
        relations[k] = known.get(f"{names[numbers[k]]}{ARROW}{names[lifted.origin[k]]}", relations[k])
    unseen = {names[n] for n in np.unique(numbers[(relations < 0) & (lifted.heads >= 0)]).tolist()}
    return Taught(Trees(lifted.heads, relations), mended.size, moved.size, sorted(unseen))


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


def _most(numbers: np.ndarray, names: Sequence[str]) -> str:
    return names[int(np.bincount(numbers, minlength=len(names)).argmax())]
