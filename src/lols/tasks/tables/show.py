"""A classifier's reports as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lols.tasks.explain import ExampleReport
from lols.tasks.show import plain_table, show_again, show_calibration, show_matrix, show_scores, styled, write

if TYPE_CHECKING:
    from rich.console import Console

    from lols.tasks.tables.explain import TreeWalk, Turn
    from lols.tasks.tables.scores import ClassScores

MOST = 24  # classes whose confusions or costs are shown as a table
WORST = 20  # confusions that are listed where there are more classes
WIDEST = 60  # columns that are listed
CHILDREN = 12  # of a node that are shown
CELLS = 400  # characters of a row
NONE = styled("·", "dim")  # a cell of a matrix


def unknown_text(unknown: dict[str, int]) -> list[str]:
    """How many cells had categories that training never showed, as a line if there are any."""
    if not unknown:
        return []
    columns = ", ".join(f"{name} {count:,}" for name, count in sorted(unknown.items(), key=lambda item: -item[1]))
    return [f"cells whose category training never showed, left out: {columns}"]


# --- evaluate ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassifierScores:
    """Cost, errors, which class was taken for which, and every class."""

    scores: ClassScores
    unknown: dict[str, int]
    plot: str | None = None
    note: str = ""  # on costs

    @classmethod
    def of_parts(cls, parts: Sequence[ClassifierScores]) -> ClassifierScores:
        """The scores of all parts of a table, from those of each."""
        import numpy as np

        from lols.training.calibration import added

        unknown: Counter[str] = Counter()
        for part in parts:
            unknown.update(part.unknown)
        scores = [part.scores for part in parts]
        rows = sum(each.rows for each in scores)
        confusion = np.sum([each.confusion for each in scores], axis=0)
        whole = replace(
            scores[0],
            rows=rows,
            cost=sum(each.cost * each.rows for each in scores) / rows,
            error=1.0 - float(np.trace(confusion)) / rows,
            confusion=confusion,
            reliability=added(each.reliability for each in scores),
        )
        return cls(whole, dict(unknown), note=next((part.note for part in parts if part.note), ""))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        drawn = {} if self.plot is None else {"plot": self.plot}
        return self.scores.as_dict() | {"unknown": self.unknown} | drawn | ({"note": self.note} if self.note else {})

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print them."""
        found = self.scores
        headline = f"cost {found.cost:.4f} per row on {found.rows:,} rows, error {100 * found.error:.2f} %"
        write(console, headline)
        if self.note:
            write(console, self.note)
        for line in unknown_text(self.unknown):
            write(console, line)
        show_calibration(console, found.reliability)
        write(console)
        classes, confusion = [str(name) for name in found.classes], found.confusion.tolist()
        if len(classes) <= MOST:
            cells = [[_count_cell(n, k == j) for j, n in enumerate(row)] for k, row in enumerate(confusion)]
            show_matrix(console, "true \\ predicted", classes, cells)
        else:
            _show_worst(console, classes, confusion)
        write(console)
        lines = show_scores(console, "class", found.by_class(), whole=whole)
        show_again(console, [headline], lines + (len(classes) if len(classes) <= MOST else 0))
        if self.plot is not None:
            write(console, f"\n{self.plot} written")


def _count_cell(count: int, right: bool) -> Any:
    return NONE if not count else styled(f"{count:,}", "bold") if right else f"{count:,}"


def _show_worst(console: Console, classes: list[str], confusion: list[list[int]]) -> None:
    pairs = [(n, a, b) for a, row in enumerate(confusion) for b, n in enumerate(row) if n and a != b]
    pairs.sort(key=lambda pair: -pair[0])
    more = f" and {len(pairs) - WORST} more" if len(pairs) > WORST else ""
    write(console, "most frequent mistakes (true → predicted):")
    listed = ", ".join(f"{classes[a]} → {classes[b]} {n:,}" for n, a, b in pairs[:WORST])
    write(console, listed + more)


