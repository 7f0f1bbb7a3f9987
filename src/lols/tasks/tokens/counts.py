"""Precision, recall and F1 from counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True)
class F1Counts:
    """How many were found rightly, found at all, and to be found: spans of a type, or words with a relation.

    >>> F1Counts(correct=1, predicted=2, gold=4).f1
    0.3333333333333333
    """

    correct: int
    predicted: int
    gold: int

    @classmethod
    def sum_of(cls, counts: Iterable[F1Counts]) -> Self:
        """The counts of all together."""
        every = list(counts)
        return cls(*(sum(getattr(each, field.name) for each in every) for field in fields(cls)))

    @property
    def precision(self) -> float:
        """The part of what was found that is right; 0 where nothing was found."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The part of what was to be found that was found; 0 where there is none."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 where nothing is right."""
        return 2 * self.correct / (self.predicted + self.gold) if self.correct else 0.0

    def as_dict(self, **more: float) -> dict[str, float]:
        """Plain values, as `--json` prints them."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **more, "count": self.gold}
