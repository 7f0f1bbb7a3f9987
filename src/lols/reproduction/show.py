"""What `lols reproduce` prints: our figures with the paper's beside them, the claims, and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lols.reproduction.claims import summary, where_of
from lols.reproduction.paper import LOLS, ROLL_INS, ROLL_OUTS

__all__ = ["show_bandit", "show_certificates", "show_claims", "show_result", "show_table"]

LEARNERS = {"csoaa": "csoaa, the paper's learner", "hinge": "hinge, our default"}
METRICS = {"cost": "Average cost", "uas": "UAS in percent", "accuracy": "Accuracy in percent"}
SHORT = {"no difference": "level", "not said": "-", "not measured": "-"}
STYLES = {"holds": "green", "fails": "red", "no difference": "yellow"}
LOLS_STYLE = "black on pale_green1"  # the paper's cells are green, too


def show_result(result: Mapping[str, Any], console: Console) -> None:
    """Print everything."""
    for table in result["tables"].values():
        show_table(table, len(result["seeds"]), console)
    if result["theory"] is not None:
        from lols.reproduction.theory_part import show_theory

        show_theory(result["theory"], console)
        console.print()
    if result["bandit"] is not None:
        show_bandit(result["bandit"], console)
        console.print()
    if result.get("certificates"):
        show_certificates(result["certificates"], console)
        console.print()
    if result["claims"]:
        show_claims(result["claims"], console)


# --- tables -----------------------------------------------------------------------------------------------------------


def show_table(table: Mapping[str, Any], seeds: int, console: Console) -> None:
    """Print one of the paper's tables for each learner, with roll-ins as rows and roll-outs as columns."""
    better = "more is better" if table["higher_is_better"] else "less is better"
    console.print(Text(f"Table {table['paper_table']}: {table['title']}", style="bold"))
    over = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    console.print(
        f"{METRICS[table['metric']]}, {better}; {over}; {table['passes']} passes. The paper's in parentheses."
    )
    console.print(Text(table["data"][:1].upper() + table["data"][1:] + "."))
    for learner in table["learners"]:
        _one_learner(table, learner, console)
    _betas(table, console)
    _coins(table, console)
    console.print()


