"""An explanation as one HTML page that needs nothing else: the path, its deviations and what they cost, drawn as SVG.

The drawing follows Figure 2 of the paper. A dot is a state; the thick line through it is the path taken; curves are
one-step deviations, dashes the roll-outs that complete them, and numbers the losses at their ends. Above the path is
what would have been better.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from itertools import accumulate

from lols.tasks.tagging.explain import Explanation, LabelDeviation, WordDecision

__all__ = ["frame", "number", "page"]

WIDTH = 1120  # of a line of words, in pixels
ROW, CHIP = 28, 22  # from one deviation to the next, and how high one is
BRANCH, DASH, GAP = 30, 18, 16
LETTER, SMALL, MARK = 7.3, 6.7, 10  # widths of characters of labels and of losses, and of the sign for the true label
WORD_LETTER = 8.4
TOP = 30  # room for the words


def page(made: Explanation, *, heading: str, about: Sequence[str] = (), top: int = 5) -> str:
    """The whole page: a heading, lines about it, the drawing, and a table for each word.

    >>> from lols.tasks.tagging.explain import Decision, Deviation, Explanation
    >>> word = Decision(1, "<b>", "V", "N", (Deviation("N", -0.5, 1.0, 1.0, True, False),))
    >>> text = page(Explanation((word,), "hamming", "forward", 1.0, "learned"), heading="Sentence 1")
    >>> "&lt;b&gt;" in text, "<b>" in text, "http://" in text.replace("http://www.w3.org/2000/svg", "")
    (True, False, False)
    """
    lines = _lines(made, top)
    drawings = "\n".join(_drawing(made, columns, k, len(lines)) for k, columns in enumerate(lines))
    reading = sorted(made.decisions, key=lambda decision: decision.place)
    tables = "\n".join(_details(made, decision) for decision in reading)
    body = f"{_legend(made)}\n<figure>\n{drawings}\n</figure>\n<h2>Word by word</h2>\n{tables}"
    return frame(heading, [*about, made.note], body)


def frame(heading: str, about: Sequence[str], body: str, style: str = "") -> str:
    """A page around a body that is HTML already; the other texts are escaped, and empty ones left out."""
    paragraphs = "\n".join(f"<p>{escape(line)}</p>" for line in about if line)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<title>{escape(heading)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<main>
<h1>{escape(heading)}</h1>
{paragraphs}
{body}
</main>
</body>
</html>
"""


def number(value: float, *, signed: bool = False) -> str:
    """A number for people: no digits that say nothing.

    >>> number(2.0), number(0.12345), number(1.0, signed=True), number(-0.00001)
    ('2', '0.123', '+1', '0')
    """
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    text = "0" if text in ("-0", "") else text
    return f"+{text}" if signed and value > 0 and text != "0" else text.replace("-", "−") if signed else text


# --- the drawing ------------------------------------------------------------------------------------------------------


