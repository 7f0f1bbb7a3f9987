"""Equal keys, equal futures: whether states that a `key` merges really go on alike."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from lols.contract.checks.probe import Probe, Seen
from lols.contract.checks.teaching import Teaching

__all__ = ["Futures"]

TOLERANCE = 1e-9

# What a policy looks at: where these differ, it may go different ways from two states with one key.
LOOKED_AT = ("actions", "features", "items", "action_features")
FIX = "put what makes them differ into the key"


class Futures:
    """The states of one example by their keys, and the pairs that a key merges."""

    def __init__(self, probe: Probe, teaching: Teaching, rng: np.random.Generator):
        self.probe, self.teaching, self.rng = probe, teaching, rng
        self.known: dict[int, tuple[np.ndarray, Seen, int]] = {}
        self.pairs: list[tuple[int, np.ndarray, int, np.ndarray]] = []

    def meet(self, s: np.ndarray, seen: Seen) -> None:
        """Take note of a state; if its key is known, it must look like the one that had the key first."""
        key = seen.get("key")
        if key is None:
            return
        first, looked, step = self.known.setdefault(int(key), (s, seen, self.probe.step))
        if not np.array_equal(first, s):
            for name in LOOKED_AT:
                self._alike(name, looked.get(name), seen.get(name), step, self.probe.step)
            self.pairs.append((step, first, self.probe.step, s))

    def compare(self) -> None:
        """Follow some merged pair of the last walk to the end, by the same actions and by the reference."""
        if self.pairs and not self.probe.findings.has("key", "merges"):
            one_step, one, two_step, two = self.pairs[int(self.rng.integers(len(self.pairs)))]
            self.probe.step = two_step
            with suppress(Exception):  # where a function fails, a walk reports it
                self._follow(one, two, one_step, two_step)
        self.pairs = []

    def _follow(self, one: np.ndarray, two: np.ndarray, one_step: int, two_step: int) -> None:
        probe, costs, totals = self.probe, "cost" in self.probe.functions, np.zeros(2)
        if probe.teaching and not probe.random:
            values = [self.teaching.complete(s) for s in (one, two)]
            self._worth("the reference finishes", values, one_step, two_step)
        for ahead in range(probe.limit + 1):
            legal = probe.ask("actions", one)
            self._alike("actions", legal, probe.ask("actions", two), one_step, two_step)
            if not legal.any() or probe.findings.has("key", "merges"):
                break
            for name in LOOKED_AT[1:3]:
                if name in probe.functions and probe.pace.due(ahead):
                    self._alike(name, probe.ask(name, one), probe.ask(name, two), one_step, two_step)
            a = int(self.rng.choice(np.flatnonzero(legal)))
            totals += [float(probe.ask("cost", s, a)) if costs else 0.0 for s in (one, two)]
            one, two = probe.ask("step", one, a), probe.ask("step", two, a)
        if "loss" in probe.functions:
            values = totals.tolist() if costs else [float(probe.ask("loss", s)) for s in (one, two)]
            self._worth("the same actions follow", values, one_step, two_step)

    def _alike(self, name: str, one: np.ndarray | None, two: np.ndarray | None, one_step: int, two_step: int) -> None:
        if one is not None and two is not None and one.tobytes() != two.tobytes():
            what = "legal actions" if name == "actions" else name.replace("_", " ")
            message = f"is the same for two states (steps {one_step} and {two_step}) whose {what} differ, now or later"
            self.probe.report("key", "merges", f"{message}: {FIX}")

    def _worth(self, how: str, values: list[float], one_step: int, two_step: int) -> None:
        if np.isfinite(values).all() and np.ptp(values) > TOLERANCE * max(1.0, np.abs(values).max()):
            what = "remaining cost" if "cost" in self.probe.functions else "final loss"
            message = f"is the same for two states (steps {one_step} and {two_step}) whose {what} differs when {how}"
            self.probe.report("key", "merges", f"{message} ({values[0]:g} and {values[1]:g}): {FIX}")
