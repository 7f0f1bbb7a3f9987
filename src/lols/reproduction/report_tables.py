"""The report's tables: heat maps with the paper's figures beside ours, learning curves, and the sweep of β."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from lols.reproduction.paper import LOLS, PAPER
from lols.reproduction.report_charts import KINDS, Chart, Key, Scale, legend
from lols.reproduction.report_html import (
    Section,
    figure,
    learner_name,
    panels,
    plain_table,
    row_name,
    show,
    teacher_name,
)

__all__ = ["METRICS", "closeness", "curve_kinds", "level_with_best", "paper_digits", "table_section", "unit"]

Table = Mapping[str, Any]
METRICS = {
    "accuracy": "accuracy, % of words with the right tag",
    "uas": "unlabelled attachment, % of words with the right head",
    "cost": "average cost",
}
ORDER = (LOLS, "learned/reference", "learned/learned", "searn", "auto")  # curves in the order of their kinds


def table_section(name: str, table: Table) -> Section:
    """One table and what belongs to it."""
    title, number = str(table.get("title", name)), table.get("paper_table")
    parts = [_about(table), _heat_maps(table), _coins(table), _curves(table), _beta(table)]
    return f"Table {number}: {title}" if number else title, "\n".join(part for part in parts if part)


def _about(table: Table) -> str:
    better = "higher is better" if table.get("higher_is_better", True) else "lower is better"
    metric = METRICS.get(table.get("metric", ""), str(table.get("metric", "")))
    passes = table.get("passes")
    lines = [f"{metric[:1].upper()}{metric[1:]}; {better}{f'; {passes} passes' if passes else ''}."]
    if table.get("data"):
        lines.append(f"Ours: {table['data']}.")
    of_paper = PAPER.get(table.get("paper_name", ""))
    if of_paper is not None and any(cell.get("paper") is not None for cell in table["cells"]):
        lines.append(f"The paper: {of_paper.train}; tested on {of_paper.test}.")
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


# --- heat maps --------------------------------------------------------------------------------------------------------


def closeness(table: Table) -> list[float]:
    """How close each cell is to the best of the table: 1 is best, 0 worst.

    The scale is the logarithm of the distance, in units of the median one: close ones are told apart even where others
    are far off.

    >>> cells = [{"mean": 90.0}, {"mean": 88.0}, {"mean": 86.0}, {"mean": 50.0}]
    >>> [round(value, 2) for value in closeness({"cells": cells, "higher_is_better": True})]
    [1.0, 0.81, 0.68, 0.0]
    """
    means = [cell["mean"] for cell in table["cells"]]
    if not means:
        return []
    best = max(means) if table.get("higher_is_better", True) else min(means)
    far = [abs(mean - best) for mean in means]
    typical = statistics.median(far) or max(far)
    if not typical:
        return [1.0] * len(far)
    return [1.0 - math.log1p(distance / typical) / math.log1p(max(far) / typical) for distance in far]


def level_with_best(cells: Sequence[Mapping[str, Any]], higher: bool) -> list[bool]:
    """Which cells are the best, or less than two standard errors behind.

    >>> level_with_best([{"mean": 1.0, "se": 0.1}, {"mean": 1.2, "se": 0.1}, {"mean": 3.0, "se": 0.1}], False)
    [True, True, False]
    """
    if not cells:
        return []
    best = (max if higher else min)(cells, key=lambda cell: cell["mean"])
    return [abs(c["mean"] - best["mean"]) <= 2.0 * math.hypot(_error(c), _error(best)) for c in cells]


def _error(cell: Mapping[str, Any]) -> float:
    values = cell.get("values") or [0.0]
    return float(cell["se"]) if cell.get("se") is not None else float(cell.get("sd") or 0.0) / math.sqrt(len(values))


def _heat_maps(table: Table) -> str:
    """One map for each learner, all with the same colours."""
    close = {id(cell): value for cell, value in zip(table["cells"], closeness(table))}
    maps = [_heat_map(table, learner, close) for learner in table["learners"]]
    key = (
        '<ul class="keys"><li><span>worst</span> <i class="ramp"></i> best of the table, by the logarithm of the '
        "distance</li>"
        "<li><span><b>bold</b>: best of its column, or level with it</span></li>"
        '<li><b class="chip">LOLS</b> the paper\'s algorithm</li>'
    )
    if any(cell.get("paper") is not None for cell in table["cells"]):
        key += '<li><span class="paper">paper</span> the figure that the paper prints</li>'
    body = f'<div class="heats">{"".join(maps)}</div>{key}</ul>'
    seeds = max((len(cell.get("values") or ()) for cell in table["cells"]), default=0)
    spread = f"mean ± standard deviation over {seeds} seeds" if seeds > 1 else "one seed"
    return figure(f"Every strategy under every teacher: {spread}", body, table.get("command", ""))


def _heat_map(table: Table, learner: str, close: Mapping[int, float]) -> str:
    cells = {(c["row"], c["teacher"]): c for c in table["cells"] if c["learner"] == learner}
    if not cells:
        return ""
    teachers = [t for t in table["teachers"] if any(of == t for _, of in cells)]
    rows = [r for r in table["rows"] if any(of == r for of, _ in cells)]
    best: set[int] = set()
    for teacher in teachers:
        column = [cells[row, teacher] for row in rows if (row, teacher) in cells]
        level = level_with_best(column, bool(table.get("higher_is_better", True)))
        best |= {id(cell) for cell, is_level in zip(column, level) if is_level}
    digits = paper_digits(table)
    body = []
    for row in rows:
        chip = ' <b class="chip">LOLS</b>' if row == LOLS else ""
        made = [f'<th scope="row">{escape(row_name(row))}{chip}</th>']
        for teacher in teachers:
            cell = cells.get((row, teacher))
            made.append("<td></td>" if cell is None else _cell(table, cell, close[id(cell)], id(cell) in best, digits))
        kind = "lols" if row == LOLS else "other"
        body.append(f'<tr class="{kind}">{"".join(made)}</tr>')
    head = "".join(f'<th scope="col">{escape(teacher)}</th>' for teacher in teachers)
    return (
        f'<div class="scroll"><table class="heat"><caption>{escape(learner_name(learner))}; teachers:</caption>'
        f'<thead><tr><th scope="col">roll-in / roll-out</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _cell(table: Table, cell: Mapping[str, Any], close: float, best: bool, digits: int) -> str:
    mean = f'<span class="mean">{show(table, cell["mean"])}</span>'
    several = len(cell.get("values") or ()) > 1
    spread = f' <span class="sd">± {show(table, cell["sd"])}</span>' if several and cell.get("sd") is not None else ""
    paper = cell.get("paper")
    printed = f'<span class="paper">paper {paper:.{digits}f}</span>' if paper is not None else ""
    kind = "best" if best else "rest"
    return f'<td style="--s:{close:.3f}" class="{kind}">{mean}{spread}{printed}</td>'


def paper_digits(table: Table) -> int:
    """As many decimals as the paper's figures have."""
    printed = [c["paper"] for c in table["cells"] if c.get("paper") is not None]
    return max((len(f"{value:.6g}".partition(".")[2]) for value in printed), default=0)


