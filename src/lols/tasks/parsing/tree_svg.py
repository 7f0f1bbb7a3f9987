"""A dependency tree as SVG, and an explanation of its parse as one HTML page that needs nothing else.

Arcs lie above the words, each as high as those below it need, with its relation on top. Where the true tree is known,
arcs that are wrong have another colour, and the true ones hang dashed below the words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from lols.tasks.parsing.explain import Move, Parse, Step
from lols.tasks.tagging.explain_html import frame, number

__all__ = ["parse_page", "tree_svg"]

WORD, TAG, RELATION = 15.0, 11.0, 11.5  # sizes of letters, in pixels
LEVEL, FOOT, BEND, PORT = 25.0, 13.0, 9.0, 5.0  # from arc to arc, from words to arcs, of corners, between ends of arcs
GAP, MARGIN = 15.0, 16.0
NARROW, WIDE = frozenset("iIjlt.,:;'|!()[]f-r \"`"), frozenset("mwMW@%—")
COLOURS = {"": "#2563a8", "wrong": "#b93a32", "true": "#1f7d4c"}
TEXT, SOFT = "#1d2126", "#667079"
FONT = "system-ui, 'Segoe UI', sans-serif"
SMALLEST = 0.78  # to which a page that is too narrow may shrink a tree


class _Arc(NamedTuple):
    """An arc between places, -1 for the root."""

    head: int
    dependent: int
    relation: str
    kind: str

    @property
    def span(self) -> tuple[int, int]:
        return min(self.head, self.dependent), max(self.head, self.dependent)


def tree_svg(
    words: Sequence[str],
    tree: Sequence[tuple[int, str]],
    true: Sequence[tuple[int, str]] | None = None,
    *,
    tags: Sequence[str] = (),
    wrong: Sequence[bool] | None = None,
) -> str:
    """Draw a tree, given as `Parser.predict` gives it: heads from 1, 0 for the root, and relations.

    Words are `wrong` where head or relation are not those of the `true` tree, unless that is said.

    >>> drawing = tree_svg(["a", "dog"], [(2, "det"), (0, "root")])
    >>> drawing.count('class="arc"'), drawing.startswith("<svg"), ">det<" in drawing
    (2, True, True)
    """
    if wrong is None:
        wrong = [own != other for own, other in zip(tree, true or tree, strict=True)]
    above = [_Arc(h - 1, k, r, "wrong" if wrong[k] else "") for k, (h, r) in enumerate(tree)]
    below = [_Arc(h - 1, k, r, "true") for k, (h, r) in enumerate(true or ()) if wrong[k]]
    tags = tags if any(tags) else [""] * len(words)
    xs, width = _places(words, tags, [*above, *below])
    levels, under = _levels(above), _levels(below)
    base = MARGIN + FOOT + LEVEL * max(levels.values(), default=0) + RELATION
    bottom = base + WORD + 8 + (TAG + 7 if any(tags) else 0)
    height = bottom + (FOOT + LEVEL * max(under.values()) + RELATION if below else 0) + MARGIN / 2
    parts = [_drawn(arc, levels[arc], xs, base, -1, words) for arc in sorted(above, key=lambda a: -levels[a])]
    parts += [_drawn(arc, under[arc], xs, bottom, 1, words) for arc in sorted(below, key=lambda a: -under[a])]
    for x, word, tag, bad in zip(xs, words, tags, wrong, strict=True):
        colour = COLOURS["wrong"] if bad else TEXT
        kind = "token wrong" if bad else "token"
        parts.append(_text(kind, x, base + WORD + 2, word, f'font-size="{WORD:g}" font-weight="600" fill="{colour}"'))
        if tag:
            parts.append(_text("tag", x, base + WORD + TAG + 8, tag, f'font-size="{TAG:g}" fill="{SOFT}"'))
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    shrink = f'style="max-width: max(100%, {SMALLEST * width:.0f}px); height: auto"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="tree" role="img" {size} {shrink} font-family="{FONT}">'
    return "\n".join([start, *parts, "</svg>"])


def _places(words: Sequence[str], tags: Sequence[str], arcs: Sequence[_Arc]) -> tuple[list[float], float]:
    """Where the middles of the words are, such that no two words and no two relations touch, and the whole width."""
    halves = [max(_width(w, WORD), _width(t, TAG), 4 * PORT) / 2 for w, t in zip(words, tags, strict=True)]
    needed: dict[int, list[tuple[int, float]]] = {}
    for arc in arcs:
        low, high = arc.span
        text = _width(arc.relation, RELATION)
        if low >= 0:
            needed.setdefault(high, []).append((low, text + 2 * PORT + 6))
        else:  # of the root: beside its arrow
            halves[high] = max(halves[high], text / 2 + 2)
    xs: list[float] = []
    for k, half in enumerate(halves):
        x = MARGIN + half if k == 0 else xs[-1] + halves[k - 1] + GAP + half
        xs.append(max([x, *(xs[low] + room for low, room in needed.get(k, []))]))
    return xs, xs[-1] + halves[-1] + MARGIN


def _levels(arcs: Sequence[_Arc]) -> dict[_Arc, int]:
    """How high each arc is: above all that it spans, and never beside one that it crosses. The root's are highest."""
    made: dict[_Arc, int] = {}
    for arc in sorted((a for a in arcs if a.head >= 0), key=lambda a: (a.span[1] - a.span[0], a.span)):
        low, high = arc.span
        met = [(level, other) for other, level in made.items() if other.span[0] < high and low < other.span[1]]
        made[arc] = 1 + max((level for level, _ in met), default=0)
    top = 1 + max(made.values(), default=0)
    return made | {arc: top for arc in arcs if arc.head < 0}


