"""The paper's claims and ours, judged: by the paper's text, by its own tables, and by our runs.

A difference below two standard errors counts as none. Ours are over seeds; few seeds may agree by chance, so the
deviation is not taken to be less than that of all strategies under the same teacher together. With one seed, and for
the paper's tables, which print none, the error is that of the test part, as if its words or rows were drawn
independently. A point is one of a hundred: a percent, or 0.01 of average cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lols.reproduction.document import TEXTS, Values
from lols.reproduction.paper import LOLS, STRATEGIES, TEACHERS, paper_error, paper_figure

HOLDS, FAILS, LEVEL, UNMEASURED = "holds", "fails", "no difference", "not measured"
SEARN = "searn"


class Measured(NamedTuple):
    """A figure and its standard error."""

    mean: float
    error: float


class Difference(NamedTuple):
    """How much better one figure is than another, and two standard errors of that, in points."""

    gain: float
    twice: float

    @property
    def sign(self) -> int:
        """1 if it is better, -1 if worse, 0 if there is no difference."""
        return 0 if abs(self.gain) <= self.twice else int(math.copysign(1, self.gain))


class Judgement(NamedTuple):
    """A word, and the figures behind it."""

    word: str
    detail: str = ""
    gains: Sequence[Difference] = ()  # what is compared


class Figures(NamedTuple):
    """All figures for one teacher and learner, of ours or of the paper."""

    rows: Mapping[str, Measured]
    higher: bool
    points: float  # how much a point is
    betas: Mapping[float, Measured] = {}
    coin: Measured | None = None  # LOLS with one coin per roll-out

    def compared(self, one: Measured, other: Measured) -> Difference:
        """How much better a figure is than another."""
        gain = one.mean - other.mean if self.higher else other.mean - one.mean
        return Difference(gain / self.points, 2.0 * math.hypot(one.error, other.error) / self.points)

    def within(self, allowed: float, one: Measured, other: Measured, detail: str) -> Judgement:
        """Whether a figure is ahead of another by what is allowed at most, or by no difference."""
        found = self.compared(one, other)
        return Judgement(HOLDS if found.gain <= max(allowed, found.twice) else FAILS, detail, [found])

    def show(self, value: float) -> str:
        """A figure as it is printed."""
        return f"{value:.2f}" if self.points == 1.0 else f"{value:.4f}"

    def versus(self, one: Measured, other: Measured) -> str:
        """Two figures side by side."""
        twice = self.compared(one, other).twice * self.points
        return f"{self.show(one.mean)} vs {self.show(other.mean)} (2 se = {self.show(twice)})"


# --- what is compared, and by how much one may be ahead of the other; None where figures are missing ------------------

Picked = tuple[Measured, Measured, Mapping[str, Any]]  # two figures, and what fills in the claim's `detail`


def _best_other(of: Figures, own: str) -> Picked | None:
    """The best of the paper's other rows, and one row."""
    others = {row: of.rows[row] for row in (*STRATEGIES, SEARN) if row in of.rows and row != own}
    if own not in of.rows or len(others) < len(STRATEGIES):
        return None
    best = max(others, key=lambda row: of.compared(others[row], of.rows[own]).gain)
    behind = of.compared(others[best], of.rows[own]).gain
    versus = of.versus(of.rows[own], others[best])
    return others[best], of.rows[own], {"best": best, "behind": behind, "versus": versus}


def _betas(of: Figures, _: str) -> Picked | None:
    """Of mixtures proper: the best β, and the worst."""
    inner = {beta: figure for beta, figure in of.betas.items() if 0.0 < beta < 1.0}
    if len(inner) < 2:
        return None
    order = sorted(inner, key=lambda beta: of.compared(inner[beta], next(iter(inner.values()))).gain)
    worst, best = inner[order[0]], inner[order[-1]]
    return best, worst, {"best": order[-1], "worst": order[0], "versus": of.versus(best, worst)}


