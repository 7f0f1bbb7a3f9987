"""The strategies that `lols.optimise` tries, and how much of an instance they look at."""

from __future__ import annotations

from typing import Any, NamedTuple


class Strategy(NamedTuple):
    """A way to train."""

    name: str
    algorithm: str
    margin: str
    options: dict[str, Any]


NAMES = {"aggrevate": "Reference roll-outs", "lols": "LOLS"}  # of algorithms, in sentences
STRATEGIES = tuple(
    Strategy(f"{name}, margin={margin!r}", algorithm, margin, options)
    for name, algorithm, options in (
        ("reference roll-outs", "aggrevate", {}),
        ('lols, beta="auto"', "lols", {"beta": "auto"}),
        ("lols, beta=0.5", "lols", {"beta": 0.5}),
    )
    for margin in ("cost", "weighted")
)


class SampleSizes(NamedTuple):
    """At how many random states of an instance training deviates, to how many actions; None for all."""

    sample_steps: int | None = None
    sample_actions: int | None = None

    def __str__(self) -> str:
        few = "one random state" if self.sample_steps == 1 else f"{self.sample_steps} random states"
        steps = "all states" if self.sample_steps is None else few
        return steps if self.sample_actions is None else f"{steps} and {self.sample_actions} of its actions"


def ladder(sample_steps: int | None, steps: float, actions: float) -> list[SampleSizes]:
    """Ways to look at an instance, each about four times the work of the one before, up to what is wanted.

    An instance has at most so many `steps` and `actions`.

    >>> [tuple(sampling) for sampling in ladder(None, 20, 8)]
    [(1, 2), (1, None), (4, None), (16, None), (None, None)]
    """
    first = 1 if sample_steps is None else sample_steps
    rungs = [SampleSizes(first, few) for few in (2, 8, 32, 128) if few < actions]
    if sample_steps is not None:
        return [*rungs, SampleSizes(sample_steps)]
    return [*rungs, *(SampleSizes(few) for few in (1, 4, 16, 64, 256, 1024) if few < steps), SampleSizes()]
