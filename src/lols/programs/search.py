"""What a program is given: `predict` for its decisions, `loss` for what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.user_frames import user_line
from lols.errors import SpaceError
from lols.programs.choices import ActionChoices, Legal, Teacher, takes
from lols.programs.program import Program
from lols.programs.scorer import Scorer

__all__ = ["NEEDED", "ProgramSearch", "Stop", "Teacher", "ask_teacher", "is_random"]


INFINITE = float("inf")
NEEDED = "the reference is needed here: give `predict` a `reference` or `costs`"


class Stop(BaseException):
    """Ends a run whose rest is known; not an `Exception`, so that a program does not catch it by accident."""


class ProgramSearch:
    """The search as a program sees it.

    Attributes
    ----------
    learning
        True in training. The reference is asked for only then.
    truth
        True in training and in evaluation: the truth is there, and the loss is wanted. False in prediction.

    """

    learning = True
    truth = True

    def __init__(self, program: Program, choices: ActionChoices, scorer: Scorer):
        self._program, self._choices, self._scorer = program, choices, scorer
        self._names = choices.names
        self._most = program.steps
        self._script: list[Any] = []
        self._known = 0  # how many decisions the script has an answer for
        self._at = 0  # decisions made so far
        self._loss = 0.0  # since the last decision
        self._final = 0.0  # what the last decision of a run cost

    def predict(
        self,
        features: Any = (),
        legal: Any = None,
        reference: Any = None,
        *,
        costs: Any = None,
        key: Any = None,
    ) -> Any:
        """Decide: the action that is taken here.

        Parameters
        ----------
        features
            What the policy sees: an iterable of hashable things (strings, numbers, tuples of those), a mapping from
            such things to values, or a function that gives either and is called only if it is needed.
        legal
            The actions that are allowed here; None for all.
        reference
            The teacher's action; several equally good ones as a list or set; or a function that gives either and is
            called only if it is needed. A function of one argument is given a stream for `lols.uniform`. Needed in
            training only.
        costs
            The teacher's costs in closed form: for each action, the loss of taking it and following the teacher from
            there, up to a constant. A sequence, a mapping from actions, or a function. Saves the teacher's roll-outs.
        key
            Decisions with equal keys have equal futures: the same features, legal actions, references and losses after
            the same actions. Any hashable thing. Roll-outs that meet are then merged.

        """
        at = self._at
        if at < self._known:
            self._at = at + 1
            return self._script[at]
        return self._decide(features, legal, reference, costs, key)

    def loss(self, value: Any) -> None:
        """Add to the loss: a number, or a function that gives one and is not called in prediction."""
        try:
            self._loss += value
        except TypeError:
            if not callable(value):
                raise SpaceError(f"`search.loss` is given {value!r}: give a number, or a function for one") from None
            self._loss += value()

    # --- for the ways of running a program ---

    def _decide(self, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        """Decide what the script has no answer for; those that follow no script have a `predict` of their own."""
        raise NotImplementedError

    def _begin(self, script: list[Any]) -> None:
        self._script, self._known, self._at, self._loss = script, len(script), 0, 0.0

    def _spent(self) -> float:
        """What was lost since the last decision; the count begins anew."""
        lost, self._loss = self._loss, 0.0
        try:
            spent = float(lost)
        except (TypeError, ValueError):
            raise SpaceError(f"`search.loss` is given {lost!r}: give numbers") from None
        if not 0.0 <= spent < INFINITE:
            raise SpaceError(f"what was lost is {spent}: `search.loss` takes numbers from 0 on, and adds them up")
        return spent

    def _run(self, x: Any, what: str) -> Any:
        """Run the program on an object. Errors name `what` was run; those of the program itself pass through."""
        try:
            made = self._program.run(self, x)
            self._final = self._spent() if self.truth else 0.0
            return made
        except Stop:
            return None
        except SpaceError as error:
            raise SpaceError(f"{what}, step {max(self._at - 1, 0)}: {error}{user_line(error)}") from error
        except Exception as error:
            error.add_note(f"lols: {what}, after {self._at} decisions")
            raise


def ask_teacher(choices: ActionChoices, legal: Legal, reference: Any, costs: Any, stream: int) -> Teacher:
    """Read `reference` and `costs`; a function is called, with a stream for `lols.uniform` if it takes one."""
    kind = reference.__class__
    if (kind is int or kind is str) and costs is None:
        number = choices.numbers.get(reference, -1)
        if number in legal.members:
            return choices.named[number]
    if callable(reference):
        reference = reference(np.array([stream], np.int64)) if takes(reference) else reference()
    if callable(costs):
        costs = costs()
    closed = None if costs is None else choices.costs(costs, legal)
    if reference is None:
        if closed is None:
            raise SpaceError(NEEDED)
        least = min(closed[a] for a in legal.actions)
        free = [a for a in legal.actions if closed[a] == least]
        return Teacher(free[0], free if len(free) > 1 else None, closed)
    first, several = choices.reference(reference)
    for a in several or (first,):
        if a not in legal.members:
            raise SpaceError(f"the reference is {choices.names[a]!r}, which is not legal there")
    return Teacher(first, several, closed)


def is_random(reference: Any) -> bool:
    """Whether a reference draws at random."""
    return callable(reference) and takes(reference) > 0
