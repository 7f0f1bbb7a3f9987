"""The paper's counterexamples (Figure 3) with exact numbers: what zero cost-sensitive regret does and does not promise.

Every world has two steps: from s1 to s2 or s3, and from there to one of four end states. Policies are bit vectors over
the features that name the actions; an action with its bit set is preferred to one without, ties are drawn at random.
All values are fractions, so the conclusions of Theorems 1 and 2 are computed rather than measured.
"""

# The first argument of a task's functions is an input, not an object.
# mypy: disable-error-code="attr-defined, arg-type, call-overload, index"
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from typing import NamedTuple

from lols.contract.features import emit, feature
from lols.contract.space import Example, Sizes
from lols.contract.task import Task

ROLL_INS = ("reference", "learned")
ROLL_OUTS = ("reference", "mixture", "learned")
HALF = Fraction(1, 2)

Policy = tuple[Fraction, Fraction, Fraction]
"""The probability of the first action at s1, s2 and s3."""


class CostSensitive(NamedTuple):
    """A cost-sensitive example: how likely it is made, the state it is made at, and the cost of either action."""

    chance: Fraction
    state: int
    costs: tuple[Fraction, Fraction]


@dataclass(frozen=True)
class SmallWorld:
    """Two steps, two actions each: states 0, 1 and 2 are the paper's s1, s2 and s3.

    Parameters
    ----------
    name
        Its part of Figure 3.
    features
        The features of the two actions at s1, at s2 and at s3: actions with the same feature cannot be told apart.
    losses
        The losses of the end states e1 and e2 (from s2), e3 and e4 (from s3).
    reference
        The reference's action, 0 or 1, at s1, s2 and s3.

    """

    name: str
    features: tuple[str, str, str]
    losses: tuple[Fraction, Fraction, Fraction, Fraction]
    reference: tuple[int, int, int]

    @property
    def reference_policy(self) -> Policy:
        """The reference as a policy, which need not be one of the bit vectors."""
        first, second, third = (Fraction(1 - a) for a in self.reference)
        return first, second, third

    def policy(self, bits: frozenset[str]) -> Policy:
        """The policy of a bit vector, given as the set of features that have weight.

        >>> [str(p) for p in IN_REFERENCE.policy(frozenset("bc"))]
        ['0', '1', '1/2']
        """
        first, second, third = (
            HALF if (pair[0] in bits) == (pair[1] in bits) else Fraction(int(pair[0] in bits)) for pair in self.features
        )
        return first, second, third

    def policies(self) -> list[Policy]:
        """All policies that bit vectors express, each once.

        >>> len(IN_REFERENCE.policies()), len(REPRESENTATION.policies()), len(out_reference().policies())
        (27, 9, 9)
        """
        names = sorted(set("".join(self.features)))
        subsets = chain.from_iterable(combinations(names, size) for size in range(len(names) + 1))
        return sorted({self.policy(frozenset(subset)) for subset in subsets})

    def worth(self, state: int, policy: Policy) -> Fraction:
        """The expected loss when a policy goes on from a state."""
        return _expected(policy[state], self.action_worths(state, policy))

    def action_worths(self, state: int, policy: Policy) -> tuple[Fraction, Fraction]:
        """The expected loss of either action at a state, a policy going on after it."""
        if state == 0:
            return self.worth(1, policy), self.worth(2, policy)
        return self.losses[2 * state - 2], self.losses[2 * state - 1]

    def loss(self, policy: Policy) -> Fraction:
        """J: the expected loss of a policy.

        >>> float(IN_REFERENCE.loss(IN_REFERENCE.policy(frozenset("bc"))))
        50.0
        """
        return self.worth(0, policy)

    def visits(self, policy: Policy) -> tuple[Fraction, Fraction, Fraction]:
        """How likely a policy comes to s1, s2 and s3."""
        return Fraction(1), policy[0], 1 - policy[0]

    def examples(self, learned: Policy, roll_in: str, roll_out: str, beta: Fraction = HALF) -> Iterator[CostSensitive]:
        """The cost-sensitive examples, in expectation, that roll-in and roll-out make while `learned` is the policy."""
        share = {"reference": Fraction(1), "mixture": Fraction(beta), "learned": Fraction(0)}[roll_out]
        visited = self.visits(self.reference_policy if roll_in == "reference" else learned)
        for state, chance in enumerate(visited):
            if chance:
                by_reference = self.action_worths(state, self.reference_policy)
                by_learned = self.action_worths(state, learned)
                up, down = (share * r + (1 - share) * w for r, w in zip(by_reference, by_learned, strict=True))
                least = min(up, down)
                yield CostSensitive(chance, state, (up - least, down - least))

    def cost_sensitive_regret(self, learned: Policy, roll_in: str, roll_out: str, beta: Fraction = HALF) -> Fraction:
        """Cost-sensitive regret per round of a learner that stays with a policy, to the best policy in hindsight."""
        made = list(self.examples(learned, roll_in, roll_out, beta))

        def cost(policy: Policy) -> Fraction:
            return sum((e.chance * _expected(policy[e.state], e.costs) for e in made), Fraction(0))

        return cost(learned) - min(cost(policy) for policy in self.policies())

    def zero_regret(self, roll_in: str, roll_out: str, beta: Fraction = HALF) -> list[Policy]:
        """The policies that a no-regret learner may stay with forever."""
        return [p for p in self.policies() if self.cost_sensitive_regret(p, roll_in, roll_out, beta) == 0]

    def worst_loss(self, roll_in: str, roll_out: str, beta: Fraction = HALF) -> Fraction:
        """The largest J among the policies without cost-sensitive regret."""
        return max(self.loss(policy) for policy in self.zero_regret(roll_in, roll_out, beta))

    def deviation_regret(self, policy: Policy) -> Fraction:
        """How much the best change of one decision on the policy's way improves its loss: 0 if locally optimal.

        >>> world = out_reference(); float(world.deviation_regret(world.policy(frozenset("ad"))))
        0.9
        """
        return max(
            chance * (self.worth(state, policy) - min(self.action_worths(state, policy)))
            for state, chance in enumerate(self.visits(policy))
        )


