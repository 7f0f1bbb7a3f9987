"""How a tagger searches one sentence: the path it takes, the deviations from it, and what each would have cost.

This is Figure 2 of the paper for a sentence of the user's: roll-in, one-step deviations, roll-outs, losses. The costs
are those of the engine that trains; here they are only put into words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lols.errors import LolsError, short
from lols.io import conll
from lols.tasks.explain import DRAWN, FollowedPath, draws_policies, follow
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.files import NO_LABEL, settle, tagged
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import one_sentence


@dataclass(frozen=True)
class LabelDeviation:
    """One label that a word could have got.

    `predicted` is its cost as the model predicts it; `loss` that of the whole sentence when the roll-out has completed
    it, and `cost` how much more that is than with the best label here. Both are None where they are not known.
    """

    label: str
    predicted: float
    loss: float | None
    cost: float | None
    taken: bool
    true: bool


@dataclass(frozen=True)
class WordDecision:
    """One word: its place from 1 on, the label that was predicted, and all legal labels by predicted cost."""

    place: int
    word: str
    true: str | None
    predicted: str
    deviations: tuple[LabelDeviation, ...]

    @property
    def wrong(self) -> bool:
        """Whether the label is known to be another one."""
        return self.true is not None and self.true != self.predicted

    @property
    def taken(self) -> LabelDeviation:
        """What was done."""
        return next(d for d in self.deviations if d.taken)

    def shown(self, top: int) -> list[LabelDeviation]:
        """The `top` labels of the least predicted cost, the one taken, and the true one."""
        return [d for k, d in enumerate(self.deviations) if k < top or d.taken or d.true]


@dataclass(frozen=True)
class Explanation:
    """A sentence, decision by decision, in the order in which they were made.

    `loss` is that of the path taken; `roll_out` who completed the deviations, None if no costs are known.
    """

    decisions: tuple[WordDecision, ...]
    loss_name: str
    direction: str
    loss: float | None = None
    roll_out: str | None = None
    beta: float | None = None
    note: str = ""

    def as_dict(self, top: int) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        shown = tuple(replace(d, deviations=tuple(d.shown(top))) for d in self.decisions)
        made = asdict(replace(self, decisions=shown))
        return made | {"words": made.pop("decisions")}


def explain_sentence(
    tagger: Any,
    sentence: Sequence[Any] | Corpus,
    labels: Sequence[str] | None = None,
    *,
    roll_out: str | None = None,
    beta: Any = None,
    compiled: bool = True,
) -> Explanation:
    """Follow a tagger through a sentence, and evaluate its deviations where the true labels are given.

    The deviations are completed as in the tagger's training, unless `roll_out` and `beta` say otherwise; a mixture's
    costs are averages, not draws.

    >>> from lols import Tagger
    >>> sentences, tags = [["the", "dog", "barks"], ["a", "cat", "sleeps"]], [["D", "N", "V"], ["D", "N", "V"]]
    >>> made = explain_sentence(Tagger().fit(sentences, tags), ["a", "dog"], ["D", "V"], roll_out="learned")
    >>> made.loss, [(d.label, d.loss, d.cost) for d in made.decisions[1].shown(1)]
    (1.0, [('N', 1.0, 1.0), ('V', 0.0, 0.0)])
    """
    corpus = sentence if isinstance(sentence, Corpus) else corpus_of([sentence])
    words = _strings(corpus)
    corpus = with_clusters(corpus, tagger.clusters)
    task = tagger.task_
    if corpus.tokens == 0:
        raise LolsError("there are no words in this sentence: nothing is decided")
    true, labelled, note = None, None, _written(task)
    if labels is not None:
        numbers = task.number(labels)
        if (numbers < 0).any():
            raise LolsError(f"label '{short(labels[int(np.argmin(numbers))])}' was never seen in training")
        true, labelled = task.actions_of(numbers, corpus.offsets), task.examples(corpus, numbers)
        if draws_policies(tagger._fitted):
            note = f"{note} {DRAWN}".strip()
    path = follow(tagger, task.examples(corpus), labelled, roll_out=roll_out, beta=beta, compiled=compiled)
    decisions = _decisions(task, words, true, path)
    return Explanation(decisions, task.loss, task.direction, path.loss, path.roll_out, path.beta, note)


def _written(task: Any) -> str:
    """How labels read here, where that is not how the user writes them."""
    if task.scheme is None or (task.direction == "forward" and task.scheme == task.inner_scheme):
        return ""
    turned = (
        ", from the last word to the first: a span begins with its last word" if task.direction == "backward" else ""
    )
    return f"Labels are as the tagger itself writes them: in {task.inner_scheme}{turned}."


def _decisions(
    task: Any, words: Sequence[str], true: np.ndarray | None, path: FollowedPath
) -> tuple[WordDecision, ...]:
    """Numbers to names; what is illegal is left out."""
    labels, made = task.inner_labels, []
    places = range(len(words)) if task.direction == "forward" else range(len(words) - 1, -1, -1)
    for k, place in enumerate(places):
        right = None if true is None else int(true[k])
        deviations = tuple(LabelDeviation(labels[a], *numbers, a == right) for a, numbers in path.actions(k))
        named = None if right is None else labels[right]
        made.append(WordDecision(place + 1, words[place], named, labels[path.taken[k]], deviations))
    return tuple(made)


# --- where sentences come from ----------------------------------------------------------------------------------------


def read_sentence(
    tagger: Any, path: str | os.PathLike[str], number: int, columns: FileColumns
) -> tuple[Corpus, list[str] | None, int]:
    """Sentence `number` of a file, counted from 1, its labels if it has any, and how many sentences there are."""
    columns = settle(path, columns)
    label = str(columns.label)
    wanted = [columns.word, label, *(columns.use or {}).values()]
    whole = conll.read(path, wanted, format=columns.format, header=columns.header, optional=[label])
    one, count = one_sentence(whole, number, path)
    data = tagged([one], columns)
    labels, known = [data.names[k] for k in data.numbers], set(tagger.task_.labels)
    if all(name in ("", NO_LABEL) and name not in known for name in labels):
        return data.corpus, None, count
    for k, name in enumerate(labels):
        if name not in known:
            raise LolsError(
                f"{data.place(k)}: label '{name}' was never seen in training; name the right column with --column (or "
                "one that the file does not have, for predictions only)"
            )
    return data.corpus, labels, count


def _strings(corpus: Corpus) -> list[str]:
    """The words, or the first column in their place."""
    column = corpus.columns.get(WORD) or next(iter(corpus.columns.values()))
    texts = column.texts.strings()
    return [texts[k] for k in column.numbers.tolist()]