class _Column:
    """A word and its deviations, with the places at which they are drawn.

    Distances are along the path: `x` turns them round where the last word was tagged first.
    """

    def __init__(self, made: Explanation, decision: WordDecision, top: int):
        self.made, self.decision = made, decision
        self.turned = made.direction == "backward"
        taken, others = decision.taken, [d for d in decision.shown(top) if not d.taken]
        self.better = [d for d in others if _compared(d, taken) < 0]
        self.others = [d for d in others if _compared(d, taken) >= 0]
        self.chip = max(LETTER * _columns(d.label) + 16 + MARK * (d.true or d.taken) for d in [taken, *others])
        self.number = max([SMALL * len(_shown(made, d, taken)) for d in [taken, *others]], default=0.0)
        needed = BRANCH + self.chip + DASH + self.number + GAP
        self.width = max(needed, BRANCH + WORD_LETTER * _columns(decision.word) + GAP)
        self.left = 0.0

    def x(self, along: float, size: float = 0.0) -> float:
        """The left edge of something `size` wide that lies `along` the column."""
        return self.left + (self.width - along - size if self.turned else along)

    def draw(self, path: float) -> str:
        """The word, the step taken at height `path`, and the deviations."""
        taken, chip_x = self.decision.taken, self.x(BRANCH, self.chip)
        parts = [f'<text class="word" x="{chip_x:.1f}" y="18">{escape(self.decision.word)}</text>']
        for above, deviations in ((True, self.better), (False, self.others)):
            for k, deviation in enumerate(deviations):
                height = path + (-1 if above else 1) * (ROW * (k + 1) + 4)
                parts.append(self._deviation(deviation, path, height))
        state = "wrong" if self.decision.wrong else "right" if self.decision.true is not None else "unknown"
        shown, side = _shown(self.made, taken, taken), self._side()
        parts.append(
            f'<g class="taken {state}">{self._title(taken)}'
            f'<line x1="{self.x(0):.1f}" y1="{path}" x2="{self.x(self.width):.1f}" y2="{path}"/>'
            f'<circle cx="{self.x(0):.1f}" cy="{path}" r="4"/>{self._chip(taken, path)}'
            f'<text class="loss" x="{self._loss_x():.1f}" y="{path - 6}" text-anchor="{side}">{shown}</text></g>'
        )
        return "\n".join(parts)

    def _deviation(self, deviation: LabelDeviation, path: float, height: float) -> str:
        start, end = self.x(0), self.x(BRANCH)
        bend = (start + end) / 2
        dash_from, dash_to = self.x(BRANCH + self.chip), self.x(BRANCH + self.chip + DASH - 5)
        order = _compared(deviation, self.decision.taken)
        kind = "unknown" if deviation.cost is None else "better" if order < 0 else "worse" if order > 0 else "same"
        roll_out = f'<line class="roll-out" x1="{dash_from:.1f}" y1="{height}" x2="{dash_to:.1f}" y2="{height}"/>'
        return (
            f'<g class="deviation {kind}{" true" if deviation.true else ""}">{self._title(deviation)}'
            f'<path d="M{start:.1f} {path} C{bend:.1f} {path} {start:.1f} {height} {end:.1f} {height}"/>'
            f"{roll_out if deviation.loss is not None else ''}{self._chip(deviation, height)}"
            f'<text class="loss" x="{self._loss_x():.1f}" y="{height + 4}" text-anchor="{self._side()}">'
            f"{_shown(self.made, deviation, self.decision.taken)}</text></g>"
        )

    def _chip(self, deviation: LabelDeviation, height: float) -> str:
        left = self.x(BRANCH, self.chip)
        mark = "✓" if deviation.true else "✗" if deviation.taken and self.decision.wrong else ""
        text = escape(deviation.label) + (f' <tspan class="mark">{mark}</tspan>' if mark else "")
        return (
            f'<rect x="{left:.1f}" y="{height - CHIP / 2}" width="{self.chip:.1f}" height="{CHIP}" rx="6"/>'
            f'<text class="label" x="{left + self.chip / 2:.1f}" y="{height + 4}" text-anchor="middle">{text}</text>'
        )

    def _loss_x(self) -> float:
        return self.x(BRANCH + self.chip + DASH)

    def _side(self) -> str:
        return "end" if self.turned else "start"

    def _title(self, deviation: LabelDeviation) -> str:
        return f"<title>{escape(_sentence(self.made, self.decision, deviation))}</title>"


def _lines(made: Explanation, top: int) -> list[list[_Column]]:
    """Columns in reading order, on as few lines as can hold them, all about as long."""
    columns = [_Column(made, decision, top) for decision in sorted(made.decisions, key=lambda d: d.place)]
    full = _filled(columns, WIDTH)
    for share in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        even = _filled(columns, share * WIDTH)
        if len(even) == len(full):
            return even
    return full


def _filled(columns: Sequence[_Column], most: float) -> list[list[_Column]]:
    """Lines, each as full as `most` pixels allow."""
    lines: list[list[_Column]] = [[]]
    for column in columns:
        if lines[-1] and sum(c.width for c in lines[-1]) + column.width > most:
            lines.append([])
        lines[-1].append(column)
    return lines


