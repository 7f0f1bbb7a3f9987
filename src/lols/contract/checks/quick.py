"""The check before training: a few walks through a few examples, within a fraction of a second."""

from __future__ import annotations

import math

from lols.contract.checks import examine
from lols.contract.checks.budget import WORK_PER_SECOND, Budget
from lols.contract.checks.findings import Coverage, Finding, Findings
from lols.contract.checks.guards import MOST_WORK, WORK
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.errors import SpaceError, warn

USUAL, MOST = 0.1, 1.0  # seconds of work, as planned, and at most

# What makes every result wrong, although nothing fails: these findings are errors.
ERRORS = ("outside", "negative index", "not kept", "whole", "modifies", "deterministic", "truth", "leak", "live")
# What makes results worse, or only may be a mistake: warnings.
WARNINGS = ("survey", "merges", "sum", "negative", "rolled out", "not equal", "not free", "copied")
# All else, such as numbers that are not finite, is an error where a search meets it. So is a function that fails, which
# ends the check.
ENDS = ("fails",)


def check_quickly(space: SearchSpace, reference: Reference | None, examples: Examples) -> None:
    """Say in short what `check_space` would say of some of these examples: the first error is raised, others warn."""
    findings, budget = Findings((*ERRORS, *WARNINGS), ends=ENDS), Budget(MOST, USUAL * WORK_PER_SECOND)
    if reference is not None and reference.needs_truth and not examples.has_truth:
        reference = None
    MOST_WORK[0] = WORK[0] + MOST * WORK_PER_SECOND
    try:
        examine(space, reference, examples, findings, Coverage(), budget)
    finally:
        MOST_WORK[0] = math.inf
    wrong = [finding for finding in findings.found if _is_error(finding, space)]
    if wrong:
        raise SpaceError(str(wrong[0]))
    for finding in findings.found:
        text = f"{finding} (lols.checks.check_space looks at more, checks=False at nothing)"
        warn(text)


def _is_error(finding: Finding, space: SearchSpace) -> bool:
    """Whether results cannot be right."""
    if finding.kind == "negative":
        return finding.function == "cost" and space.nonnegative
    return finding.kind in ERRORS and finding.function not in ("output", "Sizes.live")
