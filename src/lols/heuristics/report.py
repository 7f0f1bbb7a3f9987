"""What came of an optimisation: heuristic, learned policy and best of several samples on held-out instances."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

WIDTH = 110  # of sentences
COMPILING = 0.2  # of the time: more is mentioned
CLAIRVOYANT = (
    "The best of {} is chosen after the fact, by the true loss of each plan: it can only be had if the loss of a plan "
    "can be computed before acting, that is, if instances contain nothing that is unknown when deciding."
)


class Attempt(NamedTuple):
    """One strategy that was tried, and its mean loss on the instances that choose among them."""

    name: str
    instances: int
    passes: int
    seconds: float
    loss: float


class Comparison(NamedTuple):
    """The losses of a policy on held-out instances beside those of the heuristic, instance by instance."""

    name: str
    mean: float
    change: float  # in percent of the heuristic's mean loss; negative is better
    low: float  # a 95 % interval of the change, paired
    high: float
    better: int  # instances on which it is better than the heuristic
    worse: int
    note: str = ""  # what has to be known of it

    @classmethod
    def of(cls, name: str, losses: np.ndarray, heuristic: np.ndarray) -> Comparison:
        """Compare losses on the same instances.

        >>> Comparison.of("learned", np.array([1.0, 2.0, 2.0]), np.array([2.0, 2.0, 4.0])).change
        -37.5
        """
        difference, scale = losses - heuristic, 100.0 / max(float(heuristic.mean()), 1e-300)
        spread = 1.96 * float(difference.std(ddof=1)) / math.sqrt(losses.size) if losses.size > 1 else math.inf
        change = float(difference.mean())
        return cls(
            name=name,
            mean=float(losses.mean()),
            change=change * scale,
            low=(change - spread) * scale,
            high=(change + spread) * scale,
            better=int((difference < 0.0).sum()),
            worse=int((difference > 0.0).sum()),
        )


class OptimisationReport(NamedTuple):
    """What was tried, what was chosen, and how it compares with the heuristic on held-out instances."""

    attempts: Sequence[Attempt]
    chosen: str
    held_out: int
    rows: Sequence[Comparison]  # the heuristic first
    seconds: float
    kept_heuristic: bool
    compiling: float = 0.0  # of the seconds; the budget does not count them
    budget: float = 0.0  # seconds
    earlier: float = 0.0  # seconds that were spent on the policy from which this one went on
    interrupted: bool = False
    notes: Sequence[str] = ()  # what there was no time for

    def as_dict(self) -> dict[str, Any]:
        """All figures, for JSON; the loss of a strategy that was left out is None."""
        attempts = [a._asdict() | {"loss": None if math.isnan(a.loss) else a.loss} for a in self.attempts]
        rows = [row._asdict() for row in self.rows]
        return self._asdict() | {"attempts": attempts, "rows": rows, "notes": list(self.notes)}

    def __str__(self) -> str:
        """A table for the terminal."""
        lines = ["tried (mean loss on the instances that choose):"] if self.attempts else []
        lines += [
            f"  {a.name:<44} {a.loss:10.4g}  {a.instances:6,} instances x {a.passes:<3} {a.seconds:6.1f} s"
            if a.passes
            else f"  {a.name:<44}   {'cut short' if a.instances else 'left out: too slow for this budget'}"
            for a in self.attempts
        ]
        if self.compiling > COMPILING * self.seconds:
            lines.append(f"compiling took {self.compiling:.0f} s besides, which the budget does not count")
        if self.earlier:
            lines.append(f"went on from a policy on which {self.earlier:.0f} s had been spent")
        if self.interrupted:
            spent, given = self.seconds - self.compiling, f" of {self.budget:.0f}" if self.budget else ""
            lines.append(f"interrupted after {spent:.0f}{given} s: this is the best so far, from which resume goes on")
        for note in self.notes:
            lines += textwrap.wrap(note, WIDTH)
        lines += [f"chosen: {self.chosen or 'none'}", "", f"{self.held_out:,} held-out instances:"]
        lines.append(f"  {'':<24} {'mean loss':>10}  {'change':>8}  {'95 % interval':>18}  better / worse")
        for row in self.rows:
            text = f"  {row.name:<24} {row.mean:10.4g}"
            if row is not self.rows[0]:
                interval = f"{row.low:+.1f} to {row.high:+.1f} %"
                text += f"  {row.change:+7.1f}%  {interval:>18}  {row.better} / {row.worse}"
            lines.append(text)
        for row in self.rows:
            lines += textwrap.wrap(row.note, WIDTH, initial_indent="  ", subsequent_indent="  ")
        lines += ["", *textwrap.wrap(self.verdict, WIDTH)]
        if self.kept_heuristic and len(self.rows) > 2:
            lines.append("With samples, each is the better one of the heuristic's and the best sample.")
        return "\n".join(lines)

    @property
    def verdict(self) -> str:
        """What came of it, in a sentence or two."""
        if len(self.rows) < 2:
            return "No policy was learned: predictions are the heuristic's."
        heuristic, learned = self.rows[:2]
        beside = f"mean loss {learned.mean:.4g}, not {heuristic.mean:.4g}, on {self.held_out:,} held-out instances"
        if self.kept_heuristic:
            why = "The learned policy is not better than the heuristic here" if self.chosen else "No policy was learned"
            return f"{why} ({beside}): predictions are the heuristic's."
        if learned.high < 0.0:
            return f"The policy beats the heuristic: {beside} ({learned.change:+.0f} %)."
        return (
            f"The policy may be better than the heuristic: {beside} ({learned.change:+.1f} %). The interval contains "
            "0: more instances would show whether it is."
        )
