"""Walk through one example, by the reference's actions, deviations and random ones, and look at the states met."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import numpy as np

from lols.contract.checks.budget import Pace
from lols.contract.checks.findings import Coverage, Findings
from lols.contract.checks.futures import Futures
from lols.contract.checks.guards import WORK, guard_record
from lols.contract.checks.leaks import altered_truth
from lols.contract.checks.probe import BLIND, FailedError, Probe, Seen, some_of
from lols.contract.checks.teaching import Teaching
from lols.contract.examples import Examples
from lols.contract.hashing import MASK, mix
from lols.contract.space import Reference, SearchSpace

__all__ = ["SampleWalk"]

TOLERANCE = 1e-9

Place = tuple[int, bytes]  # a step and the state there


class SampleWalk:
    """Walks through one example."""

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference | None,
        examples: Examples,
        index: int,
        findings: Findings,
        seed: int,
        pace: Pace,
        coverage: Coverage,
    ):
        self.rng = np.random.default_rng(mix(seed, index) & MASK)
        self.probe = Probe(space, reference, examples, index, findings, pace)
        self.teaching = Teaching(self.probe)
        self.futures = Futures(self.probe, self.teaching, self.rng)
        other = altered_truth(examples, index, self.rng)
        self.other_truth = None if other is None else guard_record("y", other)
        self.pace, self.coverage = pace, coverage
        self.number = -1  # of the walk
        self.length = 1  # of the last walk, for choosing steps within the next one
        self.ended = False  # whether the last walk came to an end state
        self.looking = 0  # the work of looking at states from all sides
        self.most_choices = 1  # legal actions at a state
        self.looked_at: dict[Place, Seen] = {}
        self.prices: dict[tuple[Place, int], float] = {}
        live = space.sizes.live
        if live is not None and live > self.probe.state_size:
            message = f"is {live}, but the state has {self.probe.state_size} cells: live cells are the first of these"
            findings.add("Sizes.live", "live", message, index)

    def go(self) -> None:
        """Walk from the start state to an end state: the first time as the reference says, then elsewhere, too."""
        self.number, self.ended = self.number + 1, False
        self.coverage.examples += self.number == 0
        self.coverage.walks += 1
        chance = (1.0, 0.0, 0.5)[self.number % 3]
        deviation = -1 if self.number == 0 else int(self.rng.integers(self.length))
        with np.errstate(all="ignore"):  # integers wrap around in silence in compiled code, too
            with suppress(FailedError):  # reported where it happened
                self._go(chance, deviation)
            self.futures.compare()

    def _go(self, chance: float, deviation: int) -> None:
        probe, total = self.probe, 0.0
        rolled_out = int(self.rng.integers(self.length))
        s, passed = self._start(), None
        for t in itertools.count():
            probe.step, self.length = t, max(t, 1)
            closely = t == rolled_out or self.pace.due(t, self.number)
            legal = probe.answer("actions", s, twice=closely)
            choices = np.flatnonzero(legal)
            if t == 0 and not choices.size:
                probe.report("actions", "start", "allows nothing at the start state: leave such examples out")
                return
            if not choices.size:
                self.ended = True
                if passed is not None:  # which step is the last one is known only now
                    probe.step = t - 1
                    self.teaching.judge(self._look(*passed), passed[1])
                    probe.step = t
                self._finish(s, total)
                return
            if t >= probe.limit:
                self._too_long(s)
                return
            self.coverage.states_met += 1
            self.most_choices = max(self.most_choices, choices.size)
            passed = None if closely else (s, legal)
            seen = self._look(s, legal) if closely else self._listen(s) if chance else {}
            taught = self.teaching.judge(seen, legal)
            if t == rolled_out:
                self.teaching.compare_costs(s, legal, seen)
            a = int(self.rng.choice(choices))
            if taught is not None and t != deviation and self.rng.random() < chance:
                a = taught
            total += self._price(s, a, closely=closely)
            s = probe.answer("step", s, a, twice=closely)

    def _listen(self, s: np.ndarray) -> Seen:
        """What the reference alone says of a state, because the way depends on it."""
        self.probe.stream = int(self.rng.integers(1 << 62))
        return self.probe.taught(s)

    def _price(self, s: np.ndarray, a: int, *, closely: bool) -> float:
        """What the action taken adds to the loss; NaN where that is unknown."""
        probe, said, place = self.probe, np.array(np.nan), (self.probe.step, s.tobytes())
        if (place, a) in self.prices:
            return self.prices[place, a]
        with suppress(FailedError):
            if "action_features" in probe.functions and closely:
                probe.answer("action_features", s, a)
            if "cost" in probe.functions:
                said = probe.answer("cost", s, a, twice=closely)
        if closely:
            self.prices[place, a] = float(said)
        return float(said)

    def _keep_prices(self, place: Place, legal: np.ndarray, seen: Seen) -> None:
        """The actions that a look asked about need not be asked about again when they are taken."""
        actions = some_of(np.flatnonzero(legal)).tolist()
        prices = seen.get("cost", np.full(len(actions), np.nan))
        if prices is not None and seen.get("action_features", prices) is not None:
            self.prices |= {(place, a): price for a, price in zip(actions, prices.tolist(), strict=True)}

    def _start(self) -> np.ndarray:
        """The start state; it must be the same whatever truth was seen before."""
        probe, nothing = self.probe, np.zeros(self.probe.state_size, np.int32)
        probe.step = 0
        s = probe.answer("start", nothing)
        if self.other_truth is not None:
            probe.blurt(s, 0, self.other_truth)
            self._compare("start", s, probe.answer("start", nothing))
        return s

    def _look(self, s: np.ndarray, legal: np.ndarray) -> Seen:
        """What the functions say of a state; then change what they must not know, and see whether they notice."""
        probe, live, place = self.probe, self.probe.sizes.live, (self.probe.step, s.tobytes())
        self.coverage.states += 1
        if place in self.looked_at and not probe.random:
            return self.looked_at[place]
        before = WORK[0]
        probe.stream = int(self.rng.integers(1 << 62))
        a = int(self.rng.choice(np.flatnonzero(legal)))
        seen = self.looked_at[place] = probe.observe(s, legal, a, check=True)
        self._keep_prices(place, legal, seen)
        if self.other_truth is not None:
            probe.blurt(s, a, self.other_truth)
            again = probe.observe(s, legal, a)
            for name in (n for n in seen if n in BLIND):
                self._compare(name, seen[name], again[name])
        if live is not None and live < s.size:
            changed = s.copy()
            changed[live:] += 1 + self.rng.integers(0, 5, s.size - live).astype(np.int32)
            again = probe.observe(changed, legal, a)
            for name in _differing(seen, again):
                message = f"reads the state beyond its first {live} cells, its live ones: raise Sizes.live"
                if not probe.findings.has(name, "deterministic"):
                    probe.report(name, "live", message)
        self.futures.meet(s, seen)
        self.looking += WORK[0] - before
        return seen

    def _compare(self, name: str, before: Any, after: Any) -> None:
        found = self.probe.findings
        if _differing({name: before}, {name: after}) and not found.has(name, "deterministic"):
            message = "changes when only the truth `y` changes: another function hands the truth on, in a global; "
            self.probe.report(name, "leak", f"{message}compute it from `x` and `s` alone")

    def _finish(self, s: np.ndarray, total: float) -> None:
        """See that an end state has a loss, which costs add up to, and an output."""
        probe = self.probe
        try:
            state = s.copy()
            probe.space.output(probe.plain_x, state)
            if not np.array_equal(state, s):
                probe.report("output", "modifies", "changes the state: work on a copy")
        except Exception as error:
            message = f"fails at an end state with {type(error).__name__}: {error}: it must turn every end state into "
            probe.report("output", "fails", f"{message}a result, and leave `x` as it is")
        if "loss" in probe.functions:
            loss = float(probe.answer("loss", s))
            # without `cost`, or where it failed, the total is NaN and nothing is compared
            if abs(total - loss) > TOLERANCE * max(1.0, abs(loss)):
                message = f"adds up to {total:g} along the way, but `loss` is {loss:g} at the end"
                probe.report("cost", "sum", f"{message}: make the costs sum to the loss, or leave `cost` out")

    def _too_long(self, s: np.ndarray) -> None:
        """Tell a search without end from a size that is too small."""
        probe, limit = self.probe, self.probe.limit
        for t in range(limit, 10 * limit + 100):
            try:
                choices = np.flatnonzero(probe.ask("actions", s))
                if not choices.size:
                    probe.report("Sizes.steps", "steps", f"gives {limit}, but this search takes {t} steps: raise it")
                    return
                s = probe.ask("step", s, int(self.rng.choice(choices)))
            except Exception:  # beyond its sizes a space may do anything
                break
        message = f"the search goes on after Sizes.steps = {limit} steps"
        probe.report("step", "endless", f"{message}: let every step bring an end state nearer, or raise Sizes.steps")


def _differing(before: Seen, after: Seen) -> list[str]:
    """The functions that now say something else."""
    return [n for n, said in before.items() if said is not None and _bytes(said) != _bytes(after[n])]


def _bytes(said: np.ndarray | None) -> bytes | None:
    return None if said is None else said.tobytes()
