"""The fused driver: runs batches of examples through a compiled space, on one or several threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples, Shared
from lols.contract.records import record_class
from lols.contract.space import Reference, SearchSpace
from lols.contract.threads import AUTO, Threads, chosen_threads
from lols.engine.algorithm1 import algorithm1, algorithm1_kernel
from lols.engine.calls import bind_space, loss
from lols.engine.door import admit
from lols.engine.drivers.mistakes import explain, is_compiler_error
from lols.engine.drivers.portable import Portable
from lols.engine.drivers.predictions import Predictions
from lols.engine.memory import make_batch, make_scratch
from lols.engine.policy import new_policy
from lols.engine.predict import follow_teacher, follow_teacher_kernel, losses_kernel, predict, predict_kernel
from lols.engine.structures import AT_EXAMPLE, CODE, Batch, Data, FrozenPolicy, Lessons, Plan, Scratch, Slots
from lols.errors import SpaceError
from lols.kernels.dual import bind
from lols.kernels.kernel import Kernel

KernelCall = tuple[Kernel, tuple[Any, ...]]
Again = Callable[[int], Any]  # runs one example of a batch as plain Python, to find the function that failed


class KernelCalls(NamedTuple):
    """The kernels of training and prediction with arguments of the right types: enough to compile them."""

    search: KernelCall
    predict: KernelCall
    evaluate: list[KernelCall]  # the losses of predictions, and the teacher's
    lessons: Lessons  # of the search, for the kernels of the learner


class FusedDriver:
    """Runs a data set through a space: `make_lessons` for training, `predict` and `follow_teacher` for the rest.

    Parameters
    ----------
    space, reference
        The search problem; the reference is needed for `make_lessons` and `follow_teacher` only.
    examples
        The data set.
    threads
        How many threads share a batch; the result is the same for any number. None: see `lols.contract.threads`.
    together
        How many examples a batch has, if that is known.
    compiled
        False runs everything as plain Python: breakpoints and `print` work.

    """

    def __init__(
        self,
        space: SearchSpace,
        examples: Examples,
        reference: Reference | None = None,
        *,
        threads: Threads = 1,
        together: int | None = None,
        compiled: bool = True,
    ):
        self.space, self.reference, self.examples, self.compiled = space, reference, examples, compiled
        self.bound = bind_space(space)
        self.bound_reference, y = None, examples.y if examples.has_truth else ()
        if reference is not None:
            functions, y = _reference_and_truth(reference, examples)
            self.bound_reference = bind("Reference", functions)
        self.data = self._admit(examples, y)
        self._unlabelled = self.data._replace(y=())  # prediction never sees the truth, so one kernel serves both
        chosen = chosen_threads(threads, int(examples.steps.sum()), together or len(examples))
        self.threads = chosen if compiled else 1
        self._alone = threads in (None, AUTO)  # on a worker, of which there are many
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        self._scratch: list[Scratch] = []
        self._slots: Slots | None = None

    def __enter__(self) -> FusedDriver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def turn_to(self, examples: Examples) -> None:
        """Continue with other examples, without truth; the lasting types of the old items must keep their numbers.

        Then the scores of types are kept for `predict` with the `same` policy.
        """
        self.data = self._admit(examples, ())
        self.examples = examples
        self._unlabelled = self.data
        self._scratch = [self._renewed(scratch) for scratch in self._scratch]

    def portable(self) -> Portable:
        """What makes such a driver on another machine."""
        functions = {f"`{name}` of the space": f for name, f in self.space.functions().items()}
        if self.reference is not None:
            functions |= {f"`{name}` of the reference": f for name, f in self.reference.functions().items()}
        arguments = {
            "space": self.space,
            "examples": self.examples,
            "reference": self.reference,
            "threads": 1 if self._alone else self.threads,
            "compiled": self.compiled,
        }
        return Portable(type(self), arguments, functions)

    def work_of(self, indices: np.ndarray) -> np.ndarray:
        """About how much work each of these examples is: its number of steps."""
        return self.examples.steps[indices]

    # --- stages ---

    def make_lessons(
        self,
        indices: np.ndarray,
        rounds: np.ndarray,
        policy: FrozenPolicy,
        plan: Plan,
        beta: np.ndarray,
        beta_in: np.ndarray,
    ) -> Batch:
        """Search examples with a frozen policy; the lessons are in memory that the next call reuses."""
        batch = make_batch(self._slots, self.examples, indices, rounds, beta, beta_in)
        self._slots = batch.lessons.slots
        counter = np.zeros(1, np.int64)
        arguments = (self.bound, self.bound_reference, self.data, policy, plan)
        work = [(scratch, batch, counter) for scratch in self._scratches(policy)]

        def again(b: int) -> None:
            at = slice(b, b + 1)
            alone = make_batch(None, self.examples, indices[at], rounds[at], beta[at], beta_in[at])
            algorithm1(*arguments, self._fresh(policy), alone, np.zeros(1, np.int64))

        self._run(algorithm1_kernel, [(*arguments, *w) for w in work], again, indices)
        return batch

    def adopt(self, batch: Batch, taken: np.ndarray) -> None:
        """Take over a batch that was searched elsewhere: there is nothing to take over from here on."""

    def predict(
        self, policy: FrozenPolicy, plan: Plan, *, scores: bool = False, temperature: float = 0.0, same: bool = False
    ) -> Predictions:
        """Follow the learned policy on all examples; `same` says that it has not changed since the last call."""
        actions = self.examples.most_actions if scores else 0
        predictions = Predictions(self.examples, self.compiled, actions, temperature)
        parts = np.linspace(0, len(self.examples), self.threads + 1).astype(np.int64)
        scratches = self._scratches(policy)
        for scratch in scratches:
            if not same:
                new_policy(scratch.seen)
        head, ends = (self.bound, self._unlabelled, policy, plan), predictions.ends
        work = [(*head, scratch, parts[k], parts[k + 1], ends) for k, scratch in enumerate(scratches)]
        self._run(predict_kernel, work, lambda at: predict(*head, self._fresh(policy), at, at + 1, ends))
        return predictions

    def follow_teacher(self, plan: Plan, policy: FrozenPolicy) -> Predictions:
        """Follow the teacher on all examples."""
        predictions = Predictions(self.examples, self.compiled)
        head, ends = (self.bound, self.bound_reference, self.data, plan), predictions.ends
        work = (*head, self._scratches(policy)[0], 0, len(self.examples), ends)
        self._run(
            follow_teacher_kernel, [work], lambda at: follow_teacher(*head, self._fresh(policy), at, at + 1, ends)
        )
        return predictions

    def losses(self, predictions: Predictions, policy: FrozenPolicy) -> np.ndarray:
        """The loss of every prediction; the examples must have their truth."""
        if not self.examples.has_truth:
            raise SpaceError("these examples have no truth `y`, so their loss is unknown: give labelled examples")
        out = np.zeros(len(self.examples))
        work = (self.bound, self.data, self._scratches(policy)[0], predictions.ends, out)
        self._run(losses_kernel, [work], lambda at: loss(self.bound, *self.examples.example(at), predictions.state(at)))
        return out

    def calls(self, policy: FrozenPolicy, plan: Plan) -> KernelCalls:
        """The kernels of training and prediction, to compile them ahead."""
        none, scratch = np.zeros(0, np.int64), self._scratches(policy)[0]
        batch = make_batch(None, self.examples, none, none, np.zeros(0), np.zeros(0))
        ends = Predictions(self.examples, self.compiled).ends
        search = (self.bound, self.bound_reference, self.data, policy, plan, scratch, batch, none)
        predict = (self.bound, self._unlabelled, policy, plan, scratch, 0, 0, ends)
        losses = (self.bound, self.data, scratch, ends, np.zeros(0))
        teacher = (self.bound, self.bound_reference, self.data, plan, scratch, 0, 0, ends)
        evaluate: list[KernelCall] = [(losses_kernel, losses), (follow_teacher_kernel, teacher)]
        return KernelCalls((algorithm1_kernel, search), (predict_kernel, predict), evaluate, batch.lessons)

    # --- helpers ---

    def _admit(self, examples: Examples, y: Any) -> Data:
        bound = self.bound, self.bound_reference
        return admit(self.space, self.reference, examples, y, bound, compiled=self.compiled)

    def _run(
        self, kernel: Kernel, work: Sequence[tuple[Any, ...]], again: Again, indices: np.ndarray | None = None
    ) -> None:
        """Run one kernel call per thread; of several errors, the one of the first example is raised.

        `again` runs one example as plain Python; `indices` are the examples of a batch by their numbers in it.
        """

        def call(arguments: tuple[Any, ...]) -> tuple[Exception | None, Scratch]:
            scratch = next(a for a in arguments if isinstance(a, Scratch))
            scratch.report[:] = 0
            try:
                kernel(self.compiled, *arguments)
            except Exception as error:
                return error, scratch
            return None, scratch

        waiting = [self._pool.submit(call, w) for w in work[1:]] if self._pool is not None else []
        results = [call(work[0]), *(w.result() for w in waiting)]
        errors = [(error, scratch) for error, scratch in results if error is not None or scratch.report[CODE]]
        if errors:
            error, scratch = min(errors, key=lambda pair: int(pair[1].report[AT_EXAMPLE]))
            at = int(scratch.report[AT_EXAMPLE])
            example = at if indices is None else int(indices[at])
            explained = explain(self, error, scratch, example, lambda: again(at))
            # the error of a compiler is pages long, and its message is in the explanation
            raise explained from (error.__cause__ if error is not None and is_compiler_error(error) else error)

    def _scratches(self, policy: FrozenPolicy) -> list[Scratch]:
        components, columns = policy.stack.shape[0], self._columns(policy)
        if not self._scratch or self._scratch[0].seen.item_scores.shape[::3] != (components, columns):
            self._scratch = [self._fresh(policy) for _ in range(self.threads)]
        return self._scratch

    def _columns(self, policy: FrozenPolicy) -> int:
        """How many scores a state has: those of the policy, or one for each action if their number differs."""
        return self.examples.most_actions if self.space.fixed_actions is None else policy.stack.shape[2]

    def _fresh(self, policy: FrozenPolicy) -> Scratch:
        return make_scratch(self.examples, policy.stack.shape[0], self._columns(policy), self.compiled)

    def _renewed(self, old: Scratch) -> Scratch:
        """Memory for the current examples, with the scores of types taken over."""
        components, columns = old.seen.item_scores.shape[::3]
        columns = columns if self.space.fixed_actions is not None else self.examples.most_actions
        return make_scratch(self.examples, components, columns, self.compiled, old.seen)


def _reference_and_truth(reference: Reference, examples: Examples) -> tuple[Mapping[str, Any], Any]:
    """The functions of a reference, and the truth for them: a family of references needs the number of this one."""
    if reference.family is None or not examples.has_truth:
        return reference.functions(), examples.y
    columns = dict(zip(type(examples.y)._fields, examples.y)) | {"teacher": Shared(np.int64(reference.family.number))}
    return reference.family.functions, record_class(tuple(columns))(*columns.values())