def _coins(table: Table) -> str:
    """LOLS with one coin for all deviations of a state, and with one for each roll-out."""
    cells = table.get("coins") or []
    if not cells:
        return ""
    words = {"state": "one coin for all deviations of a state (ours)", "rollout": "one coin for each roll-out"}
    rows = []
    for cell in cells:
        spread = f" ± {show(table, cell['sd'])}" if len(cell.get("values") or ()) > 1 else ""
        rows.append(
            [escape(words.get(cell["coin"], cell["coin"])), escape(cell["learner"]), show(table, cell["mean"]) + spread]
        )
    body = plain_table(["LOLS with", "learner", "mean"], rows, words=2)
    return figure("The coin that chooses who rolls out (optimal teacher)", body, table.get("command", ""))


# --- curves and β -----------------------------------------------------------------------------------------------------


def _curves(table: Table) -> str:
    curves = [curve for curve in table.get("curves") or [] if len(curve["passes"]) > 1]
    if not curves:
        return ""
    kinds = curve_kinds(curves)
    charts = [_curve_chart(table, curves, learner, teacher, kinds) for learner, teacher in _pairs(table, curves)]
    keys = legend(Key(kind, row_name(row) + (" (LOLS)" if row == LOLS else "")) for row, kind in kinds.items())
    return figure("Learning curves: after each pass, on the test part", panels(charts) + keys, table.get("command", ""))


