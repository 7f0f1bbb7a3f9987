"""Off-policy evaluation: what another policy would have cost, from the log of the one that ran."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lols.bandit.follow import Followed, LogFollower
from lols.bandit.log import Decision, Log
from lols.bandit.off_policy_estimates import Estimated, Evaluated, summarised
from lols.bandit.off_policy_rounds import Regression, Rounds, stacked
from lols.bandit.stored import actions_of, target_in
from lols.contract.space import Reference, SearchSpace
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError, LolsError
from lols.training.model import Model

__all__ = ["Estimated", "Evaluated", "deviations", "evaluate_policy"]

Piece = tuple[Followed, np.ndarray, np.ndarray]  # states, the chances of the actions taken there, losses of rounds
Chooser = Callable[[Decision], int | Sequence[float] | np.ndarray]


def deviations(
    log: Log,
    policy: FrozenPolicy | Model | Chooser,
    *,
    epsilon: float = 0.0,
    since: int = 0,
    confidence: float = 0.95,
    compiled: bool = True,
) -> Evaluated:
    """The expected loss of one-step deviations, had the target policy chosen them: any log that explored tells it.

    A round that explored rolled in with the policy of its time, drew an action at a step t drawn uniformly, and was
    completed by reference or learned policy. The estimates are of the mean loss of such rounds, if in the states s_t
    that they came to, all else alike, the target's action had been taken. This is what Algorithm 2 lets a log say of
    every policy. It is not the loss of following the target from start to end (see `evaluate_policy`).

    The chance p(t) = 1/T of the step is part of what is estimated, and no weight: short and long structures count
    alike. Only the action's chance p(a_t | s_t) is divided by. With `randomise="steps"` the rounds count that came
    as far as the step drawn: other steps are then as they were drawn, and T is the most steps that there may be.

    Parameters
    ----------
    log
        The log of a bandit; it is read twice, and never held in memory.
    policy
        The target: the weights of a policy (`bandit.policy()`), a `Model`, or a function of a `Decision` that gives an
        action, or the chance of each action.
    epsilon
        The chance with which the target takes a random legal action instead, at the deviation.
    since
        The first decision to look at. A policy seems better than it is in rounds whose losses it has learned from: look
        at those after them.
    confidence
        Of the intervals.
    compiled
        False runs the same code as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, epsilon=1.0, beta=1.0, exploration="uniform", seed=1)
    >>> for k in range(400):
    ...     shown = bandit.decide({"words": [4, 5]})
    ...     bandit.learn(shown.id, loss=shown.output.count(2) / 2)
    >>> found = deviations(bandit.log, lambda decision: 2)  # would it be good to tag a word with 2?
    >>> found.dr.low < 0.5 < found.dr.high, found.difference.low > 0, found.rounds
    (True, True, 400)

    """
    _check(epsilon, confidence)
    rounds = Rounds(log, lambda d: d.explored and d.step >= 0 and d.legal.size > 0, since)
    if isinstance(policy, Model):
        policy = policy.policy
    if not isinstance(policy, FrozenPolicy) and not callable(policy):
        raise ConfigurationError(f"policy is a {type(policy).__name__}: give a policy, a Model, or a function")

    def pieces() -> Iterator[Piece]:
        like = None
        for decisions, losses in rounds.chunks():
            like = decisions[0] if like is None else like
            lessons, legal, taken, chances = stacked(decisions, like)
            if isinstance(policy, FrozenPolicy):
                if actions_of(policy) != legal.shape[1]:
                    raise ConfigurationError(
                        f"the policy knows {actions_of(policy)} actions and the log has {legal.shape[1]}: give a "
                        "policy that was learned in the space of the log"
                    )
                target = target_in(lessons, policy, legal, epsilon, compiled=compiled)
            else:
                chosen = np.stack([_chosen(policy, decision) for decision in decisions])
                target = (1.0 - epsilon) * chosen + epsilon * legal / legal.sum(axis=1, keepdims=True)
            yield Followed(lessons, legal, target, taken), chances, losses

    found = _evaluated(pieces(), rounds, confidence, compiled)
    if found is None:
        raise LolsError(
            f"none of the {rounds.left_out} decisions with a loss explored: let the bandit do so, with epsilon above 0"
        )
    return found


def evaluate_policy(
    log: Log,
    policy: FrozenPolicy | Model | Reference,
    objects: Mapping[int, Any] | Sequence[Any],
    space: SearchSpace,
    *,
    epsilon: float = 0.0,
    since: int = 0,
    confidence: float = 0.95,
    compiled: bool = True,
) -> Evaluated:
    """The expected loss of following another policy from start to end, where the exploration gave it a chance.

    Only rounds whose actions were all drawn at random (`randomise="steps"`) say anything of it. A round's weight is the
    product, over its steps, of the target's chance of the action over the one that it was drawn with. It grows with
    every step, so that a target far from what was shown needs very many rounds: `warning` says when.

    Rounds in which the guard shows the reference are left out and counted: that is decided before the object is seen,
    so that leaving them out does no harm as long as objects stay alike over time. A round without a loss is left out,
    too: that does no harm if it does not depend on what was shown whether a loss comes.

    The doubly robust estimate goes backwards through a trail (Jiang and Li, 2016): the value of a state is what a
    regression guesses for the target there, and the weighted rest of what followed.

    Parameters
    ----------
    log
        The log of a bandit; it is read twice, and never held in memory.
    policy
        The target: the weights of a policy (`bandit.policy()`), a `Model`, or a `Reference` that needs no truth.
    objects
        The object of each decision, by its id: the log does not hold them. Only those of rounds that are used are
        asked for.
    space
        The search space of the log (`bandit.space`).
    epsilon
        Shared by as many steps as there may be: the chance with which the target takes a random legal action instead of
        its own. Given the epsilon of a bandit with `randomise="steps"`, the target explores uniformly as it does.
    since
        The first decision to look at. A policy seems better than it is in rounds whose losses it has learned from: look
        at those after them.
    confidence
        Of the intervals.
    compiled
        False runs the same code as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, epsilon=1.0, randomise="steps", seed=1)
    >>> objects = [{"words": [k % 4, 5]} for k in range(400)]
    >>> for obj in objects:
    ...     shown = bandit.decide(obj)
    ...     bandit.learn(shown.id, loss=1 - shown.output.count(0) / 2)
    >>> evaluate_policy(bandit.log, rules, objects, bandit.space).snips.value  # what if the rules had been followed?
    0.0

    """
    _check(epsilon, confidence)
    rounds = Rounds(log, lambda d: d.chances.size > 0 and not d.guarded, since)
    if isinstance(policy, Model):
        policy = policy.policy
    if not isinstance(policy, FrozenPolicy | Reference):
        raise ConfigurationError(f"policy is a {type(policy).__name__}: give a policy, a Model, or a Reference")
    follower = LogFollower(space, policy, epsilon, compiled=compiled)

    def pieces() -> Iterator[Piece]:
        for decisions, losses in rounds.chunks():
            given = [_object(objects, decision.id) for decision in decisions]
            made = follower([d.id for d in decisions], given, [d.trail for d in decisions])
            chances = np.ones(made.taken.size)
            for d, first in zip(decisions, made.lessons.first, strict=True):
                if d.chances.size != d.trail.size or not (d.chances > 0.0).all():
                    raise LolsError(f"decision {d.id}: its actions cannot have been taken with the chances it has")
                chances[first : first + d.chances.size] = d.chances
            yield made, chances, losses

    found = _evaluated(pieces(), rounds, confidence, compiled)
    if found is None:
        raise LolsError(
            f"none of the {rounds.left_out} decisions with a loss was drawn step by step, and one deviation a round "
            'gives almost all structures a chance of 0: log with randomise="steps", or ask `deviations`'
        )
    return found


def _evaluated(pieces: Iterable[Piece], rounds: Rounds, confidence: float, compiled: bool) -> Evaluated | None:
    """The estimates from states and losses, round after round; None if there are none.

    The guesses for a round come from the rounds before it only. With folds, rounds that came later would take part, and
    those were shown by policies that have learned from the very loss that is to be corrected.
    """
    weights, losses, robust = array("d"), array("d"), array("d")
    regression: Regression | None = None
    for made, chances, seen in pieces:
        first, filled, every = made.lessons.first, made.lessons.filled, np.arange(made.taken.size)
        if regression is None:
            by_action = made.lessons.slots.action_start.shape[0] > 0
            regression = Regression(made.legal.shape[1], by_action=by_action, compiled=compiled)
        guess = regression.guess(made)
        hoped, here = (made.target * guess).sum(axis=1), guess[every, made.taken]
        ratio = made.target[every, made.taken] / chances
        weight, value, after = np.ones(seen.size), seen.copy(), np.zeros(made.taken.size)
        for t in reversed(range(int(filled.max()))):
            on = filled > t
            slot = first[on] + t
            after[slot] = value[on]
            value[on] = hoped[slot] + ratio[slot] * (value[on] - here[slot])
            weight[on] *= ratio[slot]
        weights.extend(weight)
        losses.extend(seen)
        robust.extend(value)
        regression.learn(made, after)
    if regression is None:
        return None
    columns = [np.frombuffer(column) for column in (weights, losses, robust)]
    return summarised(columns[0], columns[1], columns[2], rounds.left_out, confidence)


def _check(epsilon: float, confidence: float) -> None:
    if not 0.0 <= epsilon <= 1.0:
        raise ConfigurationError(f"epsilon is {epsilon}; it is a probability, from 0 to 1")
    if not 0.0 < confidence < 1.0:
        raise ConfigurationError(f"confidence is {confidence}; it is a probability, above 0 and below 1")


def _chosen(policy: Chooser, decision: Decision) -> np.ndarray:
    """The chance of each action, from what a function says of a decision."""
    found, legal = policy(decision), decision.legal
    if np.ndim(found) == 0:
        if not isinstance(found, int | np.integer) or not 0 <= found < legal.size or not legal[found]:
            raise LolsError(f"decision {decision.id}: the policy takes action {found!r}, which is not legal there")
        return np.asarray(np.arange(legal.size) == found, np.float64)
    chances = np.asarray(found, np.float64)
    if chances.shape != legal.shape or not (chances[legal] >= 0).all() or chances[~legal].any():
        raise LolsError(
            f"decision {decision.id}: give a chance for each of {legal.size} actions, and 0 for those that are illegal"
        )
    if not abs(chances.sum() - 1.0) < 1e-6:
        raise LolsError(f"decision {decision.id}: the chances of the policy's actions add up to {chances.sum()}, not 1")
    return chances


def _object(objects: Mapping[int, Any] | Sequence[Any], number: int) -> Any:
    try:
        return objects[number]
    except (KeyError, IndexError):
        raise LolsError(f"there is no object for decision {number}: give the object of every decision") from None