def _drawn(arc: _Arc, level: int, xs: Sequence[float], base: float, way: int, words: Sequence[str]) -> str:
    """An arc with its arrow and its relation; `way` is -1 for one above the words, 1 for one below."""
    end, edge = xs[arc.dependent], base + way * 3
    peak = base + way * (FOOT + LEVEL * level - 6)
    colour, dashes = COLOURS[arc.kind], ' stroke-dasharray="5 3"' if arc.kind == "true" else ""
    if arc.head < 0:
        path, middle, words_of = f"M{end:.1f} {peak:.1f} V{edge + way * 5:.1f}", end, f"root → {words[arc.dependent]}"
    else:
        side = 1 if end > xs[arc.head] else -1
        start, bend = xs[arc.head] + side * PORT, min(BEND, abs(end - xs[arc.head]) / 2 - PORT / 2)
        path = (
            f"M{start:.1f} {base + way * 2:.1f} V{peak - way * bend:.1f} "
            f"Q{start:.1f} {peak:.1f} {start + side * bend:.1f} {peak:.1f} H{end - side * bend:.1f} "
            f"Q{end:.1f} {peak:.1f} {end:.1f} {peak - way * bend:.1f} V{edge + way * 5:.1f}"
        )
        middle, words_of = (start + end) / 2, f"{words[arc.head]} → {words[arc.dependent]}"
    tip = f"M{end:.1f} {edge:.1f} l-3.6 {way * 7:.1f} h7.2 z"
    text = _text(
        "relation", middle, peak - 5 if way < 0 else peak + RELATION + 1, arc.relation,
        f'font-size="{RELATION:g}" fill="{colour}"',
    )  # fmt: skip
    told = {"": "", "wrong": ", wrong", "true": ", in the true tree"}[arc.kind]
    return (
        f'<g class="{" ".join(["arc", arc.kind]).strip()}"><title>{escape(f"{words_of}: {arc.relation}{told}")}</title>'
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>'
        f'<path class="tip" d="{tip}" fill="{colour}"/>{text}</g>'
    )


