"""The linear policy as a policy of the protocol: the fused driver's scores and learners, for many states at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import SearchSpace
from lols.contract.task import Task, as_space
from lols.engine.lessons import NO_FEATURES, FeatureRuns, lessons_of, slots_of
from lols.engine.memory import make_scratch
from lols.engine.policy import draw_component, gather, new_policy, score
from lols.engine.search import Search, instance
from lols.engine.states import StateRows, States
from lols.engine.structures import CODE, Data, FrozenPolicy, Scratch, following
from lols.errors import ConfigurationError
from lols.kernels.ahead import prepare_all
from lols.kernels.dual import bind
from lols.kernels.kernel import DISABLED, Kernel
from lols.kernels.layout import Struct
from lols.learners.learner import Learner, frozen
from lols.learners.settings import LearnerSettings


class LinearPolicy:
    """The policy that `lols.train` trains by default, as a policy of the protocol.

    Training it gives the same weights as the fused driver, bit for bit, but more slowly: it is an example of the
    protocol, and tests the lock-step driver. The resulting model is an ordinary one.

    Parameters
    ----------
    space
        The search space.
    settings
        The name of a reduction, or `LearnerSettings`.
    weights
        Fixed weights, for a policy that does not learn.
    compiled
        False runs the same code as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
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
        weights: FrozenPolicy | None = None,
        compiled: bool = True,
    ):
        if isinstance(settings, str):
            settings = LearnerSettings(settings, "nag" if settings == "csoaa" else "adagrad")
        if settings.slack is not None:
            raise ConfigurationError("slack needs the fused driver: leave it out, or train without policy")
        space = as_space(space)
        by_action = space.action_features is not None
        self.space, self.compiled, self._weights = space, compiled, weights
        self.learner = Learner(settings, space.action_count, by_action=by_action, compiled=compiled)
        self._bound = bind("Space", space.functions(), space.name)
        self._scratch: tuple[Examples, int, Scratch] | None = None

    @property
    def weights(self) -> FrozenPolicy:
        """The weights as they are now."""
        return self.learner.policy() if self._weights is None else self._weights

    @property
    def random(self) -> bool:
        """Whether one of several components is drawn at each state, as Searn's policy does."""
        return self.weights.chances.size > 1

    def costs(self, states: States) -> np.ndarray:
        """The predicted cost of every action.

        Parameters
        ----------
        states
            The states whose actions are to be judged.

        """
        weights = self.weights
        scratch = self._memory(states.examples, weights)
        scratch.report[:] = 0
        new_policy(scratch.seen)
        examples, costs = states.examples, np.zeros((len(states), states.actions), np.float32)
        data = Data(examples.x, (), examples.items, examples.states, examples.steps)
        asked = AskedStates(states.where(), states.draws, costs)
        try:
            score_kernel(self.compiled, self._bound, data, weights, FOLLOWING, scratch, asked)
        except Exception:
            len(states.start)  # gathers the features again, which raises an error that describes the problem
            raise
        if scratch.report[CODE]:
            len(states.start)
        return costs

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        """Learn from cost vectors; the states of one example are one round.

        Parameters
        ----------
        states
            The states that were searched.
        costs
            The costs of the actions, `[state, action]`.
        weights
            How much each state counts.

        """
        if self._weights is not None:
            raise ConfigurationError("this policy has fixed weights: create one without weights to train it")
        first = np.flatnonzero(np.diff(states.example, prepend=-1))
        filled = np.diff(np.append(first, len(states)))
        features, by_action = FeatureRuns.between(states.start, states.ids, states.values), NO_FEATURES
        if self.learner.by_action:
            by_action = FeatureRuns.between(states.action_start, states.action_ids, states.action_values)
        slots = slots_of(features, costs, weights, by_action)
        widest = {"widest": features.widest, "widest_action": by_action.widest}
        self.learner.learn(lessons_of(slots, first, filled, example=states.example[first], **widest))

    def averaged(self) -> FrozenPolicy:
        """The average of the weights over rounds, as in an ordinary model."""
        return frozen(self.learner.policy(averaged=True) if self._weights is None else self._weights)

    def frozen(self) -> FrozenPolicy:
        """A copy of the weights, as in an ordinary model."""
        return frozen(self.weights)

    def warm_up(self) -> None:
        """Have ready what learning needs only when there are many features."""
        if self.compiled and not DISABLED:
            prepare_all(self.learner.growth())

    def state(self) -> dict[str, np.ndarray]:
        """The whole state of the learner."""
        return self.learner.state()

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state of a policy with the same settings.

        Parameters
        ----------
        state
            Named arrays, as the method `state` gives them.

        """
        self.learner.load(state)

    def _memory(self, examples: Examples, weights: FrozenPolicy) -> Scratch:
        components, columns = weights.stack.shape[0], weights.stack.shape[2]
        if self._scratch is None or self._scratch[0] is not examples or self._scratch[1] != components:
            self._scratch = (examples, components, make_scratch(examples, components, columns, self.compiled))
        return self._scratch[2]


FOLLOWING = following(0, False)


class AskedStates(Struct):
    """States, and memory for the predicted costs of their actions."""

    found: StateRows
    draws: np.ndarray
    costs: np.ndarray  # to be filled


def score_states(space, data, policy, plan, scratch, asked):
    """Predict costs with the functions of the fused driver; states of one example share the scores of its items."""
    search = Search(space, None, policy, plan, data.items, scratch)
    last = -1
    found = asked.found
    for i in range(found.example.size):
        if found.example[i] != last:
            scratch.epoch[0] += 1
            last = found.example[i]
        here = instance(data, last, i, 0)
        s = found.memory[found.rows[i], : data.states[last]]
        gather(search, here, s, found.legal[i])
        score(search, here, s, found.legal[i], draw_component(policy.chances, asked.draws[i]))
        if scratch.report[CODE] != 0:
            break
        for a in range(asked.costs.shape[1]):
            asked.costs[i, a] = scratch.seen.costs[a]


score_kernel = Kernel(score_states)
