"""A recipe: all that is chosen before learning begins, and what follows from it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.contract.threads import Threads, check_threads
from lols.contract.whole_numbers import MOST, check_seed, check_whole
from lols.engine.door import look_over
from lols.engines import Engine, as_engine
from lols.errors import ConfigurationError
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.policies.linear import Linear
from lols.policies.own import as_policy
from lols.policies.policy import Policy, Terms
from lols.training.algorithms import Algorithm, check_names, schedules, searn_alpha
from lols.training.algorithms import algorithm as resolve
from lols.training.plans import TRICKS, by_margin, costs_above, plan_of
from lols.training.schedules import LinearSchedule

LARGEST_BATCH = 64  # by default
MOST_PASSES = 1_000_000


class Recipe:
    """What is learned, from whom, and how.

    Parameters
    ----------
    space
        The search problem: a `SearchSpace` or a `Task`.
    reference
        The teacher, by default the one of the task.
    algorithm
        The name of a preset or an `Algorithm`; `options` override single choices, as in `lols.algorithm`.
    learner
        The name of a reduction (`"hinge"`, the default, `"csoaa"`, `"secoc"`) or `LearnerSettings`. With a name, margin
        and scale follow from the costs of the first examples: see `LearnerSettings`.
    update
        The online update, if `learner` is a name.
    policy
        What is trained: `lols.policies.Linear(...)`, in which learner and update can be given, too, or an object of
        yours: see `lols.policies.OwnPolicy`.
    passes
        Passes over the data.
    batch_size
        How many examples are searched with the same policy. It changes the result; 1 is Algorithm 1 as printed. By
        default a fiftieth of the examples, at least 1 and at most 64: enough to keep several threads busy.
    seed
        Seed of all random numbers.
    threads
        Threads that share a batch; they do not change the result. None or `"auto"`: what is fastest, at most 6, and one
        for small data.
    shuffle
        Whether each pass visits the examples in a different order.
    neighbours
        How many neighbouring examples stay adjacent when they are shuffled, which is faster for small examples.
    compiled
        False runs the same code as plain Python, for debugging.
    tricks
        Optimisations to switch off, for example `{"merge": False}`; they do not change the result.
    engine
        Who does the work: this process (None), `"processes"`, `"ray"`, or an engine of `lols.engines` with settings of
        its own, such as `lols.engines.Ray(workers=8)`. With `sync="exact"` it does not change the result of the linear
        learner; that of a policy of your own is the same for any number of workers, but need not be that of none.
    checks
        Whether functions of your own are checked on a few examples before training, in about a tenth of a second: what
        makes results wrong is an error, what may is a warning. `lols.checks.check_space` examines more.
    options
        Single choices in place of those of the algorithm, such as `beta=0.5`, by the names of `Algorithm`.

    """

    IN_MEMORY: ClassVar[Any] = None  # the source of data that are in memory, if they are no examples

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        reference: Reference | None = None,
        *,
        algorithm: str | Algorithm = "lols",
        learner: str | LearnerSettings | None = None,
        update: str | None = None,
        policy: Any = None,
        passes: int = 5,
        batch_size: int | None = None,
        seed: int = 0,
        threads: Threads = None,
        shuffle: bool = True,
        neighbours: int = 1,
        compiled: bool = True,
        tricks: dict[str, bool] | None = None,
        engine: str | Engine | None = None,
        checks: bool = True,
        **options: Any,
    ):
        for name, value, most in (
            ("passes", passes, MOST_PASSES),
            ("batch_size", batch_size, MOST),
            ("neighbours", neighbours, MOST),
        ):
            if value is not None:
                check_whole(name, value, most=most)
        check_seed(seed)
        check_threads(threads)
        if neighbours > 1 and not shuffle:
            raise ConfigurationError("neighbours has no effect: the examples are not shuffled; leave it out")
        unknown = set(tricks or {}) - set(TRICKS)
        if unknown:
            raise ConfigurationError(f"unknown trick '{min(unknown)}': choose from {', '.join(TRICKS)}")
        self.space = space = as_space(space)
        self.reference = as_teacher(reference, space)
        check_names(options, OPTIONS)
        self.algorithm = resolve(algorithm, **options)
        self.policy = _policy(policy, learner, update)
        self.algorithm = _fitting(self.policy, self.algorithm, options)
        self.settings = self._asked = self.policy.settings
        if self.settings.slack is not None and self.algorithm.restart:
            raise ConfigurationError(
                f"slack must be None for {self.algorithm.name}: its learner starts anew in every pass, and a different "
                "policy rolls in"
            )
        self.passes, self.batch_size, self.seed, self.threads = passes, batch_size, seed, threads
        self.shuffle, self.neighbours, self.compiled, self.checks = shuffle, neighbours, compiled, checks
        self.tricks = dict.fromkeys(TRICKS, True) | (tricks or {})
        if self.algorithm.horizon is not None and space.cost is None:
            raise ConfigurationError(
                "horizon needs a space with `cost`: a loss that is known only at the end cannot be cut off"
            )
        self.engine = as_engine(engine)
        if self.engine.sync == "pass":
            self.policy.check_mixable()
            if self.algorithm.restart or self.algorithm.returned == "drawn":
                name = self.algorithm.name
                raise ConfigurationError(f"sync='pass' cannot train {name}: choose lols, aggrevate, dagger or cloning")
        self.plan = plan_of(space, self.reference, self.algorithm, self.settings, self.tricks, seed)

    def together(self, examples: int) -> int:
        """How many examples are searched with the same policy, of this many in all."""
        return self.batch_size or max(1, min(LARGEST_BATCH, examples // 50))

    def new_policy(self, rounds: int | None = None) -> Policy:
        """What is trained, before it has learned; `rounds` are those of the training, if they are known."""
        chosen = self.algorithm
        alpha = searn_alpha(chosen, rounds or 1) if chosen.restart else None
        return self.policy.begun(Terms(self.space, self.settings, chosen.returned, alpha, self.compiled))

    def new_learner(self) -> Learner:
        """A linear learner without weights."""
        learner = self.new_policy().learner
        if learner is None:
            raise ConfigurationError("this needs the linear learner: leave out policy, or use fit")
        return learner

    @property
    def unsettled(self) -> bool:
        """Whether margin or scale are to be settled by the costs of the first examples."""
        return self._asked.open and self.policy.has_weights

    def settle(self, driver: Any, few: np.ndarray) -> None:
        """Settle margin and scale by the costs of a few examples, before anything is learned."""
        reference = np.ones(few.size)
        weights = self.new_learner().policy()
        lessons = driver.make_lessons(few, few, weights, self.plan, reference, reference).lessons
        self._take(self._asked.settled(costs_above(lessons), int(lessons.filled.max())))

    def adopt(self, settings: LearnerSettings) -> None:
        """Take the margin and the scale that earlier training has settled."""
        self._take(replace(self.settings, margin=settings.margin, scale=settings.scale))

    def _take(self, settings: LearnerSettings) -> None:
        self.settings = settings
        self.plan = self.plan._replace(**by_margin(self.space, settings, self.tricks))

    def check_start(self) -> None:
        """Raise an error if nothing can be gone on from."""
        if not self.policy.has_weights:
            raise ConfigurationError("only the linear learner goes on from a state: give the policy that shall go on")
        if self.algorithm.restart:
            raise ConfigurationError(
                f"{self.algorithm.name} trains a new learner in every pass: it cannot go on; take another algorithm"
            )
        if self.engine.sync != "exact":
            raise ConfigurationError("sync has no effect: a model goes on with exact training; leave it out")

    def check_streamable(self, *, pieces: bool = False) -> None:
        """Raise an error if learning must know how much data there is; or, for `pieces`, must hold all of it."""
        chosen = self.algorithm
        if self.batch_size is None and not pieces:
            raise ConfigurationError("a stream has no end to derive the batch size from: give batch_size")
        if chosen.restart or chosen.returned == "drawn":
            raise ConfigurationError(f"{chosen.name} needs to know how much data there is: use fit")
        if not self.engine.LOCAL:
            raise ConfigurationError("engine has no effect: a stream is learned from in this process; leave it out")
        if any(isinstance(s, LinearSchedule) for s in schedules(chosen)):
            raise ConfigurationError("a linear schedule needs to know how much data there is: use fit, or another beta")

    def encoded(self, data: Iterable[Any] | Examples, *, labelled: bool = True) -> Any:
        """The data in columns, with their truth if it is needed; if they need not be `labelled`, where it is known."""
        truth = self.space.truth_for(self.reference) if labelled else None
        return data if isinstance(data, Examples) else Examples(self.space, data, truth=truth, decided=labelled)

    def look_over(self, examples: Any, driver: Any) -> None:
        """Check the functions on a few examples, unless `checks` is off."""
        if self.checks:
            look_over(self.space, self.reference, examples, (driver.bound, driver.bound_reference))


def _policy(given: Any, learner: str | LearnerSettings | None, update: str | None) -> Policy:
    """What is trained: weights by default."""
    if given is None:
        return Linear(learner, update)
    for name in (n for n, each in (("learner", learner), ("update", update)) if each is not None):
        raise ConfigurationError(f"{name} has no effect: the given policy has its own way to learn")
    policy = as_policy(given)
    policy.check_learns()
    return policy


def _fitting(policy: Policy, chosen: Algorithm, asked: dict[str, Any]) -> Algorithm:
    """The algorithm for a policy; an error if the options ask for what it cannot do."""
    if chosen.restart and not policy.has_weights:
        raise ConfigurationError(
            f"{chosen.name} trains a new learner in every pass, which is not possible with policy=...: choose lols, "
            "aggrevate, dagger or cloning"
        )
    if chosen.returned == "drawn" and not policy.copies:
        raise ConfigurationError(
            f"returned='drawn' needs copies: give {policy.name} a method `frozen`, or choose 'last'"
        )
    if chosen.returned == "average" and not policy.averages:
        if asked.get("returned") == "average":
            raise ConfigurationError(
                f"returned='average' needs an average: give {policy.name} a method `averaged`, or choose 'last'"
            )
        return replace(chosen, returned="last")
    return chosen


OPTIONS = [name for name, each in inspect.signature(Recipe).parameters.items() if each.kind is each.KEYWORD_ONLY]
