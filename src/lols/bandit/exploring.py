"""How often to explore: a constant, a decay, or what the theory says."""

from __future__ import annotations

import math
from collections.abc import Callable

from lols.errors import ConfigurationError

__all__ = ["epsilon_schedule", "theory_epsilon"]


def theory_epsilon(rounds: int, actions: int, steps: int, policies: float) -> float:
    """The exploration of the paper's Corollary 2: min(1, (K T)^(2/3) (log(N |Π|) / N)^(1/3)).

    >>> round(theory_epsilon(10**6, 2, 3, 8), 4)
    0.083
    """
    if rounds < 1 or actions < 1 or steps < 1 or policies < 1:
        raise ConfigurationError("rounds, actions, steps and policies must be at least 1")
    return min(1.0, (actions * steps) ** (2 / 3) * (math.log(rounds * policies) / rounds) ** (1 / 3))


def epsilon_schedule(epsilon: float | str) -> Callable[[int], float]:
    """The probability of exploring in each round, from 0: a number, or `"decay:FROM:POWER"` for FROM / (n+1)^POWER.

    >>> epsilon_schedule(0.1)(17), epsilon_schedule("decay:1:0.5")(3)
    (0.1, 0.5)
    """
    if isinstance(epsilon, str):
        kind, _, rest = epsilon.partition(":")
        try:
            start, power = (float(part) for part in rest.split(":"))
        except ValueError:
            kind = ""
        if kind != "decay" or not start > 0.0 or not 0.0 <= power <= 1.0:
            raise ConfigurationError(f"epsilon is '{epsilon}': give a number from 0 to 1, or decay:FROM:POWER")
        return lambda n: min(1.0, start / (n + 1) ** power)
    if not 0.0 <= epsilon <= 1.0:
        raise ConfigurationError(f"epsilon is {epsilon}; it is a probability, from 0 to 1")
    return lambda n: float(epsilon)
