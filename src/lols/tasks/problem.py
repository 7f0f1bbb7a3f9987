"""What an estimator is composed with: the search problem that its data pose, and data as it reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.training.calibration import Judged
from lols.training.model import Model


class TaskData(Protocol):
    """Examples as a problem reads them, in columns, with their truth where it is known."""

    def __len__(self) -> int:
        """The number of examples."""

    @property
    def size(self) -> int:
        """How much there is, in what the task counts in: tokens, rows, examples."""

    def check(self) -> None:
        """Raise an error if nothing can be learned from them."""

    def scan(self, *, stream: bool = False) -> Any:
        """What a problem is proposed from, and what an estimator notes; of a stream less, for it costs time."""

    def cut(self, values: Any) -> Any:
        """What was predicted for all of them, example by example."""


class Defaults(NamedTuple):
    """What suits a problem, where nothing else is chosen."""

    rate: float | None = None  # of AdaGrad with the hinge, chosen like the features on held-out data
    neighbours: int = 1  # examples that stay together when they are shuffled
    unit: str = "steps"  # what a step is, on the progress bar
    keeps: bool = True  # whether the learner's state is kept in memory after `fit`, for `partial_fit`


class Naming(NamedTuple):
    """What actions are called.

    `name` gives the name of an action at a place. `places` numbers the places of decisions whose actions have names of
    their own, such as nodes of a tree, given the deviations and the actions taken; by default there is one.
    """

    name: Callable[[int, int], str]
    places: Callable[[Any, np.ndarray], np.ndarray] | None = None


class Problem(ABC):
    """A search problem with what an estimator must know of it; it never changes, and a model file can describe it.

    What has a default here is that of the simplest problem: the same for all data, and scored by its loss alone.
    """

    DEFAULTS: ClassVar[Defaults] = Defaults()
    DECISIONS: ClassVar[str] = "steps"  # what is judged right or wrong, in reports on confidence

    # --- from data ---

    @classmethod
    def propose(cls, scan: Any, options: Any) -> Self:
        """The problem that data pose, given what was seen of them and the options of an estimator."""
        raise NotImplementedError

    def grown(self, data: Any, classes: Sequence[Any] | None = None) -> tuple[Self, np.ndarray | None]:
        """The problem with what further data have more, and the numbers that its actions so far have there.

        `classes` are those that are named for the next examples of a stream; None takes them from the data.
        """
        return self, None

    def decides_like(self, other: Self) -> bool:
        """Whether another problem has the same actions, so that confidences hold for both."""
        return self is other

    @abstractmethod
    def examples_of(self, data: Any, *, truth: bool = True) -> Examples:
        """Data as the engine reads them, with their truth if it is wanted."""

    # --- the search ---

    @property
    @abstractmethod
    def space(self) -> SearchSpace:
        """The search space."""

    @abstractmethod
    def reference(self, name: str) -> Reference:
        """A teacher by name."""

    def action_name(self, place: int, action: int) -> str:
        """What an action is called at a place."""
        return str(action)

    @property
    def naming(self) -> Naming:
        """What actions are called, for certificates."""
        return Naming(self.action_name)

    def notes(self, data: Any) -> Sequence[str]:
        """What is to be said of labelled data, where a model is judged by them."""
        return ()

    # --- models ---

    def predicted(self, model: Model, data: Any, *, confidence: bool = False) -> tuple[Any, Any]:
        """What a model decides, and how likely that is to be right, if it is asked for; else None."""
        raise NotImplementedError

    def named(self, outputs: Any) -> Any:
        """What was decided, as users are told."""
        return outputs

    def held_out(self, data: Any) -> HeldOut:
        """Labelled data that nothing is learned from."""
        return HeldOut(self, data)

    def scores(self, model: Model, held: HeldOut) -> dict[str, float]:
        """What the best pass is chosen by."""
        return {"cost": model.evaluate(held.examples)}

    @abstractmethod
    def judged(self, model: Model, examples: Examples, data: Any, chosen: np.ndarray | None = None) -> Judged:
        """Which decisions of a model are right: on the examples of data, or of those among them that are `chosen`."""

    # --- model files ---

    @abstractmethod
    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays, for model files."""

    @classmethod
    def from_description(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Self:
        """What `describe` described; damage is an error."""
        raise NotImplementedError


class HeldOut:
    """Labelled data that nothing is learned from: what models score on them, and which of their decisions are right."""

    def __init__(self, problem: Problem, data: Any, *, truth: bool = True):
        self.problem, self.data, self.truth = problem, data, truth

    @cached_property
    def examples(self) -> Examples:
        """The data as the engine reads them, encoded once."""
        return self.problem.examples_of(self.data, truth=self.truth)

    def __call__(self, model: Model) -> dict[str, float]:
        """The scores of a model."""
        return self.problem.scores(model, self)

    def judged(self, model: Model) -> Judged:
        """Which of its decisions are right."""
        return self.problem.judged(model, self.examples, self.data)