def _drawing(made: Explanation, columns: Sequence[_Column], index: int, count: int) -> str:
    """One line of words."""
    turned, margin = made.direction == "backward", 84
    path = TOP + ROW * max(len(c.better) for c in columns) + 24
    height = path + ROW * max(len(c.others) for c in columns) + 24
    starts = list(accumulate((c.width for c in columns), initial=margin if turned else 10.0))
    for column, left in zip(columns, starts, strict=False):
        column.left = left
    width = starts[-1] + (10 if turned else margin)
    last = index == (0 if turned else count - 1)
    body = [column.draw(path) for column in columns]
    end = starts[0] if turned else starts[-1]
    if last:
        text = "" if made.loss is None else f"loss {number(made.loss)}"
        place, side = (end - 12, "end") if turned else (end + 12, "start")
        body.append(f'<circle class="end" cx="{end:.1f}" cy="{path}" r="6"/>')
        body.append(f'<text class="final" x="{place:.1f}" y="{path + 5}" text-anchor="{side}">{text}</text>')
    else:
        place, side = (end - 6, "end") if turned else (end + 6, "start")
        body.append(f'<text class="goes-on" x="{place:.1f}" y="{path + 5}" text-anchor="{side}">…</text>')
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    start = f'<div class="line"><svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>'
    return "\n".join([start, *body, "</svg></div>"])


def _columns(text: str) -> int:
    """How wide a text is, in letters."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in text)


def _compared(deviation: LabelDeviation, taken: LabelDeviation) -> float:
    """How much more a deviation costs than what was done; 0 where that is not known."""
    if deviation.cost is None or taken.cost is None:
        return 0.0
    difference = deviation.cost - taken.cost
    return difference if abs(difference) > 1e-6 else 0.0


def _shown(made: Explanation, deviation: LabelDeviation, taken: LabelDeviation) -> str:
    """The number beside a label: the loss at the end, or the cost, or how much more it seems to cost."""
    if deviation.loss is not None:
        return number(deviation.loss)
    if deviation.cost is not None:
        return number(deviation.cost, signed=True)
    return "" if deviation.taken else f"{deviation.predicted - taken.predicted:+.2f}"


def _sentence(made: Explanation, decision: WordDecision, deviation: LabelDeviation) -> str:
    parts = [f"{deviation.label} for “{decision.word}”{', taken' if deviation.taken else ''}"]
    parts[0] += ", the true label" if deviation.true else ""
    parts.append(f"predicted cost {number(deviation.predicted)}")
    if deviation.loss is not None:
        parts.append(f"loss {number(deviation.loss)} after the roll-out")
    if deviation.cost is not None:
        parts.append(f"costs {number(deviation.cost)} more than the best label here")
    return "\n".join(parts)


# --- around the drawing -----------------------------------------------------------------------------------------------


def _legend(made: Explanation) -> str:
    entries = [('<i class="key path"></i>', "the path taken"), ('<i class="key branch"></i>', "a deviation")]
    if made.roll_out not in (None, "none"):
        entries += [('<i class="key dashes"></i>', "its roll-out, and the loss of the sentence at the end")]
    if made.roll_out is not None:
        entries += [
            ('<b class="better">0</b>', "better than the path (above it)"),
            ('<b class="worse">2</b>', "worse"),
            ("✓", "the true label"),
        ]
    else:
        entries += [("+0.5", "how much more a label seems to cost")]
    return "<ul>" + "".join(f"<li>{sign} {escape(text)}</li>" for sign, text in entries) + "</ul>"


def _details(made: Explanation, decision: WordDecision) -> str:
    """All legal labels of a word, folded away."""
    verdict = f"{decision.predicted} ✗ true: {decision.true}" if decision.wrong else decision.predicted
    state = "wrong" if decision.wrong else ""
    rows = []
    for d in decision.deviations:
        kind = " ".join(name for name, holds in (("taken", d.taken), ("true", d.true)) if holds)
        cells = [escape(d.label) + (" ✓" if d.true else "") + (" ←" if d.taken else ""), f"{d.predicted:.3f}"]
        cells += ["" if d.loss is None else number(d.loss), "" if d.cost is None else number(d.cost, signed=True)]
        rows.append(f'<tr class="{kind}">' + "".join(f"<td>{c}</td>" for c in cells) + "</tr>")
    heads = "".join(f"<th>{name}</th>" for name in ("label", "predicted cost", "loss", "cost"))
    return (
        f'<details class="{state}"><summary><span class="place">{decision.place}</span> '
        f'<span class="of">{escape(decision.word)}</span> <span class="as">{escape(verdict)}</span></summary>'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></details>"
    )


STYLE = """
:root { color-scheme: light dark; --back: #fbfbf9; --card: #ffffff; --text: #1d2126; --soft: #667079; --line: #c4cad0;
  --edge: #e3e6e9; --path: #2563a8; --path-text: #ffffff; --wrong: #b93a32; --good: #1f7d4c; --good-back: #e5f4ec;
  --bad: #b93a32; --chip: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --card: #1b1f24; --text: #e4e7ea; --soft: #98a2ac;
  --line: #4b545d; --edge: #2b3138; --path: #6ba6ea; --path-text: #0d1420; --wrong: #ee8178; --good: #63c795;
  --good-back: #17352a; --bad: #ee8178; --chip: #262c33; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 22px; margin: 0 0 6px; font-weight: 650; } h2 { font-size: 16px; margin: 30px 0 8px; }
p { margin: 2px 0; color: var(--soft); }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 22px; padding: 0; margin: 14px 0; font-size: 13px;
  color: var(--soft); }
