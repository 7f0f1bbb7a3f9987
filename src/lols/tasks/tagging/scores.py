"""How good tags are: accuracy, accuracy on words never seen, spans as conlleval counts them, and which are confused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.tasks.tagging.span_scores import SpanScores, added_spans, span_scores
from lols.tasks.tagging.spans import PREFIXES
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.counts import F1Counts
from lols.training.calibration import Reliability, added

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class TagScores:
    """Scores of tagged sentences; shares are between 0 and 1.

    `tags` has precision, recall, F1 and count of each tag; `confusions` the most frequent mistakes (true, predicted,
    how often); `spans` is None for plain tags, and `reliability` for taggers that are not calibrated.
    """

    tokens: int
    sentences: int
    accuracy: float
    sentence_accuracy: float
    unknown_tokens: int
    unknown_accuracy: float | None
    unseen_labels: tuple[str, ...] = ()
    tags: dict[str, dict[str, float]] = field(default_factory=dict)
    confusions: list[tuple[str, str, int]] = field(default_factory=list)
    spans: SpanScores | None = None
    reliability: Reliability | None = None
    pairs: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)  # (true, predicted): how often

    @classmethod
    def of_parts(cls, parts: Sequence[TagScores]) -> TagScores:
        """The scores of all parts of a corpus, from those of each; words count as often as they occur."""
        pairs: Counter[tuple[str, str]] = Counter()
        for part in parts:
            pairs.update(part.pairs)
        labels = dict.fromkeys(name for pair in pairs for name in pair)
        tokens, sentences = sum(part.tokens for part in parts), sum(part.sentences for part in parts)
        unknown = sum(part.unknown_tokens for part in parts)
        known = sum(round((part.unknown_accuracy or 0.0) * part.unknown_tokens) for part in parts)
        return cls(
            tokens=tokens,
            sentences=sentences,
            accuracy=sum(count for (true, said), count in pairs.items() if true == said) / tokens,
            sentence_accuracy=sum(round(part.sentence_accuracy * part.sentences) for part in parts) / sentences,
            unknown_tokens=unknown,
            unknown_accuracy=known / unknown if unknown else None,
            unseen_labels=tuple(dict.fromkeys(name for part in parts for name in part.unseen_labels)),
            tags=_by_tag(pairs, labels),
            confusions=_confusions(pairs),
            spans=None if parts[0].spans is None else added_spans([part.spans for part in parts if part.spans]),
            reliability=added(part.reliability for part in parts),
            pairs=dict(pairs),
        )

    @property
    def error(self) -> float:
        """The share of wrong tags."""
        return 1.0 - self.accuracy

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        counts = ("tokens", "sentences", "sentence_accuracy", "unknown_tokens", "unknown_accuracy")
        made = {name: getattr(self, name) for name in ("accuracy", "error", *counts)}
        made["unseen_labels"] = list(self.unseen_labels)
        if self.spans is not None:
            made |= {"f1": self.spans.f1, "precision": self.spans.precision, "recall": self.spans.recall}
            made["types"] = {name: counts.as_dict() for name, counts in self.spans.by_type.items()}
        made |= {} if self.reliability is None else self.reliability.as_dict()
        return made | {"tags": self.tags, "confusions": [list(c) for c in self.confusions]}

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print accuracy, spans, each label, and which labels are confused."""
        from lols.tasks.show import show_again, show_calibration, show_scores, write

        values, spans = self.as_dict(), self.spans
        headline = [f"accuracy {100 * self.accuracy:.2f} on {self.tokens:,} tokens"]
        if spans is not None:
            precision, recall, f1 = (100 * value for value in (spans.precision, spans.recall, spans.f1))
            headline.append(f"spans: precision {precision:.2f}, recall {recall:.2f}, F1 {f1:.2f}")
        for line in headline:
            write(console, line)
        write(console, f"sentences all right {100 * self.sentence_accuracy:.2f} of {self.sentences:,}")
        if self.unknown_accuracy is not None:
            share = 100 * self.unknown_tokens / self.tokens
            write(
                console,
                f"unknown words {100 * self.unknown_accuracy:.2f} on {self.unknown_tokens:,} tokens ({share:.1f} %)",
            )
        if self.unseen_labels:
            write(console, f"labels never seen in training, counted as wrong: {', '.join(self.unseen_labels)}")
        show_calibration(console, self.reliability)
        write(console)
        rows = values.get("types", values["tags"])
        by_count = dict(sorted(rows.items(), key=lambda item: -item[1]["count"]))
        lines = show_scores(console, "label" if spans is None else "span type", by_count, whole=whole)
        if self.confusions:
            write(console, "\nmost frequent mistakes (true → predicted):")
            write(console, ", ".join(f"{a} → {b} {n}" for a, b, n in self.confusions))
        show_again(console, headline, lines)


