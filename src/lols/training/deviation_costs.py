"""What one-step deviations cost, measured by the engine: for explanations, certificates, confidence and other trainers.

A policy or its reference rolls in. At every state each action is tried, and one of the two, or a mixture, completes the
rest. Unlike in training, nothing is pruned, sampled or cut short, unless a plan says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lols.contract.choosing import numbers_within
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.engine.structures import BY_LEARNER, BY_TEACHER, COMPARE, ROLLED_IN, Batch, Plan
from lols.kernels.hashing import mix, unit
from lols.learners.settings import LearnerSettings
from lols.training.algorithms import Algorithm, schedules
from lols.training.plans import TRICKS, plan_of

EXACT = LearnerSettings("csoaa", "nag")  # a learner that costs matter to, without slack
TOGETHER = 256  # examples that are searched at a time
BETA = 0.5  # where training adapted β, and the model does not record its last value


class MeasuredPart(NamedTuple):
    """The deviations of some examples; the states of all examples one after the other."""

    batch: Batch  # in memory that the next part reuses
    filled: np.ndarray  # [example]: how many states it has
    costs: np.ndarray  # [state, action]: relative to the best action of the state, infinite for illegal actions
    weight: np.ndarray  # [state]: 0 for a state that was left out

    @property
    def first(self) -> np.ndarray:
        """Where the states of each example begin."""
        first: np.ndarray = np.cumsum(self.filled) - self.filled
        return first


@dataclass(frozen=True)
class DeviationCosts:
    """Measures the deviations from a policy's path through the examples of a driver.

    Parameters
    ----------
    driver
        A driver of the engine, or of a program.
    policy
        The policy that is followed, and that completes what the reference does not.
    plan
        Who rolls in and out: see `exact_plan`.
    beta, beta_in
        The share of the reference in roll-outs and in roll-ins, if they are mixtures.

    """

    driver: Any
    policy: Any
    plan: Plan
    beta: float = 1.0
    beta_in: float = 1.0

    def parts(
        self, numbers: np.ndarray, rounds: np.ndarray | None = None, *, together: int = TOGETHER, **options: Any
    ) -> Iterator[MeasuredPart]:
        """Search some examples, a part at a time; `rounds` are those of their coins, and `options` are the driver's."""
        rounds = numbers if rounds is None else rounds
        for low in range(0, numbers.size, together):
            part = slice(low, low + together)
            shares = (np.full(numbers[part].size, share) for share in (self.beta, self.beta_in))
            batch = self.driver.make_lessons(numbers[part], rounds[part], self.policy, self.plan, *shares, **options)
            slots, filled = batch.lessons.slots, batch.lessons.filled.copy()
            at = numbers_within(batch.lessons.first, filled)
            yield MeasuredPart(batch, filled, slots.costs[at], slots.weight[at])


def exact_plan(
    space: SearchSpace, reference: Reference, algorithm: Algorithm, seed: int, tricks: Mapping[str, bool] | None = None
) -> Plan:
    """How an algorithm searches if no state is passed over, and the exact cost of every action matters."""
    return plan_of(space, reference, algorithm, EXACT, dict.fromkeys(TRICKS, True) | dict(tricks or {}), seed)


def last_shares(algorithm: Algorithm, about: Mapping[str, Any]) -> tuple[float, float]:
    """The shares of the reference in roll-outs and roll-ins at the end of training, given what a model records of it.

    >>> from lols.training.algorithms import algorithm
    >>> last_shares(algorithm("lols", beta="linear:1:0.5"), {"passes": 2, "examples": 50})
    (0.5, 0.5)
    """
    rounds = max(int(about.get("passes") or 1) * int(about.get("examples") or 1), 1)
    adapted = BETA if about.get("beta") is None else float(about["beta"])
    out, into = (
        adapted if shares is None else float(shares(np.array([rounds - 1]), rounds)[0])
        for shares in schedules(algorithm)
    )
    return out, into


def costs_along(
    model: Any,
    reference: Reference,
    examples: Examples,
    taken: np.ndarray,
    algorithm: Algorithm,
    beta: float,
    *,
    seed: int = 0,
    compiled: bool = True,
) -> tuple[np.ndarray, np.ndarray | None, float]:
    """What all deviations from the path of a model through one example cost: costs, losses, and the path's own loss.

    Costs are relative to the best action of a step. The engine does measure the whole loss at one step of an example,
    to compare the two policies; rounds are chosen such that each step is measured in one of them. Without roll-outs the
    losses of deviations are not known.
    """
    space, rolled = model.space, algorithm.roll_out != "none"
    steps, rows, losses = np.arange(taken.size), list[np.ndarray](), []
    tricks = {"closed_form": False}  # so that every deviation is rolled out
    plan = exact_plan(space, reference, algorithm, seed, tricks)._replace(compare=rolled)
    with model.driver(examples, reference, threads=1, compiled=compiled) as driver:
        measure = DeviationCosts(driver, model.policy, plan, beta, beta)
        for part in measure.parts(np.zeros_like(steps), _measuring_rounds(plan.seed, taken.size)):
            at = len(rows) + np.arange(part.filled.size)
            rows += list(part.costs[part.first + at].astype(np.float64))
            losses.append(part.batch.losses.copy())
    costs, whole = np.array(rows), np.concatenate(losses)
    final = float(whole[0, ROLLED_IN])
    if not rolled:
        return costs, None, final
    share = {"reference": 1.0, "learned": 0.0}.get(algorithm.roll_out, beta)
    anchor = _spent(space, examples, taken) + share * whole[:, BY_TEACHER] + (1.0 - share) * whole[:, BY_LEARNER]
    return costs, (anchor - costs[steps, taken])[:, np.newaxis] + costs, final


def _measuring_rounds(seed: int, steps: int) -> np.ndarray:
    """For each step a round in which the engine compares reference and learner there."""
    rounds: dict[int, int] = {}
    number = 0
    while len(rounds) < steps:
        rounds.setdefault(int(unit(mix(mix(seed, number), COMPARE)) * steps), number)
        number += 1
    return np.array([rounds[k] for k in range(steps)], np.int64)


def _spent(space: SearchSpace, examples: Examples, taken: np.ndarray) -> np.ndarray:
    """What has been added to the loss before each step; nothing where the loss is known at the end only."""
    spent = np.zeros(taken.size)
    if space.cost is not None:
        x, y = examples.example(0)
        for k, (action, state) in enumerate(zip(taken[:-1], states_along(space, examples, taken), strict=False)):
            spent[k + 1] = spent[k] + space.cost(x, y, state, action)
    return spent


def states_along(space: SearchSpace, examples: Examples, taken: np.ndarray) -> Iterator[np.ndarray]:
    """Every state of a path through one example, the start and the end included."""
    x = examples.example(0)[0]
    state = np.zeros(int(examples.states[0]), np.int64)
    space.start(x, state)
    yield state.copy()
    for action in taken:
        space.step(x, state, action)
        yield state.copy()
