"""Pieces of the report: figures with the commands that made them, tables that scroll, and verdicts in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["Section", "figure", "panels", "percent", "plain_table", "row_name", "show", "teacher_name", "verdict"]

SIGNS = {"holds": "✓", "fails": "✗", "no difference": "≈", "not said": "–", "not measured": "–"}
ROWS = {"searn": "Searn", "auto": "LOLS, β = auto"}
LEARNERS = {"csoaa": "csoaa, as in the paper", "hinge": "hinge, our default"}
Section = tuple[str, str]  # a heading, and a body that is HTML already


def figure(title: str, body: str, command: str = "", note: str = "") -> str:
    """A figure: a title, a body that is HTML already, a note, and the command that made it.

    >>> print(figure("<b>", "<p></p>", "lols reproduce & see"))
    <figure><figcaption>&lt;b&gt;</figcaption><p></p><code class="command">lols reproduce &amp; see</code></figure>
    """
    made = f"<figcaption>{escape(title)}</figcaption>{body}" if title else body
    made += f'<p class="note">{escape(note)}</p>' if note else ""
    made += f'<code class="command">{escape(command)}</code>' if command else ""
    return f"<figure>{made}</figure>"


def panels(charts: Iterable[str]) -> str:
    """Charts beside each other, as many as there is room for."""
    made = list(charts)
    return f'<div class="panels n{min(len(made), 3)}">{"".join(made)}</div>'


def plain_table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table whose cells are HTML already; the first `words` columns have words, and the others numbers."""
    of = ["words" if k < words else "numbers" for k in range(len(heads))]
    head = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for kind, text in zip(of, heads))
    cells = ("".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(of, row)) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    table = f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def verdict(word: str) -> str:
    """A word of judgement with its sign.

    >>> verdict("fails")
    '<span class="verdict fails">✗&nbsp;fails</span>'
    """
    kind = word.replace(" ", "-") if word in SIGNS else "other"
    sign = SIGNS.get(word, "")
    return f'<span class="verdict {kind}">{sign}&nbsp;{escape(word)}</span>'


def row_name(row: str) -> str:
    """A row of a table, for people.

    >>> row_name("learned/mixture"), row_name("searn")
    ('learned / mixture', 'Searn')
    """
    return ROWS.get(row) or row.replace("/", " / ")


def learner_name(learner: str) -> str:
    """A learner, for people."""
    return LEARNERS.get(learner, learner)


def teacher_name(teacher: str) -> str:
    """A teacher, for people."""
    return f"{teacher} teacher"


def show(table: Mapping[str, Any], value: float) -> str:
    """A figure of a table, with the digits that it has: percentages two, costs four."""
    return f"{value:.2f}" if table.get("unit", "percent") == "percent" else f"{value:.4f}"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.0f} %"
