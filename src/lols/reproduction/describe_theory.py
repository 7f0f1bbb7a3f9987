"""The paper's theory as computed by `run_theory`: tables, charts and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lols.datasets.small_worlds import ROLL_OUTS
from lols.reproduction import charts
from lols.reproduction.document import Chart, FigureText, Section, TextCell, TextTable, formatted, verdict

Values = Mapping[str, Any]


def theory_section(theory: Values, command: str) -> Section:
    """All parts of the theory that were computed."""
    parts = (
        ("table1", _table_1), ("figure3", _figure_3), ("theorem3", _theorem_3), ("gap", _gap), ("snakes", _snakes),
        ("claims", _claims),
    )  # fmt: skip
    figures = [describe(theory[name])._replace(command=command) for name, describe in parts if theory.get(name)]
    return Section("The theory, computed", (), figures)


def _table_1(cells: Sequence[Values]) -> FigureText:
    rows: dict[str, list[TextCell | str]] = {}
    for cell in cells:
        mark = "good" if cell["ours"] == "good" else "bad"
        note = "" if cell["agrees"] else f"the paper: {cell['paper']}"
        rows.setdefault(cell["roll_in"], [cell["roll_in"]]).append(TextCell(cell["ours"], note, mark=mark))
    agree = sum(bool(cell["agrees"]) for cell in cells)
    table = TextTable(("roll-in", *(f"roll-out: {out}" for out in ROLL_OUTS)), list(rows.values()), words=4)
    note = f"{agree} of {len(cells)} cells come out as the paper prints them."
    return FigureText("Table 1: what each pair of policies may lead to", [table], note=note)


def _figure_3(cells: Sequence[Values]) -> FigureText:
    rows: dict[tuple[str, str], list[TextCell | str]] = {}
    for cell in cells:
        teacher = f"{cell['reference_loss']:g}"
        row = rows.setdefault((cell["world"], cell["roll_in"]), [cell["world"], cell["roll_in"], teacher])
        worse, improvable = cell["worst_loss"] > cell["reference_loss"], cell["worst_deviation_regret"] > 0
        sign, mark = ("✗", "bad") if worse else ("≈", "level") if improvable else ("✓", "good")
        row.append(TextCell(f"{sign} {cell['worst_loss']:g} → {cell['trained_loss']:.3g}", mark=mark))
    settled, trained = (sum(cell[name] for cell in cells) for name in ("without_regret", "trainings"))
    note = (
        "The largest loss of a policy without cost-sensitive regret → where training ends on average. ✗: worse than "
        "the teacher. ≈: one changed decision would be better. Training ends with such a policy in "
        f"{settled:,} of {trained:,} trainings; ties are broken at random. The last world is ours, for the cell "
        "that the paper has no theorem for."
    )
    columns = ("world", "roll-in", "teacher's loss", *(f"roll-out: {out}" for out in ROLL_OUTS))
    table = TextTable(columns, list(rows.values()), words=6)
    return FigureText("Figure 3: three small worlds, and one more", [table], note=note)


def _theorem_3(theorem: Values) -> FigureText:
    parts = {name: f"{{{name}:.4f}}" for name in ("averaging", "limits", "teacher", "regret", "unfit", "gap")}
    columns = {"β": "{beta:g}", "left": "{left:.4f}", "T δ_N": "{right:.4f}"}
    columns |= {name: parts.pop(name) for name in ("averaging", "limits", "teacher")}
    columns |= {"equal": "{equal}/{runs}", **parts}
    note = (
        f"Means over runs of {theorem['rounds']} rounds on {theorem['spaces']:,} random spaces. The left side exceeds "
        f"T δ_N in {theorem['violations']:,} of {len(theorem['runs']):,} runs. What lies between: one change must suit "
        "all averaged policies (averaging), and be in the class (limits); one better action would help the teacher "
        "(teacher). T δ_N consists of the learner's regret, what the best fixed policy of the class lacks (unfit), and "
        "the gap below."
    )
    if theorem.get("no_regret"):
        falls = ", ".join(f"{row['regret']:.4f} after {row['rounds']:,} rounds" for row in theorem["no_regret"])
        note += f" Corollary 1: T (δ_N - δ_class) falls with a no-regret learner: {falls} (β = 0.5)."
    chart = Chart("theory-theorem3", "Both sides of Theorem 3, run by run", partial(charts.tightness, theorem))
    return FigureText("Theorem 3: how tight it is", [formatted(columns, theorem["by_beta"])], [chart], note)


def _gap(gap: Values) -> FigureText:
    worlds = list(dict.fromkeys(row["world"] for row in gap["worlds"]))
    exact = {(row["beta"], f"world{worlds.index(row['world'])}"): row["gap"] for row in gap["worlds"]}
    columns = {"β": "{beta:g}", **{name: f"{{world{k}:.2f}}" for k, name in enumerate(worlds)}}
    columns |= {"random spaces: mean": "{mean:.4f}", "largest": "{largest:.2f}"}
    columns |= {"above 0": "{above_zero}/{spaces}", "worse than teacher": "{worse_than_reference}/{spaces}"}
    rows = [
        row | {world: value for (beta, world), value in exact.items() if beta == row["beta"]} for row in gap["spaces"]
    ]
    note = (
        "The largest gap at which a learner without regret may stay. The classes here have all policies, and still the "
        "gap need not vanish for 0 < β < 1. In the first world it is 2 β below β = 1/3: a policy stays, worse than its "
        "teacher by 2, because the average of the roll-outs does not favour the better action. The larger β, the fewer "
        "spaces in which a policy that is worse than its teacher can stay."
    )
    chart = Chart("theory-gap", "The gap by β", partial(charts.gap_curves, gap))
    title = "The minimum of the average, less the average of the minima"
    return FigureText(title, [formatted(columns, rows)], [chart], note)


def _snakes(snakes: Values) -> FigureText:
    columns = {
        "T": "{steps}", "policies": "{policies}", "snake: updates": "{updates}", "Algorithm 1": "{updates_algorithm1}",
        "rounds, remembering": "{remembering}", "Hamming": "{hamming_updates}",
    }  # fmt: skip
    rounds = [row["remembering_rounds"] for row in snakes["rows"]]
    texts = [f"{number:,.0f}" if number < 1e6 else f"{number:.1e}" for number in rounds]
    rows = [row | {"remembering": text} for row, text in zip(snakes["rows"], texts)]
    fit = snakes["fit"]
    note = (
        f"Updates grow as {fit['scale']:.2f} x {fit['base']:.2f}^T; with Hamming loss they are at most T. The "
        "theorem's algorithm moves to the best one-step deviation. Algorithm 1 makes the same moves with a learner "
        "that looks at its last round only, and with one that weighs all rounds alike, as regression of costs does, "
        "but that one needs far more rounds (remembering)."
    )
    chart = Chart("theory-snakes", "Updates to a local optimum by T", partial(charts.snake_growth, snakes))
    title = "Theorem 4: local descent can take exponentially long"
    return FigureText(title, [formatted(columns, rows)], [chart], note)


def _claims(claims: Sequence[Values]) -> FigureText:
    rows = [[c["where"], c["paper"], verdict("holds" if c["holds"] else "fails"), c["ours"]] for c in claims]
    table = TextTable(("where", "what the paper says", "", "what comes out here"), rows, words=4)
    return FigureText("The paper's theory, claim by claim", [table])
