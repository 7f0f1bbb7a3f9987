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

from lols.datasets.small_worlds import ROLL_OUTS
from lols.reproduction.paper import LOLS, STRATEGIES, TEACHERS, paper_error, paper_figure

HOLDS, FAILS, LEVEL, UNSAID, UNMEASURED = "holds", "fails", "no difference", "not said", "not measured"
WITHIN = 0.3  # points: how close to the best is close enough
STEADY = 0.5  # points: how far apart values of β may be
SEARN = "searn"


class Measured(NamedTuple):
    """A figure and its standard error."""

    mean: float
    error: float


class Judgement(NamedTuple):
    """A word, and the figures behind it."""

    word: str
    detail: str = ""
    gains: Sequence[tuple[float, float]] = ()  # what is compared: differences in points, each with two standard errors


class Figures(NamedTuple):
    """All figures for one teacher and learner, of ours or of the paper."""

    rows: Mapping[str, Measured]
    higher: bool
    points: float  # how much a point is
    betas: Mapping[float, Measured] = {}
    coin: Measured | None = None  # LOLS with one coin per roll-out

    def gain(self, row: Measured, other: Measured) -> float:
        """How much better a row is than another, in points."""
        return (row.mean - other.mean if self.higher else other.mean - row.mean) / self.points

    def twice(self, row: Measured, other: Measured) -> float:
        """Two standard errors of that, in points."""
        return 2.0 * math.hypot(row.error, other.error) / self.points

    def better(self, row: Measured, other: Measured) -> int:
        """1 if a row is better than another, -1 if worse, 0 if there is no difference."""
        gain = self.gain(row, other)
        return 0 if abs(gain) <= self.twice(row, other) else int(math.copysign(1, gain))

    def within(self, allowed: float, row: Measured, other: Measured, detail: str) -> Judgement:
        """Whether a row is ahead of another by what is allowed at most, or by no difference."""
        gain, twice = self.gain(row, other), self.twice(row, other)
        return Judgement(HOLDS if gain <= max(allowed, twice) else FAILS, detail, [(gain, twice)])

    def show(self, row: Measured) -> str:
        """A figure as it is printed."""
        return f"{row.mean:.2f}" if self.points == 1.0 else f"{row.mean:.4f}"

    def versus(self, row: Measured, other: Measured) -> str:
        """Two figures side by side."""
        twice = self.twice(row, other) * self.points
        return f"{self.show(row)} vs {self.show(other)} (2 se = {twice:.{2 if self.points == 1.0 else 4}f})"


Judge = Callable[[Figures], Judgement | None]


def _beats(intro: str, *pairs: tuple[str, str, str]) -> Judge:
    """A judge of pairs, each with a label and two rows: holds if a first row is better than its second, and none worse.

    All judges return None where figures are missing.
    """

    def judge(of: Figures) -> Judgement | None:
        if not all(row in of.rows for pair in pairs for row in pair[1:]):
            return None
        compared = [(of.rows[row], of.rows[other]) for _, row, other in pairs]
        signs = [of.better(*pair) for pair in compared]
        detail = "; ".join(label + of.versus(*pair) for (label, *_), pair in zip(pairs, compared))
        gains = [(of.gain(*pair), of.twice(*pair)) for pair in compared]
        return Judgement(FAILS if -1 in signs else HOLDS if 1 in signs else LEVEL, intro + detail, gains)

    return judge


def _near_the_best(own: str, allowed: float, words: str) -> Judge:
    """A judge of one row against the best of the paper's other rows: how many points it may be behind."""

    def judge(of: Figures) -> Judgement | None:
        others = {row: of.rows[row] for row in (*STRATEGIES, SEARN) if row in of.rows and row != own}
        if own not in of.rows or len(others) < len(STRATEGIES):
            return None
        best = max(others, key=lambda row: of.gain(others[row], of.rows[own]))
        behind = of.gain(others[best], of.rows[own])
        detail = f"{words.format(best=best, behind=behind)}: {of.versus(of.rows[own], others[best])}"
        return of.within(allowed, others[best], of.rows[own], detail)

    return judge


def _beta(of: Figures) -> Judgement | None:
    """Of mixtures proper: the best β against the worst."""
    inner = {beta: figure for beta, figure in of.betas.items() if 0.0 < beta < 1.0}
    if len(inner) < 2:
        return None
    order = sorted(inner, key=lambda beta: of.gain(inner[beta], next(iter(inner.values()))))
    worst, best = inner[order[0]], inner[order[-1]]
    detail = f"β = {order[-1]:g} vs {order[0]:g}: {of.versus(best, worst)}; up to {STEADY} points are steady"
    return of.within(STEADY, best, worst, detail)


