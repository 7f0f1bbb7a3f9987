"""A model in a notebook: what it is and how its training went, as plain HTML tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

FACTS = ("reference", "examples", "tokens", "passes", "passes_done", "batch_size", "seed", "best_pass")
NUMBERS = ("features", "rounds", "states", "seconds_total", "seconds_compiling")


def model_html(title: str, about: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """Two tables, everything escaped, without any script.

    >>> shown = model_html("Model(<b>)", {"seed": 1}, {"progressive_loss": [2.0, 1.0]})
    >>> "&lt;b&gt;" in shown, "<script" in shown, shown.count("<tr>")
    (True, False, 4)
    """
    algorithm, learner = about.get("algorithm"), about.get("learner")
    facts = {"algorithm": algorithm.get("name")} if isinstance(algorithm, Mapping) else {}
    if isinstance(learner, Mapping) and "reduction" in learner:
        facts["learner"] = f"{learner['reduction']}, {learner['update']}"
    facts |= {name.replace("_", " "): about[name] for name in FACTS if about.get(name) is not None}
    facts |= {name.replace("_", " "): report[name] for name in NUMBERS if report.get(name) is not None}
    if report.get("teacher"):
        facts["beside its teacher"] = report["teacher"]["summary"]
    parts = [f"<p><code>{html.escape(title)}</code></p>", _table(("", ""), [(k, _shown(v)) for k, v in facts.items()])]
    losses = report.get("progressive_loss") or []
    if losses:
        dev = report.get("dev") or []
        names = [name for name in (dev[0] if dev else {}) if name != "pass"]
        rows = [
            (str(k + 1), _shown(loss), *(_shown(dev[k][name]) if k < len(dev) else "" for name in names))
            for k, loss in enumerate(losses)
        ]
        parts.append(_table(("pass", "loss while learning", *(f"dev {name}" for name in names)), rows))
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    top = f"<thead>{line(head, 'th')}</thead>" if any(head) else ""
    return f"<table>{top}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