def curve_kinds(curves: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The kind of each row that has a curve: LOLS is the first.

    >>> curve_kinds([{"row": "mine"}, {"row": "searn"}, {"row": "learned/mixture"}])
    {'learned/mixture': 0, 'searn': 3, 'mine': 5}
    """
    others = dict.fromkeys(curve["row"] for curve in curves if curve["row"] not in ORDER)
    kinds = {row: k % KINDS for k, row in enumerate([*ORDER, *others])}
    there = {curve["row"] for curve in curves}
    return {row: kind for row, kind in kinds.items() if row in there}


def _pairs(table: Table, entries: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    there = {(entry["learner"], entry["teacher"]) for entry in entries}
    for learner in table["learners"]:
        yield from ((learner, teacher) for teacher in table["teachers"] if (learner, teacher) in there)


def _curve_chart(
    table: Table, curves: Sequence[Mapping[str, Any]], learner: str, teacher: str, kinds: Mapping[str, int]
) -> str:
    """Both learners of a teacher have the same scale."""
    values = [value for curve in curves if curve["teacher"] == teacher for value in curve["values"]]
    passes = sorted({p for curve in curves for p in curve["passes"]})
    shown = passes if len(passes) <= 8 else passes[:: math.ceil(len(passes) / 6)]
    x = Scale(passes[0] - 0.15, passes[-1] + 0.15, "passes", ticks=[(p, str(p)) for p in shown])
    chart = Chart(f"{learner}, {teacher_name(teacher)}", x, Scale.around(values, unit(table)))
    mine = [c for c in curves if c["learner"] == learner and c["teacher"] == teacher]
    for curve in sorted(mine, key=lambda c: -kinds[c["row"]]):  # LOLS last, above the others
        points = list(zip(curve["passes"], curve["values"]))
        chart.line(points, kinds[curve["row"]], words=row_name(curve["row"]))
    return chart.svg()


def unit(table: Table) -> str:
    """What is measured, in a few letters."""
    return {"accuracy": "accuracy, %", "uas": "UAS, %", "cost": "average cost"}.get(table.get("metric", ""), "")


def _beta(table: Table) -> str:
    cells = (table.get("beta") or {}).get("cells") or []
    if not cells:
        return ""
    teachers = [t for t in table["teachers"] if any(cell["teacher"] == t for cell in cells)]
    kinds = {teacher: k % KINDS for k, teacher in enumerate(teachers)}
    reach = [cell["mean"] + sign * (cell.get("sd") or 0.0) for cell in cells for sign in (-1, 1)]
    charts = []
    for learner in table["learners"]:
        mine = [cell for cell in cells if cell["learner"] == learner]
        if not mine:
            continue
        chart = Chart(
            learner, Scale(-0.03, 1.03, "β, the probability of the reference"), Scale.around(reach, unit(table))
        )
        for teacher, kind in reversed(kinds.items()):
            here = sorted((c for c in mine if c["teacher"] == teacher), key=lambda c: float(c["beta"]))
            for cell in here:
                if cell.get("sd"):
                    chart.whisker(cell["beta"], cell["mean"] - cell["sd"], cell["mean"] + cell["sd"], kind)
            chart.line([(c["beta"], c["mean"]) for c in here], kind, words=teacher_name(teacher))
        charts.append(chart.svg())
    keys = legend(Key(kind, teacher_name(teacher)) for teacher, kind in kinds.items())
    note = "β = 0 rolls out with the learned policy only, β = 1 with the reference only."
    note += " All teachers give the same figures: their lines lie on each other." if _alike(cells) else ""
    note += " Whiskers: standard deviation over seeds." if any(cell.get("sd") for cell in cells) else ""
    return figure("LOLS by β", panels(charts) + keys, table.get("command", ""), note)


def _alike(cells: Sequence[Mapping[str, Any]]) -> bool:
    """Whether several teachers come out the same, for every learner and β."""
    means: dict[tuple[str, float], set[float]] = {}
    for cell in cells:
        means.setdefault((cell["learner"], cell["beta"]), set()).add(cell["mean"])
    return len({cell["teacher"] for cell in cells}) > 1 and all(len(found) == 1 for found in means.values())
