"""What is said when a search goes wrong: which function, on which example, at which step, and what to do about it.

Kernels cannot make sentences: they leave a code and a place in a report, or an exception without a place. Then the
example is run again as plain Python, to name the function and the line.
"""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

import numpy as np

from lols.contract.user_frames import one_line, user_line
from lols.engine.structures import (
    AT_ACTION,
    AT_STEP,
    CODE,
    ILLEGAL_REFERENCE,
    LOSS_NOT_FINITE,
    NEGATIVE,
    NO_ACTIONS,
    NO_SUCH_ITEM,
    NOT_FINITE,
    NOTHING,
    TOO_MANY_FEATURES,
    TOO_MANY_ITEMS,
    TOO_MANY_STEPS,
    Scratch,
)
from lols.errors import LolsError, SpaceError

__all__ = ["explain", "not_compiled"]


def explain(driver: Any, error: Exception | None, scratch: Scratch, example: int, again: Any) -> LolsError:
    """Say which function went wrong, on which example, at which step; run it again as plain Python to find out."""
    code, step, action = (int(scratch.report[k]) for k in (CODE, AT_STEP, AT_ACTION))
    place = f"example {example}" + (f", step {step}" if step >= 0 else "")
    if code == 0 and error is not None:
        return SpaceError(_blame(driver, error, place, again))
    reason = {
        TOO_MANY_STEPS: f"the search goes on after {driver.examples.steps[example]} steps: `step` loops for ever, "
        "or Sizes.steps is too small",
        NO_ACTIONS: "`actions` allows nothing at the start state: leave such examples out",
        ILLEGAL_REFERENCE: f"the reference takes action {action}, which `actions` does not allow there"
        if action != NOTHING
        else "the reference has no legal action there",
        TOO_MANY_FEATURES: "`features` or `action_features` emits more than Sizes says: raise it",
        TOO_MANY_ITEMS: f"`items` looks at more than Sizes.items = {driver.space.sizes.items}: raise it",
        NO_SUCH_ITEM: f"`items` looks at item {action}, or in a role, that is not there",
        NOT_FINITE: f"`{_costly(driver)}` gives NaN or infinity: a dead end, or a mistake in it",
        LOSS_NOT_FINITE: "`loss` gives NaN or infinity: a dead end, or a mistake in it",
        NEGATIVE: "`loss` is negative: add a constant, so that the best result costs 0",
    }[code]
    return SpaceError(f"{place}: {reason}")


def _costly(driver: Any) -> str:
    names = [n for n in ("cost",) if n in driver.bound.functions] or ["loss"]
    if driver.bound_reference is not None and "costs" in driver.bound_reference.functions:
        names.append("Reference.costs")
    return "` or `".join(names)


def _blame(driver: Any, error: Exception, place: str, again: Any) -> str:
    """Name the user's function and line behind an error, if need be from a run as plain Python."""
    if driver.compiled:
        try:
            with np.errstate(all="ignore"):
                again()
        except Exception as found:
            error = found
    reference = driver.bound_reference.functions if driver.bound_reference is not None else {}
    for name, function in [*driver.bound.functions.items(), *reference.items()]:
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code is function.__code__:
                at = user_line(error, function.__code__)
                other = not at.endswith(f":{line})")
                via = f", called from line {line})" if other else ")"
                return f"{place}: `{name}` failed with {one_line(error)}{at[:-1]}{via}"
    if driver.compiled and not isinstance(error, ArithmeticError | LookupError):
        reason = not_compiled(driver, error, "")
        if reason:
            return reason
    fix = "lols.checks.check_space tells which"
    return f"{place}: a function of the space failed, or gave what it must not: {one_line(error)}; {fix}"


def not_compiled(driver: Any, error: Exception, otherwise: str | None = None) -> str:
    """Which function cannot be compiled, and why."""
    from lols.engine.diagnose import diagnose

    reference = driver.bound_reference.functions if driver.bound_reference is not None else {}
    with contextlib.suppress(Exception):
        found = diagnose(driver.bound.functions, reference, driver.examples, driver.space.sizes.actions)
        if found is not None:
            return found
    if otherwise is not None:
        return otherwise
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"a function of the space cannot be compiled: {lines[0]}. compiled=False runs it as plain Python"
