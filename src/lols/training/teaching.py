"""Is a policy better than its teacher? Asked after training, where the teacher could decide in its place."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.training.model import Model
from lols.training.progress import Progress
from lols.training.trainer import Trainer

MOST, MOST_PLAIN = 256, 32  # examples that are compared, by compiled code and by plain Python
FEWEST = 8  # for an interval
WIDTH = 1.96  # standard errors on each side: 95 % of a normal distribution


@dataclass(frozen=True)
class TeacherComparison:
    """The mean losses of policy and teacher on training examples, and their difference with its standard error."""

    examples: int
    policy: float
    teacher: float
    difference: float
    error: float

    @property
    def worse(self) -> bool:
        """Whether the policy is worse, beyond chance: the interval of 95 % is above 0."""
        return self.difference - WIDTH * self.error > 0.0

    def __str__(self) -> str:
        change = f"{self.difference:+.4g} ± {WIDTH * self.error:.2g}"
        return f"policy {self.policy:.4g}, teacher {self.teacher:.4g} ({change}) on {self.examples} training examples"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for `model.report`."""
        return asdict(self)


def compare_with_teacher(trainer: Trainer, model: Model, examples: Examples) -> TeacherComparison | None:
    """Follow policy and teacher on some training examples; None if the teacher needs labels, or losses are unknown.

    Nothing is learned from it, and the examples are the same in every run.
    """
    with_labels = trainer.reference.needs_truth and len(examples.y) > 0
    if with_labels or not examples.has_truth or len(examples) < FEWEST:
        return None
    most = min(MOST if model.compiled else MOST_PLAIN, len(examples))
    few = some(examples, np.linspace(0, len(examples) - 1, most).astype(np.int64))
    policy, teacher = model.losses(few), model.reference_losses(few, trainer.reference)
    apart = policy - teacher
    error = float(apart.std(ddof=1) / np.sqrt(apart.size))
    return TeacherComparison(apart.size, float(policy.mean()), float(teacher.mean()), float(apart.mean()), error)


def say_comparison(trainer: Trainer, found: TeacherComparison, progress: bool | Progress | None) -> None:
    """Print the comparison where progress is shown, and warn if the policy is worse; `progress=False` is silent."""
    if progress is False:
        return
    if found.worse:
        warnings.warn(f"the policy is worse than its teacher: {found}; {_next(trainer)}", stacklevel=3)
    elif progress or (progress is None and sys.stderr.isatty()):
        print(f"lols: {found}", file=sys.stderr)


def _next(trainer: Trainer) -> str:
    """What to try."""
    settings, chosen = trainer.settings, trainer.algorithm
    if chosen.roll_out == "none":
        return f'{chosen.name} does not see what actions lead to: try algorithm="lols"'
    if trainer.policy is None and settings.reduction == "hinge" and settings.margin == "unit":
        return 'a unit margin counts mistakes alike: try learner=LearnerSettings(margin="cost", scale=None)'
    if trainer.policy is None and settings.reduction != "hinge":
        return f'{settings.reduction} predicts costs: try learner="hinge", or more passes'
    if chosen.roll_in != "learned":
        return 'it learns at states of its teacher: try roll_in="learned"'
    if chosen.roll_out != "reference":
        return 'try roll_out="reference", more examples, other features, or lols.optimise, which compares strategies'
    return "try more examples, other features, or lols.optimise, which compares strategies"
