"""Brute force for Theorem 3 in small spaces: one walk after the other, in fractions, from the definitions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

from lols.datasets.small_spaces import SmallSpace

Table = list[int]


class SpaceTwin:
    """The same values by following policies from each start state to the end."""

    def __init__(self, space: SmallSpace, counts: list[int], beta: Fraction, tables: list[Table] | None = None):
        self.follow, self.losses = space.follow.tolist(), [Fraction(loss) for loss in space.losses.tolist()]
        start = [Fraction(share) for share in space.start.tolist()]
        self.start = [share / sum(start) for share in start]
        self.steps, self.actions = space.steps, range(space.actions)
        self.reference: Table = space.reference.tolist()
        everything = product(self.actions, repeat=len(self.follow))
        self.all = [list(p) for p in everything] if space.policies is None else space.policies.tolist()
        self.beta = beta
        self.averaged = [(p, Fraction(n, sum(counts))) for p, n in zip(tables or self.all, counts, strict=True) if n]

    def end(self, s: int, policy: Table) -> Fraction:
        while s < len(self.follow):
            s = self.follow[s][policy[s]]
        return self.losses[s - len(self.follow)]

    def q(self, s: int, a: int, policy: Table) -> Fraction:
        """Q: an action, and a policy after it."""
        return self.end(self.follow[s][a], policy)

    def at(self, x: int, t: int, policy: Table) -> int:
        for _ in range(t):
            x = self.follow[x][policy[x]]
        return x

    def mean(self, t: int, policy: Table, value: Callable[[int], Fraction]) -> Fraction:
        """The mean of a value of states over where a policy is after t steps."""
        return sum((share * value(self.at(x, t, policy)) for x, share in enumerate(self.start)), Fraction(0))

    def loss(self, policy: Table) -> Fraction:
        return self.mean(0, policy, lambda s: self.end(s, policy))

    def out(self, s: int, a: int, policy: Table) -> Fraction:
        """Q of the mixture that rolls out."""
        return self.beta * self.q(s, a, self.reference) + (1 - self.beta) * self.q(s, a, policy)

    def over(self, value: Callable[[int, Table], Fraction]) -> Fraction:
        """Σ_t of the mean over averaged policies of a value of step and policy."""
        return sum((w * value(t, p) for t in range(self.steps) for p, w in self.averaged), Fraction(0))

    def left(self) -> Fraction:
        return self.beta * self.to_reference() + (1 - self.beta) * self.to_deviations()

    def exploring(self, policy: Table) -> Fraction:
        """The expected loss of a round of Algorithm 2 that explores: one uniform deviation at a uniform step."""
        uniform = [
            self.mean(t, policy, lambda s, a=a: self.out(s, a, policy))  # type: ignore[misc]
            for t in range(self.steps)
            for a in self.actions
        ]
        return sum(uniform, Fraction(0)) / len(uniform)

    def to_reference(self) -> Fraction:
        return sum((w * self.loss(p) for p, w in self.averaged), Fraction(0)) - self.loss(self.reference)

    def to_deviations(self) -> Fraction:
        """Σ_t (J - min_π E[Q(s, π)])."""
        best = Fraction(0)
        for t in range(self.steps):
            best += min(
                sum(w * self.mean(t, p, lambda s, d=d, p=p: self.q(s, d[s], p)) for p, w in self.averaged)  # type: ignore[misc]
                for d in self.all
            )
        return self.over(lambda t, p: self.loss(p)) - best

    def each(self) -> Fraction:
        """The same with every policy's own best deviations."""
        return self.over(
            lambda t, p: self.loss(p) - min(self.mean(t, p, lambda s, d=d: self.q(s, d[s], p)) for d in self.all)  # type: ignore[misc]
        )

    def of_minima(self) -> Fraction:
        b = self.beta
        return self.over(
            lambda t, p: self.mean(
                t,
                p,
                lambda s: (
                    b * min(self.q(s, a, self.reference) for a in self.actions)
                    + (1 - b) * min(self.q(s, a, p) for a in self.actions)
                ),
            )
        )

    def full(self) -> Fraction:
        """T δ_N."""
        return self.over(lambda t, p: self.mean(t, p, lambda s: self.out(s, p[s], p))) - self.of_minima()

    def of_class(self) -> Fraction:
        """T δ_class."""
        fixed = [self.over(lambda t, p, d=d: self.mean(t, p, lambda s: self.out(s, d[s], p))) for d in self.all]  # type: ignore[misc]
        return min(fixed) - self.of_minima()

    def gap(self) -> Fraction:
        average = self.over(lambda t, p: self.mean(t, p, lambda s: min(self.out(s, a, p) for a in self.actions)))
        return average - self.of_minima()

    def costs(self, current: Table, other: Table) -> Fraction:
        """A round's expected cost of a policy while another one is current."""
        return sum(
            (self.mean(t, current, lambda s: self.out(s, other[s], current)) for t in range(self.steps)), Fraction(0)
        )