def _expected(first: Fraction, pair: tuple[Fraction, Fraction]) -> Fraction:
    return first * pair[0] + (1 - first) * pair[1]


def _losses(*values: Fraction | int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    first, second, third, fourth = (Fraction(v) for v in values)
    return first, second, third, fourth


IN_REFERENCE = SmallWorld("(a) in-reference", ("ab", "cd", "ef"), _losses(0, 10, 100, 0), (0, 0, 1))
"""Figure 3(a), π_in = π_out = π_ref: s3 is never seen in training, and under the reference it looks as good as s2."""

REPRESENTATION = SmallWorld("(b) representation-constrained", ("aa", "cd", "ef"), _losses(0, 10, 100, 0), (0, 0, 1))
"""Figure 3(b), π_in = π_ref: the actions at s1 have the same feature, so every policy comes to s3 half of the time."""

BLIND = SmallWorld("blind to the reference", ("ba", "ef", "dc"), _losses(2, 2, 3, 0), (1, 0, 1))
"""Not in the paper, for the cell of Table 1 that has no theorem: b is safe (2); a is better (0) if c follows, else 3.

A policy that takes b, and would take d after a, has no regret under its own roll-outs, though the reference reaches 0.
"""


def out_reference(epsilon: Fraction = Fraction(1, 10)) -> SmallWorld:
    """Figure 3(c), π_out = π_ref: s2 and s3 share their features, and the reference is wrong in both.

    >>> [str(loss) for loss in out_reference().losses]
    ['1', '9/10', '11/10', '0']
    """
    return SmallWorld("(c) out-reference", ("ab", "cd", "cd"), _losses(1, 1 - epsilon, 1 + epsilon, 0), (0, 0, 0))


WORLDS = (IN_REFERENCE, REPRESENTATION, out_reference(), BLIND)


class TwoSteps(Task):
    """The worlds as a task: actions have one feature each, so that the linear policies are the bit vectors.

    >>> import lols
    >>> lols.train(TwoSteps, [IN_REFERENCE], compiled=False).predict([IN_REFERENCE])
    ['ac']
    """

    sizes = Sizes(state=3, actions=2, features=0, action_features=1, steps=2)

    def encode(world):
        truth = {"losses": [float(loss) for loss in world.losses], "reference": list(world.reference)}
        return Example({"names": [ord(letter) for letter in "".join(world.features)]}, truth)

    def actions(x, s, legal):
        legal[:] = s[0] < 2

    def step(x, s, a):
        s[1 + s[0]] = a
        s[0] += 1

    def action_features(x, s, a, out):
        emit(out, feature(0, x.names[2 * (s[0] + s[1]) + a]))  # s[0] + s[1] is 0 for s1, 1 for s2, 2 for s3

    def loss(x, y, s):
        return y.losses[2 * s[1] + s[2]]

    def output(x, s):
        return chr(x.names[s[1]]) + chr(x.names[2 + 2 * s[1] + s[2]])

    def reference(x, y, s):
        return y.reference[s[0] + s[1]]
