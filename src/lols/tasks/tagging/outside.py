"""What O costs: a constant where no span is open, fitted to held-out sentences, and part of the weights.

A tagger that says what is most likely says O wherever a span is less likely than none. F1 is at its most where words
are tagged already if they are spans with a probability of half of it. So O is made to cost more (or less) until the F1
of held-out sentences is at its most. Where a span is open, nothing changes: it would only become longer.

Every state has exactly one feature `tag[-1]`, which says whether a span is open. The constant is added to what the
features of the other states say of O, so that all that reads weights has it: prediction, confidences, beams,
explanations, files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lols.engine.structures import FrozenPolicy
from lols.engine.table import features_by_row, fill, growing_table
from lols.kernels.hashing import mix
from lols.tasks.problem import HeldOut
from lols.tasks.tagging.data import OUTSIDE
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.templates import parse_templates
from lols.training.model import Model

# What is tried, as a part of how much O and the best other label are apart where that is as often more as less.
SHARES = np.arange(-5, 16) / 10.0
SMOOTH = np.array([0.25, 0.5, 0.25])  # the neighbours of a constant count, too, so that less is left to chance
LEAST_GAIN = 0.002  # of F1; with less, nothing changes


class OutsideCost(NamedTuple):
    """How much more O costs than what was learned, and the F1 of the held-out sentences without and with that."""

    cost: float
    f1_before: float
    f1: float


def more_than_learned(cost: float) -> str:
    """What O costs, in words.

    >>> more_than_learned(0.25), more_than_learned(-0.1), more_than_learned(0.0)
    ('0.25 more than was learned', '0.1 less than was learned', 'as it was learned')
    """
    return f"{abs(cost):g} {'more' if cost > 0 else 'less'} than was learned" if cost else "as it was learned"


def nothing_open(task: TaggingTask) -> np.ndarray:
    """The features `tag[-1]` of states in which no span is open; none if the templates do not have that one.

    >>> nothing_open(TaggingTask(["O", "B-X", "I-X"], scheme="bio")).size  # no tag, or O
    2
    >>> nothing_open(TaggingTask(["O", "B-X", "I-X"], scheme="bio", templates=["word"])).size
    0
    """
    found = next((t for t in parse_templates(task.templates, task.columns) if t.text == "tag[-1]"), None)
    if found is None:
        return np.zeros(0, np.int64)
    tags = [0, *(1 + np.flatnonzero(task.machine.next.max(axis=0) == 0)).tolist()]
    return np.array([mix(key(found), tag if tag < task.radix else mix(0, tag)) for tag in tags], np.int64)


def raised(model: Model, task: TaggingTask, cost: float) -> Model:
    """A model in which O costs so much more where no span is open."""
    if cost == 0.0 or not model.decides.has_weights:
        return model
    made, cells = _with_cells(model, model.policy, task)
    made.policy.stack[cells] += np.float32(cost)
    return made


def _with_cells(model: Model, policy: FrozenPolicy, task: TaggingTask) -> tuple[Model, tuple[Any, ...]]:
    """A copy with rows for the features of `nothing_open`, and the cells of these rows that speak of O."""
    features, count = nothing_open(task), min(int((policy.shared.rows >= 0).sum()), policy.stack.shape[1])
    known = features_by_row(policy.shared, count)
    whole = np.concatenate([known, np.setdiff1d(features, known)])
    table = growing_table(1 << max(int(2 * whole.size).bit_length(), 4))
    fill(table, whole, compiled=model.compiled)
    stack = np.zeros((policy.stack.shape[0], whole.size, policy.stack.shape[2]), np.float32)
    stack[:, :count] = policy.stack[:, :count]
    cells = slice(None), np.flatnonzero(np.isin(whole, features)), task.inner_labels.index(OUTSIDE)
    return model.replaced(policy=policy._replace(shared=table, stack=stack)), cells


def fit_outside(model: Model, held: HeldOut) -> OutsideCost | None:
    """What O should cost more for the F1 of held-out sentences; None where that is not known."""
    task, policy = held.problem, model.policy
    if (
        not isinstance(task, TaggingTask)
        or task.scheme is None
        or not model.decides.has_weights
        or policy.thresholds
        or not nothing_open(task).size
    ):
        return None
    costs = held.judged(model).costs
    outside = task.inner_labels.index(OUTSIDE)
    apart = np.delete(costs, outside, axis=1).min(axis=1) - costs[:, outside]
    apart = np.abs(apart[np.isfinite(apart)])
    if not apart.size or not np.median(apart):
        return None
    tried = np.round(SHARES * float(np.median(apart)), 3)
    made, cells = _with_cells(model, policy, task)
    learned, scores = made.policy.stack[cells].copy(), np.zeros(tried.size)
    for k, cost in enumerate(tried):
        made.policy.stack[cells] = learned + np.float32(cost)
        scores[k] = held(made)["f1"]
    smooth = np.convolve(np.pad(scores, 1, mode="edge"), SMOOTH, "valid")
    zero = int(np.argmin(np.abs(tried)))
    best = int(smooth.argmax())
    if smooth[best] < smooth[zero] + LEAST_GAIN:
        best = zero
    return OutsideCost(float(tried[best]), float(scores[zero]), float(scores[best]))
