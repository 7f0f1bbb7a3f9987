"""An explanation as one HTML page that needs nothing else: the path, its deviations and what they cost, drawn as SVG.

The drawing follows Figure 2 of the paper. A dot is a state; the thick line through it is the path taken; curves are
one-step deviations, dashes the roll-outs that complete them, and numbers the losses at their ends. Better deviations
are above the path, the others below. The markup is in `templates/explain.html.j2`, the places are computed here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from lols.tasks.tagging.explain import Explanation, LabelDeviation, WordDecision
from lols.tasks.tokens.pages import number, render

WIDTH = 1120  # of a line of words, in pixels
ROW, CHIP = 28, 22  # from one deviation to the next, and the height of a label
BRANCH, DASH, GAP = 30, 18, 16
LETTER, SMALL, MARK = 7.3, 6.7, 10  # widths of characters of labels and of losses, and of the sign for the true label
WORD_LETTER = 8.4
TOP = 30  # room for the words
MARGIN, EDGE = 84, 10  # beside the end of the path, and on the other side


def page(made: Explanation, *, heading: str, about: Sequence[str] = (), top: int = 5) -> str:
    """The whole page: a heading, lines about it, the drawing, and a table for each word.

    >>> from lols.tasks.tagging.explain import Explanation, LabelDeviation, WordDecision
    >>> word = WordDecision(1, "<b>", "V", "N", (LabelDeviation("N", -0.5, 1.0, 1.0, True, False),))
    >>> text = page(Explanation((word,), "hamming", "forward", 1.0, "learned"), heading="Sentence 1")
    >>> "&lt;b&gt;" in text, "<b>" in text, "http://" in text.replace("http://www.w3.org/2000/svg", "")
    (True, False, False)
    """
    lines = _lines(made, top)
    backward = made.direction == "backward"
    last = 0 if backward else len(lines) - 1
    return render(
        Path(__file__).parent / "templates" / "explain.html.j2",
        heading=heading,
        about=[*about, made.note],
        made=made,
        backward=backward,
        entries=_legend(made),
        lines=[_placed(columns, backward, k == last) for k, columns in enumerate(lines)],
        BRANCH=BRANCH,
        CHIP=CHIP,
        DASH=DASH,
    )


class _Column:
    """A word and its deviations, with the places at which they are drawn.

    Distances are along the path; `x` mirrors them where the last word was tagged first.
    """

    def __init__(self, made: Explanation, decision: WordDecision, top: int):
        self.made, self.decision = made, decision
        self.backward = made.direction == "backward"
        labels = [decision.taken, *(d for d in decision.shown(top) if not d.taken)]
        self.better = [d for d in labels[1:] if self.compared(d) < 0]
        self.others = [d for d in labels[1:] if self.compared(d) >= 0]
        self.chip = max(LETTER * _letters(d.label) + 16 + MARK * (d.true or d.taken) for d in labels)
        needed = BRANCH + self.chip + DASH + max(SMALL * len(self.shown(d)) for d in labels) + GAP
        self.width = max(needed, BRANCH + WORD_LETTER * _letters(decision.word) + GAP)
        self.left = 0.0

    def x(self, along: float, size: float = 0.0) -> float:
        """The left edge of something `size` wide that lies `along` the column."""
        return self.left + (self.width - along - size if self.backward else along)

    def places(self, path: float) -> Iterator[tuple[LabelDeviation, float]]:
        """The deviations and their heights, if the path has the height `path`."""
        for sign, deviations in ((-1, self.better), (1, self.others)):
            for k, deviation in enumerate(deviations, 1):
                yield deviation, path + sign * (ROW * k + 4)

    def compared(self, deviation: LabelDeviation) -> float:
        """How much more a deviation costs than the label taken; 0 if that is unknown."""
        if deviation.cost is None or self.decision.taken.cost is None:
            return 0.0
        difference = deviation.cost - self.decision.taken.cost
        return difference if abs(difference) > 1e-6 else 0.0

    def kind(self, deviation: LabelDeviation) -> str:
        """How a deviation compares with the label taken."""
        order = self.compared(deviation)
        return "unknown" if deviation.cost is None else "better" if order < 0 else "worse" if order > 0 else "same"

    def shown(self, deviation: LabelDeviation) -> str:
        """The number beside a label: the loss at the end, or the cost, or how much more it is predicted to cost."""
        if deviation.loss is not None:
            return number(deviation.loss)
        if deviation.cost is not None:
            return number(deviation.cost, signed=True)
        return "" if deviation.taken else f"{deviation.predicted - self.decision.taken.predicted:+.2f}"

    def sentence(self, deviation: LabelDeviation) -> str:
        """Everything about a label, for a tooltip."""
        lines = [f"{deviation.label} for “{self.decision.word}”{', taken' if deviation.taken else ''}"]
        lines[0] += ", the true label" if deviation.true else ""
        lines.append(f"predicted cost {number(deviation.predicted)}")
        if deviation.loss is not None:
            lines.append(f"loss {number(deviation.loss)} after the roll-out")
        if deviation.cost is not None:
            lines.append(f"costs {number(deviation.cost)} more than the best label here")
        return "\n".join(lines)


class _Line(NamedTuple):
    """A line of words: its size, the height of the path, where it ends, and whether the search ends here."""

    columns: Sequence[_Column]
    width: float
    height: float
    path: float
    end: float
    last: bool


def _lines(made: Explanation, top: int) -> list[list[_Column]]:
    """Columns in reading order, on as few lines as possible, all about equally long."""
    columns = [_Column(made, decision, top) for decision in sorted(made.decisions, key=lambda d: d.place)]
    full = _filled(columns, WIDTH)
    shares = (_filled(columns, share * WIDTH) for share in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9))
    return next((even for even in shares if len(even) == len(full)), full)


def _filled(columns: Sequence[_Column], most: float) -> list[list[_Column]]:
    """Lines, each as full as `most` pixels allow."""
    lines: list[list[_Column]] = [[]]
    for column in columns:
        if lines[-1] and sum(c.width for c in lines[-1]) + column.width > most:
            lines.append([])
        lines[-1].append(column)
    return lines


def _placed(columns: Sequence[_Column], backward: bool, last: bool) -> _Line:
    path = TOP + ROW * max(len(c.better) for c in columns) + 24
    height = path + ROW * max(len(c.others) for c in columns) + 24
    edges = list(accumulate((c.width for c in columns), initial=float(MARGIN if backward else EDGE)))
    for column, left in zip(columns, edges, strict=False):
        column.left = left
    end = edges[0] if backward else edges[-1]
    return _Line(columns, edges[-1] + (EDGE if backward else MARGIN), height, path, end, last)


def _letters(text: str) -> int:
    """How wide a text is, in letters."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)


def _legend(made: Explanation) -> list[tuple[str, str, str]]:
    entries = [("key path", "", "the path taken"), ("key branch", "", "a deviation")]
    if made.roll_out not in (None, "none"):
        entries.append(("key dashes", "", "its roll-out, and the loss of the sentence at the end"))
    if made.roll_out is None:
        return [*entries, ("", "+0.5", "how much more a label is predicted to cost")]
    signs = [("better", "0", "better than the path (above it)"), ("worse", "2", "worse"), ("", "✓", "the true label")]
    return [*entries, *signs]
