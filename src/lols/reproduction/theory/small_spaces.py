"""General small spaces: layers of states, K actions each, and a finite class of policies, with exact values.

An input is one of a few start states, drawn with known probabilities. Each action leads to a state of the next layer,
where ways may meet again, and after T actions to an end state with a loss. Policies and the reference have one action
for each state. What policies cannot tell apart is said by the class, which is a list: all of its policies act alike
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from lols.errors import ConfigurationError
from lols.reproduction.theory.bandit_worlds import BanditWorld, Exact

__all__ = ["SmallSpace", "best_actions", "depth_space", "of_bandit_world", "random_space"]

MOST = 256  # policies of a class


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
    policies: np.ndarray  # the class: policies x states
    seen: np.ndarray | None = None  # what policies see at each state: they act alike wherever they see the same

    def __post_init__(self) -> None:
        states, actions = self.follow.shape
        tables = np.vstack([self.reference[np.newaxis], self.policies])
        after = np.append(self.layer, np.full(self.losses.size, self.layer[-1] + 1))
        if not (after[self.follow] == self.layer[:, np.newaxis] + 1).all():
            raise ConfigurationError("an action skips a layer: every action leads to the next one")
        if tables.shape[1] != states or not ((tables >= 0) & (tables < actions)).all():
            raise ConfigurationError(f"policies need an action from 0 to {actions - 1} for each of {states} states")
        if self.start.size != (self.layer == 0).sum() or not np.isclose(self.start.sum(), 1.0):
            raise ConfigurationError("start needs a probability for each state of the first layer, 1 together")

    @property
    def steps(self) -> int:
        """T."""
        return int(self.layer[-1]) + 1

    @property
    def actions(self) -> int:
        """K."""
        return int(self.follow.shape[1])

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

    >>> space = random_space(np.random.default_rng(1), steps=3, actions=2)
    >>> space.steps, space.actions, space.losses.size <= 8
    (3, 2, True)
    """
    room = _most_seen(actions)  # what can be told apart
    if not limited and room < steps:
        raise ConfigurationError(f"{steps} steps of {actions} actions have too many policies: take limited=True")
    widths = [int(rng.integers(1, 4))]
    for _ in range(steps):
        widths.append(int(rng.integers(2, min(widths[-1] * actions, 6) + 1)))
    if not limited:
        widths[:-1] = _shrunk(widths[:-1], room)
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


def _most_seen(actions: int) -> int:
    return int(np.log(MOST) / np.log(actions) + 1e-9)


def _shrunk(widths: list[int], room: int) -> list[int]:
    """Widths that fit, the largest one being cut first."""
    widths = list(widths)
    while sum(widths) > room:
        widths[int(np.argmax(widths))] -= 1
    return widths


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


def of_bandit_world(world: BanditWorld) -> SmallSpace:
    """A bandit's world as such a space: a context is a start state, and the class has all policies.

    >>> of_bandit_world(BanditWorld(np.array([[0.5, 0.1, 0.2, 0.6]]), np.array([[1, 0, 0]]))).policies.shape
    (8, 3)
    """
    contexts, states = world.contexts, world.states
    if contexts * states > _most_seen(2):
        raise ConfigurationError(f"a world of {contexts * states} states: take at most {_most_seen(2)}")
    depth = np.array([(s + 1).bit_length() - 1 for s in range(states)])
    order = [(x, s) for t in range(world.steps) for x in range(contexts) for s in range(states) if depth[s] == t]
    ends = [(x, s) for x in range(contexts) for s in range(states, 2 * states + 1)]
    number = {place: n for n, place in enumerate(order + ends)}
    return SmallSpace(
        follow=np.array([[number[x, 2 * s + 1], number[x, 2 * s + 2]] for x, s in order]),
        layer=np.array([depth[s] for _, s in order]),
        losses=world.losses.reshape(-1),
        start=np.full(contexts, 1.0 / contexts),
        reference=np.array([world.reference[x, s] for x, s in order]),
        policies=np.array(list(product((0, 1), repeat=len(order)))),
    )
