"""What users give to a parser: checked, and brought into columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.errors import LolsError, short, shown
from lols.tasks.parsing.treebank import ARROW, ROOT, UNLABELLED
from lols.tasks.parsing.trees import check_trees
from lols.tasks.tokens.corpus import WORD, Corpus, offsets_of
from lols.tasks.tokens.input import is_list, numbered


def checked_trees(X: Sequence[Any], y: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Heads from 0, relations as numbers and names; the trees must fit the sentences, and be trees."""
    if not is_list(y) or not all(map(is_list, y)):
        raise LolsError("trees are lists, one for each sentence, of heads or pairs: [[(2, 'det'), (0, 'root')], ...]")
    if len(X) != len(y):
        raise LolsError(f"there are {len(X)} sentences, but {len(y)} trees")
    heads, relations = [], []
    for k, (words, tree) in enumerate(zip(X, y, strict=True)):
        if len(words) != len(tree):
            raise LolsError(f"sentence {k} has {len(words)} words, but its tree has {len(tree)}")
        for n, entry in enumerate(tree):
            head, relation = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, None)
            fits = isinstance(head, int | np.integer) and not isinstance(head, bool)
            if not fits or not isinstance(relation, str | None):
                raise LolsError(
                    f"sentence {k}, word {n}: {shown(entry)} is neither a head nor a pair of head and relation"
                )
            if not 0 <= head <= len(tree) or head == n + 1:
                raise LolsError(
                    f"sentence {k}, word {n}: its head is {head}; give another word, counted from 1 to {len(tree)}, "
                    "or 0 for the root"
                )
            if relation is None:
                relation = UNLABELLED if head != 0 else ROOT
            if wrong := wrong_relation(relation):
                raise LolsError(f"sentence {k}, word {n}: {wrong}")
            heads.append(int(head) - 1)
            relations.append(relation)
    made = np.array(heads, np.int64)
    found = check_trees(made, offsets_of(X))
    if (found.cycles >= 0).any():
        k = int(np.argmax(found.cycles >= 0))
        raise LolsError(f"sentence {k}: word {found.cycles[k]} is on a cycle of heads; give trees")
    return made, *numbered(relations)


def wrong_relation(name: str) -> str:
    """What is wrong with the name of a relation, if something is."""
    if not name:
        return "its relation is empty; name it"
    if ARROW in name:
        return f"the relation '{short(name)}' holds an arrow, which stands for lifted words here; rename it"
    if any(0xD800 <= ord(c) < 0xE000 for c in name):
        return f"the relation {shown(name)} holds half of a surrogate pair, which is not text; rename it"
    return ""


def punctuation(corpus: Corpus) -> np.ndarray:
    """Which words are punctuation in all their characters, as the CoNLL-X scorer has it."""
    if WORD not in corpus.columns:
        raise LolsError("what is punctuation is seen from the column 'word', which is not there: give it")
    column = corpus.columns[WORD]
    marks = [bool(s) and all(unicodedata.category(c)[0] == "P" for c in s) for s in column.texts.strings()]
    return np.array(marks, np.bool_)[column.numbers]
