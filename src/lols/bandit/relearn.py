"""Learn again from the objects in a log: with other features, another learner, or another version of lols."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lols.bandit.bandit import StructuredBandit
from lols.bandit.entries import Decision, Event, Log, Loss
from lols.bandit.off_policy import deviations, evaluate_policy
from lols.bandit.off_policy_estimates import Evaluated
from lols.errors import ConfigurationError, LolsError

Make = Callable[[str], StructuredBandit]  # a bandit for the log of this name


class Relearned(NamedTuple):
    """What became of a log."""

    decisions: int
    losses: int
    left_out: int  # decisions whose object the log does not hold
    evaluated: Evaluated | None  # of the policy before the decisions held out, on these; None if that is not possible
    kind: str  # "whole" for following the policy from start to end, "deviations" for one-step deviations, or why not
    digest: str  # of the policy


def relearn(old: Log, make: Make, path: str | os.PathLike[str], *, held_out: float = 0.1) -> Relearned:
    """Write a new log with the decisions and losses of another, and let a bandit learn from them.

    Decisions stay as they were made, with their chances; features are found anew from objects and actions. The policy
    that has learned from all but the last decisions is evaluated on these, before they are learned from, too.

    Parameters
    ----------
    old
        The log to learn from.
    make
        Returns the bandit for a log of a given name.
    path
        The new log; it must not exist. It is written under another name first: it is there when it is whole.
    held_out
        The share of decisions, the last ones, to evaluate the policy on.

    """
    path = Path(path)
    if not 0.0 <= held_out < 1.0:
        raise ConfigurationError(f"held_out is {held_out}; it is a share, from 0 on, below 1")
    if path.exists():
        raise ConfigurationError(f"{path}: exists already: give another file")
    unfinished = path.with_name(path.name + ".part")
    for name in _files(unfinished):
        name.unlink(missing_ok=True)
    try:
        with make(str(unfinished)) as bandit:
            if bandit.log.place():
                raise ConfigurationError("the bandit does not use the log that it is given: pass it on as `log`")
            result = _taken(old, bandit, held_out)
            bandit.snapshot()
        os.replace(unfinished, path)
    except BaseException:
        for name in _files(unfinished):
            with contextlib.suppress(OSError):
                name.unlink()
        raise
    return result


def _files(path: Path) -> list[Path]:
    return [path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", ".lock"))]


def _taken(old: Log, bandit: StructuredBandit, held_out: float) -> Relearned:
    total, left_out, losses = old.decisions(), 0, 0
    first_held = total - int(total * held_out)
    numbers: dict[int, int] = {}
    candidate, since = None, 0
    for entry in old.replay():
        if isinstance(entry, Decision):
            if entry.number == first_held:
                candidate, since = bandit.policy(), len(numbers)
            if entry.context is None:
                left_out += 1
                continue
            numbers[entry.number] = len(numbers)
            bandit.take_over(entry._replace(number=numbers[entry.number], seen=None))
        elif isinstance(entry, Loss) and bandit.log.find(entry.id) is not None:
            bandit.take_over(entry)
            losses += 1
        elif isinstance(entry, Event) and entry.kind == "active" and entry.value["number"] in numbers:
            bandit.take_over(entry._replace(value={"number": numbers[entry.value["number"]]}))
    if not numbers:
        raise LolsError("the log holds no objects: relearn needs decisions whose objects were JSON")
    evaluated, kind = None, "nothing was held out"
    if candidate is not None and since < len(numbers):
        for kind, evaluate in (("whole", evaluate_policy), ("deviations", deviations)):
            try:
                evaluated = evaluate(bandit.log, candidate, space=bandit.space, since=since, compiled=bandit.compiled)
                break
            except LolsError as error:
                kind = str(error)
    return Relearned(len(numbers), losses, left_out, evaluated, kind, bandit.policy().digest())
