"""A PyTorch network as a policy: asked once for each level of the search, and trained on its lessons."""

from __future__ import annotations

import contextlib
import copy
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from lols.contract.examples import Examples
from lols.contract.whole_numbers import check_whole
from lols.engine.states import States
from lols.errors import ConfigurationError
from lols.torch.background import Background
from lols.torch.batches import ExampleBatch, StateBatch
from lols.torch.calls import NetworkCalls, chosen_device
from lols.torch.learning import (
    LearningSettings,
    NetworkLearner,
    Optimizer,
    Schedule,
    arrays_named,
    grow_into,
    loaded_into,
    named_arrays,
    with_dropout,
)
from lols.torch.losses import Loss
from lols.torch.replay import KeptLessons, joined, joined_inputs

FUNCTIONS = ("loss", "optimizer", "schedule")  # settings that can be functions of the user


class EncodedExamples(NamedTuple):
    """Examples that a network has encoded for a search."""

    examples: Examples
    rows: np.ndarray  # the place of each example in the memory, -1 for those that are not in it
    memory: Any

    @classmethod
    def of(cls, examples: Examples, indices: np.ndarray, memory: Any) -> EncodedExamples:
        """The memory of the examples with these numbers."""
        rows = np.full(len(examples), -1, np.int64)
        rows[indices] = np.arange(len(indices))
        return cls(examples, rows, memory)


