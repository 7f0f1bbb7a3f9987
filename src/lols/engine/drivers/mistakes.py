"""Error messages of the drivers: which function failed, on which example, at which step, and how to fix it.

Kernels cannot build messages: they leave a code and a place in a report, or an exception without a place. Then the
example is run again as plain Python, to find the function and the line.
"""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

from lols.contract.features import FeatureError
from lols.contract.results import ResultError, checked_result, shown_name, with_advice
from lols.contract.state import own_function
from lols.contract.user_frames import user_line
from lols.engine.structures import (
    AT_ACTION,
    AT_STEP,
    BAD_ACTION_FEATURE,
    BAD_FEATURE,
    CODE,
    ILLEGAL_REFERENCE,
    LARGEST_COST,
    LOSS_NOT_FINITE,
    NEGATIVE,
    NO_ACTIONS,
    NO_SUCH_ITEM,
    NOT_FINITE,
    NOT_WHOLE,
    NOTHING,
    TOO_MANY_FEATURES,
    TOO_MANY_ITEMS,
    TOO_MANY_STEPS,
    Scratch,
)
from lols.errors import SpaceError, lines_of, one_line
from lols.kernels.arithmetic import as_compiled
from lols.kernels.kernel import CompilerError


def explain(driver: Any, error: Exception | None, scratch: Scratch, example: int, again: Any) -> Exception:
    """An error that names the function, the example and the step; `again` runs that example as plain Python."""
    if error is not None and is_compiler_error(error):
        return _explain_compiler(driver, error)
    code, step, action = (int(scratch.report[k]) for k in (CODE, AT_STEP, AT_ACTION))
    place = f"example {example}" + (f", step {step}" if step >= 0 else "")
    if code == 0 and error is not None:
        return SpaceError(_failed_function(driver, error, place, again))
    if code in (BAD_FEATURE, BAD_ACTION_FEATURE):
        name = "features" if code == BAD_FEATURE else "action_features"
        value = FeatureError(f"`{name}` emits NaN, infinity or more than 32-bit floats can hold as feature {action}")
        return SpaceError(_failed_function(driver, value, place, again))
    reason = {
        TOO_MANY_STEPS: f"the search goes on after {driver.examples.steps[example]} steps: `step` never reaches an end "
        "state, or Sizes.steps is too small",
        NO_ACTIONS: "`actions` allows nothing at the start state: leave such examples out",
        ILLEGAL_REFERENCE: f"the reference takes action {action}, which `actions` does not allow there"
        if action != NOTHING
        else "the reference has no legal action there",
        TOO_MANY_FEATURES: "`features` or `action_features` emits more than Sizes says: raise it",
        TOO_MANY_ITEMS: f"`items` looks at more than Sizes.items = {driver.space.sizes.items}: raise it",
        NO_SUCH_ITEM: f"`items` looks at item {action}, or in a role, that is not there",
        NOT_FINITE: f"`{_costly(driver)}` gives NaN or infinity, or more than {LARGEST_COST:g}: a dead end, or a "
        "mistake in it; if costs are so large, divide all of them by the same number",
        LOSS_NOT_FINITE: "`loss` gives NaN or infinity: a dead end, or a mistake in it",
        NEGATIVE: "`loss` is negative: add a constant, so that the best result costs 0",
        NOT_WHOLE: f"the reference gives {'NaN or infinity' if action == NOTHING else f'a fraction near {action}'} "
        "as an action: return a whole number",
    }[code]
    return SpaceError(f"{place}: {reason}")


def _costly(driver: Any) -> str:
    names = ["cost" if "cost" in driver.bound.functions else "loss"]
    if driver.bound_reference is not None and "costs" in driver.bound_reference.functions:
        names.append("Reference.costs")
    return "` or `".join(names)


def _failed_function(driver: Any, error: Exception, place: str, again: Any) -> str:
    """A message with the user's function and line behind an error, if necessary from a run as plain Python."""
    if driver.compiled:
        error = _error_of(again) or error
    functions = _functions(driver)
    for name, function in functions.items():
        own = own_function(function)
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code is own.__code__:
                at = user_line(error, own.__code__)
                other = not at.endswith(f":{line})")
                via = f", called from line {line})" if other else ")"
                if isinstance(error, FeatureError):
                    return f"{place}: `{name}` {error}{at[:-1]}{via}"
                return (
                    f"{place}: `{shown_name(name, own)}` failed with {with_advice(error, name, function)}{at[:-1]}{via}"
                )
    if isinstance(error, FeatureError):
        return f"{place}: {error}"
    error = _error_of(lambda: _with_checked_results(driver, again)) or error
    if isinstance(error, ResultError):
        return f"{place}: {error}"
    fix = "lols.checks.check_space finds out which"
    return f"{place}: a function of the space failed, or returned what it must not: {one_line(error)}; {fix}"


def _functions(driver: Any) -> dict[str, Any]:
    """The functions of a driver's space and reference, by name."""
    reference = driver.bound_reference.functions if driver.bound_reference is not None else {}
    return {**driver.bound.functions, **reference}


def _error_of(run: Any) -> Exception | None:
    """The error that plain Python ends with, if it does."""
    try:
        with as_compiled():
            run()
    except Exception as error:
        return error
    return None


def _with_checked_results(driver: Any, again: Any) -> None:
    """Run an example again, with functions that look at what the user's functions return."""
    bounds = [bound for bound in (driver.bound, driver.bound_reference) if bound is not None]
    kept = [bound.functions for bound in bounds]
    try:
        for bound in bounds:
            bound.functions = {name: checked_result(name, function) for name, function in bound.functions.items()}
        again()
    finally:
        for bound, functions in zip(bounds, kept, strict=True):
            bound.functions = functions


def is_compiler_error(error: Exception) -> bool:
    """Whether an error comes from compiling or loading a kernel, rather than from running it."""
    return isinstance(error, CompilerError) or type(error).__module__.startswith("numba")


def _explain_compiler(driver: Any, error: Exception) -> Exception:
    """An error that names the function that cannot be compiled, and why; the error itself if none is at fault."""
    if isinstance(error.__cause__, OSError | MemoryError | ImportError):
        return error
    reference = driver.bound_reference.functions if driver.bound_reference is not None else {}
    with contextlib.suppress(Exception):
        from lols.engine.diagnose import diagnose

        reason = diagnose(driver.bound.functions, reference, driver.examples, driver.examples.most_actions)
        if reason is not None:
            return SpaceError(reason)
    if isinstance(error, CompilerError):
        return error
    lines = lines_of(error)
    return SpaceError(f"the functions of the space cannot be compiled: {lines[0]}. compiled=False runs them as Python")
