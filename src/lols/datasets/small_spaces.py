"""General small spaces: layers of states, K actions each, and a finite class of policies, with exact values.

An input is one of a few start states, drawn with known probabilities. Each action leads to a state of the next layer,
where ways may meet again, and after T actions to an end state with a loss. Policies and the reference have one action
for each state. What policies cannot tell apart is said by the class, which is a list: all of its policies act alike
there. Without a list, the class has all tables of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from lols.datasets.small_worlds import SmallWorld
from lols.errors import ConfigurationError
from lols.kernels.hashing import mix

MOST = 256  # policies of a class that is a list
LADDER = (0.8, 0.4, 0.2, 0.1, 0.05)
"""What can be lost from each start state: from what a thousand rounds show clearly to what a million hardly show."""


class Exact(NamedTuple):
    """Exact values of several policies, the first axis; states are the next one."""

    loss: np.ndarray  # J of each policy
    visits: np.ndarray  # how likely each policy comes to each state; those of a step add up to 1
    worths: np.ndarray  # Q: the expected loss of each action (last axis), the policy going on after it


@dataclass(frozen=True, eq=False)
class SmallSpace:
    """A layered search space with its reference and its class of policies.

    >>> space = SmallSpace(
    ...     follow=np.array([[1, 2], [3, 4], [5, 6]]), layer=np.array([0, 1, 1]), losses=np.array([0.0, 1.0, 1.0, 0.5]),
    ...     start=np.array([1.0]), reference=np.array([1, 0, 0]), policies=np.array([[0, 0, 0], [1, 1, 1]]),
    ... )
    >>> space.steps, space.exact(space.policies).loss.tolist()
    (2, [0.0, 0.5])
    """

    follow: np.ndarray  # where each action leads: states x actions; numbers from len(follow) on are end states
    layer: np.ndarray  # the step of each state, from 0, in ascending order
    losses: np.ndarray  # of the end states
    start: np.ndarray  # how likely each state of the first layer is the start
    reference: np.ndarray  # its action at each state
    policies: np.ndarray | None = None  # the class: policies x states; None: all tables of actions
    seen: np.ndarray | None = None  # what policies see at each state: they act alike wherever they see the same

    def __post_init__(self) -> None:
        states, actions = self.follow.shape
        tables = self.reference[np.newaxis]
        if self.policies is not None:
            tables = np.vstack([tables, self.policies])
        after = np.append(self.layer, np.full(self.losses.size, self.layer[-1] + 1))
        if not (after[self.follow] == self.layer[:, np.newaxis] + 1).all():
            raise ConfigurationError("an action skips a layer: every action leads to the next one")
        if tables.shape[1] != states or not ((tables >= 0) & (tables < actions)).all():
            raise ConfigurationError(f"policies need an action from 0 to {actions - 1} for each of {states} states")
        if self.start.size != (self.layer == 0).sum() or not np.isclose(self.start.sum(), 1.0):
            raise ConfigurationError("start needs a probability for each state of the first layer, which sum to 1")

    @property
    def steps(self) -> int:
        """T."""
        return int(self.layer[-1]) + 1

    @property
    def actions(self) -> int:
        """K."""
        return int(self.follow.shape[1])

    @property
    def listed(self) -> np.ndarray:
        """The class, which must be a list."""
        if self.policies is None:
            raise ConfigurationError("the class has all policies: give a space with a list of them")
        return self.policies

    def exact(self, tables: np.ndarray) -> Exact:
        """J, visits and Q of policies, given as tables of actions: policies x states."""
        states, which = self.follow.shape[0], np.arange(len(tables))
        worth = np.empty((which.size, states + self.losses.size))
        worth[:, states:] = self.losses
        for s in range(states - 1, -1, -1):
            worth[:, s] = worth[which, self.follow[s, tables[:, s]]]
        visits = np.zeros_like(worth)
        visits[:, : self.start.size] = self.start
        for s in range(states):
            visits[which, self.follow[s, tables[:, s]]] += visits[:, s]
        return Exact(worth[:, : self.start.size] @ self.start, visits[:, :states], worth[:, self.follow])


def best_actions(follow: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """The best action at each state, the first of several: an optimal reference.

    >>> best_actions(np.array([[1, 2], [3, 4], [5, 6]]), np.array([0.3, 1.0, 1.0, 0.2])).tolist()
    [1, 0, 1]
    """
    states = len(follow)
    worth, best = np.append(np.zeros(states), losses), np.zeros(states, np.int64)
    for s in range(states - 1, -1, -1):
        best[s] = worth[follow[s]].argmin()
        worth[s] = worth[follow[s, best[s]]]
    return best


def random_space(
    rng: np.random.Generator, *, steps: int, actions: int, slips: float = 1.0, limited: bool = True
) -> SmallSpace:
    """A random space.

    The reference is wrong at random with probability `slips`: 0 is optimal, 1 is random. Policies of a `limited` class
    confuse states; otherwise they see the state, and the space is small enough for all of them.
    """
    room = int(np.log(MOST) / np.log(actions) + 1e-9)  # what can be told apart
    if not limited and room < steps:
        raise ConfigurationError(f"{steps} steps of {actions} actions have too many policies: take limited=True")
    widths = [int(rng.integers(1, 4))]
    for _ in range(steps):
        widths.append(int(rng.integers(2, min(widths[-1] * actions, 6) + 1)))
    while not limited and sum(widths[:-1]) > room:
        widths[int(np.argmax(widths[:-1]))] -= 1
    bounds = np.concatenate([[0], np.cumsum(widths)])
    states = int(bounds[-2])
    layer = np.repeat(np.arange(steps), widths[:-1])
    follow = np.stack([rng.integers(bounds[t + 1], bounds[t + 2], actions) for t in layer])
    losses = rng.random(widths[-1])
    slipped = rng.random(states) < slips
    reference = np.where(slipped, rng.integers(0, actions, states), best_actions(follow, losses))
    seen = np.arange(states)
    if limited:
        seen = np.unique(rng.integers(0, min(room, states), states), return_inverse=True)[1]
    tables = np.array(list(product(range(actions), repeat=int(seen.max()) + 1)), np.int64)
    return SmallSpace(follow, layer, losses, rng.dirichlet(np.ones(widths[0])), reference, tables[:, seen], seen)


def depth_space(losses: np.ndarray, reference: int = 0) -> SmallSpace:
    """The space of Theorem 4: two actions, and policies that see nothing but the step.

    Bit t of a policy's number is its action at step t; `losses` has the loss of each policy, which is that of the end
    state it comes to.

    >>> space = depth_space(np.array([0.5, 0.0, 1.0, 0.25]))
    >>> space.exact(space.policies).loss.tolist()
    [0.5, 0.0, 1.0, 0.25]
    """
    steps = losses.size.bit_length() - 1
    layer = np.repeat(np.arange(steps), 1 << np.arange(steps))
    taken = np.concatenate([np.arange(1 << t) for t in range(steps)])  # the actions so far
    after = (2 << layer) - 1  # the first state of the next layer
    follow = np.stack([after + taken, after + taken + (1 << layer)], axis=1)
    policies = np.arange(losses.size)[:, np.newaxis] >> layer & 1
    return SmallSpace(follow, layer, losses, np.ones(1), policies[reference], policies, layer)


def tree_space(losses: np.ndarray, reference: np.ndarray, policies: np.ndarray | None = None) -> SmallSpace:
    """Start states, all equally likely, with a full binary tree of decisions each.

    The root of a tree has the number 0, and action a leads from its state s to 2 s + 1 + a. `losses` has the end states
    of each tree, start states x 2^T, `reference` an action for each state, start states x 2^T - 1. What is seen at a
    state is its place in `reference`, row by row.

    >>> space = tree_space(np.array([[0.5, 0.1, 0.2, 0.6]]), np.array([[1, 0, 0]]))
    >>> space.steps, space.seen.tolist(), float(space.exact(space.reference[np.newaxis]).loss[0])
    (2, [0, 1, 2], 0.2)
    """
    steps = losses.shape[-1].bit_length() - 1
    if losses.ndim != 2 or steps < 1 or losses.shape[1] != 1 << steps:
        raise ConfigurationError(f"losses have shape {losses.shape}: give start states x 2^T end states")
    starts, states = len(losses), (1 << steps) - 1
    if reference.shape != (starts, states):
        raise ConfigurationError(f"the reference needs an action for {starts} start states x {states} states")
    layer = np.repeat(np.arange(steps), starts << np.arange(steps))
    place = np.concatenate([np.arange(starts << t) for t in range(steps)])  # among the states of the layer
    follow = (starts * ((2 << layer) - 1) + 2 * place)[:, np.newaxis] + np.arange(2)
    of_tree = (1 << layer) - 1 + place % (1 << layer)
    seen = (place >> layer) * states + of_tree
    return SmallSpace(
        follow, layer, losses.reshape(-1), np.full(starts, 1.0 / starts), reference.reshape(-1)[seen], policies, seen
    )


def ladder_space(gaps: Sequence[float] = LADDER, *, steps: int = 3, wrong: Sequence[int] = ()) -> SmallSpace:
    """A space for the structured bandit, with start states that differ in how much is at stake, and all policies.

    From a start state with the gap g, an end state costs (1 - g) / 2 plus g / T for each wrong action on the way there.
    The right action differs from state to state. The reference is wrong at the steps `wrong`, and else optimal.

    >>> space = ladder_space((0.8, 0.4))
    >>> sorted(space.losses[:8].round(3).tolist())
    [0.1, 0.367, 0.367, 0.367, 0.633, 0.633, 0.633, 0.9]
    """
    states = (1 << steps) - 1
    right = np.array([[mix(mix(0x1ADDE2, k), s) & 1 for s in range(states)] for k in range(len(gaps))], np.int64)
    mistakes = np.zeros((len(gaps), 2 * states + 1))
    for s in range(states):
        for a in (0, 1):
            mistakes[:, 2 * s + 1 + a] = mistakes[:, s] + (right[:, s] != a)
    sizes = np.asarray(gaps, np.float64)[:, np.newaxis]
    step_of = np.array([(s + 1).bit_length() - 1 for s in range(states)])
    reference = np.where(np.isin(step_of, list(wrong)), 1 - right, right)
    return tree_space((1.0 - sizes) / 2.0 + sizes * mistakes[:, states:] / steps, reference)


def figure3_space(world: SmallWorld) -> SmallSpace:
    """A world of Figure 3 in which policies can tell actions apart, with the policies that leave nothing to chance."""
    tables = [[1 - int(p) for p in policy] for policy in world.policies() if all(p.denominator == 1 for p in policy)]
    losses = np.array([[float(loss) for loss in world.losses]])
    return tree_space(losses, np.array([world.reference]), np.array(tables))
