"""How often to explore: constant, decaying, or by the theory."""

from __future__ import annotations

import math
from collections.abc import Callable

from lols.errors import ConfigurationError


def theory_epsilon(rounds: int, actions: int, steps: int, policies: float) -> float:
    """The exploration of the paper's Corollary 2: min(1, (K T)^(2/3) (log(N |Π|) / N)^(1/3)).

    >>> round(theory_epsilon(10**6, 2, 3, 8), 4)
    0.083
    """
    if rounds < 1 or actions < 1 or steps < 1 or policies < 1:
        raise ConfigurationError("rounds, actions, steps and policies must be at least 1")
    return min(1.0, (actions * steps) ** (2 / 3) * ((math.log(rounds) + math.log(policies)) / rounds) ** (1 / 3))


def epsilon_schedule(epsilon: float | str, actions: int) -> Callable[[int], float]:
    """The probability of exploring in each round, from 0.

    Parameters
    ----------
    epsilon
        A number; `"decay:FROM:POWER"` for FROM / (n+1)^POWER; or `"theory:ROUNDS:STEPS:POLICIES"` for
        `theory_epsilon` with these numbers of rounds, steps and policies.
    actions
        The number of actions.

    Examples
    --------
    >>> epsilon_schedule(0.1, 2)(17), epsilon_schedule("decay:1:0.5", 2)(3)
    (0.1, 0.5)
    >>> round(epsilon_schedule("theory:1e6:3:8", actions=2)(0), 4)
    0.083

    """
    if isinstance(epsilon, str):
        kind, *rest = epsilon.split(":")
        try:
            numbers = [float(part) for part in rest]
        except ValueError:
            numbers = []
        if kind == "decay" and len(numbers) == 2 and numbers[0] > 0.0 and 0.0 <= numbers[1] <= 1.0:
            start, power = numbers
            return lambda n: min(1.0, start / (n + 1) ** power)
        if kind == "theory" and len(numbers) == 3 and all(1.0 <= number < math.inf for number in numbers):
            constant = theory_epsilon(int(numbers[0]), actions, int(numbers[1]), numbers[2])
            return lambda n: constant
        raise ConfigurationError(
            f"epsilon is '{epsilon}': give a number from 0 to 1, decay:FROM:POWER or theory:ROUNDS:STEPS:POLICIES"
        )
    if not 0.0 <= epsilon <= 1.0:
        raise ConfigurationError(f"epsilon is {epsilon}; it is a probability, from 0 to 1")
    return lambda n: float(epsilon)