def score_tags(
    task: TaggingTask,
    corpus: Corpus,
    numbers: np.ndarray,
    names: Sequence[str],
    predicted: np.ndarray,
    vocabulary: Collection[str],
    confidence: np.ndarray | None = None,
) -> TagScores:
    """Compare predicted labels, and confidence in them, with true ones, which are given as numbers into `names`."""
    known = task.number(names)
    unseen = [name for name, number in zip(names, known, strict=True) if number < 0]
    labels = [*task.labels, *unseen]
    known[known < 0] = len(task.labels) + np.arange(len(unseen))
    gold = known[numbers]
    right = gold == predicted
    sentence_right = np.logical_and.reduceat(right, corpus.offsets[:-1][np.diff(corpus.offsets) > 0])
    strange, strange_right = _unknown_words(corpus, right, vocabulary)
    both, counts = np.unique(gold * len(labels) + predicted, return_counts=True)
    places = zip(*divmod(both, len(labels)), counts.tolist(), strict=True)
    pairs = {(labels[true], labels[said]): count for true, said, count in places}
    return TagScores(
        tokens=corpus.tokens,
        sentences=int(sentence_right.size),
        accuracy=float(right.mean()),
        sentence_accuracy=float(sentence_right.mean()),
        unknown_tokens=strange,
        unknown_accuracy=strange_right / strange if strange else None,
        unseen_labels=tuple(unseen),
        tags=_by_tag(pairs, labels),
        confusions=_confusions(pairs),
        spans=None
        if task.scheme is None
        else span_scores(gold, predicted, corpus.offsets, _as_spans(labels, task.scheme), task.scheme),
        reliability=None if confidence is None else Reliability.of(confidence, right),
        pairs=pairs,
    )


def _as_spans(labels: Sequence[str], scheme: str) -> list[str]:
    """Labels that are none of the scheme, which only unseen ones can be, as beginnings of spans of their own type."""
    prefixes = tuple(f"{prefix}-" for prefix in PREFIXES[scheme])
    return [
        label if label == "O" or (label.startswith(prefixes) and len(label) > 2) else f"B-\0{label}" for label in labels
    ]


def _unknown_words(corpus: Corpus, right: np.ndarray, vocabulary: Collection[str]) -> tuple[int, int]:
    if WORD not in corpus.columns or not vocabulary:
        return 0, 0
    column, known = corpus.columns[WORD], set(vocabulary)
    strange = np.array([s not in known for s in column.texts.strings()], np.bool_)[column.numbers]
    return int(strange.sum()), int(right[strange].sum())


def _by_tag(pairs: Mapping[tuple[str, str], int], labels: Iterable[str]) -> dict[str, dict[str, float]]:
    """Scores of each label that occurs."""
    right, guesses, truth = Counter[str](), Counter[str](), Counter[str]()
    for (true, said), count in pairs.items():
        truth[true] += count
        guesses[said] += count
        right[true] += count if true == said else 0
    counts = {name: F1Counts(right[name], guesses[name], truth[name]) for name in labels}
    return {name: each.as_dict() for name, each in counts.items() if each.predicted + each.gold > 0}


def _confusions(pairs: dict[tuple[str, str], int], most: int = 10) -> list[tuple[str, str, int]]:
    wrong = [(*pair, count) for pair, count in pairs.items() if pair[0] != pair[1]]
    return sorted(wrong, key=lambda each: -each[2])[:most]
