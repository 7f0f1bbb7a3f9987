"""What is learned from. Sources differ in their parts: examples, and the order in which they are taken."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.contract.identity import identity_of
from lols.engine.drivers.fused import KernelCall
from lols.engines import Files
from lols.errors import ConfigurationError, LolsError
from lols.kernels.hashing import mix
from lols.policies.policy import Policy
from lols.training.learning import Learning
from lols.training.order import shuffled
from lols.training.recipe import Recipe

LOOKED_AT = 8  # examples, to settle the margin
FILES_BATCH = 64  # by default: what a large data set has, and files are for these


class Part(NamedTuple):
    """Examples, and the order in which they are taken."""

    examples: Any
    order: np.ndarray


class DataSource(ABC):
    """What is learned from."""

    count: int | None  # the examples of a pass; None if there is no end
    carries = False  # whether a batch that is not whole at the end of a part is gone on with in the next one
    first: Any = None  # the examples that training begins with, where they are at hand

    @property
    def data(self) -> Any:
        """What shards are made of."""
        raise NotImplementedError

    @property
    def measure(self) -> Any:
        """What says how many steps there are, for progress bars."""
        return self.first

    def batch_size(self, recipe: Recipe) -> int:
        """How many examples are searched with the same policy."""
        return recipe.together(self.count or 0)

    @abstractmethod
    def passes(self, learning: Learning) -> Iterable[int]:
        """The passes that are left."""

    @abstractmethod
    def parts(self, learning: Learning) -> Iterator[Part]:
        """What is left of this pass."""

    def looked_at(self, order: np.ndarray) -> np.ndarray:
        """The examples of the first part by which margin and scale are settled."""
        return order[:1]  # there may be no more

    def driver(self, policy: Policy, recipe: Recipe, examples: Any) -> Any:
        """What searches examples of this source."""
        how: Any = {"threads": recipe.threads, "together": recipe.together(len(examples))}
        return policy.driver(recipe.space, examples, recipe.reference, **how, compiled=recipe.compiled)

    def calls(self, policy: Policy, driver: Any, recipe: Recipe) -> list[KernelCall]:
        """The kernels that are needed, to compile them ahead."""
        return policy.calls(driver, recipe.plan)

    def progress(self, learning: Learning) -> int:
        """How far learning is, in the unit of the progress bar."""
        return learning.steps_done

    def digest(self) -> str | None:
        """A digest of the data; None if it is not known."""
        return None

    def check_resumable(self) -> None:  # noqa: B027
        """Raise an error if it could not be told later whether these are the same data."""

    def identity(self, recipe: Recipe) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {
            "space": identity_of(recipe.space.functions()),
            "reference": identity_of(recipe.reference.functions()),
            "data": self.digest(),
        }


class InMemory(DataSource):
    """Examples in memory, which every pass visits in another order."""

    def __init__(self, examples: Any):
        self.first = self.examples = examples
        self.count = len(examples)

    @property
    def data(self) -> Any:
        """What shards are made of."""
        return self.examples

    def passes(self, learning: Learning) -> Iterator[int]:
        while learning.pass_ < learning.passes:
            yield learning.pass_

    def parts(self, learning: Learning) -> Iterator[Part]:
        yield Part(self.examples, self.order(learning)[learning.offset :])

    def order(self, learning: Learning) -> np.ndarray:
        """The order of this pass."""
        recipe, count = learning.recipe, len(self.examples)
        if not recipe.shuffle:
            return np.arange(count)
        key = mix(mix(recipe.seed, 0x0DE2), learning.first_pass + learning.pass_)
        return shuffled(count, key, recipe.neighbours)

    def looked_at(self, order: np.ndarray) -> np.ndarray:
        return np.arange(min(LOOKED_AT, len(self.examples)))

    def digest(self) -> str:
        digest = hashlib.sha256()
        for column in (*self.examples.x, *self.examples.y, self.examples.items):
            for part in column:
                digest.update(np.ascontiguousarray(part).ravel().data)
        return digest.hexdigest()


class InPieces(DataSource):
    """More data than memory holds: they are read again in every pass, and shuffled piece by piece.

    With a linear policy, a batch goes on from one piece to the next, so that the result does not depend on how large
    the pieces are, but for their shuffling.

    Parameters
    ----------
    read
        Is called for each pass, and gives the pieces: lists of labelled objects, or `Examples`.
    count
        How many examples there are in all; by default they are counted by reading them once.
    steps
        How many steps they have in all, for progress bars; without it, these count examples.
    unit
        What examples are called there.
    name
        Something that is the same whenever the same data are read: needed to resume.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> data, teacher = tagging_data(30, labels=3), tagging_references()["optimal"]
    >>> pieces = lols.InPieces(lambda: (data[low : low + 8] for low in range(0, 30, 8)))
    >>> model = lols.train(tagging_space(3), pieces, teacher, passes=2, compiled=False)
    >>> model.about["examples"]
    30

    """

    carries = True

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        count: int | None = None,
        *,
        steps: int | None = None,
        unit: str = "examples",
        name: str | None = None,
    ):
        self.read, self.count, self.unit, self.name = read, count, unit, name
        self.by_steps, self.steps = steps is not None, np.array([(count or 0) if steps is None else steps])

    def __len__(self) -> int:
        return int(self.count or 0)

    def encoded(self, recipe: Recipe) -> InPieces:
        """The same with examples in place of objects, which are counted if need be."""

        def read() -> Iterator[Examples]:
            return (recipe.encoded(piece) for piece in self.read())

        count = sum(len(piece) for piece in read()) if self.count is None else self.count
        if not count:
            raise ConfigurationError("there are no examples to learn from: give at least one")
        steps = int(self.steps[0]) if self.by_steps else None
        return InPieces(read, count, steps=steps, unit=self.unit, name=self.name)

    @property
    def measure(self) -> InPieces:
        return self

    def progress(self, learning: Learning) -> int:
        return learning.steps_done if self.by_steps else learning.done

    def digest(self) -> str | None:
        return self.name

    def check_resumable(self) -> None:
        if self.name is None:
            raise ConfigurationError("a checkpoint needs the name of the data: give InPieces(..., name=...)")

    def passes(self, learning: Learning) -> Iterator[int]:
        while learning.pass_ < learning.passes:
            before = learning.pass_
            yield before
            if learning.pass_ == before:
                raise LolsError(
                    f"the data have changed while they were learned from: there are {learning.offset:,} examples, and "
                    f"before there were {self.count:,}"
                )

    def parts(self, learning: Learning) -> Iterator[Part]:
        recipe, number = learning.recipe, learning.pass_
        before, skipped = number * len(self), learning.offset
        for examples in self.read():
            count = len(examples)
            order = np.arange(count)
            if recipe.shuffle:
                key = mix(mix(mix(recipe.seed, 0x0DE2), number), before)
                order = shuffled(count, key, recipe.neighbours)
            before += count
            if before > (number + 1) * len(self):
                raise LolsError(
                    f"the data have changed while they were learned from: there were {self.count:,} examples"
                )
            if skipped < count:
                yield Part(examples, order[skipped:])
            skipped = max(skipped - count, 0)
            del examples  # before the next ones are read


class Arriving(DataSource):
    """The next examples of a stream, in their own order or in the given one."""

    count = None

    def __init__(self, examples: Examples, *, carries: bool):
        self.first = self.examples = examples
        self.carries = carries

    def passes(self, learning: Learning) -> Iterator[int]:
        yield 0

    def parts(self, learning: Learning) -> Iterator[Part]:
        yield Part(self.examples, np.arange(len(self.examples)))


class Leg(DataSource):
    """A part of a pass: from where learning is to `last`, in an order that is made of that of the whole pass."""

    def __init__(self, whole: InMemory, rearranged: Callable[[np.ndarray], np.ndarray], last: int):
        self.whole, self.rearranged, self.last, self.count = whole, rearranged, last, whole.count

    def passes(self, learning: Learning) -> Iterator[int]:
        yield learning.pass_

    def parts(self, learning: Learning) -> Iterator[Part]:
        order = self.rearranged(self.whole.order(learning))
        yield Part(self.whole.examples, order[learning.offset : self.last])


class FilesOfShards(InMemory):
    """Files that only workers read: of these a few examples are known, by which kernels are compiled."""

    def __init__(self, few: Examples, files: Files):
        super().__init__(few)
        self.files = files

    @property
    def data(self) -> Files:
        return self.files

    def batch_size(self, recipe: Recipe) -> int:
        return recipe.batch_size or FILES_BATCH

    def digest(self) -> str:
        """A digest of the names and sizes of the files, as far as this machine sees them."""
        known = [f"{name} {os.path.getsize(name) if os.path.exists(name) else ''}" for name in self.files.names]
        return hashlib.sha256("\0".join(known).encode()).hexdigest()


def source_of(recipe: Recipe, data: Any) -> DataSource:
    """What is learned from, as training reads it."""
    if isinstance(data, InPieces):
        if recipe.IN_MEMORY is not None:
            raise ConfigurationError("pieces are for tasks: a program learns from objects in memory")
        recipe.check_streamable(pieces=True)
        return data.encoded(recipe)
    if isinstance(data, Files) and recipe.engine.sync == "pass":
        return FilesOfShards(recipe.encoded(data.first(LOOKED_AT)), data)
    return in_memory(recipe, data)


def in_memory(recipe: Recipe, data: Any) -> InMemory:
    """The same for data that memory holds."""
    made: InMemory = (recipe.IN_MEMORY or InMemory)(recipe.encoded(data))
    return made
