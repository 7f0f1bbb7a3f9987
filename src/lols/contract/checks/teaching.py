"""What a reference says of a state: legal, of one mind, and worth what it claims."""

from __future__ import annotations

import numpy as np

from lols.contract.checks.probe import Probe, Seen, some_of

__all__ = ["Teaching"]

TOLERANCE = 1e-9


class Teaching:
    """The reference on one example."""

    def __init__(self, probe: Probe):
        self.probe = probe

    def judge(self, seen: Seen, legal: np.ndarray) -> int | None:
        """Report what is wrong with the reference's answers; the action it takes, unless that is illegal."""
        action, free, costs = (seen.get(f"Reference.{name}") for name in ("action", "free", "costs"))
        if action is not None:
            self._judge_action(int(action), legal)
        if free is not None:
            for a in np.flatnonzero(free & ~legal)[:1].tolist():
                message = f"marks action {a}, which `actions` does not allow there: mark legal actions only"
                self.probe.report("Reference.free", "illegal", message)
            if not free.any():
                message = "marks no action: wherever an action is legal, at least one must be free"
                self.probe.report("Reference.free", "nothing", message)
            if action is not None and not self.probe.random and 0 <= action < free.size and not free[action]:
                message = f"takes action {int(action)}, which `free` does not mark: let `free` mark it, too"
                self.probe.report("Reference.action", "not free", message)
        if costs is not None:
            self._judge_costs(free, costs, legal)
        return _move(seen, legal)

    def _judge_action(self, a: int, legal: np.ndarray) -> None:
        if not 0 <= a < legal.size:
            message = "which does not exist: actions are numbered from 0 to Sizes.actions - 1"
            self.probe.report("Reference.action", "illegal", f"takes action {a}, {message} = {legal.size - 1}")
        elif not legal[a]:
            message = f"takes action {a}, which `actions` does not allow there: allow it, or take another"
            self.probe.report("Reference.action", "illegal", message)

    def _judge_costs(self, free: np.ndarray | None, costs: np.ndarray, legal: np.ndarray) -> None:
        for a in np.flatnonzero(legal & ~np.isfinite(costs))[:1].tolist():
            message = f"says {costs[a]} for action {a}, which is legal: write a finite number for every legal action"
            self.probe.report("Reference.costs", "finite", message)
        good = costs[legal & free] if free is not None else costs[:0]
        if good.size and np.isfinite(good).all() and np.ptp(good) > TOLERANCE * max(1.0, np.abs(good).max()):
            message = f"says from {good.min():g} to {good.max():g} for the actions that `free` calls equally good: "
            self.probe.report("Reference.costs", "not equal", f"{message}make one of the two right")

    def compare_costs(self, s: np.ndarray, legal: np.ndarray, seen: Seen) -> None:
        """Compare closed-form costs with what rolling out the reference costs; they may differ by a constant."""
        costs = seen.get("Reference.costs")
        if costs is None or self.probe.random or not np.isfinite(costs[legal]).all():
            return
        best, choices = int(np.argmin(np.where(legal, costs, np.inf))), np.flatnonzero(legal)
        if self.probe.pace.sampled:
            choices = np.union1d(some_of(choices), best)
        rolled = np.array([self.complete(s, a) for a in choices.tolist()])
        if not np.isfinite(rolled).all():
            return
        claimed = costs[choices] - costs[best]
        actual = rolled - rolled[np.searchsorted(choices, best)]
        wrong = int(np.argmax(np.abs(claimed - actual)))
        if abs(claimed[wrong] - actual[wrong]) > TOLERANCE * max(1.0, np.abs(rolled).max()):
            message = (
                f"says that action {choices[wrong]} costs {claimed[wrong]:g} more than action {best}, but rolled out "
                f"with this reference it costs {actual[wrong]:g} more: correct the closed form, or leave `costs` out"
            )
            self.probe.report("Reference.costs", "rolled out", message)

    def complete(self, s: np.ndarray, a: int | None = None) -> float:
        """What it costs to take an action, if one is given, and let the reference finish; NaN where that cannot be."""
        probe, total = self.probe, 0.0
        if "loss" not in probe.functions:
            return float("nan")
        try:
            for _ in range(probe.limit + 1):
                legal = probe.ask("actions", s)
                if not legal.any():
                    return total if "cost" in probe.functions else float(probe.ask("loss", s))
                if a is None:
                    a = _move({name: probe.ask(name, s) for name in probe.teaching}, legal)
                if a is None:
                    break
                total += float(probe.ask("cost", s, a)) if "cost" in probe.functions else 0.0
                s, a = probe.ask("step", s, a), None
        except Exception:  # reported where a walk comes by
            pass
        return float("nan")


def _move(seen: Seen, legal: np.ndarray) -> int | None:
    """The action a reference takes, if it is legal: the one it names, or the first of its free or cheapest ones."""
    action, free, costs = (seen.get(f"Reference.{name}") for name in ("action", "free", "costs"))
    if action is not None:
        a = int(action)
    elif free is not None:
        a = int(np.argmax(free & legal))
    elif costs is not None and np.isfinite(costs[legal]).all():
        a = int(np.argmin(np.where(legal, costs, np.inf)))
    else:
        return None
    return a if 0 <= a < legal.size and legal[a] else None
