"""How a tagger searches one sentence: the labels that it takes, those that it could have taken, and what they cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import LolsError, short
from lols.io import conll
from lols.tasks.explain import DRAWN, ExplainedDecision, Explanation, draws_policies, follow
from lols.tasks.pages import render
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.files import NO_LABEL, settle, tagged
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.verbs import one_sentence

TEMPLATE = Path(__file__).parent / "templates" / "sentence.html.j2"


@dataclass(frozen=True, kw_only=True)
class TaggedSentence(Explanation):
    """A sentence, word by word in the order of tagging; words are numbered by their places, from 1 on."""

    loss_name: str
    direction: str

    ACTION, RIGHT, LOSS = "label", "the true one", "of the whole sentence"

    def about(self, model: str) -> list[str]:
        """What the reader must know of the numbers."""
        count, wrong = len(self.decisions), sum(each.wrong for each in self.decisions)
        if self.decisions[0].reference is None:
            return [f"{count} words, tagged by {model}; no labels, so nothing is known of losses"]
        counted, loss = f"{wrong} wrong" if wrong else "all right", self.loss_text()
        return [
            f"{count} words, {counted}; tagged by {model}{loss}{loss and f' ({self.loss_name})'}",
            *self.roll_out_text(),
        ]

    def cells(self, decision: ExplainedDecision) -> dict[str, list[str]]:
        """The word."""
        legal = decision.reference is None or any(each.right for each in decision.actions)
        wrong = " ✗" if decision.wrong else ""
        return {
            "word": [
                decision.state["word"] + wrong + ("" if legal else f" (true: {decision.reference}, not legal here)")
            ]
        }

    def drawing(self) -> str:
        """The words with their labels, and the true ones below those that are wrong."""
        return render(TEMPLATE, decisions=sorted(self.decisions, key=lambda each: each.number))

    def old_values(self, top: int | None) -> dict[str, Any]:
        """The words, and labels by other names."""
        words = [
            {
                "place": each.number,
                "word": each.state["word"],
                "true": each.reference,
                "predicted": each.taken.action,
                "deviations": [
                    {"label": a.action, "predicted": a.predicted, "loss": a.loss, "cost": a.cost, "taken": a.taken}
                    | {"true": a.right}
                    for a in each.shown(top)
                ],
            }
            for each in self.decisions
        ]
        return {"loss_name": self.loss_name, "direction": self.direction, "note": " ".join(self.notes), "words": words}


def explain_sentence(
    tagger: Any,
    sentence: Sequence[Any] | Corpus,
    labels: Sequence[str] | None = None,
    *,
    roll_out: str | None = None,
    beta: Any = None,
    compiled: bool = True,
) -> TaggedSentence:
    """Follow a tagger through a sentence, and evaluate its deviations where the true labels are given.

    The deviations are completed as in the tagger's training, unless `roll_out` and `beta` say otherwise; a mixture's
    costs are averages, not draws.

    >>> from lols import Tagger
    >>> sentences, tags = [["the", "dog", "barks"], ["a", "cat", "sleeps"]], [["D", "N", "V"], ["D", "N", "V"]]
    >>> made = explain_sentence(Tagger().fit(sentences, tags), ["a", "dog"], ["D", "V"], roll_out="learned")
    >>> made.loss, [(a.action, a.loss, a.cost) for a in made.decisions[1].shown(1)]
    (1.0, [('N', 1.0, 1.0), ('V', 0.0, 0.0)])
    """
    corpus = sentence if isinstance(sentence, Corpus) else corpus_of([sentence])
    words = _strings(corpus)
    corpus = with_clusters(corpus, tagger.clusters)
    task = tagger.task_
    if corpus.tokens == 0:
        raise LolsError("there are no words in this sentence: nothing is decided")
    true, labelled, notes = None, None, _written(task)
    if labels is not None:
        numbers = task.number(labels)
        if (numbers < 0).any():
            raise LolsError(f"label '{short(labels[int(np.argmin(numbers))])}' was never seen in training")
        true, labelled = task.actions_of(numbers, corpus.offsets), task.examples(corpus, numbers)
        if draws_policies(tagger._fitted):
            notes.append(DRAWN)
    path = follow(tagger, task.examples(corpus), labelled, roll_out=roll_out, beta=beta, compiled=compiled)
    decisions, name = [], task.inner_labels.__getitem__
    for k, taken in enumerate(path.taken.tolist()):
        place = k if task.direction == "forward" else len(words) - 1 - k
        right = None if true is None else int(true[k])
        reference = None if right is None else name(right)
        actions = path.actions(k, name, [right])
        decisions.append(
            ExplainedDecision(place + 1, {"word": words[place]}, actions, reference, right not in (None, taken))
        )
    return TaggedSentence(
        decisions=tuple(decisions),
        output=[each.taken.action for each in sorted(decisions, key=lambda each: each.number)],
        reference=tagger.reference,
        notes=tuple(notes),
        loss_name=task.loss,
        direction=task.direction,
        **path.facts(),
    )


def _written(task: Any) -> list[str]:
    """How labels read here, where that is not how the user writes them."""
    if task.scheme is None or (task.direction == "forward" and task.scheme == task.inner_scheme):
        return []
    turned = (
        ", from the last word to the first: a span begins with its last word" if task.direction == "backward" else ""
    )
    return [f"Labels are as the tagger itself writes them: in {task.inner_scheme}{turned}."]


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
