"""Off-policy evaluation: the expected loss of another policy, from the log of a bandit."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.bandit.entries import Decision, Log
from lols.bandit.follow import Followed, LogFollower, actions_of, target_in
from lols.bandit.off_policy_estimates import Estimated, Evaluated, summarised
from lols.bandit.off_policy_rounds import Regression, Rounds, stacked
from lols.bandit.policy import BanditPolicy
from lols.bandit.retrace import Retracer
from lols.bandit.seen import Seen
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space
from lols.engine.structures import FrozenPolicy
from lols.errors import ConfigurationError, LolsError
from lols.training.model import Model

__all__ = ["Estimated", "Evaluated", "deviations", "evaluate_policy"]

ANY = 1  # columns of a policy for any number of actions
Piece = tuple[Followed, np.ndarray, np.ndarray]  # states, the chances of the actions taken there, the losses of rounds


class ExploredState(NamedTuple):
    """A state in which a decision explored, for a function that chooses an action there."""

    decision: Decision
    legal: np.ndarray  # bool: the legal actions
    ids: np.ndarray  # the features of the state
    values: np.ndarray
    action_start: np.ndarray  # where the features of each action begin; empty without action features
    action_stop: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray

    @property
    def id(self) -> str:
        """The id of the decision."""
        return self.decision.id

    @property
    def step(self) -> int:
        """The number of the step."""
        return self.decision.step

    @property
    def action(self) -> int:
        """The action that was taken."""
        return self.decision.action

    @property
    def chance_action(self) -> float:
        """Its probability."""
        return self.decision.chance_action


Chooser = Callable[[ExploredState], int | Sequence[float] | np.ndarray]


def deviations(
    log: Log,
    policy: BanditPolicy | FrozenPolicy | Model | Chooser,
    *,
    space: SearchSpace | Task | type[Task] | None = None,
    epsilon: float = 0.0,
    since: int = 0,
    confidence: float = 0.95,
    compiled: bool = True,
) -> Evaluated:
    """Estimate the expected loss of one-step deviations chosen by a target policy, from any log that explored.

    A round that explores rolls in with the current policy, draws an action at a step t drawn uniformly, and is
    completed by the reference or the learned policy. The estimates are of the mean loss of such rounds if the target's
    action had been taken in the states s_t instead. With Algorithm 2, a log allows this for every policy. It is not the
    loss of following the target from start to end (see `evaluate_policy`).

    The chance p(t) = 1/T of the step is part of the quantity that is estimated, not a weight: short and long structures
    count equally. Only the action's chance p(a_t | s_t) is divided by. With `randomise="steps"`, the rounds are used
    that reached the step drawn; the other steps stay as drawn, and T is the most steps that there may be.

    Parameters
    ----------
    log
        The log of a bandit; it is read twice, and not kept in memory.
    policy
        The target: a policy (`bandit.policy()`), a `Model`, or a function of the state in which a decision explored
        (its `decision`, `legal` actions and features) that returns an action, or the chance of each action.
    space
        The search space of the log (`bandit.space`), from which the features of its states follow. Not needed for the
        log of a bandit that has it open.
    epsilon
        The chance that the target takes a random legal action instead.
    since
        The first decision to use. A policy looks better than it is on rounds that it has learned from: use later ones.
    confidence
        The confidence of the intervals.
    compiled
        False runs the same code as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> how = {"epsilon": 1.0, "beta": 1.0, "exploration": "uniform", "compiled": False}
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, seed=1, **how)
    >>> for k in range(400):
    ...     shown = bandit.decide({"words": [4, 5]})
    ...     _ = bandit.learn(shown.id, loss=shown.output.count(2) / 2)
    >>> evaluated = deviations(bandit.log, lambda decision: 2, compiled=False)  # what if one word were tagged with 2?
    >>> evaluated.dr.low < 0.5 < evaluated.dr.high, evaluated.difference.low > 0, evaluated.rounds
    (True, True, 400)

    """
    _check(epsilon, confidence)
    rounds = Rounds(log, lambda d: d.explored, since)
    of_log = _space(log, space)
    retracer = None if of_log is None else Retracer(of_log, compiled=compiled)
    policy = _weights(policy)
    if not isinstance(policy, FrozenPolicy) and not callable(policy):
        raise ConfigurationError(f"policy is a {type(policy).__name__}: give a policy, a Model, or a function")

    def pieces() -> Iterator[Piece]:
        for decisions, losses in rounds.chunks():
            seen = [_seen(decision, retracer).only(decision.step) for decision in decisions]
            lessons, legal, taken = stacked(seen)
            chances = np.array([decision.chance_action for decision in decisions])
            if isinstance(policy, FrozenPolicy):
                if actions_of(policy) not in (ANY, legal.shape[1]):
                    raise ConfigurationError(
                        f"the policy has {actions_of(policy)} actions and the log has {legal.shape[1]}: give a "
                        "policy that was learned in the space of the log"
                    )
                target = target_in(lessons, policy, legal, epsilon, compiled=compiled)
            else:
                chosen = np.stack(
                    [_chosen(policy, state, legal.shape[1]) for state in map(_deviation, decisions, seen)]
                )
                target = (1.0 - epsilon) * chosen + epsilon * legal / legal.sum(axis=1, keepdims=True)
            yield Followed(lessons, legal, target, taken), chances, losses

    reason = "explored: let the bandit do so, with epsilon above 0"
    fixed = retracer is None or retracer.space.fixed_actions is not None
    return _evaluated(pieces(), rounds, confidence, compiled, reason, fixed=fixed)


def evaluate_policy(
    log: Log,
    policy: BanditPolicy | FrozenPolicy | Model | Reference,
    objects: Mapping[Any, Any] | Sequence[Any] | None = None,
    space: SearchSpace | Task | type[Task] | None = None,
    *,
    epsilon: float = 0.0,
    since: int = 0,
    confidence: float = 0.95,
    compiled: bool = True,
) -> Evaluated:
    """Estimate the expected loss of following another policy from start to end.

    Only rounds whose actions were all drawn at random (`randomise="steps"`) can be used. The weight of a round is the
    product, over its steps, of the target's chance of the action divided by the chance that it was drawn with. Weights
    vary more with every step, so that a target far from the logged policy needs very many rounds; `warning` says so.

    Rounds in which the guard shows the reference are left out and counted. The guard decides before it sees the object,
    so this does not bias the estimates as long as the distribution of objects does not change. Rounds without a loss
    are left out, too, without bias if the chance of receiving a loss does not depend on what was shown.

    The doubly robust estimate goes backwards through a trail (Jiang and Li, 2016): the value of a state is a
    regression's prediction for the target there, corrected by the weighted value of what followed.

    Parameters
    ----------
    log
        The log of a bandit; it is read twice, and not kept in memory.
    policy
        The target: a policy (`bandit.policy()`), a `Model`, or a `Reference` that needs no truth.
    objects
        The object of each decision, by its id or its number, if the log does not hold them: it holds those that are
        JSON. Objects of rounds that are left out are not needed.
    space
        The search space of the log (`bandit.space`). Not needed for the log of a bandit that has it open.
    epsilon
        The chance, shared by the most steps that there may be, that the target takes a random legal action instead of
        its own. With the epsilon of a bandit with `randomise="steps"`, the target explores as much, uniformly.
    since
        The first decision to use. A policy looks better than it is on rounds that it has learned from: use later ones.
    confidence
        The confidence of the intervals.
    compiled
        False runs the same code as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.bandit import StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> how = {"epsilon": 1.0, "randomise": "steps", "compiled": False}
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, seed=1, **how)
    >>> objects = [{"words": [k % 4, 5]} for k in range(400)]
    >>> for obj in objects:
    ...     shown = bandit.decide(obj)
    ...     _ = bandit.learn(shown.id, loss=1 - shown.output.count(0) / 2)
    >>> evaluated = evaluate_policy(bandit.log, rules, compiled=False)
    >>> evaluated.snips.value  # the loss of the reference
    0.0

    """
    _check(epsilon, confidence)
    rounds = Rounds(log, lambda d: d.chances.size > 0 and not d.guarded, since)
    policy = _weights(policy)
    if not isinstance(policy, FrozenPolicy | Reference):
        raise ConfigurationError(f"policy is a {type(policy).__name__}: give a policy, a Model, or a Reference")
    of_log = _space(log, space)
    if of_log is None:
        raise ConfigurationError("give the space of the log: space=bandit.space")
    follower = LogFollower(of_log, policy, epsilon, compiled=compiled)

    def pieces() -> Iterator[Piece]:
        for decisions, losses in rounds.chunks():
            ids = [d.id for d in decisions]
            followed = follower(ids, [_object(objects, d) for d in decisions], [d.actions for d in decisions])
            chances = np.ones(followed.taken.size)
            for d, first in zip(decisions, followed.lessons.first, strict=True):
                chances[first : first + d.chances.size] = d.chances
            yield followed, chances, losses

    reason = (
        "was drawn step by step, and with one deviation per round almost all structures have a chance of 0: log with "
        'randomise="steps", or use `deviations`'
    )
    fixed = of_log.fixed_actions is not None
    return _evaluated(pieces(), rounds, confidence, compiled, reason, fixed=fixed)


def _evaluated(
    pieces: Iterable[Piece],
    rounds: Rounds,
    confidence: float,
    compiled: bool,
    reason: str,
    *,
    fixed: bool = True,
) -> Evaluated:
    """The estimates from states and losses, in the order of the rounds; `reason` is why there may be none.

    The predictions for a round come from earlier rounds only. Cross-fitting would also use later rounds, whose policies
    have learned from the very loss that is to be corrected.
    """
    weights, losses, robust = array("d"), array("d"), array("d")
    regression: Regression | None = None
    for followed, chances, seen in pieces:
        first, filled, every = followed.lessons.first, followed.lessons.filled, np.arange(followed.taken.size)
        if regression is None:
            by_action = followed.lessons.slots.action_start.shape[0] > 0
            regression = Regression(followed.legal.shape[1] if fixed else None, by_action=by_action, compiled=compiled)
        guess = regression.guess(followed)
        hoped, here = (followed.target * guess).sum(axis=1), guess[every, followed.taken]
        ratio = followed.target[every, followed.taken] / chances
        weight, value, after = np.ones(seen.size), seen.copy(), np.zeros(followed.taken.size)
        for t in reversed(range(int(filled.max()))):
            on = filled > t
            slot = first[on] + t
            after[slot] = value[on]
            value[on] = hoped[slot] + ratio[slot] * (value[on] - here[slot])
            weight[on] *= ratio[slot]
        weights.extend(weight)
        losses.extend(seen)
        robust.extend(value)
        regression.learn(followed, after)
    if regression is None:
        raise LolsError(f"none of the {rounds.left_out} decisions with a loss {reason}")
    columns = [np.frombuffer(column) for column in (weights, losses, robust)]
    return summarised(columns[0], columns[1], columns[2], rounds.left_out, confidence)


def _check(epsilon: float, confidence: float) -> None:
    if not 0.0 <= epsilon <= 1.0:
        raise ConfigurationError(f"epsilon is {epsilon}; it is a probability, from 0 to 1")
    if not 0.0 < confidence < 1.0:
        raise ConfigurationError(f"confidence is {confidence}; it is a probability, above 0 and below 1")


def _space(log: Log, space: SearchSpace | Task | type[Task] | None) -> SearchSpace | None:
    """The space of a log: as given, or that of the bandit that has it open."""
    return as_space(space) if space is not None else getattr(log, "space", None)


def _seen(decision: Decision, retracer: Retracer | None) -> Seen:
    if decision.seen is not None:
        return decision.seen
    if retracer is None:
        raise ConfigurationError("the log holds objects, and not their features: give its space (`space=bandit.space`)")
    return retracer(decision)


def _weights(policy: Any) -> Any:
    """The weights of a policy or a model; anything else as it is."""
    return policy.final if isinstance(policy, BanditPolicy) else policy.policy if isinstance(policy, Model) else policy


def _deviation(decision: Decision, seen: Seen) -> ExploredState:
    slots = seen.lessons.slots
    start, stop = int(seen.slot("start")[0]), int(seen.slot("stop")[0])
    own = slots.action_start.shape[0] > 0
    nothing = np.zeros(0, np.int64)
    return ExploredState(
        decision,
        seen.legal[0],
        slots.ids[start:stop],
        slots.values[start:stop],
        seen.slot("action_start")[0] if own else nothing,
        seen.slot("action_stop")[0] if own else nothing,
        slots.action_ids,
        slots.action_values,
    )


def _chosen(policy: Chooser, decision: ExploredState, width: int) -> np.ndarray:
    """The chance of each action, from the result of a function."""
    chosen = np.zeros(width)
    chosen[: decision.legal.size] = _chances(policy, decision)
    return chosen


def _chances(policy: Chooser, decision: ExploredState) -> np.ndarray:
    choice, legal = policy(decision), decision.legal
    if np.ndim(choice) == 0:
        if not isinstance(choice, int | np.integer) or not 0 <= choice < legal.size or not legal[choice]:
            raise LolsError(f"decision {decision.id}: the policy takes action {choice!r}, which is not legal there")
        return np.asarray(np.arange(legal.size) == choice, np.float64)
    chances = np.asarray(choice, np.float64)
    if chances.shape != legal.shape or not (chances[legal] >= 0).all() or chances[~legal].any():
        raise LolsError(
            f"decision {decision.id}: give a chance for each of {legal.size} actions, and 0 for illegal ones"
        )
    if not abs(chances.sum() - 1.0) < 1e-6:
        raise LolsError(f"decision {decision.id}: the chances of the policy's actions add up to {chances.sum()}, not 1")
    return chances


def _object(objects: Mapping[Any, Any] | Sequence[Any] | None, decision: Decision) -> Any:
    if objects is None:
        if decision.context is None:
            raise LolsError(
                f"the log does not hold the object of decision {decision.id}, which was not JSON: give objects"
            )
        return decision.object
    if isinstance(objects, Mapping) and decision.id in objects:
        return objects[decision.id]
    try:
        return objects[decision.number]
    except (KeyError, IndexError):
        raise LolsError(f"there is no object for decision {decision.id}: give the object of every decision") from None
