"""The instances of `lols.optimise`: to train on, to choose a strategy by, and to report."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from lols.contract.frames import as_objects
from lols.errors import ConfigurationError, SpaceError, one_line, shown
from lols.heuristics.problems import HeuristicProblem
from lols.kernels.hashing import mix

CHOOSING, REPORTING = 64, 200  # instances that are drawn to choose a strategy, and to report
FEWEST = 10  # in a list
EXAMPLE = re.compile(r"\bexample (\d+)\b")


class InstancePart:
    """Some of the instances, encoded, and how a person finds each of them again."""

    def __init__(self, data: Any, numbers: Sequence[int], seeds: Sequence[int] | None):
        self.data, self.numbers, self.seeds = data, numbers, seeds

    def __len__(self) -> int:
        return len(self.numbers)

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Errors name an instance by its place in the list, or by what draws it again."""
        try:
            yield
        except SpaceError as error:
            told = self._told(str(error))
            if told == str(error):
                raise
            raise SpaceError(told) from error
        except Exception as error:  # of a program itself, with a note of ours
            for note in list(getattr(error, "__notes__", ())):
                told = self._told(note)
                if told != note:
                    error.add_note(told)
            raise

    def _told(self, message: str) -> str:
        found = EXAMPLE.search(message)
        if found is None or int(found[1]) >= len(self):
            return message
        number = int(found[1])
        if self.seeds is None:
            return f"{message[: found.start(1)]}{self.numbers[number]}{message[found.end(1) :]}"
        return f"{message}; {_drawing(self.seeds[number])} gives this instance again"


class Instances:
    """Instances from a list, which is divided, or from a function that draws them."""

    def __init__(self, problem: HeuristicProblem, source: Any, seed: int):
        self.problem, self.seed = problem, seed
        self.drawn, self.seconds = 0, 0.0  # how many were drawn and encoded, and how long that took
        self._draw: Callable[[np.random.Generator], Any] | None = source if callable(source) else None
        self._known: dict[int, Any] = {}
        self._parts: list[np.ndarray] = []
        if self._draw is None:
            given = _listed(source)
            self._known = dict(enumerate(given))
            order, fifth = np.random.default_rng(seed).permutation(len(given)), max(2, len(given) // 5)
            self._parts = np.split(order, [fifth, 2 * fifth])

    @property
    def given(self) -> int:
        """The number of instances in the list; 0 if they are drawn."""
        return 0 if self._draw is not None else len(self._known)

    def one(self, number: int) -> InstancePart:
        """An instance of the list as it was given, or of those that are drawn to choose."""
        return self._part([number])

    def every(self) -> InstancePart:
        """All instances of the list, as it was given."""
        return self._part(range(self.given))

    def choosing(self, count: int) -> InstancePart:
        """Instances that choose a strategy, as far as there are."""
        return self._cut(0, 0, min(count, CHOOSING) if self._draw is not None else count)

    def reporting(self, count: int) -> InstancePart:
        """Instances that chose nothing, as far as there are."""
        return self._cut(1, CHOOSING, min(count, REPORTING) if self._draw is not None else count)

    def training(self, count: int, after: int = 0) -> InstancePart:
        """Instances to train on, as far as there are; of those that are drawn, `after` so many others."""
        return self._cut(2, CHOOSING + REPORTING + after, count)

    @property
    def seconds_each(self) -> float:
        """What it takes to draw and encode an instance."""
        return self.seconds / max(self.drawn, 1)

    def _cut(self, part: int, begin: int, count: int) -> InstancePart:
        return self._part(range(begin, begin + count) if self._draw is not None else self._parts[part][:count].tolist())

    def _part(self, numbers: Sequence[int]) -> InstancePart:
        began = time.perf_counter()
        objects = [self._known[n] if n in self._known else self._drawn(n) for n in numbers]
        seeds = None if self._draw is None else [self._seed(n) for n in numbers]
        part = InstancePart(None, list(numbers), seeds)
        with part.named():
            part.data = self.problem.encoded(objects)
        self.seconds += time.perf_counter() - began
        self.drawn += len(part)
        return part

    def _seed(self, number: int) -> int:
        """The seed of one instance, so that it can be drawn alone."""
        return mix(mix(self.seed, 0x1257), number) & ((1 << 40) - 1)

    def _drawn(self, number: int) -> Any:
        assert self._draw is not None
        seed = self._seed(number)
        try:
            self._known[number] = self._draw(np.random.default_rng(seed))
        except Exception as error:
            raise ConfigurationError(
                f"the function that draws an instance fails with {one_line(error)}; it is given a "
                f"numpy.random.Generator, here that of seed {seed}"
            ) from error
        return self._known[number]


def _listed(source: Any) -> list[Any]:
    """The instances of a list."""
    if not isinstance(source, Iterable) or isinstance(source, str | bytes):
        raise ConfigurationError(f"the instances are {shown(source)}: give a list of them, or a function draw(rng)")
    given = list(as_objects(source))
    if len(given) < FEWEST:
        raise ConfigurationError(f"there are {len(given)} instances: give at least {FEWEST}, or a function that draws")
    return given


def _drawing(seed: int) -> str:
    return f"draw(numpy.random.default_rng({seed}))"
