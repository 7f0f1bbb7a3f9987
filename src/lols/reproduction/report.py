"""`lols reproduce --html`: everything on one page that needs nothing else, neither a network nor a script."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from lols.errors import LolsError
from lols.reproduction.paper import CITATION
from lols.reproduction.report_bandit import bandit_section, certificates_section
from lols.reproduction.report_claims import claims_section, summary_section
from lols.reproduction.report_html import Section
from lols.reproduction.report_style import STYLE
from lols.reproduction.report_tables import table_section
from lols.reproduction.report_theory import theory_section
from lols.tasks.tagging.explain_html import frame

__all__ = ["report_page", "write_report"]

HEADING = "Learning to search better than your teacher, reproduced"
LINK = "https://proceedings.mlr.press/v37/changb15.html"


def write_report(result: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page of a result, as a whole or not at all.

    Parameters
    ----------
    result
        What `lols reproduce --json` writes; parts that are not there are left out. A further part `certificates` has
        what `lols certify --json` prints, by names.
    path
        The HTML file.

    Examples
    --------
    >>> path = tempfile.mkdtemp() + "/report.html"
    >>> write_report({"version": "0.1.0", "command": "lols reproduce table3", "tables": {}, "claims": []}, path)
    >>> "lols reproduce table3" in Path(path).read_text(encoding="utf-8")
    True

    """
    page, path = report_page(result).encode("utf-8"), Path(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".html", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, 0o644)
            file.write(page)
        os.replace(temporary, path)
    except OSError as error:
        raise LolsError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def report_page(result: Mapping[str, Any]) -> str:
    """The page as text; the same result gives the same page.

    >>> report_page({"command": "<lols>"}).count("&lt;lols&gt;")
    1
    """
    sections = _sections(result)
    links = "".join(f'<li><a href="#part-{k}">{escape(title)}</a></li>' for k, (title, _) in enumerate(sections))
    contents = f'<nav><ul class="contents">{links}</ul></nav>' if len(sections) > 1 else ""
    parts = [f'<section id="part-{k}"><h2>{escape(t)}</h2>\n{body}\n</section>' for k, (t, body) in enumerate(sections)]
    return frame(HEADING, [], "\n".join([_headline(result), contents, *parts]), STYLE)


def _sections(result: Mapping[str, Any]) -> list[Section]:
    """Those that have something in them."""
    made = [summary_section(result)]
    made += [table_section(name, table) for name, table in (result.get("tables") or {}).items() if table.get("cells")]
    made.append(claims_section(result))
    for part, section in (
        ("theory", theory_section),
        ("bandit", bandit_section),
        ("certificates", certificates_section),
    ):
        found = result.get(part)
        if found:
            made.append(section(found, _command(result, part)))
    return [(title, body) for title, body in made if body]


def _command(result: Mapping[str, Any], part: str) -> str:
    """The command that makes one part."""
    command = str(result.get("command") or "")
    if part == "certificates" or (command and "reproduce all" not in command):
        return command
    return (command or "lols reproduce all").replace("reproduce all", f"reproduce {part}", 1)


def _headline(result: Mapping[str, Any]) -> str:
    """What was run, on what, and how long it took."""
    facts: list[tuple[str, str]] = []
    seeds = result.get("seeds") or []
    if result.get("quick"):
        facts.append(("size", "quick: small data and few passes, to see that it works; figures are rough"))
    data = dict.fromkeys(str(words) for words in (result.get("data") or {}).values())
    facts += [("data", words) for words in data]
    if seeds:
        facts.append(("seeds", f"{len(seeds)} ({', '.join(map(str, seeds))})"))
    if result.get("seconds") is not None:
        facts.append(("time", _time(float(result["seconds"]))))
    if result.get("version"):
        facts.append(("version", f"lols {result['version']}"))
    listed = "".join(
        (f"<dt>{escape(name)}</dt>" if k == 0 or facts[k - 1][0] != name else "") + f"<dd>{escape(words)}</dd>"
        for k, (name, words) in enumerate(facts)
    )
    command = result.get("command")
    made = f'<code class="command">{escape(str(command))}</code>' if command else ""
    return (
        f'<p>The tables, claims and theorems of <a href="{LINK}">{escape(CITATION)}</a>, run again: our figures beside '
        f"the authors'.</p>{made}<dl>{listed}</dl>"
    )


def _time(seconds: float) -> str:
    """How long, for people.

    >>> _time(75.2), _time(8.31)
    ('1 min 15 s', '8.3 s')
    """
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
