"""Calls the functions of a space at states of one example, and checks their answers against the contract."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from lols.contract.checks.budget import Pace
from lols.contract.checks.findings import Findings
from lols.contract.checks.guards import (
    WORK,
    Guarded,
    GuardedState,
    HiddenTruth,
    MistakeError,
    guard,
    guard_record,
    read_only_record,
)
from lols.contract.examples import Examples
from lols.contract.features import FeatureBuffer, FeatureError, ItemBuffer
from lols.contract.results import ResultError, check_result, with_advice
from lols.contract.space import Reference, SearchSpace
from lols.contract.state import own_function
from lols.contract.user_frames import is_users
from lols.kernels.digest import plain
from lols.kernels.hashing import MASK

# Functions that are not given the truth, and those that may write the state.
WITHOUT_TRUTH = ("start", "actions", "step", "survey", "features", "items", "action_features", "key")
WRITERS = ("start", "step", "survey")
SURVEYED = ("features", "items", "action_features")  # what looks at a state after it was surveyed

# At how many actions of a state `cost` and `action_features` are called, besides the one taken.
MOST_ACTIONS = 5

# How often a function is asked before its answers count as always the same.
MOST_ASKED = 20

# A call takes as long as this many reads of a guarded array; one more for every few cells copied.
WORK_OF_A_CALL = 30
CELLS_PER_WORK = 500

Answers = dict[str, np.ndarray | None]


class FailedError(Exception):
    """A function failed and was reported: this state cannot be examined further."""


class Probe:
    """The functions of a space and a reference on one example.

    Every answer is one array, so that any two can be compared byte by byte.
    """

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference | None,
        examples: Examples,
        index: int,
        findings: Findings,
        pace: Pace,
        *,
        state_kind: type[Guarded] = GuardedState,
    ):
        x, y = examples.example(index)
        self.space, self.sizes = space, space.sizes
        self.index, self.findings, self.pace, self.state_kind = index, findings, pace, state_kind
        self.step = self.stream = 0
        self.x, self.y, self.plain_x = guard_record("x", x), guard_record("y", y), read_only_record(x)
        self.state_size, self.limit = int(examples.states[index]), int(examples.steps[index])
        self.actions = examples.actions_of(index)
        room = self.state_size + self.actions + self.sizes.features + self.sizes.action_features
        self.work_of_a_call = WORK_OF_A_CALL + room // CELLS_PER_WORK
        first = examples.items.first
        self.item_count = int(first[index + 1] - first[index]) if first.size > 1 else 0
        callable_ = {n: f for n, f in space.functions().items() if examples.has_truth or n not in ("loss", "cost")}
        of_reference = reference.functions() if reference is not None else {}
        callable_ |= {f"Reference.{name}": function for name, function in of_reference.items()}
        self.functions = {name: plain(function) for name, function in callable_.items()}
        self.reference_functions = tuple(f"Reference.{name}" for name in of_reference)
        self.random = reference is not None and reference.random
        self.needs_truth = reference is not None and reference.needs_truth

    def report(self, function: str, kind: str, message: str) -> None:
        """Report a mistake at the current step."""
        self.findings.add(function, kind, message, self.index, self.step)

    # --- one function -------------------------------------------------------------------------------------------------

    def ask(self, name: str, s: np.ndarray, a: int | None = None, *, y: Any = None, check: bool = False) -> np.ndarray:
        """Call a function on a copy of a state. Exceptions pass through; with `check`, other mistakes are reported."""
        self.pace.budget.stop_if_spent()
        WORK[0] += self.work_of_a_call
        state = guard(s.copy(), "the state", self.state_kind)
        if name in SURVEYED and "survey" in self.functions:
            s = self.surveyed(s)
            state = guard(s.copy(), "the state", self.state_kind)
        arguments = [self.x, state]
        if name not in WITHOUT_TRUTH:
            arguments.insert(1, self._truth(name) if y is None else y)
        if a is not None:
            arguments.append(a)
        out = self._buffer(name) if name != "survey" else self._legal(s)
        arguments += [] if out is None else [out]
        function = self.functions[name]
        result = function(*arguments)
        check_result(name.removeprefix("Reference."), function, result)
        after = np.asarray(state)
        if check and name not in WRITERS and not np.array_equal(after, s):
            cells = np.flatnonzero(after != s).tolist()
            what = self._cell(cells[0])
            self.report(name, "modifies", f"changes {what} of the state: only `start` and `step` may write it")
        if isinstance(out, FeatureBuffer | ItemBuffer):
            return self._emitted(name, out, check)
        if name in WRITERS:
            return after
        if name in ("actions", "Reference.free", "Reference.costs"):
            return np.asarray(out)
        if name in ("loss", "cost"):
            return np.float64(result)  # type: ignore[return-value]  # a number is an array without dimensions
        if check and result != int(result):
            what = "the number of an action" if name == "Reference.action" else "a whole number"
            self.report(name, "whole", f"gives {result}, which is cut off: return {what}")
        wrapped = ((int(result) & MASK) ^ (1 << 63)) - (1 << 63)
        return np.int64(wrapped)  # type: ignore[return-value]

    def answer(self, name: str, s: np.ndarray, a: int | None = None, *, twice: bool = True) -> np.ndarray:
        """Call a function, twice by default, and report everything that is wrong with its answer."""
        try:
            answer = self.ask(name, s, a, check=True)
            again = self.ask(name, s, a) if twice else answer
        except Exception as error:
            self._report_error(name, error)
            raise FailedError from error
        if answer.tobytes() != again.tobytes():
            self._report_chance(name)
        elif twice and "survey" in self.functions and name not in (*WRITERS, *SURVEYED, "loss"):
            self._compare_surveyed(name, s, a, answer)
        if name in ("loss", "cost"):
            self._check_number(name, float(answer))
        return answer

    def show_truth(self, s: np.ndarray, a: int, y: Any) -> None:
        """Call all functions that are given the truth with this one, to see later whether one of them leaks it."""
        for name in ("loss", "cost", *(self.reference_functions if self.needs_truth else ())):
            if name in self.functions:
                with suppress(Exception):  # another truth need not fit this example
                    self.ask(name, s, a if name == "cost" else None, y=y)

    # --- all functions ------------------------------------------------------------------------------------------------

    def ask_all(self, s: np.ndarray, legal: np.ndarray, a: int, *, check: bool = False) -> Answers:
        """The answers of all functions at a state that is not an end state; None for a function that fails.

        With `check`, they are checked, and `legal` is taken as the answer of `actions`.
        """
        ask = self.answer if check else self.ask
        some = some_of(np.flatnonzero(legal)).tolist()
        answers: Answers = {"actions": legal}
        own = ("actions", "survey", "features", "items", "key", "step", "action_features", "cost")
        for name in (*own, *self.reference_functions):
            if name not in self.functions or (check and name == "actions"):
                continue
            try:
                if name in ("action_features", "cost"):
                    answers[name] = np.concatenate([np.atleast_1d(ask(name, s, b)) for b in some])
                elif name == "step":
                    answers[name] = ask(name, s, a)[: self.sizes.live]
                elif name == "survey":
                    ask(name, s)
                else:
                    answers[name] = ask(name, s)
            except Exception:
                answers[name] = None
        return answers

    def ask_reference(self, s: np.ndarray, *, twice: bool = False) -> Answers:
        """The answers of the reference at a state; None for a function that fails."""
        answers: Answers = dict.fromkeys(self.reference_functions)
        for name in self.reference_functions:
            with suppress(FailedError):
                answers[name] = self.answer(name, s, twice=twice)
        return answers

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _cell(self, cell: int) -> str:
        """A cell of the state in words: the part that it belongs to, or its number."""
        parts = self.space.parts
        if parts is None:
            return f"cell {cell}"
        begins = parts.bounds(self.plain_x)[:-1]
        return f"`{[name for name, begin in zip(parts.parts, begins, strict=True) if begin <= cell][-1]}`"

    def _legal(self, s: np.ndarray) -> np.ndarray:
        legal = np.zeros(self.actions, np.bool_)
        self.functions["actions"](self.x, guard(s.copy(), "the state", self.state_kind), legal)
        return guard(legal, "legal")

    def surveyed(self, s: np.ndarray) -> np.ndarray:
        """A state after `survey`, as the functions of features see it."""
        state = guard(s.copy(), "the state", self.state_kind)
        self.functions["survey"](self.x, state, self._legal(s))
        return np.asarray(state)

    def _compare_surveyed(self, name: str, s: np.ndarray, a: int | None, answer: np.ndarray) -> None:
        """The teacher's roll-outs survey no state, so nothing but features may read what `survey` writes."""
        with suppress(Exception):  # `survey` is asked by itself, too
            if self.ask(name, self.surveyed(s), a).tobytes() == answer.tobytes():
                return
            if any(self.ask(name, s, a).tobytes() != answer.tobytes() for _ in range(MOST_ASKED)):
                self._report_chance(name)  # which may have answered the same twice
            else:
                self.report(name, "survey", "reads what `survey` writes: only features may read these parts of a state")

    def _report_chance(self, name: str) -> None:
        of_reference = name == "Reference.action"
        fix = "draw by lols.uniform(rng), from the `rng` argument only" if of_reference else "use no random numbers"
        message = "gives another answer when asked again with the same arguments: "
        self.report(name, "deterministic", f"{message}{fix}, and no global that changes")

    def _truth(self, name: str) -> Any:
        return HiddenTruth() if name in self.reference_functions and not self.needs_truth else self.y

    def _buffer(self, name: str) -> Any:
        """The last argument of a function: what it writes its answer to, or its random stream."""
        sizes, label = self.sizes, "the item buffer" if name == "items" else "the feature buffer"
        if name in ("features", "action_features"):
            room = sizes.features if name == "features" else sizes.action_features
            ids, values = np.zeros(room, np.int64), np.zeros(room, np.float32)
            return FeatureBuffer(guard(ids, label), guard(values, label), np.zeros(1, np.int64))
        if name == "items":
            items, roles = np.zeros(sizes.items, np.int64), np.zeros(sizes.items, np.int64)
            return ItemBuffer(guard(items, label), guard(roles, label), np.zeros(1, np.int64))
        if name == "Reference.costs":
            return guard(np.full(self.actions, np.nan), "out")
        if name in ("actions", "Reference.free"):
            return guard(np.zeros(self.actions, np.bool_), "legal" if name == "actions" else "out")
        if name == "Reference.action" and self.random:
            return np.array([self.stream])
        return None

    def _emitted(self, name: str, out: FeatureBuffer | ItemBuffer, check: bool) -> np.ndarray:
        """The features or items in a buffer, as integers; with `check`, those beyond the sizes are reported."""
        first, second = (np.asarray(part) for part in out[:2])
        count, room = int(out.size[0]), first.size
        first, second = first[:count], second[:count]
        if check and count > room:
            what = "looks at {} items" if name == "items" else "emits {} features"
            self.report(name, "too many", f"{what.format(count)}, but Sizes.{name} is {room}: raise it")
        if isinstance(out, FeatureBuffer):
            return np.concatenate([first, second.view(np.int32).astype(np.int64)])
        for item, role in zip(first.tolist(), second.tolist(), strict=True) if check else ():
            if not 0 <= item < self.item_count:
                message = f"looks at item {item}, but `encode` gave the example {self.item_count} items: "
                self.report(name, "item", f"{message}look at items that are there only")
            if not 0 <= role < self.sizes.roles:
                self.report(name, "role", f"uses role {role}, but Sizes.roles is {self.sizes.roles}: raise it")
        return np.concatenate([first, second])

    def _check_number(self, name: str, value: float) -> None:
        if not np.isfinite(value):
            where = "for a legal action:"
            if name == "loss":
                where = "at an end state: let `actions` avoid this dead end, or"
            self.report(name, "finite", f"is {value} {where} give it a finite {name}")
        elif value < 0:
            self.report(name, "negative", f"is negative ({value:g}): add a constant, so that the best costs 0")

    def _report_error(self, name: str, error: Exception) -> None:
        """Report an exception of a function, with the line in the user's code."""
        if isinstance(error, ResultError):
            self.report(name, "returns", str(error))
            return
        here, function = Path(__file__).parent, self.functions[name]
        own = (here, here.parent)
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent not in own]
        users = [f for f in frames if is_users(f.filename) or f.filename == own_function(function).__code__.co_filename]
        place = "".join(f" ({Path(f.filename).name}:{f.lineno})" for f in (users or frames)[-1:])
        if isinstance(error, MistakeError):
            self.report(name, error.kind, f"{error}{place}")
        elif isinstance(error, FeatureError):
            self.report(name, "finite", f"{error}{place}")
        elif isinstance(error, ValueError) and "read-only" in str(error):
            self.report(name, "modifies", f"writes to x or y, which it may only read: keep results in the state{place}")
        else:
            where = " at an end state" if name == "loss" else ""
            said = with_advice(error, name.removeprefix("Reference."), function)
            self.report(name, "fails", f"fails{where} with {said}{place}: it must answer at every state it meets")


def some_of(choices: np.ndarray) -> np.ndarray:
    """A few of the legal actions, spread evenly.

    >>> some_of(np.arange(12)).tolist()
    [0, 3, 6, 9]
    """
    return choices[:: -(-choices.size // MOST_ACTIONS)]
