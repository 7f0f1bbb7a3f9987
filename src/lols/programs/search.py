"""The `search` argument of a program: `predict` or `choose` makes its decisions, `loss` adds up what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from lols.contract.user_frames import user_line
from lols.engine.structures import LARGEST_COST
from lols.errors import SpaceError
from lols.programs.choices import ActionChoices, Legal, Teacher, takes
from lols.programs.program import Program
from lols.programs.scorer import Scorer

NEEDED = "the reference is needed here: give a `reference` or `costs`"
NO_ACTIONS = (
    "the program has no actions to predict: give lols.Program(run, actions=...) or labels=[...], or choose among "
    "candidates with `search.choose`"
)
HAS_ACTIONS = (
    "a program chooses among candidates or predicts actions, not both: leave out `actions` and `labels` of lols.Program"
)


class Stop(BaseException):
    """Ends a run early; not an `Exception`, so that a program does not catch it by accident."""


class ProgramSearch:
    """The search as a program sees it.

    Attributes
    ----------
    learning
        True in training. Only then is the reference needed.
    truth
        True in training and in evaluation: the truth is available, and the loss is computed. False in prediction.

    """

    learning = True
    truth = True

    def __init__(self, program: Program, choices: ActionChoices, scorer: Scorer):
        self._program, self._choices, self._scorer = program, choices, scorer
        self._names = choices.names
        self._chooses = program.actions is None
        self._most = program.steps
        self._script: list[Any] = []
        self._known = 0  # the number of decisions in the script
        self._at = 0  # decisions made so far
        self._loss = 0.0  # since the last decision
        self._final = 0.0  # the loss after the last decision of a run

    def predict(
        self, features: Any = (), legal: Any = None, reference: Any = None, *, costs: Any = None, key: Any = None
    ) -> Any:
        """Make a decision: the action to take.

        Parameters
        ----------
        features
            What the policy sees: an iterable of features (strings, numbers, or tuples of these), a mapping from
            features to values, or a function that returns either and is called only if needed.
        legal
            The legal actions; None for all.
        reference
            The teacher's action; several equally good ones as a list or set; or a function that returns either and is
            called only if needed. A function with one argument is given a stream for `lols.uniform`. Needed in
            training only.
        costs
            The teacher's costs in closed form: for each action, the loss of taking it and following the teacher from
            there on, up to a constant. A sequence, a mapping from actions, or a function. Saves the teacher's
            roll-outs.
        key
            A hashable value. Decisions with equal keys must have equal futures: the same features, legal actions,
            references and losses after the same actions. Roll-outs that reach equal keys are merged.

        """
        at = self._at
        self._at = at + 1
        if at < self._known:
            return self._script[at]
        if self._chooses:
            raise SpaceError(NO_ACTIONS)
        return self._decide(at, features, legal, reference, costs, key)

    def choose(
        self,
        candidates: Mapping[Any, Any],
        reference: Any = None,
        *,
        shared: Any = (),
        costs: Any = None,
        key: Any = None,
    ) -> Any:
        """Make a decision among candidates, as many as there are this time: the candidate to take.

        For programs without `actions` and `labels`. What is learned are weights of the features, the same for all
        candidates, so that a policy decides among others, and more, than those it was trained on.

        Parameters
        ----------
        candidates
            A mapping from candidates to their features. Candidates are any hashable objects. Their order must be the
            same when the program runs again; of candidates that seem equally good, the first is taken. The features
            of a candidate are a mapping from names to values: a number is a value, anything else (a string, a bool,
            None, a tuple) a category. Or an iterable of features as in `predict`, or a function that returns either
            and is called only if needed.
        reference
            The teacher's candidate; several equally good ones as a list or set; or a function that returns either and
            is called only if needed, with a stream for `lols.uniform` if it has an argument. Needed in training only.
        shared
            Features of the decision itself, given like those of a candidate. Each feature of a candidate is combined
            with each of them: alone, they would say the same for all candidates.
        costs
            The teacher's costs in closed form: a sequence in the order of the candidates, a mapping from candidates,
            or a function. Saves the teacher's roll-outs.
        key
            A hashable value. Decisions with equal keys must have equal futures: candidates with the same features, in
            the same order, and the same references and losses after the same choices.

        Examples
        --------
        >>> import lols
        >>> def drive(search, places):
        ...     at, tour, left = 0, [], set(places)
        ...     while left:
        ...         away = {place: {"away": abs(place - at), "ahead": place > at} for place in sorted(left)}
        ...         place = search.choose(away, reference=min(left))
        ...         search.loss(abs(place - at))
        ...         at = place
        ...         left.remove(place)
        ...         tour.append(place)
        ...     return tour
        >>> model = lols.train(lols.Program(drive), [[2, -1], [1, 7, -3], [4, 5, -8, -9]] * 5, passes=3, seed=1)
        >>> model.predict([[6, 3, -2]])
        [[-2, 3, 6]]

        """
        at = self._at
        self._at = at + 1
        if at < self._known:
            number = self._script[at]
        else:
            if not self._chooses:
                raise SpaceError(HAS_ACTIONS)
            if not hasattr(candidates, "values"):
                raise SpaceError(f"the candidates are {candidates!r}: give a dict from each to its features")
            number = self._decide(at, (candidates, shared), candidates, reference, costs, key)
        try:
            return next(islice(candidates, number, None))
        except StopIteration:
            raise SpaceError("there are fewer candidates than before, after the same actions: is it random?") from None

    def loss(self, value: Any) -> None:
        """Add to the loss: a number, or a function that returns one and is not called in prediction.

        Parameters
        ----------
        value
            What is added to the loss; 0 or more.

        """
        try:
            self._loss += value
        except TypeError:
            if not callable(value):
                raise SpaceError(f"`search.loss` is given {value!r}: give a number, or a function for one") from None
            self._loss += value()

    # --- for subclasses: the ways of running a program ---

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        """Make decision number `at`, which is not in the script."""
        raise NotImplementedError

    def _begin(self, script: list[Any]) -> None:
        self._script, self._known, self._at, self._loss = script, len(script), 0, 0.0

    def _check_steps(self, at: int) -> None:
        if at >= self._most:
            raise SpaceError(f"the program goes on after {self._most} decisions; Program(steps=...) allows more")

    def _spent(self) -> float:
        """The loss since the last decision, which is reset to 0."""
        lost, self._loss = self._loss, 0.0
        try:
            spent = float(lost)
        except (TypeError, ValueError):
            raise SpaceError(f"`search.loss` is given {lost!r}: give numbers") from None
        if not 0.0 <= spent <= LARGEST_COST:
            raise SpaceError(f"the loss is {spent}: give `search.loss` numbers from 0 to {LARGEST_COST:g}")
        return spent

    def _run(self, x: Any, what: str) -> Any:
        """Run the program on an object. Errors name `what` was run; those of the program itself pass through."""
        try:
            result = self._program.run(self, x)
            self._final = self._spent() if self.truth else 0.0
            return result
        except Stop:
            return None
        except SpaceError as error:
            raise SpaceError(f"{what}, step {max(self._at - 1, 0)}: {error}{user_line(error)}") from error
        except Exception as error:
            error.add_note(f"lols: {what}, after {self._at} decisions")
            raise


def ask_teacher(choices: ActionChoices, legal: Legal, reference: Any, costs: Any, stream: int) -> Teacher:
    """Read `reference` and `costs`. Functions are called, with a stream for `lols.uniform` if they take an argument."""
    if costs is None and reference is not None:
        try:
            number = choices.numbers.get(reference, -1)
        except TypeError:  # a list, or a set
            number = -1
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
