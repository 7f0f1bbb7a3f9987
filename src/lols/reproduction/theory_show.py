"""What `lols reproduce theory` prints: tables with the paper's words beside our values, and a sentence on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["show_theory"]

ROLL_OUTS = ("reference", "mixture", "learned")
SHORT = {"reinforcement learning": "RL", "not locally optimal": "not locally opt."}


def show_theory(result: Mapping[str, Any], console: Console) -> None:
    """Print the result of `run_theory`.

    Parameters
    ----------
    result
        What `run_theory` gave, or some parts of it.
    console
        Where to print.

    Examples
    --------
    >>> import sys
    >>> row = {"where": "Theorem 3", "paper": "left <= right", "holds": True, "ours": "in 10 of 10 runs"}
    >>> show_theory({"claims": [row]}, Console(file=sys.stdout, width=60))  # doctest: +NORMALIZE_WHITESPACE
    What the paper says, and what comes out
    where      the paper      holds  ours
    Theorem 3  left <= right  yes    in 10 of 10 runs

    """
    parts = {
        "table1": _table_1, "figure3": _figure_3, "theorem3": _theorem_3, "gap": _gap, "snakes": _snakes,
        "claims": _claims,
    }  # fmt: skip
    for number, name in enumerate(name for name in parts if name in result):
        if number:
            console.print()
        parts[name](result, console)


def _table(title: str, *columns: str, left: int = 1) -> Table:
    """A table whose first columns have words, and the others numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k < left else "right")
    return table


def _table_1(result: Mapping[str, Any], console: Console) -> None:
    table = _table("Table 1: our verdict, and the paper's where it differs", "roll-in", *ROLL_OUTS, left=4)
    for roll_in in ("reference", "learned"):
        cells = {row["roll_out"]: row for row in result["table1"] if row["roll_in"] == roll_in}
        table.add_row(roll_in, *(_verdict(cells[roll_out]) for roll_out in ROLL_OUTS))
    console.print(table)
    agree = sum(row["agrees"] for row in result["table1"])
    console.print(f"{agree} of {len(result['table1'])} cells come out as the paper prints them. Columns are roll-outs.")


def _verdict(row: Mapping[str, Any]) -> str:
    ours, paper = (SHORT.get(row[name], row[name]) for name in ("ours", "paper"))
    text = ours if row["agrees"] else f"{ours} (paper: {paper})"
    colour = "green" if row["ours"] == "good" else "red"
    return f"[{colour}]{escape(text)}[/]"


def _figure_3(result: Mapping[str, Any], console: Console) -> None:
    table = _table(
        "Figure 3: the worst loss without cost-sensitive regret → where training ends", "world", "roll-in",
        *ROLL_OUTS, "teacher", left=2,
    )  # fmt: skip
    cells = result["figure3"]
    for world in dict.fromkeys(cell["world"] for cell in cells):
        for roll_in in ("reference", "learned"):
            here = {c["roll_out"]: c for c in cells if c["world"] == world and c["roll_in"] == roll_in}
            name = world if roll_in == "reference" else ""
            teacher = f"{here['mixture']['reference_loss']:g}" if name else ""
            table.add_row(escape(name), roll_in, *(_losses(here[roll_out]) for roll_out in ROLL_OUTS), teacher)
    console.print(table)
    settled, trained = (sum(cell[name] for cell in cells) for name in ("without_regret", "trainings"))
    console.print(
        f"Training ends with a policy without cost-sensitive regret in {settled:,} of {trained:,} trainings (means of "
        f"{cells[0]['trainings']} a cell; what it cannot tell apart it draws). Red is worse than the teacher; in "
        "yellow cells one changed decision would be better. The last world is ours, for the cell that the paper has no "
        "theorem for."
    )


def _losses(cell: Mapping[str, Any]) -> str:
    text = f"{cell['worst_loss']:g} → {cell['trained_loss']:.3g}"
    if cell["worst_loss"] > cell["reference_loss"]:
        return f"[red]{text}[/]"
    return f"[yellow]{text}[/]" if cell["worst_deviation_regret"] > 0 else f"[green]{text}[/]"


