"""A parser and a treebank as a case for a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.errors import LolsError
from lols.tasks.case import Case, Naming, draw_examples, teacher_of
from lols.tasks.parsing.input import punctuation
from lols.tasks.parsing.inspect import action_name
from lols.tasks.parsing.task import NETWORK
from lols.tasks.parsing.treebank import taught
from lols.tasks.tokens.corpus import Corpus


def parser_examples(
    parser: Any, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str]
) -> tuple[Examples, list[str]]:
    """Sentences with their trees as the parser would be taught them, and what was changed for that."""
    task, notes = parser.task_, []
    missing = [name for name in task.columns if name not in corpus.columns]
    if missing:
        raise LolsError(f"the parser looks at the column '{missing[0]}', which is not there")
    gold = taught(task, heads, numbers, names, corpus.offsets)
    if gold.mended:
        notes.append(f"Sentences with several roots: {gold.mended:,}; all but the first root are attached to it.")
    if gold.lifted:
        lifted = f"Words lifted to make trees projective: {gold.lifted:,}"
        notes.append(f"{lifted}; losses are those of the trees as taught.")
    if gold.unseen:
        notes.append(f"Never seen in training, and so always wrong: {', '.join(gold.unseen)}.")
    weights = None if parser.punctuation else (~punctuation(corpus)).astype(np.float64)
    return task.examples(corpus, gold.trees, weights), notes


def parser_case(parser: Any, examples: Examples, of: int, reference: str | None, notes: Sequence[str] = ()) -> Case:
    """The case of a parser; decisions are named by their transitions."""
    task = parser.task_
    teacher, name = teacher_of(parser, reference)
    names = [action_name(task, a) for a in range(len(task.actions))]
    more = [f"The greedy search is judged, not the beam of {parser.beam}."] if parser.beam > 1 else []
    if task.labelling == NETWORK:
        more.append("Losses count heads: the network labels arcs after the search.")
    naming = Naming(lambda _, a: names[a])
    return Case(parser._fitted, examples, teacher, naming, of, name, (*notes, *more), parser.reference)


def treebank_case(
    parser: Any, corpus: Corpus, trees: tuple[Any, ...], reference: str | None, limit: int | None, seed: int
) -> Case:
    """The case of sentences and trees in columns, of which at most `limit` are drawn."""
    examples, notes = parser_examples(parser, corpus, *trees)
    return parser_case(parser, *draw_examples(examples, limit, seed), reference, notes)
