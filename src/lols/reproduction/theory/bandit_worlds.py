"""Small contextual worlds for the structured bandit, in which everything that a theorem speaks of is computed exactly.

Objects come with one of a few contexts, all equally often. In each, two actions at each of T steps lead through a full
binary tree to one of 2^T end states, whose expected loss is known; what a bandit sees is a loss of 0 or 1 with that
expectation. Policies have one action for each context and state: the class has all of them, so it has the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lols.contract.features import emit
from lols.contract.hashing import mix
from lols.contract.space import Example, Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError

__all__ = ["LADDER", "BanditWorld", "Exact", "ladder_world", "tree_reference", "tree_space"]

LADDER = (0.8, 0.4, 0.2, 0.1, 0.05)
"""What can be lost in each context: from what a thousand rounds show clearly to what a million hardly show."""


class Exact(NamedTuple):
    """Exact values of several policies, the first axis; contexts and states are the next ones."""

    loss: np.ndarray  # J of each policy
    visits: np.ndarray  # how likely each policy is at each context and state; a step's states add up to 1
    worths: np.ndarray  # Q: the expected loss of each action (last axis), the policy going on after it


@dataclass(frozen=True, eq=False)
class BanditWorld:
    """Contexts with a tree of decisions each: state 0 is the root, action a leads from state s to 2 s + 1 + a.

    >>> world = BanditWorld(np.array([[0.5, 0.1, 0.2, 0.6]]), np.array([[1, 0, 0]]))
    >>> world.contexts, world.steps, world.states
    (1, 2, 3)
    >>> float(world.exact(world.reference[np.newaxis]).loss[0]), world.least
    (0.2, 0.1)
    """

    losses: np.ndarray  # expected, contexts x 2^T end states; the binary digits of a column are the actions to it
    reference: np.ndarray  # its action, contexts x 2^T - 1 states

    def __post_init__(self) -> None:
        shape = self.losses.shape
        if len(shape) != 2 or shape[0] < 1 or shape[1] < 2 or shape[1] != 1 << self.steps:
            raise ConfigurationError(f"losses have shape {shape}: give contexts x 2^T end states")
        if not ((self.losses >= 0.0) & (self.losses <= 1.0)).all():
            raise ConfigurationError("a loss is not from 0 to 1: scale the losses of the end states")
        if self.reference.shape != (self.contexts, self.states) or not np.isin(self.reference, (0, 1)).all():
            raise ConfigurationError(f"reference must be 0 or 1, for {self.contexts} contexts x {self.states} states")

    @property
    def contexts(self) -> int:
        """How many contexts there are."""
        return int(self.losses.shape[0])

    @property
    def steps(self) -> int:
        """T."""
        return int(self.losses.shape[1]).bit_length() - 1

    @property
    def states(self) -> int:
        """How many states of a context have actions."""
        return int(self.losses.shape[1]) - 1

    @property
    def policies(self) -> float:
        """How many policies there are: two actions at each state of each context."""
        return 2.0 ** (self.contexts * self.states)

    @property
    def least(self) -> float:
        """The least J of all policies: the best end state in each context."""
        return float(self.losses.min(axis=1).mean())

    def exact(self, tables: np.ndarray) -> Exact:
        """J, visits and Q of policies, given as tables of actions: policies x contexts x states."""
        tables, states = np.asarray(tables, np.bool_), self.states
        shape = (tables.shape[0], self.contexts)
        worth = np.empty((*shape, 2 * states + 1))
        worth[:, :, states:] = self.losses
        for s in range(states - 1, -1, -1):
            worth[:, :, s] = np.where(tables[:, :, s], worth[:, :, 2 * s + 2], worth[:, :, 2 * s + 1])
        visits = np.zeros((*shape, 2 * states + 1))
        visits[:, :, 0] = 1.0 / self.contexts
        for s in range(states):
            visits[:, :, 2 * s + 1] = np.where(tables[:, :, s], 0.0, visits[:, :, s])
            visits[:, :, 2 * s + 2] = np.where(tables[:, :, s], visits[:, :, s], 0.0)
        worths = np.stack([worth[:, :, 1::2], worth[:, :, 2::2]], axis=-1)
        return Exact(worth[:, :, 0].mean(axis=1), visits[:, :, :states], worths)

    def objects(self) -> list[dict[str, Any]]:
        """What a bandit is given to decide on, for each context: its number, and the reference's actions."""
        return [
            {"context": k, "steps": self.steps, "reference": self.reference[k].tolist()} for k in range(self.contexts)
        ]


def ladder_world(gaps: Sequence[float] = LADDER, *, steps: int = 3, wrong: Sequence[int] = ()) -> BanditWorld:
    """A world whose contexts differ in how much is at stake.

    In a context with the gap g, an end state costs (1 - g) / 2 plus g / T for each wrong action on the way there. The
    right action differs from state to state. The reference is wrong at the steps `wrong`; without any it is optimal.

    >>> world = ladder_world((0.8, 0.4))
    >>> sorted(world.losses[0].round(3).tolist())
    [0.1, 0.367, 0.367, 0.367, 0.633, 0.633, 0.633, 0.9]
    >>> float(world.exact(world.reference[np.newaxis]).loss[0].round(3)), round(world.least, 3)
    (0.2, 0.2)
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
    return BanditWorld((1.0 - sizes) / 2.0 + sizes * mistakes[:, states:] / steps, reference)


# --- the same worlds for the bandit -----------------------------------------------------------------------------------


def tree_space() -> SearchSpace:
    """The worlds as a search space: every context and state has one feature, its own; an output is an end state.

    >>> from lols.bandit import StructuredBandit
    >>> world = ladder_world()
    >>> bandit = StructuredBandit(tree_space(), tree_reference(), compiled=False)
    >>> best = [bandit.show_reference(obj) for obj in world.objects()]
    >>> best == world.losses.argmin(axis=1).tolist()
    True
    """
    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        loss=_loss,
        output=_output,
        encode=_encode,
        sizes=Sizes(state=2, actions=2, features=1, steps=lambda x: x.steps),
        name="lols.theory:bandit_worlds",
    )


def tree_reference() -> Reference:
    """The reference of whichever world it is; it sees the context and nothing else."""
    return Reference(action=_reference_action, needs_truth=False, name="reference")


def _encode(obj: dict[str, Any]) -> Example:
    return Example(obj)


def _start(x, s):
    pass


def _actions(x, s, legal):
    if s[0] < x.steps:
        legal[:] = True


def _step(x, s, a):
    s[0] += 1
    s[1] = 2 * s[1] + 1 + a


def _features(x, s, out):
    emit(out, x.context * len(x.reference) + s[1])  # numbers in a row: a table of few bits gives each a row of its own


def _loss(x, y, s):
    return y.losses[s[1] - len(x.reference)]


def _reference_action(x, y, s):
    return x.reference[s[1]]


def _output(x: Any, s: np.ndarray) -> int:
    return int(s[1]) - len(x.reference)
