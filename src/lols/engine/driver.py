"""The fused driver: batches of examples through the compiled space, on one or several threads, with errors in words."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from lols.blame import place_of, said
from lols.engine.collect import collect, collect_kernel
from lols.engine.compile.dual import bind
from lols.engine.compile.kernel import Kernel
from lols.engine.memory import make_batch, make_scratch, state_type
from lols.engine.predict import follow_teacher, follow_teacher_kernel, losses_kernel, predict, predict_kernel
from lols.engine.scoring import new_policy
from lols.engine.structures import (
    ILLEGAL_REFERENCE,
    LOSS_NOT_FINITE,
    NEGATIVE,
    NO_ACTIONS,
    NO_SUCH_ITEM,
    NOT_FINITE,
    NOTHING,
    TOO_MANY_FEATURES,
    TOO_MANY_ITEMS,
    TOO_MANY_STEPS,
    Batch,
    Data,
    Plan,
    Policy,
    Scratch,
    Slots,
)
from lols.errors import LolsError, SpaceError
from lols.examples import Examples
from lols.space import Reference, SearchSpace

__all__ = ["FusedDriver"]


class FusedDriver:
    """Runs a data set through a space: `collect` for training, `predict` and `follow_teacher` for the rest.

    Parameters
    ----------
    space, reference
        The contract; the reference is needed for `collect` and `follow_teacher` only.
    examples
        The data set.
    threads
        How many threads share a batch; the result is the same for any number.
    compiled
        False runs everything as plain Python: breakpoints and `print` work.

    """

    def __init__(
        self,
        space: SearchSpace,
        examples: Examples,
        reference: Reference | None = None,
        *,
        threads: int = 1,
        compiled: bool = True,
    ):
        self.space, self.reference, self.examples, self.compiled = space, reference, examples, compiled
        self.bound = bind("Space", space.functions())
        self.bound_reference = bind("Reference", reference.functions()) if reference is not None else None
        y = examples.y if reference is not None or examples.has_truth else ()
        self.data = Data(examples.x, y, examples.items, examples.states, examples.steps)
        self.threads = threads if compiled else 1
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        self._scratch: list[Scratch] = []
        self._slots: Slots | None = None

    def __enter__(self) -> FusedDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def turn_to(self, examples: Examples) -> None:
        """Go on with other examples without truth, whose types of items that last are those of the old ones and more.

        What types contribute is then kept for `predict` with the `same` policy.
        """
        self.examples = examples
        self.data = Data(examples.x, (), examples.items, examples.states, examples.steps)
        self._scratch = [self._renewed(scratch) for scratch in self._scratch]

    # --- stages ---

    def collect(
        self,
        indices: np.ndarray,
        rounds: np.ndarray,
        policy: Policy,
        plan: Plan,
        beta: np.ndarray,
        beta_in: np.ndarray,
    ) -> Batch:
        """Turn examples into cost-sensitive examples under a frozen policy; the memory is reused by the next call."""
        batch = make_batch(self._slots, self.examples, indices, rounds, beta, beta_in)
        self._slots = batch.slots
        counter = np.zeros(1, np.int64)
        arguments = (self.bound, self.bound_reference, self.data, policy, plan)
        work = [(scratch, batch, counter) for scratch in self._scratches(policy)]

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = slice(int(scratch.where[1]), int(scratch.where[1]) + 1)

            def again() -> None:
                alone = make_batch(None, self.examples, indices[at], rounds[at], beta[at], beta_in[at])
                collect(*arguments, self._fresh(policy), alone, np.zeros(1, np.int64))

            return self.explain(error, scratch, int(indices[at][0]), again)

        self._run(collect_kernel, [(*arguments, *w) for w in work], failed)
        return batch

    def predict(self, policy: Policy, plan: Plan, *, scores: bool = False, same: bool = False) -> Predictions:
        """Follow the learned policy on all examples; it may be known to be the `same` as the last time."""
        made = Predictions(self.examples, self.compiled, self.space.sizes.actions if scores else 0)
        parts = np.linspace(0, len(self.examples), self.threads + 1).astype(np.int64)
        scratches = self._scratches(policy)
        for scratch in scratches:
            if not same:
                new_policy(scratch.sight)
        work = [
            (self.bound, self.data, policy, plan, scratch, parts[k], parts[k + 1])
            + (made.states, made.first, made.taken, made.first_step, made.scores)
            for k, scratch in enumerate(scratches)
        ]

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = int(scratch.where[1])
            again = (self.bound, self.data, policy, plan, self._fresh(policy), at, at + 1)
            rest = (made.states, made.first, made.taken, made.first_step, made.scores)
            return self.explain(error, scratch, at, lambda: predict(*again, *rest))

        self._run(predict_kernel, work, failed)
        return made

    def follow_teacher(self, plan: Plan, policy: Policy) -> Predictions:
        """Follow the teacher on all examples."""
        made = Predictions(self.examples, self.compiled)
        scratch = self._scratches(policy)[0]
        head = (self.bound, self.bound_reference, self.data, plan)

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = int(scratch.where[1])
            tail = (self._fresh(policy), at, at + 1, made.states, made.first)
            return self.explain(error, scratch, at, lambda: follow_teacher(*head, *tail))

        self._run(follow_teacher_kernel, [(*head, scratch, 0, len(self.examples), made.states, made.first)], failed)
        return made

    def losses(self, predictions: Predictions, policy: Policy) -> np.ndarray:
        """The loss of every prediction; the examples must have their truth."""
        if not self.examples.has_truth:
            raise SpaceError("these examples have no truth `y`, so their loss is unknown: give labelled examples")
        scratch = self._scratches(policy)[0]
        out = np.zeros(len(self.examples))

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = int(scratch.where[1])

            def again() -> None:
                state = predictions.state(at)
                self.space.loss(*self.examples.example(at), state)

            return self.explain(error, scratch, at, again)

        self._run(losses_kernel, [(self.bound, self.data, scratch, predictions.states, predictions.first, out)], failed)
        return out

    # --- helpers ---

    def _run(self, kernel: Kernel, work: Sequence[tuple[Any, ...]], failed: Any) -> None:
        """Run one kernel call per thread; the first error, in the order of the examples, is raised in words."""

        def one(arguments: tuple[Any, ...]) -> tuple[Exception | None, Scratch]:
            scratch = next(a for a in arguments if isinstance(a, Scratch))
            scratch.where[:] = 0
            try:
                kernel(self.compiled, *arguments)
            except Exception as error:
                return error, scratch
            return None, scratch

        waiting = [self._pool.submit(one, w) for w in work[1:]] if self._pool is not None else []
        results = [one(work[0]), *(w.result() for w in waiting)]
        wrong = [(error, scratch) for error, scratch in results if error is not None or scratch.where[0]]
        if wrong:
            error, scratch = min(wrong, key=lambda pair: int(pair[1].where[1]))
            if error is not None and type(error).__module__.startswith("numba"):
                raise SpaceError(self._not_compiled(error)) from None
            raise failed(error, scratch) from error

    def _scratches(self, policy: Policy) -> list[Scratch]:
        components, columns = policy.stack.shape[0], policy.stack.shape[2]
        if not self._scratch or self._scratch[0].sight.item_scores.shape[::3] != (components, columns):
            self._scratch = [self._fresh(policy) for _ in range(self.threads)]
        return self._scratch

    def _fresh(self, policy: Policy) -> Scratch:
        return make_scratch(self.examples, policy.stack.shape[0], policy.stack.shape[2], self.compiled)

    def _renewed(self, old: Scratch) -> Scratch:
        """Memory for the examples of now, in which what types contribute is still known."""
        components, columns = old.sight.item_scores.shape[::3]
        return make_scratch(self.examples, components, columns, self.compiled, old.sight)

    def explain(self, error: Exception | None, scratch: Scratch, example: int, again: Any) -> LolsError:
        """Say which function went wrong, on which example, at which step; run it again as plain Python to find out."""
        code, step, action = (int(scratch.where[k]) for k in (0, 2, 3))
        place = f"example {example}" + (f", step {step}" if step >= 0 else "")
        if code == 0 and error is not None:
            return SpaceError(self._blame(error, place, again))
        reason = {
            TOO_MANY_STEPS: f"the search goes on after {self.examples.steps[example]} steps: `step` loops for ever, "
            "or Sizes.steps is too small",
            NO_ACTIONS: "`actions` allows nothing at the start state: leave such examples out",
            ILLEGAL_REFERENCE: f"the reference takes action {action}, which `actions` does not allow there"
            if action != NOTHING
            else "the reference has no legal action there",
            TOO_MANY_FEATURES: "`features` or `action_features` emits more than Sizes says: raise it",
            TOO_MANY_ITEMS: f"`items` looks at more than Sizes.items = {self.space.sizes.items}: raise it",
            NO_SUCH_ITEM: f"`items` looks at item {action}, or in a role, that is not there",
            NOT_FINITE: f"`{self._costly()}` gives NaN or infinity: a dead end, or a mistake in it",
            LOSS_NOT_FINITE: "`loss` gives NaN or infinity: a dead end, or a mistake in it",
            NEGATIVE: "`loss` is negative: add a constant, so that the best result costs 0",
        }[code]
        return SpaceError(f"{place}: {reason}")

    def _costly(self) -> str:
        names = [n for n in ("cost",) if n in self.bound.functions] or ["loss"]
        if self.bound_reference is not None and "costs" in self.bound_reference.functions:
            names.append("Reference.costs")
        return "` or `".join(names)

    def _blame(self, error: Exception, place: str, again: Any) -> str:
        """Name the user's function and line behind an error, if need be from a run as plain Python."""
        if self.compiled:
            try:
                with np.errstate(all="ignore"):
                    again()
            except Exception as found:
                error = found
        reference = self.bound_reference.functions if self.bound_reference is not None else {}
        for name, function in [*self.bound.functions.items(), *reference.items()]:
            for frame, line in traceback.walk_tb(error.__traceback__):
                if frame.f_code is function.__code__:
                    at = place_of(error, function.__code__)
                    other = not at.endswith(f":{line})")
                    via = f", called from line {line})" if other else ")"
                    return f"{place}: `{name}` failed with {said(error)}{at[:-1]}{via}"
        if self.compiled and not isinstance(error, ArithmeticError | LookupError):
            reason = self._not_compiled(error, "")
            if reason:
                return reason
        fix = "lols.checks.check_space tells which"
        return f"{place}: a function of the space failed, or gave what it must not: {said(error)}; {fix}"

    def _not_compiled(self, error: Exception, otherwise: str | None = None) -> str:
        """Which function cannot be compiled, and why."""
        from lols.engine.diagnose import diagnose

        reference = self.bound_reference.functions if self.bound_reference is not None else {}
        with contextlib.suppress(Exception):
            found = diagnose(self.bound.functions, reference, self.examples, self.space.sizes.actions)
            if found is not None:
                return found
        if otherwise is not None:
            return otherwise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return f"a function of the space cannot be compiled: {lines[0]}. compiled=False runs it as plain Python"


