"""Walks through one example, by the reference's actions, deviations and random actions, and checks at its states."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import numpy as np

from lols.contract.checks.findings import Coverage
from lols.contract.checks.futures import Futures
from lols.contract.checks.guards import WORK, guard_record
from lols.contract.checks.leaks import altered_truth
from lols.contract.checks.probe import WITHOUT_TRUTH, Answers, FailedError, Probe, some_of
from lols.contract.checks.reference import check_reference, compare_costs, differ
from lols.contract.examples import Examples
from lols.kernels.arithmetic import as_compiled
from lols.kernels.hashing import MASK, mix

Place = tuple[int, bytes]  # a step and the state there


class SampleWalk:
    """Walks through one example."""

    def __init__(self, probe: Probe, examples: Examples, seed: int, coverage: Coverage):
        self.rng = np.random.default_rng(mix(seed, probe.index) & MASK)
        self.probe = probe
        self.futures = Futures(probe, self.rng)
        other = altered_truth(examples, probe.index, self.rng)
        self.other_truth = None if other is None else guard_record("y", other)
        self.pace, self.coverage = probe.pace, coverage
        self.number = -1  # of the walk
        self.length = 1  # of the last walk, for choosing steps within the next one
        self.ended = False  # whether the last walk reached an end state
        self.examining = 0  # the work spent on examining states
        self.most_choices = 1  # legal actions at a state
        self.examined: dict[Place, Answers] = {}
        self.costs: dict[tuple[Place, int], float] = {}
        live = probe.sizes.live
        if live is not None and live > self.probe.state_size:
            message = f"is {live}, but the state has {self.probe.state_size} cells: live cells are the first of these"
            probe.findings.add("Sizes.live", "live", message, probe.index)

    def go(self) -> None:
        """Walk from the start state to an end state: the first time by the reference's actions, then by others, too."""
        self.number, self.ended = self.number + 1, False
        self.coverage.examples += self.number == 0
        self.coverage.walks += 1
        chance = (1.0, 0.0, 0.5)[self.number % 3]
        deviation = -1 if self.number == 0 else int(self.rng.integers(self.length))
        with as_compiled():
            with suppress(FailedError):  # reported where it happened
                self._go(chance, deviation)
            self.futures.compare()

    def _go(self, chance: float, deviation: int) -> None:
        probe, total = self.probe, 0.0
        rolled_out = int(self.rng.integers(self.length))
        s, unexamined = self._start(), None
        for t in itertools.count():
            probe.step, self.length = t, max(t, 1)
            closely = t == rolled_out or self.pace.due(t, self.number)
            legal = probe.answer("actions", s, twice=closely)
            choices = np.flatnonzero(legal)
            if t == 0 and not choices.size and probe.limit:
                probe.report("actions", "start", "allows nothing at the start state: leave such examples out")
                return
            if not choices.size:
                self.ended = True
                if unexamined is not None:  # the last state before the end is always examined
                    probe.step = t - 1
                    check_reference(probe, self._examine(*unexamined), unexamined[1])
                    probe.step = t
                self._finish(s, total)
                return
            if t >= probe.limit:
                self._too_long(s)
                return
            self.coverage.states_met += 1
            self.most_choices = max(self.most_choices, choices.size)
            unexamined = None if closely else (s, legal)
            answers = self._examine(s, legal) if closely else self._ask_reference(s) if chance else {}
            reference_action = check_reference(probe, answers, legal)
            if t == rolled_out:
                compare_costs(probe, s, legal, answers)
            a = int(self.rng.choice(choices))
            if reference_action is not None and t != deviation and self.rng.random() < chance:
                a = reference_action
            total += self._cost(s, a, closely=closely)
            s = probe.answer("step", s, a, twice=closely)

    def _ask_reference(self, s: np.ndarray) -> Answers:
        """The answers of the reference alone, which the walk needs in order to go on."""
        self.probe.stream = int(self.rng.integers(1 << 62))
        return self.probe.ask_reference(s)

    def _cost(self, s: np.ndarray, a: int, *, closely: bool) -> float:
        """What the action taken adds to the loss; NaN if that is unknown."""
        probe, cost, place = self.probe, np.array(np.nan), (self.probe.step, s.tobytes())
        if (place, a) in self.costs:
            return self.costs[place, a]
        with suppress(FailedError):
            if "action_features" in probe.functions and closely:
                probe.answer("action_features", s, a)
            if "cost" in probe.functions:
                cost = probe.answer("cost", s, a, twice=closely)
        if closely:
            self.costs[place, a] = float(cost)
        return float(cost)

    def _keep_costs(self, place: Place, legal: np.ndarray, answers: Answers) -> None:
        """Keep the costs of the actions that were asked about, in case one of them is taken."""
        actions = some_of(np.flatnonzero(legal)).tolist()
        costs = answers.get("cost", np.full(len(actions), np.nan))
        if costs is not None and answers.get("action_features", costs) is not None:
            self.costs |= {(place, a): cost for a, cost in zip(actions, costs.tolist(), strict=True)}

    def _start(self) -> np.ndarray:
        """The start state, which must not depend on the truth that other functions saw before."""
        probe, nothing = self.probe, np.zeros(self.probe.state_size, np.int32)
        probe.step = 0
        s = probe.answer("start", nothing)
        if self.other_truth is not None:
            probe.show_truth(s, 0, self.other_truth)
            self._compare("start", s, probe.answer("start", nothing))
        return s

    def _examine(self, s: np.ndarray, legal: np.ndarray) -> Answers:
        """Ask all functions about a state; then change what they must not know, and see whether the answers change."""
        probe, live, place = self.probe, self.probe.sizes.live, (self.probe.step, s.tobytes())
        self.coverage.states += 1
        if place in self.examined and not probe.random:
            return self.examined[place]
        before = WORK[0]
        probe.stream = int(self.rng.integers(1 << 62))
        a = int(self.rng.choice(np.flatnonzero(legal)))
        answers = self.examined[place] = probe.ask_all(s, legal, a, check=True)
        self._keep_costs(place, legal, answers)
        if self.other_truth is not None:
            probe.show_truth(s, a, self.other_truth)
            again = probe.ask_all(s, legal, a)
            for name in (n for n in answers if n in WITHOUT_TRUTH):
                self._compare(name, answers[name], again[name])
        if live is not None and live < s.size:
            changed = s.copy()
            changed[live:] += 1 + self.rng.integers(0, 5, s.size - live).astype(np.int32)
            again = probe.ask_all(changed, legal, a)
            for name in _differing(answers, again):
                message = f"reads the state beyond its first {live} cells, its live ones: raise Sizes.live"
                if not probe.findings.has(name, "deterministic"):
                    probe.report(name, "live", message)
        self.futures.note(s, answers)
        self.examining += WORK[0] - before
        return answers

    def _compare(self, name: str, before: Any, after: Any) -> None:
        if _differing({name: before}, {name: after}) and not self.probe.findings.has(name, "deterministic"):
            message = "changes when only the truth `y` changes: another function hands the truth on, in a global; "
            self.probe.report(name, "leak", f"{message}compute it from `x` and `s` alone")

    def _finish(self, s: np.ndarray, total: float) -> None:
        """Check that an end state has an output and a loss, and that the costs add up to the loss."""
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
            if differ([total, loss], abs(loss)):  # without `cost`, or if it failed, the total is NaN: no difference
                message = f"adds up to {total:g} along the way, but `loss` is {loss:g} at the end"
                probe.report("cost", "sum", f"{message}: make the costs sum to the loss, or leave `cost` out")

    def _too_long(self, s: np.ndarray) -> None:
        """Distinguish an endless search from a Sizes.steps that is too small."""
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


def _differing(before: Answers, after: Answers) -> list[str]:
    """The functions whose answers have changed."""
    return [n for n, answer in before.items() if answer is not None and _bytes(answer) != _bytes(after[n])]


def _bytes(answer: np.ndarray | None) -> bytes | None:
    return None if answer is None else answer.tobytes()
