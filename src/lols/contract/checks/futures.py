"""States with equal keys must have equal futures: roll-outs that meet at such states are merged."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from lols.contract.checks.probe import Answers, Probe
from lols.contract.checks.reference import differ, roll_out

# What a policy looks at: if one of these differs, it may act differently at two states with one key.
VISIBLE = ("actions", "features", "items", "action_features")
FIX = "put what makes them differ into the key"

Met = tuple[int, np.ndarray]  # a step, and the state there


class Futures:
    """The states of one example by their keys, and pairs of different states with the same key."""

    def __init__(self, probe: Probe, rng: np.random.Generator):
        self.probe, self.rng = probe, rng
        self.first: dict[int, tuple[Met, Answers]] = {}
        self.pairs: list[tuple[Met, Met]] = []

    def note(self, s: np.ndarray, answers: Answers) -> None:
        """Take note of a state; if its key was met before, it must look like the first state with that key."""
        key, met = answers.get("key"), (self.probe.step, s)
        if key is None:
            return
        first, before = self.first.setdefault(int(key), (met, answers))
        if not np.array_equal(first[1], s):
            for name in VISIBLE:
                self._compare(name, before.get(name), answers.get(name), first[0], met[0])
            self.pairs.append((first, met))

    def compare(self) -> None:
        """Follow one of the pairs of the last walk to the end, by the same actions and by the reference."""
        if self.pairs and not self.probe.findings.has("key", "merges"):
            one, two = self.pairs[int(self.rng.integers(len(self.pairs)))]
            self.probe.step = two[0]
            with suppress(Exception):  # where a function fails, a walk reports it
                self._follow(one, two)
        self.pairs = []

    def _follow(self, one_met: Met, two_met: Met) -> None:
        (one_step, one), (two_step, two) = one_met, two_met
        probe, costs, totals = self.probe, "cost" in self.probe.functions, np.zeros(2)
        if probe.reference_functions and not probe.random:
            values = [roll_out(probe, s) for s in (one, two)]
            self._compare_costs("the reference finishes", values, one_step, two_step)
        for ahead in range(probe.limit + 1):
            legal = probe.ask("actions", one)
            self._compare("actions", legal, probe.ask("actions", two), one_step, two_step)
            if not legal.any() or probe.findings.has("key", "merges"):
                break
            for name in VISIBLE[1:3]:
                if name in probe.functions and probe.pace.due(ahead):
                    self._compare(name, probe.ask(name, one), probe.ask(name, two), one_step, two_step)
            a = int(self.rng.choice(np.flatnonzero(legal)))
            totals += [float(probe.ask("cost", s, a)) if costs else 0.0 for s in (one, two)]
            one, two = probe.ask("step", one, a), probe.ask("step", two, a)
        if "loss" in probe.functions:
            values = totals.tolist() if costs else [float(probe.ask("loss", s)) for s in (one, two)]
            self._compare_costs("the same actions follow", values, one_step, two_step)

    def _compare(self, name: str, one: np.ndarray | None, two: np.ndarray | None, one_step: int, two_step: int) -> None:
        if one is not None and two is not None and one.tobytes() != two.tobytes():
            what = "legal actions" if name == "actions" else name.replace("_", " ")
            message = f"is the same for two states (steps {one_step} and {two_step}) whose {what} differ, now or later"
            self.probe.report("key", "merges", f"{message}: {FIX}")

    def _compare_costs(self, how: str, values: list[float], one_step: int, two_step: int) -> None:
        if np.isfinite(values).all() and differ(values, np.abs(values).max()):
            what = "remaining cost" if "cost" in self.probe.functions else "final loss"
            message = f"is the same for two states (steps {one_step} and {two_step}) whose {what} differs when {how}"
            self.probe.report("key", "merges", f"{message} ({values[0]:g} and {values[1]:g}): {FIX}")
