"""A dependency tree as SVG.

Arcs lie above the words, each as high as those below it need, with its relation on top. Where the true tree is known,
wrong arcs have another colour, and the true ones hang dashed below the words. The markup is in `templates/`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lols.tasks.pages import render

TEMPLATES = Path(__file__).parent / "templates"
WORD, TAG, RELATION = 15.0, 11.0, 11.5  # font sizes, in pixels
LEVEL, FOOT, BEND, PORT = 25.0, 13.0, 9.0, 5.0  # from arc to arc, from words to arcs, of corners, between ends of arcs
GAP, MARGIN = 15.0, 16.0
NARROW, WIDE = frozenset("iIjlt.,:;'|!()[]f-r \"`"), frozenset("mwMW@%—")
COLOURS = {"": "#2563a8", "wrong": "#b93a32", "true": "#1f7d4c"}
TEXT, SOFT = "#1d2126", "#667079"
SMALLEST = 0.78  # the scale down to which a tree shrinks on a narrow page


class _Arc(NamedTuple):
    """An arc between words, numbered from 0; -1 is the root."""

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
    """Draw a tree, given as `Parser.predict` returns it: heads from 1, 0 for the root, and relations.

    Words are `wrong` where head or relation differ from the `true` tree, unless `wrong` is given.

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
    arcs = [_drawn(arc, levels[arc], xs, base, -1, words) for arc in sorted(above, key=lambda a: -levels[a])]
    arcs += [_drawn(arc, under[arc], xs, bottom, 1, words) for arc in sorted(below, key=lambda a: -under[a])]
    tokens = [
        {"x": x, "word": word, "tag": tag, "wrong": bad}
        for x, word, tag, bad in zip(xs, words, tags, wrong, strict=True)
    ]
    return render(
        TEMPLATES / "tree.svg.j2", arcs=arcs, tokens=tokens, base=base, width=round(width), height=round(height),
        smallest=round(SMALLEST * width), WORD=WORD, TAG=TAG, RELATION=RELATION, TEXT=TEXT, SOFT=SOFT,
        WRONG=COLOURS["wrong"],
    ).strip()  # fmt: skip


def _places(words: Sequence[str], tags: Sequence[str], arcs: Sequence[_Arc]) -> tuple[list[float], float]:
    """The middles of the words, such that no two words and no two relations touch, and the whole width."""
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
    """The level of each arc: above all that it spans or crosses. The root's are highest."""
    levels: dict[_Arc, int] = {}
    for arc in sorted((a for a in arcs if a.head >= 0), key=lambda a: (a.span[1] - a.span[0], a.span)):
        low, high = arc.span
        met = (level for other, level in levels.items() if other.span[0] < high and low < other.span[1])
        levels[arc] = 1 + max(met, default=0)
    top = 1 + max(levels.values(), default=0)
    return levels | {arc: top for arc in arcs if arc.head < 0}


class _DrawnArc(NamedTuple):
    """What the template needs of an arc: paths of its line and its arrow, and its relation at x and y."""

    kind: str
    colour: str
    title: str
    path: str
    tip: str
    x: float
    y: float
    relation: str


def _drawn(arc: _Arc, level: int, xs: Sequence[float], base: float, way: int, words: Sequence[str]) -> _DrawnArc:
    """An arc with its places; `way` is -1 for one above the words, 1 for one below."""
    end, edge = xs[arc.dependent], base + way * 3
    peak = base + way * (FOOT + LEVEL * level - 6)
    head = words[arc.head] if arc.head >= 0 else "root"
    if arc.head < 0:
        path, middle = f"M{end:.1f} {peak:.1f} V{edge + way * 5:.1f}", end
    else:
        side = 1 if end > xs[arc.head] else -1
        start, bend = xs[arc.head] + side * PORT, min(BEND, abs(end - xs[arc.head]) / 2 - PORT / 2)
        path = (
            f"M{start:.1f} {base + way * 2:.1f} V{peak - way * bend:.1f} "
            f"Q{start:.1f} {peak:.1f} {start + side * bend:.1f} {peak:.1f} H{end - side * bend:.1f} "
            f"Q{end:.1f} {peak:.1f} {end:.1f} {peak - way * bend:.1f} V{edge + way * 5:.1f}"
        )
        middle = (start + end) / 2
    tip = f"M{end:.1f} {edge:.1f} l-3.6 {way * 7:.1f} h7.2 z"
    comment = {"": "", "wrong": ", wrong", "true": ", in the true tree"}[arc.kind]
    title = f"{head} → {words[arc.dependent]}: {arc.relation}{comment}"
    y = peak - 5 if way < 0 else peak + RELATION + 1
    return _DrawnArc(arc.kind, COLOURS[arc.kind], title, path, tip, middle, y, arc.relation)


def _width(text: str, size: float) -> float:
    """About how wide a text is, in pixels; rather too wide than too narrow."""
    letters = 0.0
    for c in text:
        if unicodedata.east_asian_width(c) in "WF":
            letters += 1.05
        elif not unicodedata.combining(c):
            letters += 0.4 if c in NARROW else 1.0 if c in WIDE else 0.76 if c.isupper() else 0.64
    return letters * size
