"""What decides and what learns, as all of training sees it: one abstract class for weights and networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.threads import Threads
from lols.engine.beam import BatchBeamDriver, BeamDriver
from lols.engine.drivers.fused import FusedDriver, KernelCall
from lols.engine.structures import Batch
from lols.errors import ConfigurationError
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings


class Terms(NamedTuple):
    """What a policy has to know before it learns.

    Parameters
    ----------
    space
        The search space.
    settings
        How the linear learner learns.
    returned
        Which policy training returns: `"average"`, `"last"` or `"drawn"`.
    alpha
        If every pass trains a new policy, as in Searn: how fast the mixture of them moves away from the reference.
    compiled
        False runs everything as plain Python.

    """

    space: SearchSpace
    settings: LearnerSettings
    returned: str = "average"
    alpha: float | None = None
    compiled: bool = True


class Given:
    """What was given when a policy was made, with scikit-learn's habits; changing it makes the policy anew."""

    @property
    def given(self) -> Mapping[str, Any]:
        """The settings that were given."""
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings."""
        return dict(self.given)

    def set_params(self, **settings: Any) -> Self:
        """Change settings."""
        made = type(self)(**dict(self.given) | settings)
        vars(self).clear()
        vars(self).update(vars(made))
        return self

    def __repr__(self) -> str:
        settings = {name: getattr(value, "__name__", repr(value)) for name, value in self.given.items()}
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in settings.items())})"


class Policy(ABC):
    """What decides, and what learns from what was searched: `Linear`, `Neural`, or `Own`, an object of the user's.

    It chooses the driver that searches with it, and says what that is asked with (`asked`). A policy that was given as
    an option has learned nothing; `begun` is one that learns.
    """

    KIND: ClassVar[str] = "own"  # what options and model files call it
    SETTINGS: ClassVar[tuple[str, ...]] = ()  # what it is given that an estimator can have as an option of its own
    OPTIONS: ClassVar[tuple[str, ...]] = ()  # the options of an estimator that have an effect with it only

    settings: LearnerSettings  # what lessons must have for it: exact costs, margins
    has_weights: ClassVar[bool] = False  # of features, which a learner changes: then margin and scale can be settled
    averages: bool = True  # whether it knows the average over what it has learned
    copies: bool = True  # whether it can be kept as it is while it learns on

    # --- deciding ---

    @property
    @abstractmethod
    def asked(self) -> Any:
        """What drivers are given: weights for kernels, or an object with `costs`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in reports."""

    @property
    def components(self) -> int:
        """How many policies it is a mixture of."""
        return 1

    @property
    def random(self) -> bool:
        """Whether it draws its actions."""
        return self.components > 1

    @property
    def keeps_scores(self) -> bool:
        """Whether scores of items can be kept from one part of the data to the next."""
        return False

    @property
    def together(self) -> int | None:
        """How many examples it learns on from at a time; None for as many as in training."""
        return None

    @abstractmethod
    def driver(
        self,
        space: SearchSpace,
        examples: Examples,
        reference: Reference | None = None,
        *,
        threads: Threads = 1,
        together: int | None = None,
        compiled: bool = True,
    ) -> FusedDriver:
        """What searches examples with this policy.

        Parameters
        ----------
        space
            The search space.
        examples
            The examples to search.
        reference
            The teacher, if it is asked.
        threads
            How many threads share the work; None for as many as help.
        together
            How many examples are searched at a time.
        compiled
            Whether the functions of the space are compiled.

        """

    @abstractmethod
    def beam_driver(
        self, space: SearchSpace, examples: Examples, *, threads: Threads, compiled: bool
    ) -> BeamDriver | BatchBeamDriver:
        """What searches them with a beam.

        Parameters
        ----------
        space
            The search space.
        examples
            The examples to search.
        threads
            How many threads share the work; None for as many as help.
        compiled
            Whether the functions of the space are compiled.

        """

    @abstractmethod
    def in_lock_step(self, space: SearchSpace, *, compiled: bool = True) -> Any:
        """The policy as an object that scores many states at a time.

        Parameters
        ----------
        space
            The search space.
        compiled
            Whether the functions of the space are compiled.

        """

    # --- learning ---

    @abstractmethod
    def begun(self, terms: Terms) -> Policy:
        """The policy that learns on these terms.

        Parameters
        ----------
        terms
            How it learns: the algorithm, the learner, and what follows from them.

        """

    @property
    def learner(self) -> Learner | None:
        """The linear learner, if it has one."""
        return None

    @property
    def sent(self) -> Any:
        """The object that workers ask, which must be sent to them; None for weights, which they follow."""
        return None

    def check_learns(self) -> None:  # noqa: B027
        """Raise an error if it cannot learn."""

    def go_on(self, learner: Learner) -> None:
        """Learn with this learner from now on.

        Parameters
        ----------
        learner
            The learner.

        """
        raise ConfigurationError("only the linear learner goes on from a state: give the policy that shall go on")

    def followed_by(self, other: Policy) -> Policy:
        """Another policy that has taken over what this one has learned.

        Parameters
        ----------
        other
            The policy that takes over.

        """
        return other

    def check_mixable(self) -> None:
        """Raise an error if what several of them have learned cannot be averaged."""
        raise ConfigurationError("sync='pass' averages weights of the linear learner: use sync='exact' with policy=...")

    def warm_up(self) -> None:  # noqa: B027
        """Have ready what is needed only later."""

    def calls(self, driver: FusedDriver, plan: Any) -> list[KernelCall]:
        """The kernels of training and prediction with arguments of the right types, to compile them ahead.

        Parameters
        ----------
        driver
            The driver to compile for.
        plan
            How examples are searched.

        """
        return []

    def begin_pass(self) -> None:  # noqa: B027  (most have nothing to do)
        """Called before each pass."""

    def end_pass(self, rounds: int) -> None:  # noqa: B027
        """Called after each pass, with its number of rounds.

        Parameters
        ----------
        rounds
            How many rounds the pass had.

        """

    @property
    def reference_weight(self) -> float | None:
        """The probability of the reference in roll-ins and roll-outs; None if the schedule determines it."""
        return None

    @abstractmethod
    def learn(self, batch: Batch, driver: Any) -> None:
        """Learn from what a driver has searched.

        Parameters
        ----------
        batch
            What was searched, and where it is from.
        driver
            The driver that searched it.

        """

    @abstractmethod
    def copied(self) -> Any:
        """What drivers are given as it is now; further learning does not change it."""

    @abstractmethod
    def returned(self) -> Any:
        """The policy of the model: that which was kept, or else the average or the last one, as the terms say."""

    @abstractmethod
    def keep(self) -> None:
        """Keep a copy as it is now, to be returned in the end."""

    @abstractmethod
    def onward(self) -> Policy:
        """A copy that learns on from here; an error if it cannot make one."""

    # --- what is written down ---

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The settings, as plain values for model files."""

    def identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return self.describe()

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Numbers for the report: rounds, states, memory."""

    def check_resumable(self) -> None:  # noqa: B027
        """Raise an error if checkpoints cannot be written."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Everything that learning goes on from, as named arrays."""

    @abstractmethod
    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        """Restore such a state.

        Parameters
        ----------
        tensors
            Named arrays, as the method `state` gives them.

        """