def _roll_outs(of: Figures, _: str) -> Picked | None:
    """Reference roll-outs, and the worse of mixture and learned ones."""
    rows = ("learned/reference", LOLS, "learned/learned")
    if not all(row in of.rows for row in rows):
        return None
    top, *others = (of.rows[row] for row in rows)
    worst = min(others, key=lambda row: of.compared(row, top).gain)
    coin = "" if of.coin is None else f"; one coin per roll-out: {of.show(of.coin.mean)}"
    return top, worst, {"versus": of.versus(top, worst), "coin": coin}


PICKS: dict[str, Callable[[Figures, str], Picked | None]] = {
    "best other": _best_other, "betas": _betas, "roll-outs": _roll_outs,
}  # fmt: skip


class Claim(NamedTuple):
    """Something that is said of strategies; `texts.toml` has all of them."""

    id: str
    words: str
    compared: str  # the first of two figures, and the other
    detail: str
    pairs: Sequence[tuple[str, str, str]] = ()  # a label and two rows, the first of which is better
    pick: str = ""  # or: which two figures are compared
    row: str = ""  # and with which row
    points: float = 0.0  # how many points the first may be ahead
    teachers: Sequence[str] = TEACHERS
    tasks: Sequence[str] = ("classification", "tagging", "parsing")
    ours_only: bool = False
    text: str = HOLDS  # what the paper's text says
    tagging: str = ""  # and of tagging, where it says something else

    def judge(self, of: Figures) -> Judgement | None:
        """Whether it holds; None where figures are missing."""
        if not self.pairs:
            picked = PICKS[self.pick](of, self.row)
            return picked and of.within(self.points, *picked[:2], self.detail.format(**picked[2]))
        if not all(row in of.rows for pair in self.pairs for row in pair[1:]):
            return None
        rows = [(of.rows[row], of.rows[other]) for _, row, other in self.pairs]
        gains = [of.compared(*pair) for pair in rows]
        signs = [gain.sign for gain in gains]
        detail = "; ".join(label + of.versus(*pair) for (label, *_), pair in zip(self.pairs, rows))
        return Judgement(FAILS if -1 in signs else HOLDS if 1 in signs else LEVEL, self.detail + detail, gains)


CLAIMS = tuple(Claim(**facts) for facts in TEXTS["claims"])


def judge_claims(tables: Mapping[str, Values]) -> list[dict[str, Any]]:
    """Every claim for every table, teacher and learner of which there are figures."""
    return [
        entry
        for claim in CLAIMS
        for name, table in tables.items()
        if table["task"] in claim.tasks
        for teacher in claim.teachers
        if teacher in table["teachers"]
        for entry in _of_teacher(claim, name, table, teacher)
    ]


def _of_teacher(claim: Claim, name: str, table: Values, teacher: str) -> Iterator[dict[str, Any]]:
    paper = name == table["paper_name"]  # the paper's figures are judged once, not again for further data sets
    printed = (claim.judge(_printed(table, teacher)) if paper else None) or Judgement(UNMEASURED)
    for learner in table["learners"]:
        ours = claim.judge(_ours(table, teacher, learner))
        if ours is not None:
            yield {
                "id": claim.id,
                "claim": claim.words,
                "ours_only": claim.ours_only,
                "table": name,
                "task": table["task"],
                "teacher": teacher,
                "learner": learner,
                "text": claim.tagging if claim.tagging and table["task"] == "tagging" else claim.text,
                "paper": printed.word,
                "ours": ours.word,
                "detail": ours.detail,
                "compared": claim.compared,
                "gains": [list(gain) for gain in ours.gains],
                "paper_detail": printed.detail,
            }


def _ours(table: Values, teacher: str, learner: str) -> Figures:
    def mine(cells: Sequence[Values] | None, key: str) -> dict[Any, Measured]:
        here = (cell for cell in cells or () if cell["teacher"] == teacher and cell["learner"] == learner)
        return {cell[key]: Measured(cell["mean"], cell["se"]) for cell in here}

    betas, coins = mine((table["beta"] or {}).get("cells"), "beta"), mine(table["coins"], "coin")
    rows = mine(table["cells"], "row")
    return Figures(rows, table["higher_is_better"], table["points"], betas, coins.get("rollout"))


