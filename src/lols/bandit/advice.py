"""The reference's action as a feature with an initial weight, so that the policy starts as the reference."""

from __future__ import annotations

from dataclasses import replace

from lols.contract.features import emit, feature
from lols.contract.space import Reference, SearchSpace
from lols.engine.table import insert
from lols.errors import ConfigurationError
from lols.learners.learner import Learner

ADVICE = feature(0xAD71CE)
FIRM = 25.0  # the initial sum of squared gradients of that weight: large, so that it changes slowly


def with_advice(space: SearchSpace, reference: Reference) -> SearchSpace:
    """The same space with one more feature, on the action that the reference would take.

    >>> import lols
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> with_advice(tagging_space(labels=3), rules).sizes.action_features
    1
    """
    if reference.action is None or reference.random:
        raise ConfigurationError("advice needs a reference whose `action(x, y, s)` never draws at random")
    ask, own = reference.action, space.action_features or _no_features
    sizes = replace(space.sizes, action_features=space.sizes.action_features + 1)

    def action_features(x, s, a, out):
        own(x, s, a, out)
        if a == ask(x, x, s):  # the reference does not use the truth: pass x in its place
            emit(out, ADVICE)

    return replace(space, action_features=action_features, sizes=sizes)


def _no_features(x, s, a, out):
    pass


def follow_advice(learner: Learner, trust: float) -> None:
    """Initialise a new learner so that it predicts the reference's action to be cheaper by `trust`."""
    bank = learner.single
    row = insert(bank.table, ADVICE, bank.filled, bank.most)
    bank.weights[row] = -trust
    if bank.base.size:
        bank.base[row] = -trust
    if bank.squares.size:
        bank.squares[row] = FIRM
    if bank.scales.size:
        bank.scales[row] = 1.0
