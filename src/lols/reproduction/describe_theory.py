"""The paper's theory as computed by `run_theory`: tables, charts and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lols.datasets.small_worlds import ROLL_OUTS
from lols.reproduction import charts
from lols.reproduction.document import (
    TEXTS,
    Chart,
    FigureText,
    Section,
    TextCell,
    TextTable,
    Values,
    figure,
    formatted,
    verdict,
)


def theory_section(theory: Values, command: str) -> Section:
    """All parts of the theory that were computed."""
    parts: dict[str, Callable[..., FigureText]] = {
        "table1": _table_1, "figure3": _figure_3, "theorem3": _theorem_3, "gap": _gap, "snakes": _snakes,
        "claims": _claims,
    }  # fmt: skip
    figures = [describe(theory[name]) for name, describe in parts.items() if theory.get(name)]
    return Section("The theory, computed", (), [made._replace(command=command) for made in figures])


def _table_1(cells: Sequence[Values]) -> FigureText:
    rows: dict[str, list[TextCell | str]] = {}
    for cell in cells:
        mark = "good" if cell["ours"] == "good" else "bad"
        note = "" if cell["agrees"] else f"the paper: {cell['paper']}"
        rows.setdefault(cell["roll_in"], [cell["roll_in"]]).append(TextCell(cell["ours"], note, mark=mark))
    table = TextTable(("roll-in", *(f"roll-out: {out}" for out in ROLL_OUTS)), list(rows.values()), words=4)
    return figure("table1", [table], agree=sum(bool(cell["agrees"]) for cell in cells), cells=len(cells))


def _figure_3(cells: Sequence[Values]) -> FigureText:
    rows: dict[tuple[str, str], list[TextCell | str]] = {}
    for cell in cells:
        teacher = f"{cell['reference_loss']:g}"
        row = rows.setdefault((cell["world"], cell["roll_in"]), [cell["world"], cell["roll_in"], teacher])
        worse, improvable = cell["worst_loss"] > cell["reference_loss"], cell["worst_deviation_regret"] > 0
        sign, mark = ("✗", "bad") if worse else ("≈", "level") if improvable else ("✓", "good")
        row.append(TextCell(f"{sign} {cell['worst_loss']:g} → {cell['trained_loss']:.3g}", mark=mark))
    settled, trained = (sum(cell[name] for cell in cells) for name in ("without_regret", "trainings"))
    columns = ("world", "roll-in", "teacher's loss", *(f"roll-out: {out}" for out in ROLL_OUTS))
    return figure("figure3", [TextTable(columns, list(rows.values()), words=6)], settled=settled, trained=trained)


def _theorem_3(theorem: Values) -> FigureText:
    falls = ", ".join(f"{row['regret']:.4f} after {row['rounds']:,} rounds" for row in theorem["no_regret"])
    table = formatted(TEXTS["theorem3"]["columns"], theorem["by_beta"])
    chart = Chart("theory-theorem3", "Both sides of Theorem 3, run by run", partial(charts.tightness, theorem))
    return figure("theorem3", [table], chart, count=len(theorem["runs"]), falls=falls, **theorem)


def _gap(gap: Values) -> FigureText:
    worlds = list(dict.fromkeys(row["world"] for row in gap["worlds"]))
    exact = {(row["beta"], f"world{worlds.index(row['world'])}"): row["gap"] for row in gap["worlds"]}
    columns = {"β": "{beta:g}", **{name: f"{{world{k}:.2f}}" for k, name in enumerate(worlds)}}
    rows = [
        row | {world: value for (beta, world), value in exact.items() if beta == row["beta"]} for row in gap["spaces"]
    ]
    chart = Chart("theory-gap", "The gap by β", partial(charts.gap_curves, gap))
    return figure("gap", [formatted(columns | TEXTS["gap"]["columns"], rows)], chart)


def _snakes(snakes: Values) -> FigureText:
    rounds = [row["remembering_rounds"] for row in snakes["rows"]]
    texts = [f"{number:,.0f}" if number < 1e6 else f"{number:.1e}" for number in rounds]
    rows = [row | {"remembering": text} for row, text in zip(snakes["rows"], texts)]
    chart = Chart("theory-snakes", "Updates to a local optimum by T", partial(charts.snake_growth, snakes))
    return figure("snakes", [formatted(TEXTS["snakes"]["columns"], rows)], chart, **snakes["fit"])


def _claims(claims: Sequence[Values]) -> FigureText:
    rows = [[c["where"], c["paper"], verdict("holds" if c["holds"] else "fails"), c["ours"]] for c in claims]
    return figure(
        "theory_claims", [TextTable(("where", "what the paper says", "", "what comes out here"), rows, words=4)]
    )