# --- explain ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassifierReport(ExampleReport):
    """How a row of a file is classified."""

    walk: TreeWalk
    cells: list[str]
    place: str

    def values(self) -> dict[str, Any]:
        """The explanation as plain values."""
        return self.walk.as_dict()

    def show(self, console: Console) -> None:
        """Print the row, and every decision with its features."""
        walk = self.walk
        write(console, f"Row {self.number:,} of {self.file} ({self.place}), by {self.model}")
        text = ", ".join(self.cells)
        write(console, text if len(text) <= CELLS else text[: CELLS - 2] + " …", style="dim")
        write(console, _verdict(walk))
        for turn in walk.turns:
            _show_turn(console, turn, walk.true)
        costs = "; cost: of the cheapest class below" if walk.true is not None else ""
        write(console, f"\n→ the child taken; predicted: its cost as the model predicts it{costs}")
        if any(turn.reasons for turn in walk.turns):
            write(console, "because: + lowered the predicted cost of the child taken against the others, - raised it")


def _verdict(walk: TreeWalk) -> str:
    if walk.true is None:
        return f"predicted {walk.predicted}"
    if walk.predicted == walk.true:
        return f"predicted {walk.predicted}, which is right"
    return f"predicted {walk.predicted}, true {walk.true}: a cost of {walk.cost:g}"


def _show_turn(console: Console, turn: Turn, true: str | None) -> None:
    write(console, f"\nnode {turn.node}")
    numbers = ["predicted", *([] if true is None else ["cost"])]
    table = plain_table("", "child", right=numbers, padding=(0, 2, 0, 0))
    children = sorted(turn.children, key=lambda child: child.predicted) if len(turn.children) > 2 else turn.children
    for k, child in enumerate(children):
        if k >= CHILDREN and not child.taken and true not in child.classes:
            continue
        style = ("bold red" if turn.costly else "bold") if child.taken else "default"
        mark = " ✓" if true in child.classes else ""
        cost = [] if child.cost is None else [f"{child.cost:g}"]
        name = styled(child.name + mark, style)
        table.add_row("→" if child.taken else "", name, f"{child.predicted:.3f}", *cost)
    write(console, table, soft_wrap=False)
    if len(children) > CHILDREN:
        write(console, f"  and others, {len(children)} in all", style="dim")
    if turn.reasons:
        reasons = "   ".join(f"{reason.push:+.3f} {reason.feature}" for reason in turn.reasons)
        write(console, f"  because {reasons}")


# --- inspect ----------------------------------------------------------------------------------------------------------


def show_tree_and_columns(console: Console, found: dict[str, Any]) -> None:
    """The tree of classes, what mistakes cost, and the columns."""
    write(console, "\ntree of classes: decisions by their number")
    for line in drawn(found["tree"]):
        write(console, "  " + line)
    classes, matrix = found["classes"], found["cost_matrix"]
    if matrix is not None and len(classes) <= MOST:
        write(console)
        cells = [[f"{cost:g}" if cost else NONE for cost in row] for row in matrix]
        show_matrix(console, "cost: true \\ predicted", classes, cells)
    if isinstance(found["columns"], int):
        return
    write(console)
    table = plain_table("column", "holds", "background: no feature")
    for column in found["columns"][:WIDEST]:
        one, more = ("bin", "bins") if column["kind"] == "number" else ("category", "categories")
        holds = f"{column['values']:,} {one if column['values'] == 1 else more}"
        holds = "words" if column["kind"] == "text" else holds
        often = (column["background"] or "").removeprefix(column["name"]).strip()
        table.add_row(column["name"], holds, often)
    write(console, table)
    if len(found["columns"]) > WIDEST:
        write(console, f"and {len(found['columns']) - WIDEST} more")


def drawn(tree: Any) -> list[str]:
    """A tree as indented lines; nodes are numbered as the model numbers them.

    >>> print("\\n".join(drawn([["a", "b"], "c"])))
    0
    ├─ 1
    │  ├─ a
    │  └─ b
    └─ c
    """
    numbers = iter(range(1 << 30))

    def lines(part: Any) -> list[str]:
        if not isinstance(part, list):
            return [str(part)]
        made = [str(next(numbers))]
        for k, child in enumerate(part):
            last = k == len(part) - 1
            first, *rest = lines(child)
            made.append(("└─ " if last else "├─ ") + first)
            made += [("   " if last else "│  ") + line for line in rest]
        return made

    return lines(tree)
