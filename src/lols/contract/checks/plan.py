"""What a check examines: everything or, if that takes too long, an even sample of examples, walks and states."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from lols.contract.checks.budget import Budget, Pace
from lols.contract.checks.findings import Coverage, Findings
from lols.contract.checks.guards import SpentError
from lols.contract.checks.probe import MOST_ACTIONS, Probe
from lols.contract.checks.walk import SampleWalk
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace

MOST_EXAMPLES = 25

# The share of the work that a sample may take. Examining everything may take all of it by the estimate, because in
# practice it takes less: a state that is met again is not examined again.
SAMPLING = 0.5

# Lower bounds to which examples, walks and states are cut: the first that fits, or else the last.
FLOORS = ((4, 6, 32), (2, 3, 8), (1, 1, 2))

# The scouting walk examines this many states, within this share of the work and of the time.
SCOUTED = 16
SCOUTING_WORK = 0.05
SCOUTING_TIME = 0.25


@dataclass(frozen=True)
class WalkCosts:
    """The work of a walk through the longest example: its steps, and the work of passing and of examining a state."""

    steps: int
    passing: float
    examining: float
    choices: int = 1  # legal actions at a state, at most
    has_key: bool = False
    has_costs: bool = False

    def walk(self, part: float, states: float, *, sampled: bool) -> float:
        """The work of a walk through an example with this part of the steps."""
        steps = self.steps * part
        followed, examined = 1.0, min(states, steps)
        if self.has_key:  # after some walks, a pair with one key is followed to the end, on average from halfway on
            followed, examined = followed + 1.0, 1.25 * examined
        if self.has_costs:  # actions are rolled out
            followed += (min(self.choices, MOST_ACTIONS) if sampled else self.choices) / 2.0
        return followed * steps * self.passing + examined * self.examining


@dataclass(frozen=True)
class CheckPlan:
    """Which examples are examined, on how many walks each, and how many states on the longest walk."""

    examples: list[int]
    walks: int
    states: float
    steps: np.ndarray  # approximate length of the walks through each example
    sampled: bool

    def pace(self, index: int, budget: Budget) -> Pace:
        """How many states of the walks through an example are examined."""
        stride = max(1.0, float(self.steps[index]) / self.states) if self.sampled else 1.0
        return Pace(budget, stride, self.sampled)


def make_plan(
    space: SearchSpace, reference: Reference | None, examples: Examples, walks: int, seed: int, budget: Budget
) -> CheckPlan:
    """Plan to examine everything if the budget allows it, and otherwise a sample."""
    order = np.argsort(examples.steps, kind="stable")
    count = min(len(order), MOST_EXAMPLES)
    if budget.seconds == math.inf:
        return CheckPlan(_spread(order, count), walks, math.inf, examples.steps, sampled=False)
    costs = _scout(space, reference, examples, int(order[-1]), seed, budget)
    longest = max(1, int(examples.steps[order[-1]]))
    mean = float(examples.steps[_spread(order, count)].mean()) / longest
    count, walks, states, sampled = choose(costs, budget.work, count, walks, mean)
    return CheckPlan(_spread(order, count), walks, states, examples.steps * (costs.steps / longest), sampled)


def choose(costs: WalkCosts, work: float, examples: int, walks: int, mean: float = 1.0) -> tuple[int, int, float, bool]:
    """How many examples, walks and states fit into the work, and whether these are fewer than all.

    `mean` is the mean length of the examples, where the longest has length 1.

    >>> choose(WalkCosts(steps=10, passing=50, examining=500), 5_000_000, examples=25, walks=20)
    (25, 20, 10, False)
    >>> choose(WalkCosts(steps=225, passing=500, examining=5000), 5_000_000, examples=25, walks=20)
    (3, 4, 13, True)
    """

    def fits(sampled: bool) -> bool:
        longest, other = (costs.walk(part, counts[2], sampled=sampled) for part in (1.0, mean))
        return counts[1] * (longest + (counts[0] - 1) * other) <= (SAMPLING * work if sampled else work)

    counts = [examples, walks, costs.steps]
    if fits(sampled=False):
        return examples, walks, costs.steps, False
    for floor in FLOORS:
        while not fits(sampled=True):
            # cut what is furthest above its lower bound
            most = max(range(3), key=lambda i: counts[i] / floor[i])
            if counts[most] <= floor[most]:
                break
            counts[most] = max(floor[most], 3 * counts[most] // 4)
    return counts[0], counts[1], counts[2], True


def _scout(
    space: SearchSpace, reference: Reference | None, examples: Examples, index: int, seed: int, budget: Budget
) -> WalkCosts:
    """Walk through an example once, without reporting, to measure the work."""
    limit = max(1, int(examples.steps[index]))
    own, coverage = Budget(budget.seconds * SCOUTING_TIME, budget.work * SCOUTING_WORK), Coverage()
    pace = Pace(own, max(1.0, limit / SCOUTED), sampled=True)
    walk = SampleWalk(Probe(space, reference, examples, index, Findings(), pace), examples, seed, coverage)
    with suppress(SpentError):
        walk.go()
    functions = walk.probe.functions
    return WalkCosts(
        steps=walk.length if walk.ended else limit,
        passing=(own.work_done - walk.examining) / max(1, coverage.states_met),
        examining=walk.examining / max(1, coverage.states),
        choices=walk.most_choices,
        has_key="key" in functions,
        has_costs="Reference.costs" in functions,
    )


def _spread(order: np.ndarray, count: int) -> list[int]:
    """Examples from the shortest to the longest, because mistakes hide at both ends; if one is taken, the longest."""
    if count == 1:
        order = order[-1:]
    elif count < len(order):
        order = order[np.linspace(0, len(order) - 1, count).astype(np.int64)]
    return sorted(order.tolist())