def _printed(table: Values, teacher: str) -> Figures:
    name = table["paper_name"]
    known = {row: paper_figure(name, teacher, row) for row in (*STRATEGIES, SEARN)}
    rows = {row: Measured(value, paper_error(name, value)) for row, value in known.items() if value is not None}
    return Figures(rows, table["higher_is_better"], table["points"])


# --- judgements together ----------------------------------------------------------------------------------------------


def by_id(claims: Iterable[Values]) -> dict[str, list[Values]]:
    """Judgements of the same claim together."""
    groups: dict[str, list[Values]] = {}
    for claim in claims:
        groups.setdefault(str(claim["id"]), []).append(claim)
    return groups


def seen(entries: Sequence[Values]) -> list[str]:
    """What was seen, without a judgement: differences, two standard errors, and how many differ by more than these.

    >>> seen([{"gains": [[1.5, 0.4], [0.0, 0.1]]}, {"gains": [[-0.125, 0.25]]}])
    ['-0.12 to +1.50', '0.10 to 0.40', '1 of 3', '0 of 3']
    """
    gains = [tuple(gain) for entry in entries for gain in entry["gains"]]
    above, below = (sum(sign * gain > twice for gain, twice in gains) for sign in (1, -1))
    spans = [_span(values, digits) for values, digits in zip(zip(*gains), ("+.2f", ".2f"))]
    return [*spans, f"{above} of {len(gains)}", f"{below} of {len(gains)}"]


def _span(values: Sequence[float], digits: str) -> str:
    low, high = f"{min(values):{digits}}", f"{max(values):{digits}}"
    return low if low == high else f"{low} to {high}"


def overall(words: Sequence[str]) -> str:
    """Many judgements of one claim as one.

    >>> overall(["holds", "holds"]), overall(["holds", "no difference"]), overall(["holds", "fails"])
    ('holds', 'holds in part', 'mixed')
    >>> overall(["no difference", "fails"]), overall(["not measured"]), overall(["fails"])
    ('fails in part', 'not measured', 'fails')
    """
    if len(set(words)) == 1:
        return words[0]
    holds, fails = HOLDS in words, FAILS in words
    return "mixed" if holds and fails else "holds in part" if holds else "fails in part" if fails else LEVEL


def case_count(words: Sequence[str]) -> str:
    """How often each judgement came out; cases that were not measured do not count.

    >>> case_count(["holds", "fails", "holds"]), case_count(["holds", "holds"]), case_count(["fails"])
    ('holds in 2 of 3 cases, fails in 1', 'holds in all 2 cases', 'fails in the only case')
    """
    counts = {word: words.count(word) for word in (HOLDS, LEVEL, FAILS) if word in words}
    total = sum(counts.values())
    cases = "cases" if total > 1 else "case"
    if len(counts) == 1:
        return f"{next(iter(counts))} in {f'all {total}' if total > 1 else 'the only'} {cases}"
    parts = [f"{word} in {times}" for word, times in counts.items()]
    return ", ".join([f"{parts[0]} of {total} {cases}", *parts[1:]]) if parts else ""


def place_of(claim: Values) -> str:
    """Where a judgement was made.

    >>> place_of({"task": "tagging", "table": "table3-craft", "teacher": "bad"})
    'tagging, CRAFT: bad teacher'
    """
    further = str(claim.get("table", "")).partition("-")[2]  # the data set, where it is not the first one
    return f"{claim['task']}{f', {further.upper()}' if further else ''}: {claim['teacher']} teacher"


def where_fails(entries: Sequence[Values]) -> str:
    """Where a claim fails, and with which learners.

    >>> at = {"task": "tagging", "table": "table3", "teacher": "bad", "learner": "csoaa", "ours": "fails"}
    >>> where_fails([at, at | {"learner": "hinge"}, at | {"teacher": "optimal", "ours": "holds"}])
    'tagging: bad teacher (csoaa, hinge)'
    """
    learners: dict[str, list[str]] = {}
    for entry in entries:
        if entry["ours"] == FAILS:
            learners.setdefault(place_of(entry), []).append(str(entry["learner"]))
    return "; ".join(f"{place} ({', '.join(names)})" for place, names in learners.items())