class TorchPolicy:
    """A neural policy, for `lols.train(..., policy=...)`.

    A network is a `torch.nn.Module` with these methods, of which only `forward` is needed:

    `encode(examples)`
        The memory of an `ExampleBatch`: whatever `forward` needs of its inputs. It is asked once for the search of a
        batch, without gradients, and once for each step of the optimiser, when gradients of all states reach it.
    `forward(memory, states)`
        The scores of all actions in a `StateBatch`, [state, action]; the best legal action is taken. The memory is None
        if the network has no `encode`.
    `inputs(states)`
        An array with a row for each of `lols.policies.States`, or `Bags`: what `forward` finds as `states.inputs`. By
        default these are the state vectors, with zeros behind those of smaller states and from `Sizes.live` on.
    `own_loss(examples, memory)`
        A further loss of a batch, such as that of labels that are not decided by the search.

    Parameters
    ----------
    network
        The network; it is moved to the device.
    loss
        `"log"`, the probability of the cheapest actions; `"kl"`, the divergence from a softmax of the costs; `"hinge"`,
        cost-sensitive; `"regression"`, of the costs; or a function like those in `lols.torch.losses`.
    optimizer
        A function that makes an optimiser of `torch.optim` from parameters; by default Adam with a rate of 0.001.
    schedule
        A function that makes a scheduler of `torch.optim.lr_scheduler` from the optimiser; it advances with every step.
    device
        `"auto"` for a GPU if there is one, or a device of PyTorch.
    precision
        `"bfloat16"` computes in mixed precision; weights have 32 bits always.
    steps
        Steps of the optimiser for each batch of lessons (`batch_size` examples), whose examples are divided among them.
    accumulate
        In how many parts the gradients of a step are computed, which saves memory.
    replay
        Of how many earlier batches the lessons are kept; each step then learns from as many earlier examples as new
        ones.
    replay_decay
        Of the batches that are kept, one is drawn from this many times as often as the one after it.
    average
        The decay of an exponential average of the weights, such as 0.999; the average is what training returns.
    clip
        The largest norm of the gradients of a step; None for any.
    alike
        Whether the examples of a step have about the same length, and the steps about the same number of states: long
        sequences are then not padded with, or waited for, by short ones.
    noisy
        Whether `encode` has its dropout in the search of training, too. On examples that it has learned, a network
        hardly makes mistakes; so it makes some, and learns what to do then.
    ahead
        Whether a batch is searched with the weights from before the last batch was learned from. On a GPU, both then
        take place at the same time.
    batch
        The most states that are scored at a time; None for any number.
    most_examples
        The most examples that are encoded at a time in prediction.
    seed
        Of dropout and of the choice of minibatches. The initial weights of a network are its own matter.

    """

    room = 1 << 30  # for searches in progress: a call for many states takes hardly longer than one for few
    together: int | None = None  # examples of a batch if it learns on; None for as many as in training
    _later: LearningSettings | None = None
    _encoded: EncodedExamples | None = None  # of the search that this policy belongs to

    def __init__(
        self,
        network: nn.Module,
        *,
        loss: str | Loss = "log",
        optimizer: Optimizer | None = None,
        schedule: Schedule | None = None,
        device: str | torch.device = "auto",
        precision: str = "float32",
        steps: int = 1,
        accumulate: int = 1,
        replay: int = 0,
        replay_decay: float = 1.0,
        average: float | None = None,
        clip: float | None = 5.0,
        alike: bool = False,
        noisy: bool = False,
        ahead: bool = False,
        batch: int | None = None,
        most_examples: int | None = 2048,
        seed: int = 0,
    ):
        if not isinstance(network, nn.Module):
            kind = network.__name__ if isinstance(network, type) else type(network).__name__
            raise ConfigurationError(f"network is {kind}: give an object of a subclass of torch.nn.Module")
        if type(network).forward is nn.Module.forward:
            raise ConfigurationError(
                f"{type(network).__name__} has no `forward`: give it forward(memory, states), the scores of actions"
            )
        for name, most in (("batch", batch), ("most_examples", most_examples)):
            if most is not None:
                check_whole(name, most, otherwise=", or None for any number")
        self.device = chosen_device(device)
        self._calls = NetworkCalls(self.device, precision)
        self.network = network.to(self.device).eval()
        self.batch, self.most_examples, self.noisy, self.ahead = batch, most_examples, noisy, ahead
        self.settings = LearningSettings(
            loss=loss,
            optimizer=optimizer,
            schedule=schedule,
            steps=steps,
            accumulate=accumulate,
            replay=replay,
            replay_decay=replay_decay,
            average=average,
            clip=clip,
            alike=alike,
            seed=seed,
        )
        self.learner: NetworkLearner | None = NetworkLearner(network, self.settings)
        self.seconds: dict[str, float] | None = None  # set it to {} to measure where the time goes
        self._background = Background(self.device)
        self._before: nn.Module | None = None  # the network as it was before the last batch was learned from

    # --- the protocol ---

    def begin(self, examples: Examples, indices: np.ndarray) -> TorchPolicy:
        """Encode the examples whose search begins.

        Returns the policy that remembers them, which belongs to this search; this one remembers nothing, so that
        threads can share it.
        """
        if self._remembers(examples, indices):
            return self
        self._background.wait()  # dropout here and there draws from the same generator
        batch, network = ExampleBatch(examples, indices, self.device), self._searching
        with torch.inference_mode(), self._timed("encoder"):
            if self.noisy and self.learner is not None:
                seed = self.learner.seed(self._background.is_due)
                memory = with_dropout(network, seed, lambda: self._calls.encode(network, batch))
            else:
                memory = self._calls.encode(network, batch)
        self._background.begin(at_once=self.seconds is not None)
        made = object.__new__(type(self))
        vars(made).update(vars(self), _encoded=EncodedExamples.of(examples, indices, memory))
        return made

    def costs(self, states: States) -> np.ndarray:
        """Minus the scores of all actions.

        Parameters
        ----------
        states
            The states whose actions are to be judged.

        """
        return self.costs_of_parts([states])[0]

    def costs_of_parts(self, parts: Sequence[States]) -> list[np.ndarray]:
        """The same for states of a level that lie in several places of the memory, in one call of the network."""
        examples, example = parts[0].examples, joined([states.example for states in parts])
        encoded = self.begin(examples, np.unique(example))._encoded
        assert encoded is not None
        with torch.inference_mode():
            with self._timed("transfer"):
                keep = copy.deepcopy if len(parts) > 1 else lambda own: own  # features of all parts share memory
                inputs = joined_inputs([keep(self._calls.inputs(self.network, states)) for states in parts])
                legal = joined([states.legal for states in parts])
                batch = StateBatch(encoded.rows[example], inputs, legal, self.device)
            with self._timed("scoring"):
                scores = self._calls.score(self._searching, encoded.memory, batch)
            with self._timed("transfer"):
                costs = np.negative(scores.cpu().numpy())
        return np.split(costs, np.cumsum([len(states) for states in parts[:-1]])) if len(parts) > 1 else [costs]

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        """Learn from the states of a batch of examples.

        Parameters
        ----------
        states
            The states of a batch of examples.
        costs
            The costs of the actions, `[state, action]`.
        weights
            How much each state counts.

        """
        if self.learner is None:
            raise ConfigurationError("this policy is a copy for prediction: train the one that was given to lols.train")
        examples = states.examples
        inputs = self._calls.inputs(self.network, states)
        if self.settings.replay or self.ahead:
            inputs = copy.deepcopy(inputs)  # they may be in memory that the driver reuses
        lessons = KeptLessons(states.example.copy(), inputs, states.legal.copy(), costs.copy(), weights.copy())
        learner = self.learner

        def learn() -> None:
            with self._timed("learning"):
                learner.learn(lessons, lambda part: self._losses(examples, part))

        self._background.put_off(learn)
        if self.ahead:
            self._keep_before()
        else:
            self._background.finish()

    def frozen(self) -> TorchPolicy:
        """A copy for prediction."""
        self._background.finish()
        return self._copy(self.network)

    def averaged(self) -> TorchPolicy:
        """A copy for prediction, with the average of the weights if there is one."""
        self._background.finish()
        average = None if self.learner is None else self.learner.average
        return self._copy(self.network if average is None else average.module)

    def onward(self) -> TorchPolicy:
        """A copy that learns on from here, at once, with a new optimiser and no schedule, which is for one training."""
        self._background.finish()
        made = self._copy(self.network)
        made.ahead = False
        made.settings = self._later or replace(self.settings, schedule=None)
        made.learner = NetworkLearner(made.network, made.settings)
        return made

    def learns_on_with(self, together: int, settings: LearningSettings) -> None:
        """Say how the copies learn that `onward` makes: from this many examples at a time, with these settings."""
        self.together, self._later = together, settings

    def state(self) -> dict[str, np.ndarray]:
        """The weights, and if the policy learns what that goes on from, as named arrays."""
        self._background.finish()
        arrays = named_arrays("network.", self.network.state_dict())
        if self._before is not None:
            arrays |= named_arrays("before.", self._before.state_dict())
        return arrays | (self.learner.state() if self.learner is not None else {})

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore such a state; without that of learning, the policy is for prediction only.

        Parameters
        ----------
        state
            Named arrays, as the method `state` gives them.

        """
        self._background.finish()
        self._before, before = None, arrays_named("before.", state)
        if before and self.ahead:
            loaded_into(self.network, before)
            self._keep_before()
        loaded_into(self.network, arrays_named("network.", state))
        if "counts" not in state:
            self.learner = None
        elif self.learner is not None:
            self.learner.load(state)

    def begin_with(self, other: TorchPolicy) -> None:
        """Take over the weights of a policy whose network had fewer words or labels; the others stay as they are.

        If the other policy learns, its optimiser and its average go on as well.
        """
        self._background.finish()
        other._background.finish()
        self._before = None
        grow_into(self.network, other.network)
        self.learner = NetworkLearner(self.network, self.settings)
        if other.learner is not None:
            self.learner.begin_with(other.learner)

    # --- the network ---

    @property
    def _searching(self) -> nn.Module:
        """The network that is searched with."""
        return self.network if self._before is None else self._before

    def _keep_before(self) -> None:
        """Search with the weights of now from here on."""
        if self._before is None:
            self._before = copied(self.network)
        with torch.no_grad():
            for old, new in zip(self._before.state_dict().values(), self.network.state_dict().values(), strict=True):
                old.copy_(new)

    def _losses(self, examples: Examples, lessons: KeptLessons) -> tuple[torch.Tensor, Any]:
        return self._calls.losses(self.network, self.settings.loss, examples, lessons)

    def computing(self) -> AbstractContextManager[None]:
        """A context for calls of parts of the network: mixed precision if it is wanted."""
        return self._calls.computing(self.network)

    @contextlib.contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        """Add the time to `seconds`, if it is measured."""
        if self.seconds is None:
            yield
            return
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        began = time.perf_counter()
        yield
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - began

    # --- memory ---

    @property
    def memory(self) -> Any:
        """What `encode` gave, if this is what `begin` returned."""
        return None if self._encoded is None else self._encoded.memory

    def _remembers(self, examples: Examples, indices: np.ndarray) -> bool:
        encoded = self._encoded
        return encoded is not None and encoded.examples is examples and bool((encoded.rows[indices] >= 0).all())

    def _copy(self, network: nn.Module) -> TorchPolicy:
        made = copy.copy(self)
        made.network, made.seconds, made.learner = copied(network), None, None
        made._background, made._before = Background(self.device), None
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchPolicy:
        """A copy that goes on learning by itself, if this one can."""
        self._background.finish()
        made = self._copy(self.network)
        if self.learner is not None:
            made.learner = NetworkLearner(made.network, self.settings)
            made.learner.load(self.learner.state())
            made._before = None if self._before is None else copied(self._before)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled; of a copy for prediction without functions that cannot be, such as lambdas."""
        self._background.finish()
        state = vars(self) | {"_encoded": None}
        if self.learner is None:
            functions = [name for name in FUNCTIONS if not _pickles(getattr(self.settings, name))]
            usual = LearningSettings()
            state["settings"] = replace(self.settings, **{name: getattr(usual, name) for name in functions})
        return state


def copied(network: nn.Module) -> nn.Module:
    """A copy of a network, for prediction."""
    made = copy.deepcopy(network).eval()
    for part in made.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()  # a copy's weights do not lie side by side, as cuDNN wants them
    return made


def _pickles(function: Any) -> bool:
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