def _grid(title: str, *columns: str, left: int = 1) -> Table:
    """A table whose first columns are words, and the others numbers."""
    made = Table(
        title=title, title_justify="left", title_style="italic", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for k, column in enumerate(columns):
        made.add_column(column, justify="left" if k < left else "right", no_wrap=k < left)
    return made


def _one_learner(table: Mapping[str, Any], learner: str, console: Console) -> None:
    shown = _grid(LEARNERS.get(learner, learner), "roll-in", *(f"roll-out {name}" for name in ROLL_OUTS))
    cells = {(c["teacher"], c["row"]): c for c in table["cells"] if c["learner"] == learner}
    for teacher in table["teachers"]:
        best = _best(table, [cell for (who, _), cell in cells.items() if who == teacher])
        shown.add_row(Text(f"{teacher}:", style="bold"))
        for roll_in in ROLL_INS:
            rows = [cells.get((teacher, f"{roll_in}/{roll_out}")) for roll_out in ROLL_OUTS]
            if any(row is not None for row in rows):
                shown.add_row(f" {roll_in}", *(_cell(table, cell, best) for cell in rows))
        for row, name in (("searn", " Searn"), ("auto", " β = auto")):
            if (teacher, row) in cells:
                shown.add_row(name, "", _cell(table, cells[teacher, row], best), "")
    console.print(shown)


def _best(table: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> float | None:
    means = [cell["mean"] for cell in cells]
    return None if not means else max(means) if table["higher_is_better"] else min(means)


def _cell(table: Mapping[str, Any], cell: Mapping[str, Any] | None, best: float | None) -> Text:
    if cell is None:
        return Text("")
    style = LOLS_STYLE if cell["row"] == LOLS else ""
    own = Text(_figure(table, cell), style=f"{style} bold" if cell["mean"] == best else style)
    if cell["paper"] is not None:
        digits = {"cost": 3, "accuracy": 2, "uas": 1}[table["metric"]]
        own.append(f" ({cell['paper']:.{digits}f})", style=style or "dim")
    return own


def _figure(table: Mapping[str, Any], cell: Mapping[str, Any]) -> str:
    digits = 4 if table["metric"] == "cost" else 2
    spread = f"±{cell['sd']:.{digits}f}" if len(cell["values"]) > 1 else ""
    return f"{cell['mean']:.{digits}f}{spread}"


def _betas(table: Mapping[str, Any], console: Console) -> None:
    """One line for each teacher and learner."""
    if not table["beta"]:
        return
    betas = table["beta"]["betas"]
    shown = _grid(
        "LOLS by β, the teacher's share of the roll-outs", "teacher", "learner", *map("{:g}".format, betas), left=2
    )
    cells = {(c["teacher"], c["learner"], c["beta"]): c for c in table["beta"]["cells"]}
    digits = 4 if table["metric"] == "cost" else 2
    for teacher in table["teachers"]:
        for learner in table["learners"]:
            found = [cells.get((teacher, learner, beta)) for beta in betas]
            means = ["" if cell is None else f"{cell['mean']:.{digits}f}" for cell in found]
            if any(means):
                shown.add_row(teacher, learner, *means)
    console.print(shown)


def _coins(table: Mapping[str, Any], console: Console) -> None:
    for learner, cells in groupby(table["coins"] or (), key=lambda cell: cell["learner"]):
        found = {cell["coin"]: _figure(table, cell) for cell in cells}
        if len(found) == 2:
            console.print(
                f"LOLS, optimal teacher, {learner}: {found['state']} with one coin per state, {found['rollout']} with "
                "one per roll-out (Algorithm 1 as printed)."
            )


# --- claims -----------------------------------------------------------------------------------------------------------


def show_claims(claims: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what the paper's text says, what its tables say and what our runs say; then all in a few words."""
    learners = list(dict.fromkeys(claim["learner"] for claim in claims))
    console.print(Text("The claims: by the paper's text, by its own tables, and here", style="bold"))
    console.print("Level: less than two standard errors apart. A dash: not said, or not measured.")
    for _, of_claim in groupby(claims, key=lambda claim: claim["id"]):
        entries = list(of_claim)
        words = entries[0]["claim"] + (" (our claim)" if entries[0]["ours_only"] else "")
        shown = _grid(words[:1].upper() + words[1:], *("",) * (4 + len(learners)), left=4 + len(learners))
        shown.show_header = False
        for column, width in zip(shown.columns, (16, 10, 5, 9, *(11,) * len(learners)), strict=True):
            column.min_width = width
        heads = ("", "teacher", "text", "its table", *(f"ours, {learner}" for learner in learners))
        shown.add_row(*(Text(head, style="dim") for head in heads))
        for row in _claim_rows(entries, learners):
            shown.add_row(*row)
        console.print(shown)
    console.print()
    console.print(Text(summary(claims), style="bold"))


def _claim_rows(entries: Sequence[Mapping[str, Any]], learners: Sequence[str]) -> Iterator[list[Text]]:
    for _, same in groupby(entries, key=lambda claim: (claim["table"], claim["teacher"])):
        found = {claim["learner"]: claim for claim in same}
        one = next(iter(found.values()))
        ours = [_word(found[learner]["ours"]) if learner in found else Text("") for learner in learners]
        yield [Text(f"  {where_of(one)}"), Text(one["teacher"]), _word(one["text"]), _word(one["paper"]), *ours]


def _word(word: str) -> Text:
    return Text(SHORT.get(word, word), style=STYLES.get(word, "dim"))


# --- the bandit -------------------------------------------------------------------------------------------------------


def show_bandit(bandit: Mapping[str, Any], console: Console) -> None:
    """Print who loses how much, and the slope of the regret."""
    console.print(Text("The structured bandit (section 5): only the loss of what was shown is seen", style="bold"))
    shown = Table(box=None, padding=(0, 1))
    for name in ("held-out loss", "rounds", "random", "rules", "final policy", "full information", "gap closed"):
        shown.add_column(name, justify="left" if name == "held-out loss" else "right")
    for world, found in bandit["worlds"].items():
        names = ("held_out_random_loss", "held_out_reference_loss", "policy_loss", "full_information_loss")
        losses = ["" if found[name] is None else f"{found[name]:.4f}" for name in names]
        closed = found["gap_closed"]
        shown.add_row(world, f"{found['rounds']:,}", *losses, "" if closed is None else f"{100 * closed:.0f} %")
    if bandit["worlds"]:
        console.print(shown)
    regret = bandit["regret"]
    if regret is not None:
        means = ", ".join(f"{mean:.4f} (N = {n:,})" for n, mean in zip(regret["rounds"], regret["means"], strict=True))
        slope = regret["slope"]
        console.print(
            f"Exact regret of Algorithm 2: {means}: it falls as N^{slope['value']:.2f} "
            f"({slope['low']:.2f} to {slope['high']:.2f}); Corollary 2 promises N^-0.33."
        )


# --- certificates -----------------------------------------------------------------------------------------------------


def show_certificates(certificates: Mapping[str, Mapping[str, Any]], console: Console) -> None:
    """Print losses and regrets of each policy, and what stands in its way."""
    console.print(Text("Certificates: what Theorem 3 says of some of these parsers (lols certify)", style="bold"))
    names = {
        "loss": "loss",
        "teacher_loss": "teacher's",
        "regret_to_teacher": "regret",
        "deviation_regret_hindsight": "hindsight",
        "deviation_regret_in_class": "in class",
    }
    shown = _grid(
        "Wrong arcs in a sentence; regret to the teacher, and to one-step deviations two ways",
        "policy",
        *names.values(),
    )
    for policy, made in certificates.items():
        shown.add_row(policy, *(f"{made[name]['value']:.2f}" for name in names))
    console.print(shown)
    for policy, made in certificates.items():
        console.print(f"{policy}: {made['verdict']}.")
