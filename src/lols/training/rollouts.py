"""Costs to go of actions, by roll-outs from the states of a policy: for use in other trainers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.contract.whole_numbers import check_seed, check_whole
from lols.engine.drivers.lock_step import LockStepDriver
from lols.engine.structures import PendingRollouts
from lols.errors import ConfigurationError
from lols.policies.own import as_policy
from lols.training.algorithms import algorithm
from lols.training.deviation_costs import DeviationCosts, exact_plan
from lols.training.model import Model

STATES = ("learned", "reference")


@dataclass(frozen=True)
class RolloutCosts:
    """What actions cost, state after state in the order of examples and steps.

    Attributes
    ----------
    example
        The number of each state's example.
    step
        The step at which the roll-in met each state.
    taken
        The action by which the roll-in went on.
    costs
        The cost to go of each action, [state, action]: what the action and the rest of its roll-out add to the loss,
        the mean over `k` roll-outs. In a space without `cost`, it is the loss of the end state. Illegal actions have an
        infinite cost.
    advantages
        How much less an action costs than the one taken; minus infinity for illegal actions.
    errors
        Standard errors of the costs; zero if `k` is 1.

    """

    example: np.ndarray
    step: np.ndarray
    taken: np.ndarray
    costs: np.ndarray
    advantages: np.ndarray
    errors: np.ndarray

    def __len__(self) -> int:
        return self.example.size


def rollout_costs(
    model_or_policy: Any,
    task: SearchSpace | Task | type[Task],
    data: Iterable[Any] | Examples,
    reference: Reference | None = None,
    *,
    states: str = "learned",
    k: int = 1,
    beta: float = 0.0,
    batch_size: int = 64,
    seed: int = 0,
    compiled: bool = True,
) -> RolloutCosts:
    """Estimate what each action costs in each state of a policy's trajectories, by roll-outs in lock-step.

    Parameters
    ----------
    model_or_policy
        A `Model`, or any `lols.policies.OwnPolicy`, such as a `TorchPolicy`.
    task
        The search space.
    data
        Labelled objects, or `Examples`.
    reference
        The teacher, by default that of the task; it is used if `beta` is above 0, or `states` is `"reference"`.
    states
        Which policy leads to the states: `"learned"` or `"reference"`.
    k
        How many roll-outs are averaged for each action; each has its own coins.
    beta
        The probability that the reference completes a roll-out, with one coin for all actions of a state.
    batch_size
        How many examples are searched together.
    seed
        Of the coins.
    compiled
        False runs everything as plain Python.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> space, data, teacher = tagging_space(labels=3), tagging_data(20, labels=3, words=20), tagging_references()
    >>> model = lols.train(space, data, teacher["optimal"], passes=2, compiled=False)
    >>> found = lols.rollout_costs(model, space, data[:2], teacher["optimal"], compiled=False)
    >>> found.costs.shape == (len(found), 3)
    True
    >>> bool((found.advantages[np.arange(len(found)), found.taken] == 0.0).all())
    True

    """
    if states not in STATES:
        raise ConfigurationError(f"unknown states '{states}': choose {' or '.join(STATES)}")
    check_seed(seed)
    check_whole("k", k)
    check_whole("batch_size", batch_size)
    if not 0.0 <= beta <= 1.0:
        raise ConfigurationError(f"beta is {beta}: give a number between 0 and 1")
    space = as_space(task)
    given = model_or_policy.policy if isinstance(model_or_policy, Model) else model_or_policy
    own = as_policy(given)
    policy = own.in_lock_step(space, compiled=compiled)
    reference = as_teacher(reference, space)
    if k > 1 and (own.random or (states == "reference" and reference.random)):
        raise ConfigurationError("k roll-outs need the same states, and these are drawn at random: leave out k")
    examples = data if isinstance(data, Examples) else Examples(space, data, truth=space.truth_for(reference))
    roll_out = "learned" if beta == 0.0 else "reference" if beta == 1.0 else "mixture"
    tricks = {"reuse": False, "closed_form": False}
    plan = exact_plan(space, reference, algorithm(roll_in=states, roll_out=roll_out), seed, tricks)
    with LockStepDriver(space, examples, reference, compiled=compiled) as driver:
        measure = DeviationCosts(driver, policy, plan, beta, beta)
        sums = squares = np.zeros(1)
        for draw in range(k):
            example, step, taken, costs = _drawn(measure, draw, batch_size)
            sums, squares = sums + costs, squares + costs**2
    known, mean = np.isfinite(sums), sums / k
    spread = np.where(known, squares / k - np.where(known, mean, 0.0) ** 2, 0.0).clip(min=0.0)
    advantages = mean[np.arange(taken.size), taken][:, np.newaxis] - mean
    return RolloutCosts(example, step, taken, mean, advantages, np.sqrt(spread / max(k - 1, 1)))


def _drawn(measure: DeviationCosts, draw: int, batch_size: int) -> tuple[np.ndarray, ...]:
    """Example, step, action taken and costs to go of all states, by one draw of their roll-outs."""
    driver, values = measure.driver, list[tuple[np.ndarray, ...]]()

    def keep(done: PendingRollouts) -> None:
        filled = slice(int(done.filled[0]))
        values.append(tuple(getattr(done, name)[filled].copy() for name in ("example", "time", "action", "value")))

    numbers, columns = np.arange(len(driver.examples)), []
    for part in measure.parts(numbers, draw * numbers.size + numbers, together=batch_size, observe=keep):
        costs = np.full((int(part.filled.sum()), driver.actions), np.inf)
        for example, time, action, value in values:
            costs[part.first[example] + time, action] = value
        values.clear()
        step = np.arange(costs.shape[0]) - np.repeat(part.first, part.filled)
        columns.append((np.repeat(part.batch.lessons.example, part.filled), step, driver.taken(part.batch), costs))
    return tuple(np.concatenate(parts) for parts in zip(*columns, strict=True))
