"""What the paper says: Tables 2, 3 and 4 as data, and its text claim by claim.

All figures are from Chang, Krishnamurthy, Agarwal, Daumé III & Langford 2015, "Learning to search better than your
teacher" (ICML), section 6. A row is a roll-in and a roll-out; LOLS is `learned/mixture`, as the paper's green cells
are. Searn's figures stand in the captions.
"""

from __future__ import annotations

from typing import NamedTuple

from lols.datasets.small_worlds import ROLL_INS, ROLL_OUTS

CITATION = "Chang, Krishnamurthy, Agarwal, Daumé III & Langford 2015"
TEACHERS = ("optimal", "suboptimal", "bad")
STRATEGIES = tuple(f"{roll_in}/{roll_out}" for roll_in in ROLL_INS for roll_out in ROLL_OUTS)
LOLS = "learned/mixture"


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


def _table(*numbers: float, searn: float) -> dict[str, float]:
    """Figures in the paper's order, roll-ins from top to bottom and roll-outs from left to right."""
    return {**dict(zip(STRATEGIES, numbers, strict=True)), "searn": searn}


# The sizes of the test parts: Table 2's is in the paper. Table 3's is "11k sentences" there, of 23.85 words each (the
# Wall Street Journal part of the Penn Treebank 3 has 1,173,766 words in 49,208 sentences). Table 4's is section 23 of
# it, which has 56,684 words.
PAPER = {
    "table2": PaperTable(
        2, "classification", "cost",
        {"optimal": _table(0.282, 0.282, 0.279, 0.267, 0.266, 0.266, searn=0.281),
         "bad": _table(1.670, 1.664, 0.316, 0.266, 0.266, 0.266, searn=0.282)},
        {"optimal": (LOLS, "learned/learned"), "bad": ("learned/reference", LOLS, "learned/learned")},
        "KDD Cup 99, 4,898,431 rows", "KDD Cup 99, 311,029 rows", 311_029, 4.0,
    ),
    "table3": PaperTable(
        3, "tagging", "accuracy", {"optimal": _table(95.58, 94.12, 94.10, 95.61, 94.13, 94.10, searn=94.88)},
        {"optimal": ("learned/reference",)},
        "Penn Treebank, 38k sentences", "Penn Treebank, 11k sentences", 262_000, 1.0,
    ),
    "table4": PaperTable(
        4, "parsing", "uas",
        {"optimal": _table(87.2, 89.7, 88.2, 90.7, 90.5, 86.9, searn=84.0),
         "suboptimal": _table(83.3, 87.2, 81.6, 87.1, 90.2, 86.8, searn=81.1),
         "bad": _table(68.7, 65.4, 66.7, 75.8, 89.4, 87.5, searn=63.4)},
        {"optimal": ("learned/reference",), "suboptimal": (LOLS,), "bad": (LOLS,)},
        "Penn Treebank, sections 02-21", "Penn Treebank, section 23", 56_684, 1.0,
    ),
}  # fmt: skip


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
