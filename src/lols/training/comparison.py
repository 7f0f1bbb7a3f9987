"""Is a policy better than its teacher? Asked after training, on held-out examples if there are any."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.engine.structures import LEARNED, NONE, REFERENCE
from lols.errors import ConfigurationError, warn
from lols.training.deviation_costs import DeviationCosts
from lols.training.progress import Progress, on_terminal
from lols.training.sources import source_of
from lols.training.t_distribution import t_quantile
from lols.training.trainer import Trainer

MOST, MOST_PLAIN = 256, 32  # examples that are compared, by compiled code and by plain Python
FEWEST = 8  # for an interval
LEVEL = 0.95
DEVIATED = 16  # examples on which single actions of the teacher are changed


@dataclass(frozen=True)
class ReferenceComparison:
    """The mean losses of policy and teacher on the same examples, and the 95 % interval of their difference.

    Attributes
    ----------
    examples, held_out
        How many examples were compared, and whether training has not seen them. If it has, the result is optimistic.
    policy, reference
        The mean losses.
    difference, error, low, high
        Policy less teacher: the mean over examples, its standard error, and the ends of the interval.
    labelled
        Whether the teacher reads labels, which the policy cannot. That of a program does if it cannot answer without.
    beatable
        Whether the policy could be better. A teacher that reads labels may be optimal: then its loss is 0, or no single
        change of its actions is of use.

    """

    examples: int
    held_out: bool
    policy: float
    reference: float
    difference: float
    error: float
    low: float
    high: float
    labelled: bool = False
    beatable: bool = True

    @property
    def worse(self) -> bool:
        """Whether the policy is worse beyond chance, and need not be."""
        return self.low > 0.0 and self.beatable

    def __str__(self) -> str:
        about = ", which reads the labels" if self.labelled else ""
        change = f"difference {self.difference:+.4g}, 95 % interval {self.low:+.3g} to {self.high:+.3g}"
        kind = "held-out" if self.held_out else "training"
        losses = f"policy {self.policy:.4g}, teacher {self.reference:.4g}{about}"
        return f"{losses} ({change}) on {self.examples} {kind} examples"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, and all in a sentence, for `model.report`."""
        plain = {"teacher" if name == "reference" else name: value for name, value in asdict(self).items()}
        return plain | {"summary": str(self)}


def compare_with_reference(
    trainer: Trainer, model: Any, data: Examples | Sequence[Any], *, held_out: bool = False
) -> ReferenceComparison | None:
    """Follow policy and teacher on some examples; None if there are few, or no losses, or no teacher.

    Nothing is learned from it, and the examples are the same in every run. `data` are the objects of a program, or the
    examples of any other space.
    """
    columns = data if isinstance(data, Examples) else None
    if len(data) < FEWEST or (columns is not None and not columns.has_truth):
        return None
    if columns is None and trainer.plan.roll_in == trainer.plan.roll_out == LEARNED:
        return None  # without a teacher, which a program need not have then
    few = _spread(data, MOST if columns is not None and model.compiled else MOST_PLAIN)
    policy = model.losses(few)
    reference = model.reference_losses(few) if columns is None else model.reference_losses(few, trainer.reference)
    apart = policy - reference
    difference, error = float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(apart.size))
    width = t_quantile(apart.size - 1, (1.0 + LEVEL) / 2.0) * error
    if columns is None:
        labelled = model.reference_needs_truth(few)
    else:
        labelled = bool(trainer.reference.needs_truth) and len(columns.y) > 0
    beatable = not (labelled or columns is None) or (
        bool(reference.any()) and (difference <= width or improvable(trainer, few))
    )
    return ReferenceComparison(
        examples=apart.size,
        held_out=held_out,
        policy=float(policy.mean()),
        reference=float(reference.mean()),
        difference=difference,
        error=error,
        low=difference - width,
        high=difference + width,
        labelled=labelled,
        beatable=beatable,
    )


def check_held_out(data: Any) -> Any:
    """The examples, if a policy and its teacher can be compared on them."""
    if len(data) < FEWEST:
        raise ConfigurationError(f"held_out has {len(data)} examples, too few for a comparison: give at least {FEWEST}")
    if isinstance(data, Examples) and not data.has_truth:
        raise ConfigurationError("held_out has no labels, so losses are unknown: give labelled objects")
    return data


def improvable(trainer: Trainer, data: Examples | Sequence[Any]) -> bool:
    """Whether some action other than the teacher's, completed by the teacher, would have cost less.

    Looks at some examples, and at the steps and actions that the algorithm samples.
    """
    source = source_of(trainer, _spread(data, DEVIATED))
    plan = trainer.plan._replace(roll_in=REFERENCE, compare=False, bound=False, exact=True, slack=np.inf)
    ways = {"roll_out": NONE, "imitate": True}, {"roll_out": REFERENCE, "imitate": False}
    policy, numbers = trainer.new_policy(), np.arange(len(source.first))
    with source.driver(policy, trainer, source.first) as driver:
        measures = (DeviationCosts(driver, policy.asked, plan._replace(**way)) for way in ways)
        for marks, part in zip(*(each.parts(numbers, together=1) for each in measures), strict=True):
            # The cost of the reference's action, or of the best of several.
            taken = np.where(marks.costs == 0.0, part.costs, np.inf).min(axis=1)
            if ((part.weight > 0.0) & np.isfinite(taken) & (taken > 0.0)).any():
                return True
    return False


def _spread(data: Any, most: int) -> Any:
    """At most `most` examples, from the first to the last."""
    chosen = np.linspace(0, len(data) - 1, min(most, len(data))).astype(np.int64)
    return some(data, chosen) if isinstance(data, Examples) else [data[k] for k in chosen.tolist()]


def say_comparison(trainer: Trainer, found: ReferenceComparison, progress: bool | Progress | None) -> None:
    """Print the comparison where progress is shown, and warn if the policy is worse; `progress=False` is silent."""
    if progress is False:
        return
    if found.worse:
        warn(f"the policy is worse than its teacher: {found}; {_next(trainer, found)}")
    elif progress or (progress is None and on_terminal()):
        honest = "" if found.held_out else " (so optimistic: pass held_out=... for a fair comparison)"
        print(f"lols: {found}{honest}", file=sys.stderr)


def _next(trainer: Trainer, found: ReferenceComparison) -> str:
    """What to try."""
    settings, chosen = trainer.settings, trainer.algorithm
    strategies = "" if found.labelled else ", or lols.optimise, which compares strategies"
    if chosen.roll_out == "none":
        return f'{chosen.name} does not see what actions lead to: try algorithm="lols"'
    if (
        trainer.policy.has_weights
        and settings.reduction == "hinge"
        and settings.margin == "unit"
        and not found.labelled
    ):
        return 'a unit margin counts mistakes alike: try learner=LearnerSettings(margin="cost", scale=None)'
    if trainer.policy.has_weights and settings.reduction != "hinge":
        return f'{settings.reduction} predicts costs: try learner="hinge", or more passes'
    if chosen.roll_in != "learned":
        return 'it learns at states of its teacher: try roll_in="learned"'
    if chosen.roll_out != "reference":
        return f'try roll_out="reference", more examples, other features{strategies}'
    return f"try more examples, other features{strategies}"
