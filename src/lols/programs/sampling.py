"""Search at prediction time for programs: several samples of the learned policy, of which the loss keeps the best.

The samples are those of `lols.engine.sampling`, drawn with the same random numbers: a program and a search space with
the same features give the same results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from lols.engine.policy import draw_component
from lols.engine.sampling import draw_action, levels_of, start_action
from lols.engine.structures import COMPONENT, TIE
from lols.kernels.hashing import mix
from lols.programs.rolling import Following


class Sampling(Following):
    """Runs a program with the learned policy, greedily first, and then with draws from it."""

    def samples(
        self, x: Any, number: int, best_of: int, starts: int, temperature: float, seed: int
    ) -> Iterator[tuple[Any, float]]:
        """Result and loss of each sample for an object."""
        self._stakes: list[float] = []
        key = mix(mix(seed, TIE), number)
        for sample, level in enumerate(levels_of(best_of, starts)):
            if sample == starts:
                temperature *= sum(self._stakes) / max(len(self._stakes), 1)  # at stake in a step, by the greedy sample
            self._sample, self._starts, self._temperature = sample, starts, temperature * level
            self._own = mix(key, sample)
            yield self.result(x, number, truth=True, seed=seed)

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        scorer = self._scorer
        self._check_steps(at)
        allowed = self._choices.legal(legal)
        stream = mix(self._own, at)
        component = draw_component(scorer.policy.chances, mix(stream, COMPONENT))
        seen = scorer.encode(features() if callable(features) else features)
        a = scorer.choose(seen, allowed, component, mix(stream, TIE))
        if self._sample == 0:
            if len(allowed.actions) > 1:
                least, second = np.partition(scorer.costs[allowed.actions].astype(np.float64), 1)[:2].tolist()
                self._stakes.append(second - least)
        elif at == 0 and self._sample < self._starts:
            a = start_action(scorer.costs, allowed.mask, self._sample)
        elif self._temperature > 0.0:
            a = draw_action(scorer.costs, allowed.mask, self._temperature, stream)
        return self._names[a]


def best_sample(samples: Iterator[tuple[Any, float]]) -> tuple[Any, float]:
    """The result of least loss, the first of several."""
    best: tuple[Any, float] = (None, math.inf)
    for number, found in enumerate(samples):
        if number == 0 or found[1] < best[1]:
            best = found
    return best
