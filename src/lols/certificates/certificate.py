"""A certificate: losses and regrets with intervals, where they arise, and the advice that follows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lols.certificates.advice import Advice, Regrets
from lols.certificates.intervals import Estimate
from lols.certificates.places import DecisionRow, StepRow

JSON_NAMES = {
    "of": "examples_given",
    "hindsight": "deviation_regret_hindsight",
    "in_class": "deviation_regret_in_class",
    "retrained": "deviation_regret_retrained",
}


@dataclass(frozen=True)
class Theorem:
    """Both sides of Theorem 3 for this policy, with the β of its training.

    `left` is β times the regret to the teacher plus 1 - β times the in-class regret. `right` bounds it: β times the
    regret of the actions if the teacher completes them, plus 1 - β times the hindsight regret.

    Parameters
    ----------
    beta
        The probability of the reference in the roll-outs of training.
    left
        The left side.
    right
        The right side, which bounds it.

    """

    beta: float
    left: Estimate
    right: Estimate


@dataclass(frozen=True)
class Certificate:
    """Measurements of a policy on some data; all losses and regrets are means per example.

    `hindsight` and `in_class` are the regrets to one-step deviations that the policy itself completes; `retrained` is
    the part of them that policies avoid which were fitted on the costs of training instead. `training` holds the
    first two at the states and under the costs of training, in the unit of these costs. `fitted` says how the two
    policies were fitted, one for each half of the examples, that `in_class` compares with.

    Parameters
    ----------
    examples
        How many examples were measured.
    of
        How many there were.
    decisions
        How many decisions these have.
    reference
        The teacher.
    algorithm
        The name of the algorithm of the training.
    roll_in
        Which policy led to the states of training.
    roll_out
        Which policy completed its deviations.
    loss
        The loss of the policy.
    teacher_loss
        The loss of the teacher.
    regret_to_teacher
        The first less the second.
    hindsight
        The regret to the best single changes, the truth known.
    in_class
        The part of it that a policy of the same class avoids.
    retrained
        What policies avoid that were fitted on the costs of training.
    training
        The two regrets on the costs of training.
    theorem
        Both sides of the paper's Theorem 3.
    by_step
        The regrets by the part of the trajectory.
    by_decision
        The regrets by the action taken and the better one.
    fitted
        How the two policies were fitted that `in_class` compares with.
    advice
        What stands in the way, and what to do.
    notes
        What the reader must know of the figures.

    """

    examples: int
    of: int
    decisions: int
    reference: str
    algorithm: str
    roll_in: str
    roll_out: str
    loss: Estimate
    teacher_loss: Estimate
    regret_to_teacher: Estimate
    hindsight: Estimate
    in_class: Estimate
    retrained: Estimate
    training: Regrets
    theorem: Theorem | None
    by_step: list[StepRow]
    by_decision: list[DecisionRow]
    fitted: tuple[str, str]
    advice: Advice
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The advice in a few words."""
        return self.advice.verdict

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as printed by `lols certify --json`; the names are stable."""
        plain: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if name == "training":
                plain |= {f"training_regret_{which}": regret for which, regret in value.items()}
            elif name == "advice":
                plain |= {"rule": value["rule"], "verdict": value["verdict"], "advice": value["sentence"]}
            else:
                plain[JSON_NAMES.get(name, name)] = list(value) if isinstance(value, tuple) else value
        return plain

    def __str__(self) -> str:
        rows = [
            ("loss", self.loss),
            ("teacher's loss", self.teacher_loss),
            ("regret to the teacher", self.regret_to_teacher),
            ("regret to deviations, hindsight", self.hindsight),
            ("regret to deviations, in class", self.in_class),
        ]
        lines = [f"{name:<32} {e.value:9.4f}   {e.low:9.4f} .. {e.high:.4f}" for name, e in rows]
        return "\n".join([*self.notes, *lines, self.advice.sentence])
