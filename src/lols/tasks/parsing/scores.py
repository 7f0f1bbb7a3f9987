"""Attachment scores of dependency trees, counted as the scorer of the CoNLL 2018 shared task counts on the same words.

That scorer, now `udeval` in `udtools`, takes what follows the first colon of a relation for a subtype, and ignores it:
`nsubj:pass` is as good as `nsubj`. Its CLAS is an F1: of words whose relation is one of `CONTENT_RELATIONS`, those of
gold count for recall and those of the system for precision. Unlike ours, it refuses cycles and a second root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.errors import ConfigurationError
from lols.tasks.parsing.trees import check_heads
from lols.tasks.tokens.counts import F1Counts
from lols.training.calibration import Reliability, added

if TYPE_CHECKING:
    from rich.console import Console

SHARES = ("uas", "las", "clas", "las_full", "exact_heads", "exact")

# All others are left out: function words, `punct`, and names that Universal Dependencies does not know.
CONTENT_RELATIONS = frozenset((
    "acl", "advcl", "advmod", "amod", "appos", "ccomp", "compound", "conj", "csubj", "dep",
    "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "nmod", "nsubj",
    "nummod", "obj", "obl", "orphan", "parataxis", "reparandum", "root", "vocative", "xcomp",
))  # fmt: skip


@dataclass(frozen=True)
class RelationCounts(F1Counts):
    """How many words have one relation: rightly and with the right head, at all, and in gold."""

    attached: int
    """Of those in gold, how many have the right head, whatever their relation."""

    def as_dict(self, **more: float) -> dict[str, float]:
        """Plain values, with the share of right heads."""
        return super().as_dict(attached=_part(self.attached, self.gold), **more)


class TreeScores(NamedTuple):
    """Scores over a corpus, as fractions; 0 where there is nothing to score."""

    words: int
    """How many words were counted."""
    sentences: int
    """How many sentences have a word that was counted."""
    uas: float
    """Words with the right head."""
    las: float
    """Words with the right head and relation, subtypes aside."""
    las_full: float
    """Words with the right head and relation, subtypes included."""
    content: RelationCounts
    """Words with a content relation, subtypes aside: `clas` is the F1 of these."""
    exact_heads: float
    """Sentences in which all words counted have the right head."""
    exact: float
    """Sentences in which all words counted have the right head and relation, subtypes included."""
    by_relation: dict[str, RelationCounts]
    """The counts of each relation in gold or predicted, subtypes apart, in the order of `names`."""
    reliability: Reliability | None = None
    """Of the confidence in heads; None if that is unknown."""

    @classmethod
    def of_parts(cls, parts: Sequence[TreeScores]) -> TreeScores:
        """The scores of all parts of a corpus, from those of each."""
        words, sentences = sum(part.words for part in parts), sum(part.sentences for part in parts)

        def share(name: str, total: str, whole: int) -> float:
            return _part(sum(round(getattr(part, name) * getattr(part, total)) for part in parts), whole)

        names = dict.fromkeys(name for part in parts for name in part.by_relation)
        return cls(
            words=words,
            sentences=sentences,
            uas=share("uas", "words", words),
            las=share("las", "words", words),
            las_full=share("las_full", "words", words),
            content=RelationCounts.sum_of(part.content for part in parts),
            exact_heads=share("exact_heads", "sentences", sentences),
            exact=share("exact", "sentences", sentences),
            by_relation={
                name: RelationCounts.sum_of(part.by_relation[name] for part in parts if name in part.by_relation)
                for name in names
            },
            reliability=added(part.reliability for part in parts),
        )

    @property
    def clas(self) -> float:
        """The F1 of content words: 0 for relations that are not those of Universal Dependencies."""
        return self.content.f1


@dataclass(frozen=True)
class ParserScores:
    """Attachment scores, and every relation; of a pipeline also the share of right tags in each column."""

    scores: TreeScores
    labelled: bool
    punctuation: bool
    tags: Mapping[str, float] = field(default_factory=dict)
    tagged: int = 0  # words with tags; punctuation always counts among them
    reliability: Mapping[str, Reliability] = field(default_factory=dict)  # of the confidence in tags

    @classmethod
    def of_parts(cls, parts: Sequence[ParserScores]) -> ParserScores:
        """The scores of all parts of a corpus, from those of each."""
        first, tagged = parts[0], sum(part.tagged for part in parts)
        tags = {name: sum(round(part.tags[name] * part.tagged) for part in parts) / tagged for name in first.tags}
        sure = {name: added(part.reliability.get(name) for part in parts) for name in first.reliability}
        known = {name: seen for name, seen in sure.items() if seen is not None}
        whole = TreeScores.of_parts([part.scores for part in parts])
        return cls(whole, first.labelled, first.punctuation, tags, tagged, known)

    @property
    def confidence(self) -> dict[str, Reliability]:
        """How reliable confidence is, in heads and in each column of tags; empty if it is unknown."""
        heads = self.scores.reliability
        return {} if heads is None else {"head": heads, **self.reliability}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        relations = {name: counts.as_dict() for name, counts in self.scores.by_relation.items()}
        plain = {name: getattr(self.scores, name) for name in SHARES}
        counts = {"tokens": self.scores.words, "sentences": self.scores.sentences}
        if self.scores.reliability is not None:
            plain |= self.scores.reliability.as_dict()
        if self.reliability:
            plain["calibration_errors"] = {name: seen.error for name, seen in self.confidence.items()}
        return ({"tags": dict(self.tags)} if self.tags else {}) | counts | plain | {"relations": relations}

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print them."""
        from lols.tasks.show import show_again, show_calibration, show_scores, write

        found = self.as_dict()
        without = "" if self.punctuation else ", punctuation not counted"
        headline = [f"{name} {100 * share:.2f}" for name, share in self.tags.items()]
        headline.append(f"UAS {100 * found['uas']:.2f} on {found['tokens']:,} tokens{without}")
        if self.labelled:
            headline.append(f"LAS {100 * found['las']:.2f}, with subtypes {100 * found['las_full']:.2f}")
        for line in headline:
            write(console, line)
        if self.labelled:
            write(console, f"CLAS {100 * found['clas']:.2f}")
        right = f"sentences without a mistake: {100 * found['exact_heads']:.2f} % by heads"
        write(console, right + (f", {100 * found['exact']:.2f} % with relations" if self.labelled else ""))
        for name, seen in self.confidence.items():
            show_calibration(console, seen, f"confidence in {name}")
        if self.labelled:
            write(console)
            rows = dict(sorted(found["relations"].items(), key=lambda item: -item[1]["count"]))
            lines = show_scores(console, "relation", rows, {"attached": "head right"}, whole=whole)
            show_again(console, headline, lines)


