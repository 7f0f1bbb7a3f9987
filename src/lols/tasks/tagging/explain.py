"""How a tagger searches one sentence: the path it takes, the deviations from it, and what each would have cost.

This is Figure 2 of the paper for a sentence of the user's: roll-in, one-step deviations, roll-outs, losses. The costs
are those of the engine that trains; here they are only put into words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.errors import LolsError, short
from lols.io import conll
from lols.io.strings import intern, texts_of
from lols.tasks.explain import deviation_costs, draws_policies, explained_roll_out
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.files import NO_LABEL, settle, tagged
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.verbs import check_sentence


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
        return {
            "loss": self.loss,
            "loss_name": self.loss_name,
            "direction": self.direction,
            "roll_out": self.roll_out,
            "beta": self.beta,
            "note": self.note,
            "words": [
                {
                    "place": d.place,
                    "word": d.word,
                    "true": d.true,
                    "predicted": d.predicted,
                    "deviations": [vars(deviation) for deviation in d.shown(top)],
                }
                for d in self.decisions
            ],
        }


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
    task, model = tagger.task_, tagger._fitted
    if corpus.tokens == 0:
        raise LolsError("there are no words in this sentence: nothing is decided")
    predictions = model.run(task.examples(corpus), scores=True)
    taken, predicted = predictions.actions(0).astype(np.int64), predictions.costs(0)
    kind, note = (task.loss, task.direction), _written(task)
    if labels is None:
        return Explanation(_decisions(task, words, None, taken, predicted, None, None), *kind, note=note)
    numbers = task.number(labels)
    if (numbers < 0).any():
        raise LolsError(f"label '{short(labels[int(np.argmin(numbers))])}' was never seen in training")
    true = task.actions_of(numbers, corpus.offsets)
    examples = task.examples(corpus, numbers)
    if draws_policies(model):
        note = " ".join([note, "Searn draws a policy at every decision, so that no deviation has a cost of its own."])
        return Explanation(_decisions(task, words, true, taken, predicted, None, None), *kind, note=note.strip())
    chosen, chance = explained_roll_out(model, roll_out, beta)
    reference, seed = task.reference(tagger.reference), tagger.seed
    found = deviation_costs(model, reference, examples, taken, chosen, chance, seed=seed, compiled=compiled)
    decisions = _decisions(task, words, true, taken, predicted, found.costs, found.losses)
    mixed = chance if chosen.roll_out == "mixture" else None
    return Explanation(decisions, *kind, found.loss, chosen.roll_out, mixed, note)


def _written(task: Any) -> str:
    """How labels read here, where that is not how the user writes them."""
    if task.scheme is None or (task.direction == "forward" and task.scheme == task.inner_scheme):
        return ""
    turned = (
        ", from the last word to the first: a span begins with its last word" if task.direction == "backward" else ""
    )
    return f"Labels are as the tagger itself writes them: in {task.inner_scheme}{turned}."


def _decisions(
    task: Any,
    words: Sequence[str],
    true: np.ndarray | None,
    taken: np.ndarray,
    predicted: np.ndarray,
    costs: np.ndarray | None,
    losses: np.ndarray | None,
) -> tuple[WordDecision, ...]:
    """Numbers to names; what is illegal is left out."""
    labels, made = task.inner_labels, []
    places = range(len(words)) if task.direction == "forward" else range(len(words) - 1, -1, -1)
    for k, place in enumerate(places):
        legal = [a for a in np.argsort(predicted[k], kind="stable").tolist() if np.isfinite(predicted[k, a])]
        deviations = tuple(
            LabelDeviation(
                labels[a],
                float(predicted[k, a]),
                None if losses is None else float(losses[k, a]),
                None if costs is None else float(costs[k, a]),
                bool(a == taken[k]),
                true is not None and bool(a == true[k]),
            )
            for a in legal
        )
        right = None if true is None else labels[true[k]]
        made.append(WordDecision(place + 1, words[place], right, labels[taken[k]], deviations))
    return tuple(made)


# --- where sentences come from ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileSentence:
    """A sentence of a file; labels are None where the file has none for it."""

    corpus: Corpus
    labels: list[str] | None
    number: int
    count: int


def read_sentence(tagger: Any, path: str | os.PathLike[str], number: int, columns: FileColumns) -> FileSentence:
    """Sentence `number` of a file, counted from 1."""
    columns = settle(path, columns)
    label = str(columns.label)
    wanted = [columns.word, label, *(columns.use or {}).values()]
    data = tagged([conll.read(path, wanted, format=columns.format, header=columns.header, optional=[label])], columns)
    ends = data.corpus.offsets
    count = ends.size - 1
    check_sentence(number, count, path)
    tokens = slice(int(ends[number - 1]), int(ends[number]))
    whole = {name: column.texts.strings() for name, column in data.corpus.columns.items()}
    strings = {name: [whole[name][k] for k in c.numbers[tokens]] for name, c in data.corpus.columns.items()}
    made = {name: intern(texts_of(values)) for name, values in strings.items()}
    corpus = Corpus(made, np.array([0, tokens.stop - tokens.start], np.int64))
    labels: list[str] | None = [data.names[k] for k in data.numbers[tokens]]
    known = set(tagger.task_.labels)
    if all(name in ("", NO_LABEL) and name not in known for name in labels or ()):
        labels = None
    for k, name in enumerate(labels or ()):
        if name not in known:
            raise LolsError(
                f"{data.place(tokens.start + k)}: label '{name}' was never seen in training; name the right column "
                "with --column (or one that the file does not have, for predictions only)"
            )
    return FileSentence(corpus, labels, number, count)


def _strings(corpus: Corpus) -> list[str]:
    """The words, or the first column in their place."""
    column = corpus.columns.get(WORD) or next(iter(corpus.columns.values()))
    texts = column.texts.strings()
    return [texts[k] for k in column.numbers.tolist()]
