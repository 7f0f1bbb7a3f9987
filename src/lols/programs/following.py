"""Following a policy through a program: the learned one for prediction and evaluation, the teacher for comparison."""

from __future__ import annotations

from typing import Any

from lols.contract.hashing import mix
from lols.engine.policy import draw_component
from lols.engine.structures import COMPONENT, TEACHER, TIE
from lols.errors import SpaceError
from lols.programs.search import ProgramSearch, ask_teacher

__all__ = ["Following", "FollowingTeacher"]


class Following(ProgramSearch):
    """Runs a program with the learned policy."""

    learning = False

    def result(self, x: Any, number: int, *, truth: bool, seed: int) -> tuple[Any, float]:
        """The program's result for an object, and its loss where the truth is there."""
        self.truth, self._seed, self._at, self._loss = truth, seed, 0, 0.0
        self._draws = self._scorer.random_ties or self._scorer.components > 1
        self._example = number
        return self._run(x, f"example {number}"), self._final

    def predict(self, features: Any = (), legal: Any = None, reference: Any = None, *, costs: Any = None, key: Any = None) -> Any:  # noqa: E501  # fmt: skip
        """Decide by the policy alone."""
        scorer = self._scorer
        self._at += 1
        if self._at > self._most:
            raise SpaceError(f"the program goes on after {self._most} decisions; Program(steps=...) allows more")
        if callable(features):
            features = features()
        allowed = self._choices.legal(legal)
        seen = scorer.encode(features)
        if not self._draws:
            return self._names[scorer.like(seen, allowed)]
        stream = mix(self._seed, self._at - 1)
        for identity in seen[0]:
            stream = mix(stream, identity)
        component = draw_component(scorer.policy.chances, mix(stream, COMPONENT))
        return self._names[scorer.like(seen, allowed, component, mix(stream, TIE))]

    def loss(self, value: Any) -> None:
        """Add to the loss, unless this is prediction."""
        if self.truth:
            super().loss(value)


class FollowingTeacher(Following):
    """Runs a program with its reference."""

    learning = True

    def predict(self, features: Any = (), legal: Any = None, reference: Any = None, *, costs: Any = None, key: Any = None) -> Any:  # noqa: E501  # fmt: skip
        """Decide as the reference does."""
        self._at += 1
        if self._at > self._most:
            raise SpaceError(f"the program goes on after {self._most} decisions; Program(steps=...) allows more")
        stream = mix(mix(mix(self._seed, self._example), self._at - 1), TEACHER)
        allowed = self._choices.legal(legal)
        return self._names[ask_teacher(self._choices, allowed, reference, costs, stream).first]