def tree_scores(
    gold_heads: np.ndarray,
    gold_labels: np.ndarray,
    heads: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    offsets: np.ndarray,
    *,
    counted: np.ndarray | None = None,
) -> TreeScores:
    """Compare predicted with gold trees over the same words.

    Parameters
    ----------
    gold_heads, heads
        as in `lols.tasks.parsing.trees`; they need not be trees
    gold_labels, labels
        numbers of relations
    names
        the relations
    offsets
        where sentences begin, and where the last one ends
    counted
        bool [tokens]: which words count, e.g. all but punctuation; None for all, as in the shared task

    >>> names = ["root", "nsubj", "nsubj:pass", "det"]
    >>> gold, predicted = (np.array([1, 2, -1]), np.array([3, 1, 0])), (np.array([2, 2, -1]), np.array([3, 2, 0]))
    >>> scores = tree_scores(*gold, *predicted, names, np.array([0, 3]))
    >>> round(scores.uas, 3), round(scores.las, 3), round(scores.las_full, 3), scores.clas, scores.exact
    (0.667, 0.667, 0.333, 1.0, 0.0)
    >>> scores.by_relation["det"]
    RelationCounts(correct=0, predicted=1, gold=1, attached=0)
    """
    chosen = np.ones(len(heads), np.bool_) if counted is None else np.asarray(counted, np.bool_)
    columns = {"gold labels": gold_labels, "predicted heads": heads, "predicted labels": labels, "marks": chosen}
    check_heads(gold_heads, offsets, **columns)
    check_heads(heads, offsets)
    for numbers in (gold_labels, labels):
        _check_labels(numbers, len(names))

    bare = [name.partition(":")[0] for name in names]
    first = np.array([bare.index(name) for name in bare], np.int64)  # one number for all subtypes of a relation
    is_content = np.array([name in CONTENT_RELATIONS for name in bare], np.bool_)
    gold_content, content = chosen & is_content[gold_labels], chosen & is_content[labels]

    attached = chosen & (gold_heads == heads)
    correct = attached & (first[gold_labels] == first[labels])
    correct_full = attached & (gold_labels == labels)

    words, lengths = int(chosen.sum()), _sums(chosen, offsets)
    sentences = int((lengths > 0).sum())
    whole_heads, whole = (
        ((_sums(right, offsets) == lengths) & (lengths > 0)).sum() for right in (attached, correct_full)
    )
    table = np.stack(
        [
            np.bincount(numbers[which], minlength=len(names))
            for numbers, which in (
                (gold_labels, correct_full),
                (labels, chosen),
                (gold_labels, chosen),
                (gold_labels, attached),
            )
        ],
        axis=1,
    )
    return TreeScores(
        words=words,
        sentences=sentences,
        uas=_part(attached.sum(), words),
        las=_part(correct.sum(), words),
        las_full=_part(correct_full.sum(), words),
        content=RelationCounts(
            *(int(which.sum()) for which in (correct & gold_content, content, gold_content, attached & gold_content))
        ),
        exact_heads=_part(whole_heads, sentences),
        exact=_part(whole, sentences),
        by_relation={name: RelationCounts(*row) for name, row in zip(names, table.tolist()) if row[1] + row[2] > 0},
    )


def _sums(marks: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """How many words of each sentence are marked."""
    return np.diff(np.concatenate([[0], np.cumsum(marks)])[offsets])


def _part(count: int, total: int) -> float:
    return int(count) / total if total else 0.0


def _check_labels(numbers: np.ndarray, names: int) -> None:
    bad = np.flatnonzero((numbers < 0) | (numbers >= names))
    if len(bad):
        raise ConfigurationError(f"word {bad[0]} has label number {numbers[bad[0]]}, but there are {names} labels")