def _theorem_3(result: Mapping[str, Any], console: Console) -> None:
    three = result["theorem3"]
    table = _table(
        f"Theorem 3 on {three['spaces']} random spaces, {three['rounds']} rounds of LOLS each: means", "β", "left",
        "T δ_N", "averaging", "limits", "teacher", "equal", "regret", "unfit", "gap", left=0,
    )  # fmt: skip
    for row in three["by_beta"]:
        numbers = [f"{row[name]:.4f}" for name in ("left", "right", "averaging", "limits", "teacher")]
        parts = [f"{row[name]:.4f}" for name in ("regret", "unfit", "gap")]
        table.add_row(f"{row['beta']:g}", *numbers, f"{row['equal']}/{row['runs']}", *parts)
    console.print(table)
    runs = len(three["runs"])
    console.print(
        f"The left side exceeds T δ_N in {three['violations']} of {runs:,} runs. What lies between: one change must "
        "suit all policies that were averaged (averaging), and be in the class (limits); one better action would help "
        "the teacher (teacher). What T δ_N consists of: the learner's regret, what the best fixed policy of the class "
        "lacks (unfit), and the gap below."
    )
    falls = ", ".join(f"{row['regret']:.4f} after {row['rounds']:,} rounds" for row in three["no_regret"])
    console.print(f"Corollary 1: T (δ_N - δ_class) falls with a no-regret learner: {falls} (β = 0.5).")


def _gap(result: Mapping[str, Any], console: Console) -> None:
    gap = result["gap"]
    spaces = gap["spaces"]
    by_world: dict[str, dict[float, float]] = {}
    for row in gap["worlds"]:
        by_world.setdefault(row["world"], {})[row["beta"]] = row["gap"]
    title = "The minimum of the average less the average of the minima: the largest at which a learner may stay"
    table = _table(title, "β", *by_world, "random spaces: mean", "largest", "above 0", "worse than teacher", left=0)
    for row in spaces:
        worlds = [f"{gaps[row['beta']]:.2f}" for gaps in by_world.values()]
        shares = [f"{row[name]}/{row['spaces']}" for name in ("above_zero", "worse_than_reference")]
        table.add_row(f"{row['beta']:g}", *worlds, f"{row['mean']:.4f}", f"{row['largest']:.2f}", *shares)
    console.print(table)
    console.print(
        "The classes here have all policies, and still the gap need not vanish for 0 < β < 1. In the first world it is "
        "2 β below β = 1/3: a policy stays, worse than its teacher by 2, because the average does not tempt it. The "
        "larger β, the fewer spaces in which a policy that is worse than its teacher can stay."
    )


def _snakes(result: Mapping[str, Any], console: Console) -> None:
    snakes = result["snakes"]
    table = _table(
        "Theorem 4: updates to a local optimum", "T", "policies", "snake: updates", "Algorithm 1",
        "rounds, remembering", "Hamming", "found by", left=0,
    )  # fmt: skip
    for row in snakes["rows"]:
        table.add_row(
            str(row["steps"]), str(row["policies"]), str(row["updates"]), str(row["updates_algorithm1"]),
            _large(row["remembering_rounds"]), str(row["hamming_updates"]), row["found_by"],
        )  # fmt: skip
    console.print(table)
    fit = snakes["fit"]
    console.print(
        f"Updates grow as {fit['scale']:.2f} x {fit['base']:.2f}^T; with Hamming loss they are at most T. The "
        "theorem's algorithm moves to the best one-step deviation; Algorithm 1, with a learner that looks at its last "
        "round only, makes the same moves. So it does with a learner that weighs all rounds alike (remembering), as "
        "regression of the costs does, but that one needs far more rounds."
    )


def _large(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number:.1e}"


def _claims(result: Mapping[str, Any], console: Console) -> None:
    table = _table("What the paper says, and what comes out", "where", "the paper", "holds", "ours", left=4)
    for claim in result["claims"]:
        holds = "[green]yes[/]" if claim["holds"] else "[red]no[/]"
        table.add_row(claim["where"], escape(claim["paper"]), holds, escape(claim["ours"]))
    console.print(table)