def _gap(of: Figures) -> Judgement | None:
    """What mixture and learned roll-outs lose to reference roll-outs."""
    rows = [of.rows.get(row) for row in ("learned/reference", LOLS, "learned/learned")]
    if None in rows:
        return None
    top, *others = (row for row in rows if row is not None)
    worst = min(others, key=lambda row: of.gain(row, top))
    coin = "" if of.coin is None else f"; one coin per roll-out: {of.show(of.coin)}"
    detail = f"reference vs the worse of mixture and learned: {of.versus(top, worst)}{coin}"
    return of.within(WITHIN, top, worst, detail)


class Claim(NamedTuple):
    """Something that is said of strategies."""

    id: str
    words: str
    compared: str  # the first of two figures, and the other
    judge: Judge
    teachers: tuple[str, ...] = TEACHERS
    tasks: tuple[str, ...] = ("classification", "tagging", "parsing")
    ours_only: bool = False
    # What the text says; of tagging it says that all teachers are alike there, so that some claims are not made of it.
    text: str = HOLDS
    tagging: str | None = None


OPTIMAL, POOR = TEACHERS[:1], TEACHERS[1:]
REFERENCE, LEARNED = "learned/reference", "learned/learned"
CLAIMS = (
    Claim("roll-in-reference-is-bad", "rolling in with the reference is bad", "learned less reference roll-in",
          _beats("learned vs reference, ",
                 *((f"roll-out {out}: ", f"learned/{out}", f"reference/{out}") for out in ROLL_OUTS))),
    Claim("roll-out-bad-reference-is-bad", "rolling out with a poor reference is bad",
          "mixture less reference roll-out",
          _beats("mixture vs reference roll-outs: ", ("", LOLS, REFERENCE)), POOR, tagging=LEVEL),
    Claim("lols-is-best", "LOLS is best or level under poor teachers", "the best other less LOLS",
          _near_the_best(LOLS, 0.0, "LOLS vs {best}, the best other"), POOR, tagging=UNSAID),
    Claim("lols-beats-searn", "LOLS beats Searn", "LOLS less Searn", _beats("LOLS vs Searn: ", ("", LOLS, SEARN))),
    Claim("reference-roll-outs-are-best", "reference roll-outs are best for an optimal teacher",
          "reference less mixture or learned roll-out",
          _beats("vs mixture and learned roll-outs: ", ("", REFERENCE, LOLS), ("", REFERENCE, LEARNED)), OPTIMAL),
    Claim("beta-does-not-matter", "LOLS is not sensitive to β", "the best β less the worst", _beta),
    Claim("the-gap-is-closed", "the shared coin and the hinge close Table 3's gap",
          "reference less the worse of mixture and learned roll-out",
          _gap, OPTIMAL, ("tagging",), ours_only=True, text=UNSAID),
    Claim("auto-is-near-the-best", f"LOLS with β = auto is within {WITHIN} points of the best strategy",
          "the best other less β = auto",
          _near_the_best("auto", WITHIN, "{behind:+.2f} points behind {best}"), ours_only=True, text=UNSAID),
)  # fmt: skip


def judge_claims(tables: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
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


def _of_teacher(claim: Claim, name: str, table: Mapping[str, Any], teacher: str) -> Iterator[dict[str, Any]]:
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


def _ours(table: Mapping[str, Any], teacher: str, learner: str) -> Figures:
    def mine(cells: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
        return [cell for cell in cells or () if cell["teacher"] == teacher and cell["learner"] == learner]

    def figure(cell: Mapping[str, Any]) -> Measured:
        return Measured(cell["mean"], cell["se"])

    coin = next((figure(cell) for cell in mine(table["coins"]) if cell["coin"] == "rollout"), None)
    return Figures(
        {cell["row"]: figure(cell) for cell in mine(table["cells"])},
        table["higher_is_better"],
        table["points"],
        {cell["beta"]: figure(cell) for cell in mine((table["beta"] or {}).get("cells"))},
        coin,
    )


def _printed(table: Mapping[str, Any], teacher: str) -> Figures:
    name = table["paper_name"]
    known = {row: paper_figure(name, teacher, row) for row in (*STRATEGIES, SEARN)}
    rows = {row: Measured(value, paper_error(name, value)) for row, value in known.items() if value is not None}
    return Figures(rows, table["higher_is_better"], table["points"])


# --- judgements together ----------------------------------------------------------------------------------------------


def by_id(claims: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Judgements of the same claim together."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for claim in claims:
        groups.setdefault(str(claim["id"]), []).append(claim)
    return groups


def seen(entries: Sequence[Mapping[str, Any]]) -> list[str]:
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


def place_of(claim: Mapping[str, Any]) -> str:
    """Where a judgement was made.

    >>> place_of({"task": "tagging", "table": "table3-craft", "teacher": "bad"})
    'tagging, CRAFT: bad teacher'
    """
    further = str(claim.get("table", "")).partition("-")[2]  # the data set, where it is not the first one
    return f"{claim['task']}{f', {further.upper()}' if further else ''}: {claim['teacher']} teacher"


def where_fails(entries: Sequence[Mapping[str, Any]]) -> str:
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
