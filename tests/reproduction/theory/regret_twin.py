"""Brute force for the exact regret: walks from the root, one policy after the other, and all policies of the class."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from lols.reproduction.theory.bandit_worlds import BanditWorld


class Twin:
    """The same values by following one policy after the other through the trees."""

    def __init__(self, world: BanditWorld, beta: float):
        self.world, self.beta, self.steps = world, beta, world.steps
        cells = world.contexts * world.states
        self.all = [np.array(p).reshape(world.contexts, world.states) for p in product((0, 1), repeat=cells)]

    def end(self, x: int, s: int, policy: np.ndarray) -> float:
        """The loss where a policy comes to an end state, from a state on."""
        while s < self.world.states:
            s = 2 * s + 1 + int(policy[x, s])
        return float(self.world.losses[x, s - self.world.states])

    def loss(self, policy: np.ndarray) -> float:
        return sum(self.end(x, 0, policy) for x in range(self.world.contexts)) / self.world.contexts

    def at(self, x: int, t: int, policy: np.ndarray) -> int:
        """The state that a policy comes to after t steps."""
        s = 0
        for _ in range(t):
            s = 2 * s + 1 + int(policy[x, s])
        return s

    def deviated(self, t: int, rolls_in: np.ndarray, acts: np.ndarray, rolls_out: np.ndarray) -> float:
        """E[Q(s, acts)], s being where `rolls_in` is after t steps: the way that the paper's algorithms take."""
        total = 0.0
        for x in range(self.world.contexts):
            s = self.at(x, t, rolls_in)
            total += self.end(x, 2 * s + 1 + int(acts[x, s]), rolls_out)
        return total / self.world.contexts

    def averaged(self, policies: Any, weights: Any, value: Any) -> float:
        return sum(w * value(p) for p, w in zip(policies, weights, strict=True))

    def local(self, policies: Any, weights: Any) -> float:
        """Σ_t (J - min_π E[Q(s, π)]) of the policy that is one of several."""
        total = 0.0
        for t in range(self.steps):
            best = min(self.averaged(policies, weights, partial(self.deviating, t, acts)) for acts in self.all)
            total += self.averaged(policies, weights, self.loss) - best
        return total

    def left(self, policies: Any, weights: Any, local: float) -> float:
        gain = self.averaged(policies, weights, self.loss) - self.loss(self.world.reference)
        return self.beta * gain + (1 - self.beta) * local

    def deviating(self, t: int, acts: np.ndarray, policy: np.ndarray) -> float:
        """E[Q of a policy (s, acts)], rolled in with itself."""
        return self.deviated(t, policy, acts, policy)

    def out(self, t: int, acts: np.ndarray, policy: np.ndarray) -> float:
        """E[Q of the mixture that rolls out (s, acts)]."""
        by_rules = self.deviated(t, policy, acts, self.world.reference)
        return self.beta * by_rules + (1 - self.beta) * self.deviating(t, acts, policy)

    def least(self, t: int, policy: np.ndarray) -> float:
        """E[β min_a Q of the rules (s, a) + (1 - β) min_a Q of the policy (s, a)]."""
        total = 0.0
        for x in range(self.world.contexts):
            s = self.at(x, t, policy)
            for share, rolls_out in ((self.beta, self.world.reference), (1 - self.beta, policy)):
                total += share * min(self.end(x, 2 * s + 1 + a, rolls_out) for a in (0, 1))
        return total / self.world.contexts

    def right(self, policies: Any, weights: Any) -> tuple[float, float]:
        """T δ_N and T δ_class."""
        steps = range(self.steps)
        least = sum(self.averaged(policies, weights, partial(self.least, t)) for t in steps)
        own = sum(w * self.out(t, p, p) for p, w in zip(policies, weights, strict=True) for t in steps)
        best = min(sum(self.averaged(policies, weights, partial(self.out, t, a)) for t in steps) for a in self.all)
        return own - least, best - least

    def exploring(self, policy: np.ndarray) -> float:
        """The expected loss of a round that explores."""
        both = [np.full_like(policy, a) for a in (0, 1)]
        return float(np.mean([self.out(t, acts, policy) for t in range(self.steps) for acts in both]))
