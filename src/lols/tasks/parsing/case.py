"""A parser and a treebank as a case for a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.errors import LolsError
from lols.tasks.case import Case, case_of
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


def treebank_case(
    parser: Any, corpus: Corpus, trees: tuple[Any, ...], reference: str | None, limit: int | None, seed: int
) -> Case:
    """The case of sentences and trees in columns; decisions are named by their transitions."""
    examples, notes = parser_examples(parser, corpus, *trees)
    if parser.beam > 1:
        notes.append(f"The greedy search is judged, not the beam of {parser.beam}.")
    if parser.task_.labelling == NETWORK:
        notes.append("Losses count heads: the network labels arcs after the search.")
    return case_of(parser, examples, partial(action_name, parser.task_), reference, limit, seed, notes)
