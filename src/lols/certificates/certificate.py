"""A certificate: losses, regrets and their intervals, where they arise, and the advice that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lols.certificates.advice import Advice, Regrets
from lols.certificates.intervals import Estimate
from lols.certificates.places import DecisionRow, StepRow

__all__ = ["Certificate", "Theorem"]


@dataclass(frozen=True)
class Theorem:
    """Both sides of Theorem 3 for this policy, with the β of its training.

    `left` is β times the regret to the teacher plus 1 - β times the in-class regret; `right`, which bounds it, is β
    times what the actions cost more than the best ones if the teacher goes on, plus 1 - β times the hindsight regret.
    """

    beta: float
    left: Estimate
    right: Estimate

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"beta": self.beta, "left": self.left.as_dict(), "right": self.right.as_dict()}


@dataclass(frozen=True)
class Certificate:
    """What is known of a policy on some data; all losses and regrets are means per example.

    `hindsight` and `in_class` are the two regrets to one-step deviations that the policy itself completes; `retrained`
    is how much of them goes away with policies that were fitted on the costs of training in place of these. `training`
    holds the first two at the states and under the costs that training would have given, in the costs' own unit.
    `fitted` says how the policies of the same class came about that `in_class` compares with, one for each half.
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
    advice: Advice
    fitted: tuple[str, str]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The advice in a few words."""
        return self.advice.verdict

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `lols certify --json` prints them; the names do not change."""
        return {
            "examples": self.examples,
            "examples_given": self.of,
            "decisions": self.decisions,
            "reference": self.reference,
            "algorithm": self.algorithm,
            "roll_in": self.roll_in,
            "roll_out": self.roll_out,
            "loss": self.loss.as_dict(),
            "teacher_loss": self.teacher_loss.as_dict(),
            "regret_to_teacher": self.regret_to_teacher.as_dict(),
            "deviation_regret_hindsight": self.hindsight.as_dict(),
            "deviation_regret_in_class": self.in_class.as_dict(),
            "deviation_regret_retrained": self.retrained.as_dict(),
            "training_regret_hindsight": self.training.hindsight.as_dict(),
            "training_regret_in_class": self.training.in_class.as_dict(),
            "theorem": None if self.theorem is None else self.theorem.as_dict(),
            "by_step": [row.as_dict() for row in self.by_step],
            "by_decision": [row.as_dict() for row in self.by_decision],
            "fitted": list(self.fitted),
            "rule": self.advice.rule,
            "verdict": self.verdict,
            "advice": self.advice.sentence,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        rows = [
            ("loss", self.loss),
            ("teacher's loss", self.teacher_loss),
            ("regret to the teacher", self.regret_to_teacher),
            ("regret to deviations, hindsight", self.hindsight),
            ("regret to deviations, in class", self.in_class),
        ]
        lines = [f"{name:<32} {e.value:9.4f}   {e.low:9.4f} .. {e.high:.4f}" for name, e in rows]
        return "\n".join([*lines, self.advice.sentence])