def _text(kind: str, x: float, y: float, text: str, look: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle" {look}>{escape(text)}</text>'


def _width(text: str, size: float) -> float:
    """About how wide a text is, in pixels; rather too wide."""
    letters = 0.0
    for c in text:
        if unicodedata.east_asian_width(c) in "WF":
            letters += 1.05
        elif not unicodedata.combining(c):
            letters += 0.4 if c in NARROW else 1.0 if c in WIDE else 0.76 if c.isupper() else 0.64
    return letters * size


# --- the page ---------------------------------------------------------------------------------------------------------


def parse_page(made: Parse, *, heading: str, about: Sequence[str] = (), top: int = 3) -> str:
    """The whole page: a heading, lines about it, the tree, and every decision with its deviations."""
    tree = [(w.head, w.relation) for w in made.words]
    true = [(w.true_head or 0, w.true_relation or "") for w in made.words] if made.known else None
    tags, wrong = [w.tag for w in made.words], [w.wrong for w in made.words]
    drawing = tree_svg([w.word for w in made.words], tree, true, tags=tags, wrong=wrong)
    rows = "\n".join(_row(made, step, top) for step in made.steps)
    end = "" if made.loss is None else f"loss {number(made.loss)}"
    body = (
        f'{_tree_legend(made)}\n<figure class="of-tree">\n{drawing}\n</figure>\n<h2>Decision by decision</h2>\n'
        f'{_legend(made)}\n<section class="decisions">\n{rows}\n'
        f'<div class="row end"><b class="dot"></b><b>{end}</b></div>\n</section>'
    )
    return frame(heading, [*about, *made.notes], body, STYLE)


def _tree_legend(made: Parse) -> str:
    entries = [('<i class="key path"></i>', "predicted")]
    if any(w.wrong for w in made.words):
        entries = [
            ('<i class="key path"></i>', "predicted, and right"),
            ('<i class="key bad"></i>', "predicted, wrong"),
        ]
        entries += [('<i class="key good"></i>', "the true arc")]
    return _list(entries)


def _legend(made: Parse) -> str:
    entries = [
        ("<b>Shift</b>", "the next word onto the stack"),
        ("<b>Left</b>", "the next word becomes the head of the stack’s top"),
        ("<b>Right</b>", "the word below becomes the head of the stack’s top"),
        ('<span class="move taken">taken</span>', "what the parser did"),
    ]
    if made.roll_out is not None:
        entries += [
            ('<span class="move taken costly">taken</span>', "though something else was better"),
            ('<span class="move better">better</span>', "than what was taken"),
            ("✓", f"good in the eyes of the teacher ({escape(made.reference)})"),
        ]
    entries.append(("<small>−1.23</small>", "predicted cost"))
    if made.roll_out not in (None, "none"):
        entries.append(("┄ <b>2</b>", "the roll-out, and the loss of the sentence at its end"))
    return _list(entries)


def _list(entries: Sequence[tuple[str, str]]) -> str:
    return "<ul>" + "".join(f"<li>{sign} {escape(text)}</li>" for sign, text in entries) + "</ul>"


def _row(made: Parse, step: Step, top: int) -> str:
    """A state and its moves."""
    words = [w.word for w in made.words]
    stack = [f'<span class="cell">{escape(words[k - 1])}</span>' for k in step.stack[-SHOWN:]]
    buffer = [f'<span class="cell">{escape(w)}</span>' for w in words[step.front - 1 :][:SHOWN]]
    stack = (["…"] if len(step.stack) > SHOWN else []) + stack
    buffer += ["…"] if len(words) - step.front + 1 > SHOWN else []
    waiting = f'<span class="waiting">{step.waiting}: which relation?</span>' if step.waiting else ""
    arc = ""
    if step.arc is not None:
        head = words[step.arc.head - 1] if step.arc.head else "root"
        named = f"<i>{escape(step.arc.relation)}</i> " if step.arc.relation else ""
        arc = f'<div class="new">{escape(head)} → {named}{escape(words[step.arc.dependent - 1])}</div>'
    moves = "".join(_move(made, step, move) for move in step.shown(top))
    rest = step.rest(top)
    if rest is not None:
        least = "" if rest.loss is None else f" ┄ {number(rest.loss)} or more"
        moves += f'<span class="rest">{rest.action}{least}</span>'
    cells = f'<span class="stack">{"".join(stack)}</span><span class="buffer">{"".join(buffer)}</span>'
    return (
        f'<div class="row{" costly" if step.costly else ""}"><b class="dot"></b>'
        f'<span class="place">{step.number}</span>'
        f'<div class="state"><div class="cells">{cells}</div>{waiting}{arc}</div><div class="moves">{moves}</div></div>'
    )


def _move(made: Parse, step: Step, move: Move) -> str:
    kinds = ["move"]
    if move.taken:
        kinds += ["taken", "costly"] if step.costly else ["taken"]
    elif move.cost is not None and step.taken.cost is not None and abs(move.cost - step.taken.cost) > 1e-6:
        kinds.append("better" if move.cost < step.taken.cost else "worse")
    shown = f"<small>{move.predicted:.2f}</small>".replace("-", "−")
    if move.loss is not None:
        shown += f" ┄ <b>{number(move.loss)}</b>"
    elif move.cost is not None:
        shown += f" <b>{number(move.cost, signed=True)}</b>"
    return f'<span class="{" ".join(kinds)}">{escape(move.action)}{" ✓" if move.liked else ""} {shown}</span>'


SHOWN = 4  # words of stack and buffer
STYLE = """
main { max-width: 1400px; }
figure.of-tree { width: max-content; min-width: 100%; max-width: calc(100vw - 48px); position: relative; left: 50%;
  transform: translateX(-50%); }
figure.of-tree svg { margin: 0 auto; }
.token, .tree .tag { paint-order: stroke; } .token { fill: var(--text); } .tree .tag { fill: var(--soft); }
.token.wrong { fill: var(--wrong); }
.arc path { stroke: var(--path); } .arc .tip { fill: var(--path); stroke: none; }
.arc text { fill: var(--path); paint-order: stroke; stroke: var(--card); stroke-width: 2px; stroke-linejoin: round; }
.arc.wrong path { stroke: var(--wrong); } .arc.wrong .tip, .arc.wrong text { fill: var(--wrong); }
.arc.true path { stroke: var(--good); } .arc.true .tip, .arc.true text { fill: var(--good); }
.arc .tip, .arc.wrong .tip, .arc.true .tip { stroke: none; }
.arc:hover path:first-of-type { stroke-width: 3; } .arc:hover text { font-weight: 700; }
.key.bad { border-top: 2px solid var(--wrong); } .key.good { border-top: 2px dashed var(--good); }
.key.path { border-top-width: 2px; }
ul .move { padding: 0 8px; } ul b { color: var(--text); font-weight: 600; }
.decisions { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; padding: 10px 16px; }
.row { display: grid; grid-template-columns: 14px 30px minmax(400px, 38%) 1fr; gap: 4px 12px; align-items: start;
  padding: 7px 0; position: relative; }
.row + .row { border-top: 1px solid var(--edge); }
.row::before { content: ""; position: absolute; left: 5px; top: 0; bottom: -1px; width: 4px; background: var(--path);
  opacity: .35; }
.row:first-child::before { top: 18px; } .row.end::before { bottom: calc(100% - 18px); }
.dot { width: 14px; height: 14px; border-radius: 7px; background: var(--path); margin-top: 6px; z-index: 1; }
.row.costly .dot { background: var(--wrong); }
.row.end { grid-template-columns: 14px 1fr; color: var(--path); align-items: center; } .row.end .dot { margin: 0; }
.row .place { width: auto; margin: 0; line-height: 26px; }
.cells { display: grid; grid-template-columns: 1fr 1fr; line-height: 26px; }
.stack { display: flex; justify-content: flex-end; padding-right: 8px; border-right: 2px solid var(--soft);
  overflow: hidden; white-space: nowrap; mask-image: linear-gradient(to right, transparent, #000 24px); }
.buffer { padding-left: 8px; overflow: hidden; white-space: nowrap; color: var(--soft);
  mask-image: linear-gradient(to left, transparent, #000 24px); }
.cell { margin: 0 4px; } .stack .cell { font-weight: 600; }
.new { font-size: 13px; color: var(--soft); text-align: center; } .new i { font-style: normal; color: var(--path); }
.waiting { font-size: 13px; color: var(--soft); }
.moves { display: flex; flex-wrap: wrap; gap: 6px; }
.move { border: 1px solid var(--line); background: var(--chip); border-radius: 6px; padding: 1px 9px; font-size: 13px;
  line-height: 22px; white-space: nowrap; font-variant-numeric: tabular-nums; }
.move small { color: var(--soft); margin-left: 4px; }
.move.taken { background: var(--path); border-color: var(--path); color: var(--path-text); font-weight: 600; }
.move.taken small { color: inherit; opacity: .8; }
.move.taken.costly { background: var(--wrong); border-color: var(--wrong); }
.move.better { background: var(--good-back); border-color: var(--good); } .move.better b { color: var(--good); }
.move.worse b { color: var(--bad); } .rest { font-size: 13px; color: var(--soft); line-height: 26px; }
@media (max-width: 900px) { .row { grid-template-columns: 14px 30px 1fr; } .moves { grid-column: 3; } }
"""
