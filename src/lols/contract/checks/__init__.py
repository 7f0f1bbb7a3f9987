"""Checks whether a search space keeps the contract: runs its functions as plain Python and describes what is wrong.

A mistake in a space often shows as a poor model only, far from its cause. These checks walk through the space, examine
the states on the way, and name the function, the example, the step and the fix. For a large task they examine a sample,
and say so. Nothing is compiled, and Numba is not imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from lols.contract.checks.budget import Budget
from lols.contract.checks.findings import Coverage, Finding, Findings, Report
from lols.contract.checks.guards import SpentError
from lols.contract.checks.leaks import find_copied_truth
from lols.contract.checks.plan import MOST_EXAMPLES, make_plan
from lols.contract.checks.probe import Probe
from lols.contract.checks.walk import SampleWalk
from lols.contract.examples import Examples
from lols.contract.frames import as_objects
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space, as_teacher
from lols.errors import ConfigurationError, SpaceError

__all__ = ["Coverage", "Finding", "Report", "assert_space", "check_space"]

# At most this many objects are encoded, in this share of the time.
MOST_ENCODED = 10_000
ENCODING = 0.2


def check_space(
    space: SearchSpace | Task | type[Task],
    examples: Examples | Iterable[Any],
    reference: Reference | None = None,
    *,
    seed: int = 0,
    rollouts: int = 20,
    seconds: float = 5.0,
    thorough: bool = False,
) -> Report:
    """Walk through a search space and report what breaks the contract; an empty list means that nothing was found.

    The list has a `summary`, which says how many examples, walks and states were examined, and the same numbers as its
    `coverage`. A small task is examined completely. If that would take longer than `seconds`, a sample is examined:
    fewer examples (always including the longest), fewer walks through them, and fewer states on each walk, spread
    evenly. At the other states, only the functions that the walk needs are called: `actions`, `step`, `cost` and the
    reference.

    Parameters
    ----------
    space
        The space to check: a `SearchSpace` or a `Task`.
    examples
        The user's objects, or `Examples` of this space. A few short ones are enough: of a larger set, 25 are examined,
        from the shortest to the longest. Without a truth, `loss` and `cost` are not checked.
    reference
        The reference to check; by default the task's own, if it has one.
    seed
        Seed of the random actions; the same seed gives the same findings.
    rollouts
        Walks through each example: first along the reference's actions, then with a deviation, at random, and mixed.
    seconds
        Approximate time limit; most large tasks take half of it. What is sampled depends on how much the functions read
        and write, not on the clock, so that it is the same on every machine. The clock cuts the check short only if
        encoding, or something else that functions do, is slow.
    thorough
        Whether to examine every state of all walks, however long it takes.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_space
    >>> space, data = tagging_space(labels=3), [{"words": [4, 5, 4], "tags": [0, 2, 0]}]
    >>> lols.checks.check_space(space, data)
    []
    >>> lols.checks.check_space(space, data).summary
    'looked at 1 of 1 examples, on 20 of 20 walks, at 60 of 60 states'
    >>> off_by_one = lols.Reference(action=lambda x, y, s: y.tags[s[0]] + 1)
    >>> for finding in lols.checks.check_space(space, data, off_by_one):
    ...     print(finding)
    `Reference.action`, example 0, step 1: takes action 3, which does not exist: actions are numbered from 0 to
    Sizes.actions - 1 = 2

    """
    if not seconds > 0:
        raise ConfigurationError(f"seconds is {seconds}; it must be above 0")
    budget = Budget(math.inf if thorough else seconds)
    space, findings, coverage = as_space(space), Findings(), Coverage()
    encoded = examples if isinstance(examples, Examples) else _encode(space, examples, findings, budget, coverage)
    if encoded is None:
        return Report(findings.found, coverage)
    own = space.teacher
    if reference is None and own is not None and (encoded.has_truth or not own.needs_truth):
        reference = own
    reference = None if reference is None else as_teacher(reference, space)
    if reference is not None and reference.needs_truth and not encoded.has_truth:
        findings.add("encode", "truth", "gives no truth `y`, which this reference needs: give labelled examples")
        reference = None
    examine(space, reference, encoded, findings, coverage, budget, rollouts=rollouts, seed=seed)
    return Report(findings.found, coverage)


def examine(
    space: SearchSpace,
    reference: Reference | None,
    encoded: Examples,
    findings: Findings,
    coverage: Coverage,
    budget: Budget,
    *,
    rollouts: int = 20,
    seed: int = 0,
) -> None:
    """Walk through examples, within a budget: collect what is found, and how much was examined."""
    find_copied_truth(encoded, findings)
    coverage.examples_given = len(encoded)
    coverage.walks_asked = rollouts * min(len(encoded), MOST_EXAMPLES)
    plan = make_plan(space, reference, encoded, rollouts, seed, budget)
    coverage.complete = not (plan.sampled or coverage.not_encoded)
    try:
        for place, index in enumerate(plan.examples):
            probe = Probe(space, reference, encoded, index, findings, plan.pace(index, budget))
            walk = SampleWalk(probe, encoded, seed, coverage)
            for turn in range(plan.walks):
                if findings.full:
                    return
                # when time is short, some walks are left out, so that later examples are examined, too
                if budget.behind((place + turn / plan.walks) / len(plan.examples)):
                    coverage.complete = False
                else:
                    walk.go()
    except SpentError:
        coverage.complete = False


def assert_space(
    space: SearchSpace | Task | type[Task],
    examples: Examples | Iterable[Any],
    reference: Reference | None = None,
    **options: Any,
) -> None:
    """Raise a `SpaceError` that lists all findings of `check_space`, which is given the same options; for tests.

    Parameters
    ----------
    space
        The search space, or a `Task`.
    examples
        Objects to try it on.
    reference
        The reference; None for the task's.
    **options
        Options of `check_space`.

    Examples
    --------
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> assert_space(tagging_space(labels=3), tagging_data(2, labels=3), tagging_references()["bad"])

    """
    found = check_space(space, examples, reference, **options)
    if found:
        lines = ["the search space breaks the contract:", *(f"- {finding}" for finding in found), f"({found.summary})"]
        raise SpaceError("\n".join(lines))


def _encode(
    space: SearchSpace, objects: Iterable[Any], findings: Findings, budget: Budget, coverage: Coverage
) -> Examples | None:
    limited = budget.seconds < math.inf

    def in_time() -> Iterator[Any]:
        # objects are taken in order, so that error messages have the right numbers
        for number, obj in enumerate(as_objects(objects)):
            if limited and number and (number >= MOST_ENCODED or budget.used > ENCODING):
                coverage.not_encoded = True
                return
            yield obj

    try:
        return Examples(space, in_time())
    except Exception as error:
        reason = str(error)
        if not isinstance(error, SpaceError):
            reason = f"its result cannot be used, or not by the functions in Sizes: {type(error).__name__}: {error}"
        findings.add("encode", "fails", reason)
        return None