class Predictions:
    """End states, actions and, if asked for, predicted costs of all examples."""

    def __init__(self, examples: Examples, compiled: bool, actions: int = 0):
        self.examples = examples
        self.first = np.concatenate([[0], np.cumsum(examples.states)])
        self.states = np.zeros(int(self.first[-1]), state_type(compiled))
        self.first_step = np.concatenate([[0], np.cumsum(examples.steps + 1)])
        self.taken = np.full(int(self.first_step[-1]), -1, np.int32)
        self.scores = np.zeros((self.taken.size if actions else 0, actions), np.float32)

    def state(self, index: int) -> np.ndarray:
        """The end state of one example."""
        return self.states[self.first[index] : self.first[index + 1]]

    def actions(self, index: int) -> np.ndarray:
        """The actions taken on one example."""
        taken = self.taken[self.first_step[index] : self.first_step[index + 1]]
        return taken[: int(np.argmax(taken < 0))]

    def all_actions(self) -> np.ndarray:
        """The actions taken on all examples, one after the other."""
        return self.taken[self.taken >= 0].astype(np.int64)

    def all_costs(self) -> np.ndarray:
        """The predicted costs of all steps of all examples, one after the other."""
        return self.scores[self.taken >= 0]

    def costs(self, index: int) -> np.ndarray:
        """Predicted costs by step and action; infinite where an action was not legal."""
        return self.scores[self.first_step[index] : self.first_step[index] + self.actions(index).size]

    def output(self, index: int) -> Any:
        """The user's own result for one example."""
        return self.examples.output(index, self.state(index))
