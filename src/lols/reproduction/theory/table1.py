"""Table 1 of the paper, computed from its small worlds, and the exact policies that training ends with there."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

from lols.contract.features import feature
from lols.datasets.small_worlds import HALF, ROLL_INS, ROLL_OUTS, WORLDS, Policy, SmallWorld
from lols.engine.table import lookup

if TYPE_CHECKING:
    from lols.training.model import Model


def table_1(beta: Fraction = HALF) -> dict[tuple[str, str], str]:
    """Table 1: for each roll-in and roll-out, what holds of all policies without cost-sensitive regret in all worlds.

    `"reinforcement learning"` where the examples are the same whatever the reference is; `"inconsistent"` where such a
    policy may be worse than the reference; `"not locally optimal"` where one changed decision may improve it; else
    `"good"`.

    >>> table_1()["learned", "mixture"]
    'good'
    """
    return {(i, o): _verdict(i, o, beta) for i in ROLL_INS for o in ROLL_OUTS}


def _verdict(roll_in: str, roll_out: str, beta: Fraction) -> str:
    if all(_blind(world, roll_in, roll_out, beta) for world in WORLDS):
        return "reinforcement learning"
    if any(w.worst_loss(roll_in, roll_out, beta) > w.loss(w.reference_policy) for w in WORLDS):
        return "inconsistent"
    if any(w.deviation_regret(p) > 0 for w in WORLDS for p in w.zero_regret(roll_in, roll_out, beta)):
        return "not locally optimal"
    return "good"


def _blind(world: SmallWorld, roll_in: str, roll_out: str, beta: Fraction) -> bool:
    """Whether any other reference would make the same examples."""
    others = [replace(world, reference=(i, j, k)) for i, j, k in product((0, 1), repeat=3)]
    return all(
        list(other.examples(policy, roll_in, roll_out, beta)) == list(world.examples(policy, roll_in, roll_out, beta))
        for policy in world.policies()
        for other in others
    )


def learned_policy(model: Model, world: SmallWorld) -> Policy:
    """The exact policy of a trained model, read from its weights: the action of lower weight, or a tie drawn at random.

    >>> import lols; from lols.datasets.small_worlds import IN_REFERENCE, TwoSteps
    >>> model = lols.train(TwoSteps.space, [IN_REFERENCE], TwoSteps.teacher, roll_in="reference", compiled=False)
    >>> [str(p) for p in learned_policy(model, IN_REFERENCE)]
    ['1', '1', '1/2']
    """

    def weight(letter: str) -> float:
        row = lookup(model.policy.single, feature(0, ord(letter)))
        return float(model.policy.single_stack[0, row]) if row >= 0 else 0.0

    first, second, third = (
        HALF if up == down else Fraction(int(up < down))
        for up, down in ((weight(pair[0]), weight(pair[1])) for pair in world.features)
    )
    return first, second, third
