"""The linear policy under the protocol: the fused driver's scores and learners, asked for many states at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lols.engine import structures
from lols.engine.compile.dual import bind, row
from lols.engine.compile.kernel import Kernel
from lols.engine.memory import make_scratch
from lols.engine.scoring import draw_component, gather, new_policy, own_items, score
from lols.engine.states import States
from lols.engine.structures import Batch, Data, Scratch, Slots
from lols.errors import ConfigurationError
from lols.examples import Examples
from lols.learners.learner import Learner, frozen
from lols.learners.settings import LearnerSettings
from lols.space import SearchSpace
from lols.task import Task, as_space

__all__ = ["LinearPolicy"]


class LinearPolicy:
    """What `lols.train` trains when no policy is given, as a policy of the protocol.

    Training it gives the very weights that the fused driver gives, more slowly: an example of the protocol, and a check
    of the lock-step driver. The model that comes out is an ordinary one.

    Parameters
    ----------
    space
        The search space.
    settings
        A reduction's name, or `LearnerSettings`.
    weights
        Weights to follow as they are; such a policy does not learn.

    Examples
    --------
    >>> import lols
    >>> from lols.worlds import tagging_data, tagging_references, tagging_space
    >>> space, data, teacher = tagging_space(labels=3), tagging_data(8, labels=3, words=20), tagging_references()
    >>> plain = lols.train(space, data, teacher["optimal"], passes=2, compiled=False)
    >>> policy = LinearPolicy(space, compiled=False)
    >>> same = lols.train(space, data, teacher["optimal"], policy=policy, passes=2, compiled=False)
    >>> np.array_equal(plain.policy.stack, same.policy.stack)
    True

    """

    def __init__(
        self,
        space: SearchSpace | Task | type[Task],
        settings: str | LearnerSettings = "hinge",
        *,
        weights: structures.Policy | None = None,
        compiled: bool = True,
    ):
        if isinstance(settings, str):
            settings = LearnerSettings(settings, "nag" if settings == "csoaa" else "adagrad")
        if settings.slack is not None:
            raise ConfigurationError("slack is the fused driver's: leave it out, or train without policy")
        space = as_space(space)
        by_action = space.action_features is not None
        self.space, self.compiled, self._weights = space, compiled, weights
        self.learner = Learner(settings, space.sizes.actions, by_action=by_action, compiled=compiled)
        self._bound = bind("Space", space.functions())
        self._scratch: tuple[Examples, int, Scratch] | None = None

    @property
    def weights(self) -> structures.Policy:
        """The weights as they are now."""
        return self.learner.policy() if self._weights is None else self._weights

    @property
    def random(self) -> bool:
        """Whether one of several components is drawn at each state, as Searn's policy does."""
        return self.weights.chances.size > 1

    def costs(self, states: States) -> np.ndarray:
        """The predicted cost of every action."""
        weights = self.weights
        scratch = self._memory(states.examples, weights)
        scratch.where[:] = 0
        new_policy(scratch.sight)
        examples, made = states.examples, np.zeros((len(states), states.actions), np.float32)
        data = Data(examples.x, (), examples.items, examples.states, examples.steps)
        arguments = (self._bound, data, weights, scratch, states.example, states.vectors, states.legal, states.draws)
        score_kernel(self.compiled, *arguments, made)
        if scratch.where[0]:
            len(states.start)  # gathers features again, and says what is wrong with them
        return made

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        """Learn from cost vectors; the states of one example are one round."""
        if self._weights is not None:
            raise ConfigurationError("this policy has fixed weights: make one without to train it")
        first = np.flatnonzero(np.diff(states.example, prepend=-1))
        filled = np.diff(np.append(first, len(states)))
        shape = (len(states) if self.learner.by_action else 0, states.actions)
        ends = states.action_start if self.learner.by_action else np.zeros(1, np.int64)
        slots = Slots(
            start=states.start[:-1],
            stop=states.start[1:],
            ids=states.ids,
            values=states.values,
            costs=costs,
            weight=weights,
            action_start=ends[:-1].reshape(shape),
            action_stop=ends[1:].reshape(shape),
            action_ids=states.action_ids,
            action_values=states.action_values,
        )
        nothing, losses = np.zeros(0), np.zeros((0, 3))
        begins = states.start[first], ends[first * states.actions] if self.learner.by_action else first
        batch = Batch(states.example[first], first, nothing, nothing, first, first, *begins, filled, losses, slots)
        widest = [int(np.diff(side).max(initial=0)) for side in (states.start, ends)]
        self.learner.widen(max(widest))
        self.learner.learn(batch)

    def averaged(self) -> structures.Policy:
        """The average of the weights over rounds, as an ordinary model has them."""
        return frozen(self.learner.policy(averaged=True) if self._weights is None else self._weights)

    def frozen(self) -> structures.Policy:
        """A copy of the weights, as an ordinary model has them."""
        return frozen(self.weights)

    def state(self) -> dict[str, np.ndarray]:
        """Everything that learning goes on from."""
        return self.learner.state()

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Take over a state of a policy with the same settings."""
        self.learner.load(state)

    def _memory(self, examples: Examples, weights: structures.Policy) -> Scratch:
        components, columns = weights.stack.shape[0], weights.stack.shape[2]
        if self._scratch is None or self._scratch[0] is not examples or self._scratch[1] != components:
            self._scratch = (examples, components, make_scratch(examples, components, columns, self.compiled))
        return self._scratch[2]


def score_states(space, data, policy, scratch, example, vectors, legal, draws, made):
    """Predict costs with the fused driver's functions; states of one example share what its items contribute."""
    last, where = -1, scratch.where
    for i in range(example.size):
        if example[i] != last:
            scratch.epoch[0] += 1
            last = example[i]
        first_item, item_count = own_items(data.items.first, last)
        x = row(data.x, last)
        s = vectors[i, : data.states[last]]
        gather(space, x, s, item_count, scratch.sight, where)
        component = draw_component(policy.chances, draws[i])
        score(
            space, x, s, legal[i], policy, component, True, data.items, first_item, scratch.sight, scratch.epoch[0],
            where,
        )  # fmt: skip
        if where[0] != 0:
            break
        for a in range(made.shape[1]):
            made[i, a] = scratch.sight.costs[a]


score_kernel = Kernel(score_states)
