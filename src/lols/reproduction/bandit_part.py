"""The structured bandit (section 5): simulations in worlds, and how its exact regret falls with the rounds."""

from __future__ import annotations

import statistics
from typing import Any

from lols.reproduction.runner import Work

__all__ = ["MARK", "REGRET", "bandit_work", "regret_curve", "simulated"]

MARK = "bandit "
REGRET = "bandit regret"
LAYOUT = {True: 4_000, False: 20_000}  # rounds, quick or not
TAGGING = 20_000
ROUNDS = {True: (1_000, 3_000, 10_000), False: (1_000, 10_000, 100_000)}
SEEDS = {True: 2, False: 4}
HELD_OUT = {True: 300, False: None}
BETA = 0.5
SLOPE = -1 / 3  # Corollary 2: the regret falls at least as the third root of the rounds


def bandit_work(quick: bool, seeds: int, data: str | None) -> list[Work]:
    """What there is to do; `data` is a folder with the EWT treebank, for tagging."""
    work = [Work("bandit layout", simulated, ("layout", LAYOUT[quick], seeds, HELD_OUT[quick], None, not quick))]
    if not quick:
        work.append(Work("bandit tagging", simulated, ("tagging", TAGGING, seeds, None, data)))
    return [*work, Work(REGRET, regret_curve, (ROUNDS[quick], SEEDS[quick]))]


def simulated(
    world: str, rounds: int, seeds: int, held_out: int | None, data: str | None, full_information: bool = True
) -> dict[str, Any]:
    """What `lols bandit simulate` gives; without a learner that sees the truth there is less to compile."""
    from lols.bandit.worlds.outcome import summarise
    from lols.bandit.worlds.simulate import simulate_seeds
    from lols.bandit.worlds.world import WorldSpec

    spec = WorldSpec(world, data, held_out=held_out)
    found = summarise(simulate_seeds(spec, {}, rounds, range(seeds), jobs=1, full_information=full_information))
    command = f"lols bandit simulate {world} --rounds {rounds} --seeds {seeds}"
    command += "" if held_out is None else f" --held-out {held_out}"
    return {**found, "command": command + ("" if full_information else " --no-full-information")}


def regret_curve(rounds: tuple[int, ...], seeds: int, compiled: bool = True) -> dict[str, Any]:
    """The left side of Theorem 3 for the bandit, computed exactly, and its slope on logarithmic scales.

    >>> found = regret_curve((50, 200), 2, False)
    >>> found["rounds"], len(found["values"][0])
    ([50, 200], 2)
    """
    from lols.reproduction.theory.bandit_regret import log_log_slope, run_sides
    from lols.reproduction.theory.runs import run_algorithm2
    from lols.reproduction.theory.small_spaces import ladder_space

    space = ladder_space()
    values = []
    for n in rounds:
        runs = (run_algorithm2(space, n, seed=seed, beta=BETA, compiled=compiled) for seed in range(seeds))
        values.append([float(run_sides(space, lives, BETA).left) for lives in runs])
    slope = log_log_slope(rounds, values)
    return {
        "rounds": list(rounds),
        "seeds": list(range(seeds)),
        "values": values,
        "means": [statistics.fmean(v) for v in values],
        "slope": {name: float(value) for name, value in slope._asdict().items()},
        "bound": SLOPE,
    }
