"""The reference policy π^ref, the teacher, at a state: its costs, its equally good actions, its action."""

from __future__ import annotations

import numpy as np

from lols.engine.calls import free, names_action, reference_action, reference_costs
from lols.engine.structures import AT_ACTION, CODE, ILLEGAL_REFERENCE, NOT_FINITE, NOT_WHOLE, NOTHING
from lols.kernels.dual import dual, has, needs


@needs("reference", "costs")
def teacher_costs(search, here, s, out):
    """Write closed-form costs into `out`: NaN where the teacher gives none."""
    for a in range(out.size):
        out[a] = np.nan
    reference_costs(search.reference, here.x, here.y, s, out)


@needs("reference", "costs")
def mark_cheapest(search, here, s, legal):
    """Mark the actions of least cost in `teacher.free`."""
    teacher = search.scratch.teacher
    teacher_costs(search, here, s, teacher.costs)
    least = np.inf
    for a in range(legal.size):
        if legal[a]:
            if not np.isfinite(teacher.costs[a]):
                search.scratch.report[CODE] = NOT_FINITE
            least = min(least, teacher.costs[a])
    for a in range(legal.size):
        teacher.free[a] = legal[a] and teacher.costs[a] == least


FAR = float(1 << 62)


@dual
def near(number):
    """The whole number that a number is cut to; one that no action has for NaN, infinity and those beyond 64 bits."""
    return np.int64(number) if abs(np.float64(number)) <= FAR else np.int64(-FAR)


@dual
def named_action(search, here, s, stream, actions):
    """The number of the action that a reference names; -1 if it is not that of an action, which is reported."""
    teacher, report = search.scratch.teacher, search.scratch.report
    teacher.rng[0] = stream
    named = reference_action(search.reference, here.x, here.y, s, teacher.rng)
    a = near(named)
    if a == named and 0 <= a < actions:
        return a
    report[CODE], report[AT_ACTION] = ILLEGAL_REFERENCE if a == named else NOT_WHOLE, a
    return np.int64(-1)


@dual
def free_actions(search, here, s, legal, stream):
    """Mark the equally good actions in `teacher.free`."""
    reference, teacher, report = search.reference, search.scratch.teacher, search.scratch.report
    marked = teacher.free
    for a in range(legal.size):
        marked[a] = False
    if has(reference, "free"):
        free(reference, here.x, here.y, s, marked)
    elif has(reference, "action") and names_action(reference, here.x, here.y):
        a = named_action(search, here, s, stream, legal.size)
        if a >= 0:
            marked[a] = True
    else:
        mark_cheapest(search, here, s, legal)
    count = 0
    for a in range(legal.size):
        if marked[a] and not legal[a]:
            report[CODE], report[AT_ACTION] = ILLEGAL_REFERENCE, a
        count += marked[a]
    if count == 0 and report[CODE] == 0:
        report[CODE], report[AT_ACTION] = ILLEGAL_REFERENCE, NOTHING


@dual
def teacher_action(search, here, s, legal, stream):
    """The action in a roll-out: the one it names, or the first of its equally good ones; -1 on an error."""
    reference, teacher, report = search.reference, search.scratch.teacher, search.scratch.report
    if has(reference, "action") and names_action(reference, here.x, here.y):
        a = named_action(search, here, s, stream, legal.size)
        if a >= 0 and not legal[a]:
            report[CODE], report[AT_ACTION] = ILLEGAL_REFERENCE, a
            return np.int64(-1)
        return a
    free_actions(search, here, s, legal, stream)
    for a in range(legal.size):
        if teacher.free[a] and legal[a]:
            return np.int64(a)
    return np.int64(-1)
