"""Lessons that are kept: states as a network reads them, with their costs and weights, and their age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from lols.errors import LolsError
from lols.torch.batches import Bags, Inputs, spans


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Several arrays, one after the other; a single one as it is."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def joined_inputs(parts: Sequence[Inputs]) -> Inputs:
    """What a network reads of several batches of states, one after the other."""
    bags = [part for part in parts if isinstance(part, Bags)]
    return (bags[0] if len(bags) == 1 else Bags.joined(bags)) if bags else joined(parts)  # type: ignore[arg-type]


class KeptLessons(NamedTuple):
    """Some states and the costs of their actions; the states of an example lie side by side."""

    example: np.ndarray
    inputs: Inputs
    legal: np.ndarray
    costs: np.ndarray
    weights: np.ndarray

    def rounds(self) -> np.ndarray:
        """Where the states of each example begin, and the end of the last."""
        first = np.flatnonzero(np.diff(self.example, prepend=-1))
        return np.append(first, self.example.size)

    def select(self, rounds: np.ndarray) -> KeptLessons:
        """The lessons of some examples, by their place among the rounds."""
        bounds = self.rounds()
        rows = spans(bounds[rounds], np.diff(bounds)[rounds])
        inputs = self.inputs.select(rows) if isinstance(self.inputs, Bags) else self.inputs[rows]
        return KeptLessons(self.example[rows], inputs, self.legal[rows], self.costs[rows], self.weights[rows])

    @staticmethod
    def joined(parts: Sequence[KeptLessons]) -> KeptLessons:
        """Several lessons as one."""
        if len(parts) == 1:
            return parts[0]
        inputs = joined_inputs([part.inputs for part in parts])
        example, *others = (
            joined([getattr(part, n) for part in parts]) for n in ("example", "legal", "costs", "weights")
        )
        return KeptLessons(example, inputs, *others)

    def arrays(self) -> dict[str, np.ndarray]:
        """As named arrays, for checkpoints; unknown costs are -1 there."""
        made = {"example": self.example, "legal": self.legal, "weights": self.weights}
        made["costs"] = np.where(np.isfinite(self.costs), self.costs, -1.0).astype(self.costs.dtype)
        if isinstance(self.inputs, Bags):
            width = np.array([self.inputs.width])
            return (
                made
                | {"start": self.inputs.start, "ids": self.inputs.ids, "values": self.inputs.values}
                | {"width": width}
            )
        return made | {"inputs": self.inputs}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> KeptLessons:
        """What `arrays` made."""
        inputs: Inputs
        if "start" in arrays:
            inputs = Bags(arrays["start"], arrays["ids"], arrays["values"], int(arrays["width"][0]))
        else:
            inputs = arrays["inputs"]
        costs = np.where(arrays["costs"] < 0.0, np.inf, arrays["costs"]).astype(arrays["costs"].dtype)
        return cls(arrays["example"], inputs, arrays["legal"], costs, arrays["weights"])

    def kind(self) -> tuple[Any, ...]:
        """What lessons must have in common to be joined."""
        given = self.inputs
        of = given.width if isinstance(given, Bags) else (given.shape[1:], given.dtype)
        return type(given), of, self.legal.shape[1]

    def checked(self) -> Self:
        """The same; an error if the arrays do not belong together."""
        example, given, legal, costs, weights = self
        arrays = [(example, "i", 1), (legal, "b", 2), (costs, "f", 2), (weights, "f", 1)]
        if isinstance(given, Bags):
            arrays += [(given.start, "i", 1), (given.ids, "i", 1), (given.values, "f", 1)]
        else:
            arrays.append((given, "iufb", max(given.ndim, 1)))
        whole = all(array.dtype.kind in kinds and array.ndim == axes for array, kinds, axes in arrays)
        whole = whole and len(example) == len(legal) == len(weights) and costs.shape == legal.shape
        if whole and isinstance(given, Bags):
            start, ids, values, width = given
            whole = width >= 1 and start.size == width * len(example) + 1 and ids.size == values.size
            whole = whole and bool(start[0] == 0 and start[-1] == ids.size and (np.diff(start) >= 0).all())
        elif whole:
            whole = len(given) == len(example)
        if not (whole and (example >= 0).all() and (weights >= 0.0).all()):
            raise LolsError("the lessons under 'replay' do not fit together")
        return self


class ReplayBuffer:
    """The lessons of the last batches. An older batch is drawn from less often: `decay` times for each batch of age."""

    def __init__(self, batches: int, decay: float):
        self.batches, self.decay = batches, decay
        self.kept: list[KeptLessons] = []
        self.restored = 0  # of the oldest ones, how many are from a file

    def add(self, lessons: KeptLessons) -> None:
        """Keep a batch, and forget the oldest if there are too many."""
        if self.batches:
            self.restored = max(0, self.restored - (len(self.kept) == self.batches))
            self.kept = [*self.kept, lessons][-self.batches :]

    def draw(self, count: int, random: np.random.Generator) -> list[KeptLessons]:
        """The lessons of this many examples, or of fewer if there are not that many."""
        rounds = [lessons.rounds().size - 1 for lessons in self.kept]
        total = sum(rounds)
        if total == 0:
            return []
        batch = np.repeat(np.arange(len(rounds)), rounds)
        place = spans(np.zeros(len(rounds), np.int64), np.array(rounds))
        chances = self.decay ** (len(rounds) - 1.0 - batch)
        chosen = np.sort(random.choice(total, min(count, total), replace=False, p=chances / chances.sum()))
        found = [(k, place[chosen[batch[chosen] == k]]) for k in range(len(rounds))]
        return [self.kept[k].select(places) for k, places in found if places.size]

    def arrays(self) -> dict[str, np.ndarray]:
        """As named arrays, for checkpoints."""
        return {f"{k}.{name}": a for k, lessons in enumerate(self.kept) for name, a in lessons.arrays().items()}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """What `arrays` made."""
        count = len({name.partition(".")[0] for name in arrays})
        if count > self.batches:
            raise LolsError(f"there are {count} batches under 'replay', and this policy keeps {self.batches}")
        parts = [{n.partition(".")[2]: a for n, a in arrays.items() if n.startswith(f"{k}.")} for k in range(count)]
        self.kept, self.restored = [KeptLessons.from_arrays(part).checked() for part in parts], count

    def check_like(self, lessons: KeptLessons) -> None:
        """Raise an error if lessons from a file are of other states than these, with which they are to be learned."""
        for kept in self.kept[: self.restored]:
            if kept.kind() != lessons.kind():
                raise LolsError("the lessons under 'replay' are of another space or network: train anew")
