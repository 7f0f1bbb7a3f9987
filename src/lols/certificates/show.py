"""A certificate as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lols.tasks.show import plain_table, styled, write

if TYPE_CHECKING:
    from rich.console import Console

ROWS = (
    ("loss", "loss"),
    ("teacher's loss", "teacher_loss"),
    ("regret to the teacher", "regret_to_teacher"),
    ("to deviations, hindsight", "deviation_regret_hindsight"),
    ("to deviations, in class", "deviation_regret_in_class"),
)
WORDS = {"deviation_regret_hindsight": "the truth known", "deviation_regret_in_class": "to others of its class"}


def show_certificate(console: Console, result: dict[str, Any], unit: str) -> None:
    """Print the values of a certificate; `unit` says what its examples are."""
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
    words = WORDS | {"regret_to_teacher": beside_teacher(result["regret_to_teacher"])}
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


def beside_teacher(regret: dict[str, float]) -> str:
    """What the regret to the teacher says of the policy.

    >>> beside_teacher({"value": 0.2, "low": 0.1, "high": 0.3})
    'worse than its teacher'
    """
    if regret["high"] < 0.0:
        return "better than its teacher"
    if regret["low"] > 0.0:
        return "worse than its teacher"
    return "exactly as good" if regret["low"] == regret["high"] == 0.0 else "neither is clearly better"


def _show_places(console: Console, result: dict[str, Any]) -> None:
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
