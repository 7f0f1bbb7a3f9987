"""How a model was trained: algorithm, β and learner, from the facts in its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lols.errors import LolsError, one_line, short
from lols.learners.settings import LearnerSettings
from lols.training.algorithms import LOLS, Algorithm
from lols.training.deviation_costs import BETA, last_shares
from lols.training.model import Model

UNKNOWN = (
    "What the model records of its training cannot be used ({}): regret in class, Theorem 3 and advice are as if it "
    "had been trained by lols with the default learner."
)
FEWEST_PASSES, MOST_PASSES = 5, 10  # of a fit
TOGETHER = 32  # examples that a policy learns from at a time, if that is not recorded


@dataclass(frozen=True)
class Training:
    """How a policy was trained: its algorithm, the last values of β, and its learner.

    `beta` is the share of the reference in the roll-outs, None without roll-outs. `passes` is for fits: as many as in
    training, but at least 5 and at most 10, and 5 of a policy that is not linear. `together` is the number of examples
    of a batch, `linear` says whether the policy is, and `notes` say what the model does not record.
    """

    algorithm: Algorithm
    beta: float | None
    beta_in: float
    settings: LearnerSettings
    averaged: bool
    passes: int
    notes: tuple[str, ...] = ()
    together: int = TOGETHER
    linear: bool = True

    @property
    def uses_reference(self) -> bool:
        """Whether the teacher took part in the roll-ins or in the roll-outs."""
        return self.beta != 0.0 or self.beta_in > 0.0

    def deviating(self, roll_in: str, roll_out: str) -> Algorithm:
        """The same algorithm with this roll-in and roll-out, without sampling, pruning and avoidable randomness."""
        return self.algorithm.exactly(roll_in, roll_out, beta=BETA, beta_in=None)


def training_of(model: Model) -> Training:
    """How a model was trained, from what it records; LOLS with the default learner, and a note, if that cannot be used.

    >>> from lols import train
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> reference = tagging_references()["optimal"]
    >>> model = train(tagging_space(12), tagging_data(2), reference, beta=0.2, passes=3, compiled=False)
    >>> training = training_of(model)
    >>> training.algorithm.name, training.beta, training.settings.reduction, training.passes, training.uses_reference
    ('lols', 0.2, 'hinge', 5, True)
    """
    about = model.about
    notes: tuple[str, ...] = ()
    linear = model.decides.has_weights
    settings, averaged = LearnerSettings("hinge", "adagrad"), True
    try:
        chosen = Algorithm(**about["algorithm"])
        if linear:
            settings, averaged = _learner_of(about["learner"])
    except (KeyError, TypeError, ValueError, AttributeError, LolsError) as error:
        notes = (UNKNOWN.format(short(one_line(error))),)
        chosen = LOLS
    last = last_shares(chosen, about)
    out = {"reference": 1.0, "learned": 0.0, "none": None}.get(chosen.roll_out, last[0])
    into = {"reference": 1.0, "learned": 0.0}.get(chosen.roll_in, last[1])
    passes = min(max(int(about.get("passes") or 1), FEWEST_PASSES), MOST_PASSES if linear else FEWEST_PASSES)
    averaged = averaged and chosen.returned == "average"
    together = model.decides.together or int(about.get("batch_size") or TOGETHER)
    return Training(chosen, out, into, settings, averaged, passes, notes, together, linear)


def _learner_of(described: dict[str, Any]) -> tuple[LearnerSettings, bool]:
    """The settings of a linear learner, and whether it averages."""
    own = {k: v for k, v in described.items() if k not in ("actions", "by_action", "averaged")}
    return LearnerSettings(**own), bool(described["averaged"])
