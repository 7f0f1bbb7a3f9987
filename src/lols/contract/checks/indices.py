"""A quick look at functions before anything is compiled: a few walks with guarded arrays.

It finds indices that are not there, and a reference that is not deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import chain

import numpy as np

from lols.contract.checks.budget import Budget, Pace
from lols.contract.checks.findings import Findings
from lols.contract.checks.guards import Guarded, SpentError
from lols.contract.checks.probe import FailedError, Probe, some_of
from lols.contract.checks.reference import chosen_action
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.errors import SpaceError
from lols.kernels.arithmetic import as_compiled
from lols.kernels.hashing import MASK, mix

KINDS = ("outside", "negative index", "deterministic")
WALKS = 2  # through each example: by the reference's actions, and at random
EXAMINED = 16  # states of a walk at which all functions are called


def check_indices(
    space: SearchSpace, reference: Reference | None, examples: Examples, chosen: Iterable[int], seconds: float
) -> None:
    """Walk through the chosen examples, and raise a `SpaceError` if a function uses an index that is not there.

    A reference that answers differently when asked again is an error, too: roll-outs that meet are merged.
    It takes about this many seconds at most. Other mistakes are left to those who meet them.
    """
    findings, budget = Findings(KINDS), Budget(seconds)
    with suppress(SpentError), as_compiled():
        for index in chosen:
            pace = Pace(budget, max(1.0, float(examples.steps[index]) / EXAMINED))
            probe = Probe(space, reference, examples, index, findings, pace, state_kind=Guarded)
            for turn in range(WALKS):
                with suppress(FailedError):
                    _walk(probe, np.random.default_rng(mix(turn, index) & MASK), by_reference=turn == 0)
                if findings.found:
                    raise SpaceError(str(findings.found[0]))


def _walk(probe: Probe, rng: np.random.Generator, *, by_reference: bool) -> None:
    """Walk from the start state to an end state, and call all functions at some of the states."""
    probe.step = 0
    s = probe.answer("start", np.zeros(probe.state_size, np.int32), twice=False)
    for step in range(probe.limit + 1):
        probe.step = step
        legal = probe.answer("actions", s, twice=False)
        if not legal.any():
            break
        if step == probe.limit:
            return  # longer than Sizes.steps says, which the search reports
        closely = probe.pace.due(step)
        if closely:
            _call_all(probe, s, legal)
        probe.stream = int(rng.integers(1 << 62))
        answers = probe.ask_reference(s, twice=closely) if closely or by_reference else {}
        taken = chosen_action(answers, legal) if by_reference else None
        s = probe.answer("step", s, int(rng.choice(np.flatnonzero(legal))) if taken is None else taken, twice=False)
    if "loss" in probe.functions:
        probe.answer("loss", s, twice=False)


def _call_all(probe: Probe, s: np.ndarray, legal: np.ndarray) -> None:
    """Call the functions that look at a state, and at some of its actions."""
    some = some_of(np.flatnonzero(legal)).tolist()
    of_state = (("survey", None), ("features", None), ("items", None), ("key", None))
    of_actions = ((name, a) for name in ("action_features", "cost") for a in some)
    for name, a in chain(of_state, of_actions):
        if name in probe.functions:
            with suppress(FailedError):  # reported, if it is of these kinds
                probe.answer(name, s, a, twice=False)
