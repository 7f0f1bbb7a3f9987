"""What the paper's Tables 2, 3 and 4 say, from `paper.toml`, and with what error.

A row is a roll-in and a roll-out; LOLS is `learned/mixture`, as the paper's green cells are.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from lols.datasets.small_worlds import ROLL_INS, ROLL_OUTS

CITATION = "Chang, Krishnamurthy, Agarwal, Daumé III & Langford 2015"
TEACHERS = ("optimal", "suboptimal", "bad")
STRATEGIES = tuple(f"{roll_in}/{roll_out}" for roll_in in ROLL_INS for roll_out in ROLL_OUTS)
LOLS = "learned/mixture"


def data_file(name: str) -> dict[str, Any]:
    """What a TOML file of this folder has."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


class PaperTable(NamedTuple):
    """One of the paper's tables."""

    number: int
    task: str
    metric: str
    figures: dict[str, dict[str, float]]  # by teacher, then by row
    best: dict[str, tuple[str, ...]]  # the rows in bold
    train: str
    test: str
    items: int  # what was tested on: rows, or words
    most: float  # the most that one of them can cost

    @property
    def scale(self) -> float:
        """What shares are multiplied by: they are printed in percent, costs as they are."""
        return 1.0 if self.metric == "cost" else 100.0


def _printed(figures: dict[str, list[float]], best: dict[str, list[str]], **facts: Any) -> PaperTable:
    by_row = {teacher: dict(zip((*STRATEGIES, "searn"), row, strict=True)) for teacher, row in figures.items()}
    return PaperTable(figures=by_row, best={teacher: tuple(rows) for teacher, rows in best.items()}, **facts)


PAPER = {name: _printed(**facts) for name, facts in data_file("paper.toml").items()}


def paper_figure(table: str, teacher: str, row: str) -> float | None:
    """The figure that the paper prints, or None.

    >>> paper_figure("table4", "bad", "learned/mixture"), paper_figure("table3", "bad", "searn")
    (89.4, None)
    """
    return PAPER[table].figures.get(teacher, {}).get(row)


def paper_error(table: str, value: float) -> float:
    """The standard error of one of the paper's figures, of which it prints none: that of its test part.

    Each row or word counts as drawn on its own. A share's error then follows from the share; a cost that is at most m
    with the mean c has a variance of at most (m - c) c, and that is taken.

    >>> round(paper_error("table3", 94.13), 3), round(paper_error("table4", 90.5), 2)
    (0.046, 0.12)
    >>> round(paper_error("table2", 0.266), 4)
    0.0018
    """
    of = PAPER[table]
    return sampling_error(value / of.scale, of.items, of.most) * of.scale


def sampling_error(mean: float, items: int, most: float) -> float:
    """The largest standard error that the mean of `items` values from 0 to `most` can have."""
    return float((max(most - mean, 0.0) * max(mean, 0.0) / max(items, 1)) ** 0.5)
