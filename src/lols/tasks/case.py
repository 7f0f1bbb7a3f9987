"""What a certificate is made of: a policy, examples to judge it by, its teacher, and what its actions are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lols.contract.choosing import drawn, some
from lols.contract.examples import Examples
from lols.contract.space import Reference
from lols.errors import ConfigurationError
from lols.tasks.problem import Naming
from lols.training.model import Model


@dataclass(frozen=True)
class Case:
    """A policy, the examples that it is judged by, its teacher, and what actions are called."""

    model: Model
    examples: Examples
    reference: Reference
    naming: Naming
    of: int  # how many examples there were to draw from
    teacher: str = ""  # its name
    notes: tuple[str, ...] = ()
    taught_by: str = ""  # the name of the teacher of training

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes, and whose regret is measured if it is not that of the teacher of training."""
        if not self.taught_by or self.taught_by == self.teacher:
            return self.notes
        other = (
            f"The model was taught by the {self.taught_by} teacher. Teacher's loss, regret to the teacher, Theorem 3 "
            f"and advice are for the {self.teacher} teacher, as if that had taught it."
        )
        return (*self.notes, other)


def draw_examples(examples: Examples, limit: int | None, seed: int) -> tuple[Examples, int]:
    """At most `limit` of the examples, drawn by the seed, and how many there were."""
    count = len(examples)
    chosen = drawn(count, limit, seed)
    return (some(examples, chosen) if chosen.size < count else examples), count


def pair_of(data: Any) -> tuple[Any, ...]:
    """Inputs and truths, as they are given to `fit`."""
    if not isinstance(data, tuple) or len(data) < 2:
        raise ConfigurationError("an estimator is certified on a pair, inputs and truths, as for `fit`")
    return data