.key { display: inline-block; width: 26px; vertical-align: middle; margin-right: 4px;
  border-top: 1.5px solid var(--line); }
.key.path { border-top: 4px solid var(--path); } .key.dashes { border-top-style: dashed; }
b.better { color: var(--good); } b.worse { color: var(--bad); }
figure { margin: 0; padding: 14px 12px; background: var(--card); border: 1px solid var(--edge); border-radius: 12px;
  overflow-x: auto; }
svg { display: block; font-family: inherit; }
.line + .line { margin-top: 10px; border-top: 1px solid var(--edge); padding-top: 10px; }
.word { font-size: 15px; font-weight: 600; fill: var(--text); }
.label { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: var(--text); }
.loss { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: var(--soft); }
.mark { font-weight: 700; }
.taken line { stroke: var(--path); stroke-width: 4; } .taken circle, .end { fill: var(--path); }
.taken rect { fill: var(--path); } .taken .label { fill: var(--path-text); font-weight: 700; }
.taken.wrong rect { fill: var(--wrong); } .taken .loss { fill: var(--path); font-weight: 700; }
.deviation path, .deviation line { fill: none; stroke: var(--line); stroke-width: 1.5; }
.deviation .roll-out { stroke-dasharray: 3 3; }
.deviation rect { fill: var(--chip); stroke: var(--line); }
.deviation.true rect { stroke: var(--good); stroke-width: 2; } .deviation .mark { fill: var(--good); }
.deviation.better rect { fill: var(--good-back); stroke: var(--good); } .deviation.better .loss { fill: var(--good);
  font-weight: 700; }
.deviation.better path, .deviation.better line { stroke: var(--good); }
.deviation.worse .loss { fill: var(--bad); }
g.deviation:hover path, g.deviation:hover line { stroke: var(--path); stroke-width: 2.5; }
g.deviation:hover rect { stroke: var(--path); stroke-width: 2; }
.final { font-size: 14px; font-weight: 700; fill: var(--path); } .goes-on { fill: var(--path); font-weight: 700; }
details { border-bottom: 1px solid var(--edge); } summary { cursor: pointer; padding: 5px 2px; }
.place { display: inline-block; width: 2em; text-align: right; margin-right: 8px; color: var(--soft); }
.of { font-weight: 600; margin-right: 10px; } .as { color: var(--soft); }
.wrong .as { color: var(--wrong); font-weight: 600; }
table { border-collapse: collapse; margin: 4px 0 14px 3em; font-size: 13px; font-variant-numeric: tabular-nums; }
th { text-align: right; color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
th, td { padding: 2px 14px 2px 0; text-align: right; }
tr.taken td { font-weight: 700; } tr.true td { color: var(--good); }
"""
