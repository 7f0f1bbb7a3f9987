"""Is a search space what the contract asks for? Runs its functions as plain Python and says in words what is wrong.

Compiled code does not look where it reads and writes, so a mistake in a space shows as a poor model or a crash, far
from its cause. These checks walk through the space, look at every state on the way from all sides, and name the
function, the example, the step and the fix. Nothing is compiled, and Numba is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lols.checks.findings import Finding, Findings
from lols.checks.leaks import find_copied_truth
from lols.checks.walk import Walk
from lols.errors import SpaceError
from lols.examples import Examples
from lols.space import Reference, SearchSpace
from lols.task import Task, as_space

__all__ = ["Finding", "assert_space", "check_space"]

MOST_EXAMPLES = 25


def check_space(
    space: SearchSpace | Task | type[Task],
    examples: Examples | Iterable[Any],
    reference: Reference | None = None,
    *,
    seed: int = 0,
    rollouts: int = 20,
) -> list[Finding]:
    """Walk through a search space and report what breaks the contract; an empty list means that nothing was found.

    Parameters
    ----------
    space
        The space to check: a `SearchSpace` or a `Task`.
    examples
        The user's objects, or examples made from them with this space. A few short ones do: of a larger set, 25 are
        looked at, from the shortest to the longest. Without a truth, `loss` and `cost` go unchecked.
    reference
        The teacher to check, if there is one; by default the task's own.
    seed
        Where the walks get their random actions; the same seed gives the same findings.
    rollouts
        Walks through each example: the reference's way first, then ways with a deviation, at random, and mixed ones.

    Examples
    --------
    >>> import lols
    >>> from lols.worlds import tagging_space
    >>> space, data = tagging_space(labels=3), [{"words": [4, 5, 4], "tags": [0, 2, 0]}]
    >>> lols.checks.check_space(space, data)
    []
    >>> off_by_one = lols.Reference(action=lambda x, y, s: y.tags[s[0]] + 1)
    >>> for finding in lols.checks.check_space(space, data, off_by_one):
    ...     print(finding)
    `Reference.action`, example 0, step 1: takes action 3, which does not exist: actions are numbered from 0 to
    Sizes.actions - 1 = 2

    """
    space, findings = as_space(space), Findings()
    encoded = examples if isinstance(examples, Examples) else _encode(space, examples, findings)
    if encoded is None:
        return findings.found
    find_copied_truth(encoded, findings)
    own = space.teacher
    if reference is None and own is not None and (encoded.has_truth or not own.needs_truth):
        reference = own
    if reference is not None and reference.needs_truth and not encoded.has_truth:
        findings.add("encode", "truth", "gives no truth `y`, which this reference needs: give labelled examples")
        reference = None
    # from the shortest to the longest, because mistakes hide at both ends
    chosen = np.argsort(encoded.steps, kind="stable")
    if len(chosen) > MOST_EXAMPLES:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_EXAMPLES).astype(np.int64)]
    for index in sorted(chosen.tolist()):
        walk = Walk(space, reference, encoded, index, findings, seed)
        for number in range(rollouts):
            if findings.full:
                return findings.found
            walk.go(number)
    return findings.found


def assert_space(
    space: SearchSpace | Task | type[Task],
    examples: Examples | Iterable[Any],
    reference: Reference | None = None,
    *,
    seed: int = 0,
    rollouts: int = 20,
) -> None:
    """Raise a `SpaceError` that lists all findings of `check_space`; for tests.

    Examples
    --------
    >>> from lols.worlds import tagging_data, tagging_references, tagging_space
    >>> assert_space(tagging_space(labels=3), tagging_data(2, labels=3), tagging_references()["bad"])

    """
    found = check_space(space, examples, reference, seed=seed, rollouts=rollouts)
    if found:
        raise SpaceError("\n".join(["the search space breaks the contract:", *(f"- {finding}" for finding in found)]))


def _encode(space: SearchSpace, objects: Iterable[Any], findings: Findings) -> Examples | None:
    try:
        return Examples(space, objects)
    except Exception as error:
        reason = str(error)
        if not isinstance(error, SpaceError):
            reason = f"what it gives cannot be used, or not by the functions in Sizes: {type(error).__name__}: {error}"
        findings.add("encode", "fails", reason)
        return None
