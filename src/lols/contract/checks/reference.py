"""Checks of a reference: its actions are legal, its functions agree, and its costs are those of its roll-outs."""

from __future__ import annotations

import numpy as np

from lols.contract.checks.probe import Answers, Probe, some_of

TOLERANCE = 1e-9


def check_reference(probe: Probe, answers: Answers, legal: np.ndarray) -> int | None:
    """Report what is wrong with the reference's answers; the action that it takes, unless that is illegal."""
    report = probe.report
    action, free, costs = (answers.get(f"Reference.{name}") for name in ("action", "free", "costs"))
    if action is not None:
        a = int(action)
        if not 0 <= a < legal.size:
            message = "which does not exist: actions are numbered from 0 to Sizes.actions - 1"
            report("Reference.action", "illegal", f"takes action {a}, {message} = {legal.size - 1}")
        elif not legal[a]:
            message = f"takes action {a}, which `actions` does not allow there: allow it, or take another"
            report("Reference.action", "illegal", message)
    if free is not None:
        for a in np.flatnonzero(free & ~legal)[:1].tolist():
            message = f"marks action {a}, which `actions` does not allow there: mark legal actions only"
            report("Reference.free", "illegal", message)
        if not free.any():
            message = "marks no action: wherever an action is legal, at least one must be free"
            report("Reference.free", "nothing", message)
        if action is not None and not probe.random and 0 <= action < free.size and not free[action]:
            message = f"takes action {int(action)}, which `free` does not mark: let `free` mark it, too"
            report("Reference.action", "not free", message)
    if costs is not None:
        _check_costs(probe, free, costs, legal)
    return chosen_action(answers, legal)


def _check_costs(probe: Probe, free: np.ndarray | None, costs: np.ndarray, legal: np.ndarray) -> None:
    for a in np.flatnonzero(legal & ~np.isfinite(costs))[:1].tolist():
        message = f"says {costs[a]} for action {a}, which is legal: write a finite number for every legal action"
        probe.report("Reference.costs", "finite", message)
    good = costs[legal & free] if free is not None else costs[:0]
    if good.size and np.isfinite(good).all() and differ(good, np.abs(good).max()):
        message = f"says from {good.min():g} to {good.max():g} for the actions that `free` calls equally good: "
        probe.report("Reference.costs", "not equal", f"{message}make one of the two right")


def compare_costs(probe: Probe, s: np.ndarray, legal: np.ndarray, answers: Answers) -> None:
    """Compare closed-form costs with those of roll-outs with the reference; they may differ by a constant."""
    costs = answers.get("Reference.costs")
    if costs is None or probe.random or not np.isfinite(costs[legal]).all():
        return
    best, choices = int(np.argmin(np.where(legal, costs, np.inf))), np.flatnonzero(legal)
    if probe.pace.sampled:
        choices = np.union1d(some_of(choices), best)
    rolled = np.array([roll_out(probe, s, a) for a in choices.tolist()])
    if not np.isfinite(rolled).all():
        return
    claimed = costs[choices] - costs[best]
    actual = rolled - rolled[np.searchsorted(choices, best)]
    worst = int(np.argmax(np.abs(claimed - actual)))
    if differ([claimed[worst], actual[worst]], np.abs(rolled).max()):
        message = (
            f"says that action {choices[worst]} costs {claimed[worst]:g} more than action {best}, but rolled out "
            f"with this reference it costs {actual[worst]:g} more: correct the closed form, or leave `costs` out"
        )
        probe.report("Reference.costs", "rolled out", message)


def roll_out(probe: Probe, s: np.ndarray, a: int | None = None) -> float:
    """The cost of taking an action, if one is given, and following the reference to the end; NaN if that fails."""
    total = 0.0
    if "loss" not in probe.functions:
        return float("nan")
    try:
        for _ in range(probe.limit + 1):
            legal = probe.ask("actions", s)
            if not legal.any():
                return total if "cost" in probe.functions else float(probe.ask("loss", s))
            if a is None:
                a = chosen_action({name: probe.ask(name, s) for name in probe.reference_functions}, legal)
            if a is None:
                break
            total += float(probe.ask("cost", s, a)) if "cost" in probe.functions else 0.0
            s, a = probe.ask("step", s, a), None
    except Exception:  # reported when a walk comes to that state
        pass
    return float("nan")


def chosen_action(answers: Answers, legal: np.ndarray) -> int | None:
    """The action that a reference takes, if it is legal: its `action`, or the first of its free or cheapest ones."""
    action, free, costs = (answers.get(f"Reference.{name}") for name in ("action", "free", "costs"))
    if action is not None:
        a = int(action)
    elif free is not None:
        a = int(np.argmax(free & legal))
    elif costs is not None and np.isfinite(costs[legal]).all():
        a = int(np.argmin(np.where(legal, costs, np.inf)))
    else:
        return None
    return a if 0 <= a < legal.size and legal[a] else None


def differ(values: list[float] | np.ndarray, scale: float) -> bool:
    """Whether numbers differ by more than rounding, relative to numbers of this size.

    >>> differ([1.0, 1.0 + 1e-12], 1.0), differ([1.0, 1.1], 1.0)
    (False, True)
    """
    return bool(np.ptp(values) > TOLERANCE * max(1.0, scale))
