"""A certificate: losses and regrets with intervals, where they arise, and the advice that follows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lols.certificates.advice import Advice, Regrets
from lols.certificates.intervals import Estimate
from lols.certificates.places import DecisionRow, StepRow

if TYPE_CHECKING:
    from rich.console import Console

JSON_NAMES = {
    "of": "examples_given",
    "hindsight": "deviation_regret_hindsight",
    "in_class": "deviation_regret_in_class",
    "retrained": "deviation_regret_retrained",
}
ROWS = (
    ("loss", "loss"),
    ("teacher's loss", "teacher_loss"),
    ("regret to the teacher", "regret_to_teacher"),
    ("to deviations, hindsight", "deviation_regret_hindsight"),
    ("to deviations, in class", "deviation_regret_in_class"),
)
WORDS = {"deviation_regret_hindsight": "the truth known", "deviation_regret_in_class": "to others of its class"}


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


# --- text -------------------------------------------------------------------------------------------------------------


def show_certificate(console: Console, result: dict[str, Any], unit: str) -> None:
    """Print the values of a certificate; `unit` says what its examples are."""
    from lols.tasks.show import plain_table, write

    drawn = (
        f", drawn from {result['examples_given']:,} by the seed"
        if result["examples"] < result["examples_given"]
        else ""
    )
    write(
        console,
        f"{result['examples']:,} {unit}{drawn}, {result['decisions']:,} decisions; {result['model']} "
        f"({result['algorithm']}, {result['roll_in']} in, {result['roll_out']} out) against the {result['reference']} "
        "teacher",
    )
    for note in result["notes"]:
        write(console, note, style="dim")
    write(console)
    table = plain_table(padding=(0, 2, 0, 0))
    table.add_column(f"per {unit.removesuffix('s')}")
    table.add_column("", justify="right")
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    words = WORDS | {"regret_to_teacher": beside_reference(result["regret_to_teacher"])}
    for name, key in ROWS:
        table.add_row(name, _number(result[key]["value"]), _interval(result[key]), words.get(key, ""))
    if result["theorem"] is not None:
        both = result["theorem"]
        left = f"at most {_number(both['right']['value'])} (β = {both['beta']:.2g})"
        table.add_row("Theorem 3, left side", _number(both["left"]["value"]), _interval(both["left"]), left)
    write(console, table, soft_wrap=False)
    write(console, f"\n{result['advice']}", style="bold")
    _show_places(console, result)
    if "plot" in result:
        write(console, f"\n{result['plot']} written")


def beside_reference(regret: dict[str, float]) -> str:
    """What the regret to the teacher says of the policy.

    >>> beside_reference({"value": 0.2, "low": 0.1, "high": 0.3})
    'worse than its teacher'
    """
    if regret["high"] < 0.0:
        return "better than its teacher"
    if regret["low"] > 0.0:
        return "worse than its teacher"
    return "exactly as good" if regret["low"] == regret["high"] == 0.0 else "neither is clearly better"


def _show_places(console: Console, result: dict[str, Any]) -> None:
    from lols.tasks.show import plain_table, styled, write

    if not result["by_decision"]:
        return
    steps = plain_table(padding=(0, 2, 0, 0))
    names = ("step" if "%" not in result["by_step"][0]["step"] else "of the way", "decisions", "hindsight", "in class")
    for name in names:
        steps.add_column(name, justify="right")
    steps.add_column("")
    most = max(row["hindsight"]["value"] for row in result["by_step"])
    for row in result["by_step"]:
        bar = "█" * round(20 * row["hindsight"]["value"] / most) if most > 0.0 else ""
        regrets = (_number(row[key]["value"]) for key in ("hindsight", "in_class"))
        steps.add_row(row["step"], f"{row['decisions']:,}", *regrets, styled(bar, "cyan"))
    write(console, "\nwhere in the trajectory (regret per example):")
    write(console, steps, soft_wrap=False)
    table = plain_table(padding=(0, 2, 0, 0))
    table.add_column("taken → better", overflow="fold")
    for name in ("decisions", "hindsight", "share", "in class"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result["by_decision"]:
        cells = f"{row['decisions']:,}", _number(row["hindsight"]["value"]), f"{100 * row['share']:.1f} %"
        name = f"{row['taken']} → {row['better']}"
        table.add_row(name, *cells, _number(row["in_class"]["value"]))
    write(console, "\non which decisions:")
    write(console, table, soft_wrap=False)


def _number(value: float) -> str:
    return f"{value + 0.0:.4f}" if abs(value) < 100.0 else f"{value:,.1f}"


def _interval(estimate: dict[str, float]) -> str:
    return f"{_number(estimate['low'])} .. {_number(estimate['high'])}"
