"""Charts for a page, as SVG that takes its colours from the page's style, so that it is read by day and by night.

A series has a *kind*, a number: its colour, its dashes and the shape of its points, so that no series is told from
another by colour alone. A chart is about as wide as a phone; the page puts as many beside each other as fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

__all__ = ["KINDS", "Chart", "Key", "Scale", "legend"]

WIDTH, HEIGHT = 340, 230
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 28, 40  # room around what is drawn
KINDS = 6
LETTER = 6.2  # the width of a small letter
SPAN = 0.45  # decades that a logarithmic scale has at least: there is a tick in them

Point = tuple[float, float]
NEAR = 1e-8  # values that are closer than this are drawn as one


class Scale(NamedTuple):
    """Values from `low` to `high` along an axis, with its words."""

    low: float
    high: float
    words: str = ""
    log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None

    @classmethod
    def around(cls, values: Iterable[float], words: str = "", *, log: bool = False, margin: float = 0.06) -> Scale:
        """A scale that has room for all values.

        >>> Scale.around([1.0, 3.0], margin=0.5)[:2]
        (0.0, 4.0)
        """
        known = [v for v in values if math.isfinite(v) and (not log or v > 0.0)] or [1.0]
        low, high = min(known), max(known)
        if log:
            span = math.log10(high / low)
            room = max(margin * span, (SPAN - span) / 2, 0.05)
            return cls(low / 10**room, high * 10**room, words, log)
        apart = high - low > NEAR * max(abs(low), abs(high), 1.0)
        room = margin * (high - low) if apart else max(0.05 * abs(high), 0.01)
        return cls(low - room, high + room, words, log)

    def place(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> list[tuple[float, str]]:
        """Round values in the range, with what is written there.

        >>> Scale(0.0, 1.0).marks()
        [(0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1')]
        >>> Scale(90.0, 3000.0, log=True).marks()
        [(100.0, '100'), (1000.0, '1,000')]
        >>> Scale(93.21, 93.27).marks()
        [(93.22, '93.22'), (93.24, '93.24'), (93.26, '93.26')]
        """
        if self.ticks is not None:
            return [(value, text) for value, text in self.ticks if self.low <= value <= self.high]
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            steps = (1,) if last - first >= 1 else (1, 2, 5)
            values = [step * 10.0**k for k in range(first - 1, last + 1) for step in steps]
            return [(v, _plain(v)) for v in values if self.low <= v <= self.high]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= rough)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(round(k * step, 10), _plain(k * step)) for k in range(first, last + 1)]


def _plain(value: float) -> str:
    """A number for an axis."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}" if abs(value) > 1e-9 else "0"


class Chart:
    """One chart: give it lines, points and the like, then ask for its `svg`.

    >>> chart = Chart("A <title>", Scale(0, 1, "x"), Scale(0, 1, "y"))
    >>> chart.line([(0, 0), (1, 1)], 0)
    >>> "&lt;title&gt;" in chart.svg(), chart.svg().count("<polyline")
    (True, 1)
    """

    def __init__(self, title: str, x: Scale, y: Scale, *, width: int = WIDTH, height: int = HEIGHT, left: int = LEFT):
        self.title, self.x, self.y = title, x, y
        self.width, self.height, self.left = width, height, left
        self.parts: list[str] = []

    def at(self, x: float, y: float) -> Point:
        """Where a point lies on the drawing."""
        across = self.left + self.x.place(x) * (self.width - self.left - RIGHT)
        return across, self.height - BOTTOM - self.y.place(y) * (self.height - TOP - BOTTOM)

    def _path(self, points: Iterable[Point]) -> str:
        return " ".join("{:.1f},{:.1f}".format(*self.at(*point)) for point in points)

    def line(
        self, points: Sequence[Point], kind: int, *, points_too: bool = True, words: str = "", style: str = ""
    ) -> None:
        """A line through points, with a mark at each of them if there are few."""
        self.parts.append(f'<polyline class="k{kind} {style}" points="{self._path(points)}"/>')
        if points_too:
            self.points(points, kind, words=words)

    def points(self, points: Iterable[Point], kind: int, *, words: str = "", size: float = 3.6) -> None:
        """A mark at each point; a pointer that rests on it sees the values."""
        for x, y in points:
            told = f"<title>{escape(words)}{': ' if words else ''}{y:.5g}</title>" if words else ""
            self.parts.append(f'<g class="k{kind} mark">{told}{_mark(kind, *self.at(x, y), size)}</g>')

    def dots(self, points: Iterable[Point], kind: int) -> None:
        """Many small points of one kind."""
        made = "".join('<circle cx="{:.1f}" cy="{:.1f}" r="2"/>'.format(*self.at(*point)) for point in points)
        self.parts.append(f'<g class="k{kind} dots">{made}</g>')

    def band(self, lower: Sequence[Point], upper: Sequence[Point], kind: int) -> None:
        """What lies between two lines."""
        self.parts.append(f'<polygon class="k{kind} band" points="{self._path([*lower, *reversed(upper)])}"/>')

    def whisker(self, x: float, low: float, high: float, kind: int) -> None:
        """An interval at a point, upright."""
        (across, bottom), (_, top) = self.at(x, low), self.at(x, high)
        path = f"M{across:.1f} {bottom:.1f}V{top:.1f}M{across - 3:.1f} {bottom:.1f}h6M{across - 3:.1f} {top:.1f}h6"
        self.parts.append(f'<path class="k{kind} whisker" d="{path}"/>')

    def across(self, low: float, high: float, y: float) -> None:
        """An interval at a point, lying."""
        (left, height), (right, _) = self.at(low, y), self.at(high, y)
        path = f"M{left:.1f} {height:.1f}H{right:.1f}M{left:.1f} {height - 3:.1f}v6M{right:.1f} {height - 3:.1f}v6"
        self.parts.append(f'<path class="whisker plain" d="{path}"/>')

    def box(self, x: Point, y: Point, kind: int, words: str = "") -> None:
        """A bar from one corner to the other."""
        (left, bottom), (right, top) = self.at(x[0], y[0]), self.at(x[1], y[1])
        left, right, top, bottom = min(left, right), max(left, right), min(top, bottom), max(top, bottom)
        size = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"'
        told = f"<title>{escape(words)}</title>" if words else ""
        self.parts.append(f'<rect class="k{kind} box" {size}>{told}</rect>')

    def rule(self, y: float, kind: int) -> None:
        """A level line over the whole width."""
        (left, height), (right, _) = self.at(self.x.low, y), self.at(self.x.high, y)
        self.parts.append(f'<path class="k{kind} rule" d="M{left:.1f} {height:.1f}H{right:.1f}"/>')

    def diagonal(self, most: float) -> None:
        """Where x and y are equal, from 0 up."""
        self.parts.append(f'<polyline class="plain rule" points="{self._path([(0.0, 0.0), (most, most)])}"/>')

    def say(self, x: float, y: float, words: str, kind: int, *, side: str = "start", shift: Point = (6, 4)) -> None:
        """Words at a point."""
        across, height = self.at(x, y)
        place = f'x="{across + shift[0]:.1f}" y="{height + shift[1]:.1f}" text-anchor="{side}"'
        self.parts.append(f'<text class="k{kind} said" {place}>{escape(words)}</text>')

    def svg(self) -> str:
        """The drawing; it grows with the page, but not beyond what its letters bear."""
        size = f'viewBox="0 0 {self.width} {self.height}" style="max-width:{1.25 * self.width:.0f}px"'
        body = [*self._frame(), *self.parts]
        named = f'role="img" aria-label="{escape(self.title)}"'
        return f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" {named} {size}>\n' + "\n".join(body) + "\n</svg>"

    def _frame(self) -> list[str]:
        """Title, axes and their ticks."""
        low, right = self.height - BOTTOM, self.width - RIGHT
        lines, texts = [], [_text("title", 4, 15, self.title)]
        for value, text in self.y.marks():
            height = self.at(self.x.low, value)[1]
            lines.append(f"M{self.left} {height:.1f}H{right}")
            texts.append(_text("tick", self.left - 6, height + 4, text, "end"))
        for value, text in self.x.marks():
            across, half = self.at(value, self.y.low)[0], LETTER * len(text) / 2
            texts.append(_text("tick", min(across, self.width - half - 1), low + 15, text, "middle"))
        texts.append(_text("tick", (self.left + right) / 2, self.height - 6, self.x.words, "middle"))
        if self.y.words:
            turned = f' transform="translate(11 {(TOP + low) / 2:.1f}) rotate(-90)"'
            texts.append(_text("tick", 0, 0, self.y.words, "middle", turned))
        grid = f'<path class="grid" d="{"".join(lines)}"/>'
        return [grid, f'<path class="axis" d="M{self.left} {TOP}V{low}H{right}"/>', *texts]


def _text(kind: str, x: float, y: float, words: str, side: str = "start", more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{side}"{more}>{escape(words)}</text>'


def _mark(kind: int, x: float, y: float, size: float) -> str:
    """A point: a shape for each kind."""
    r, d = size, size * 1.25
    if kind == 1:
        return f'<rect x="{x - r * 0.9:.1f}" y="{y - r * 0.9:.1f}" width="{1.8 * r:.1f}" height="{1.8 * r:.1f}"/>'
    if kind == 2:
        return f'<path d="M{x:.1f} {y - d:.1f}L{x + d:.1f} {y + d * 0.8:.1f}H{x - d:.1f}Z"/>'
    if kind == 3:
        return f'<path d="M{x:.1f} {y - d:.1f}L{x + d:.1f} {y:.1f}L{x:.1f} {y + d:.1f}L{x - d:.1f} {y:.1f}Z"/>'
    if kind == 4:
        return f'<path d="M{x:.1f} {y + d:.1f}L{x + d:.1f} {y - d * 0.8:.1f}H{x - d:.1f}Z"/>'
    if kind == 5:
        down, up = f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}", f"m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"
        return f'<path class="open" d="{down}{up}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>'


class Key(NamedTuple):
    """What a kind stands for; the shape is `line`, `bare` (a line without marks), `point`, `dots`, `box` or `rule`."""

    kind: int
    words: str
    shape: str = "line"

    @property
    def drawn(self) -> str:
        """A small picture of it."""
        kind = self.kind
        if self.shape == "box":
            return f'<rect class="k{kind} box" x="6" y="1" width="14" height="12"/>'
        if self.shape == "dots":
            return f'<g class="k{kind} dots"><circle cx="13" cy="7" r="4"/></g>'
        if self.shape == "rule":
            return f'<path class="k{kind} rule" d="M0 7H26"/>'
        line = f'<polyline class="k{kind}" points="0,7 26,7"/>' if self.shape != "point" else ""
        return line + (f'<g class="k{kind} mark">{_mark(kind, 13, 7, 3.6)}</g>' if self.shape != "bare" else "")


def legend(keys: Iterable[Key]) -> str:
    """What the kinds stand for.

    >>> legend([Key(0, "a & b")]).count("a &amp; b")
    1
    """
    made = (
        f'<li><svg width="26" height="14" aria-hidden="true">{key.drawn}</svg> {escape(key.words)}</li>' for key in keys
    )
    return f'<ul class="keys">{"".join(made)}</ul>'
