"""The fused driver: batches of examples through the compiled space, on one or several threads, with errors in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from lols.contract.examples import Examples, Shared
from lols.contract.records import record_class
from lols.contract.space import Reference, SearchSpace
from lols.engine.algorithm1 import algorithm1, algorithm1_kernel
from lols.engine.compile.dual import bind
from lols.engine.compile.kernel import Kernel
from lols.engine.drivers.mistakes import explain, not_compiled
from lols.engine.drivers.predictions import Predictions
from lols.engine.memory import make_batch, make_scratch
from lols.engine.policy import new_policy
from lols.engine.predict import follow_teacher, follow_teacher_kernel, losses_kernel, predict, predict_kernel
from lols.engine.structures import AT_EXAMPLE, CODE, Batch, Data, FrozenPolicy, Plan, Scratch, Slots
from lols.errors import LolsError, SpaceError

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
        self.bound_reference, y = None, examples.y if examples.has_truth else ()
        if reference is not None:
            functions, y = _taught(reference, examples)
            self.bound_reference = bind("Reference", functions)
        self.data = Data(examples.x, y, examples.items, examples.states, examples.steps)
        self._unlabelled = self.data._replace(y=())  # prediction never sees the truth, and is compiled once
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
        self._unlabelled = self.data
        self._scratch = [self._renewed(scratch) for scratch in self._scratch]

    # --- stages ---

    def collect(
        self,
        indices: np.ndarray,
        rounds: np.ndarray,
        policy: FrozenPolicy,
        plan: Plan,
        beta: np.ndarray,
        beta_in: np.ndarray,
    ) -> Batch:
        """Turn examples into lessons under a frozen policy; the memory is reused by the next call."""
        batch = make_batch(self._slots, self.examples, indices, rounds, beta, beta_in)
        self._slots = batch.lessons.slots
        counter = np.zeros(1, np.int64)
        arguments = (self.bound, self.bound_reference, self.data, policy, plan)
        work = [(scratch, batch, counter) for scratch in self._scratches(policy)]

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = slice(int(scratch.report[AT_EXAMPLE]), int(scratch.report[AT_EXAMPLE]) + 1)

            def again() -> None:
                alone = make_batch(None, self.examples, indices[at], rounds[at], beta[at], beta_in[at])
                algorithm1(*arguments, self._fresh(policy), alone, np.zeros(1, np.int64))

            return self.explain(error, scratch, int(indices[at][0]), again)

        self._run(algorithm1_kernel, [(*arguments, *w) for w in work], failed)
        return batch

    def predict(self, policy: FrozenPolicy, plan: Plan, *, scores: bool = False, same: bool = False) -> Predictions:
        """Follow the learned policy on all examples; it may be known to be the `same` as the last time."""
        made = Predictions(self.examples, self.compiled, self.space.sizes.actions if scores else 0)
        parts = np.linspace(0, len(self.examples), self.threads + 1).astype(np.int64)
        scratches = self._scratches(policy)
        for scratch in scratches:
            if not same:
                new_policy(scratch.seen)
        work = [
            (self.bound, self._unlabelled, policy, plan, scratch, parts[k], parts[k + 1], made.ends)
            for k, scratch in enumerate(scratches)
        ]

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = int(scratch.report[AT_EXAMPLE])
            again = (self.bound, self._unlabelled, policy, plan, self._fresh(policy), at, at + 1, made.ends)
            return self.explain(error, scratch, at, lambda: predict(*again))

        self._run(predict_kernel, work, failed)
        return made

    def follow_teacher(self, plan: Plan, policy: FrozenPolicy) -> Predictions:
        """Follow the teacher on all examples."""
        made = Predictions(self.examples, self.compiled)
        scratch = self._scratches(policy)[0]
        head = (self.bound, self.bound_reference, self.data, plan)

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = int(scratch.report[AT_EXAMPLE])
            tail = (self._fresh(policy), at, at + 1, made.ends)
            return self.explain(error, scratch, at, lambda: follow_teacher(*head, *tail))

        self._run(follow_teacher_kernel, [(*head, scratch, 0, len(self.examples), made.ends)], failed)
        return made

    def losses(self, predictions: Predictions, policy: FrozenPolicy) -> np.ndarray:
        """The loss of every prediction; the examples must have their truth."""
        if not self.examples.has_truth:
            raise SpaceError("these examples have no truth `y`, so their loss is unknown: give labelled examples")
        scratch = self._scratches(policy)[0]
        out = np.zeros(len(self.examples))

        def failed(error: Exception | None, scratch: Scratch) -> LolsError:
            at = int(scratch.report[AT_EXAMPLE])

            def again() -> None:
                state = predictions.state(at)
                self.space.loss(*self.examples.example(at), state)

            return self.explain(error, scratch, at, again)

        self._run(losses_kernel, [(self.bound, self.data, scratch, predictions.ends, out)], failed)
        return out

    def calls(self, policy: FrozenPolicy, plan: Plan) -> list[tuple[Kernel, tuple[Any, ...]]]:
        """The kernels of training and prediction, with arguments as they get them."""
        none, scratch = np.zeros(0, np.int64), self._scratches(policy)[0]
        batch = make_batch(None, self.examples, none, none, np.zeros(0), np.zeros(0))
        ends = Predictions(self.examples, self.compiled).ends
        return [
            (algorithm1_kernel, (self.bound, self.bound_reference, self.data, policy, plan, scratch, batch, none)),
            (predict_kernel, (self.bound, self._unlabelled, policy, plan, scratch, 0, 0, ends)),
        ]

    # --- helpers ---

    def _run(self, kernel: Kernel, work: Sequence[tuple[Any, ...]], failed: Any) -> None:
        """Run one kernel call per thread; the first error, in the order of the examples, is raised in words."""

        def one(arguments: tuple[Any, ...]) -> tuple[Exception | None, Scratch]:
            scratch = next(a for a in arguments if isinstance(a, Scratch))
            scratch.report[:] = 0
            try:
                kernel(self.compiled, *arguments)
            except Exception as error:
                return error, scratch
            return None, scratch

        waiting = [self._pool.submit(one, w) for w in work[1:]] if self._pool is not None else []
        results = [one(work[0]), *(w.result() for w in waiting)]
        wrong = [(error, scratch) for error, scratch in results if error is not None or scratch.report[CODE]]
        if wrong:
            error, scratch = min(wrong, key=lambda pair: int(pair[1].report[AT_EXAMPLE]))
            if error is not None and type(error).__module__.startswith("numba"):
                raise SpaceError(not_compiled(self, error)) from None
            raise failed(error, scratch) from error

    def _scratches(self, policy: FrozenPolicy) -> list[Scratch]:
        components, columns = policy.stack.shape[0], policy.stack.shape[2]
        if not self._scratch or self._scratch[0].seen.item_scores.shape[::3] != (components, columns):
            self._scratch = [self._fresh(policy) for _ in range(self.threads)]
        return self._scratch

    def _fresh(self, policy: FrozenPolicy) -> Scratch:
        return make_scratch(self.examples, policy.stack.shape[0], policy.stack.shape[2], self.compiled)

    def _renewed(self, old: Scratch) -> Scratch:
        """Memory for the examples of now, in which what types contribute is still known."""
        components, columns = old.seen.item_scores.shape[::3]
        return make_scratch(self.examples, components, columns, self.compiled, old.seen)

    def explain(self, error: Exception | None, scratch: Scratch, example: int, again: Any) -> LolsError:
        """Say which function went wrong, on which example, at which step; run it again as plain Python to find out."""
        return explain(self, error, scratch, example, again)


def _taught(reference: Reference, examples: Examples) -> tuple[Mapping[str, Any], Any]:
    """The functions of a teacher and the truth as they see it; several teachers may be compiled as one."""
    if reference.family is None or not examples.has_truth:
        return reference.functions(), examples.y
    columns = {
        **dict(zip(type(examples.y)._fields, examples.y)),
        "teacher": Shared(np.int64(reference.family.number)),
    }
    return reference.family.functions, record_class(tuple(columns))(*columns.values())
