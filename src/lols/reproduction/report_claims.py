"""The report's judgements: what holds and what does not in a few words, then claim by claim in three columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from lols.reproduction.report_html import Section, figure, plain_table, verdict

__all__ = ["claims_section", "overall", "summary_section"]

Claim = Mapping[str, Any]
WORDS = ("holds", "no difference", "fails")
RULES = (
    "A difference below two standard errors counts as none. A case is a task, a teacher and a learner. A claim holds "
    "in part if it holds in some cases and fails in none, and is mixed if it fails in others."
)


def by_id(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """Judgements of the same claim together."""
    made: dict[str, list[Claim]] = {}
    for claim in claims:
        made.setdefault(str(claim["id"]), []).append(claim)
    return made


def overall(words: Sequence[str]) -> str:
    """Many judgements of one claim as one.

    >>> overall(["holds", "holds"]), overall(["holds", "no difference"]), overall(["holds", "fails"])
    ('holds', 'holds in part', 'mixed')
    >>> overall(["no difference", "fails"]), overall(["not measured"]), overall(["fails"])
    ('fails in part', 'not measured', 'fails')
    """
    found = set(words)
    if len(found) == 1:
        return words[0]
    holds, fails = "holds" in found, "fails" in found
    return "mixed" if holds and fails else "holds in part" if holds else "fails in part" if fails else "no difference"


def count(words: Sequence[str]) -> str:
    """How often each judgement came out.

    >>> count(["holds", "fails", "holds"]), count(["holds", "holds"])
    ('holds in 2 of 3 cases, fails in 1', 'holds in all 2 cases')
    """
    found = [(word, words.count(word)) for word in WORDS if word in words]
    if len(found) == 1:
        return f"{found[0][0]} in {'all' if len(words) > 1 else 'the only'} {_cases(len(words))}"
    made = [f"{word} in {times}" for word, times in found]
    return ", ".join([f"{made[0]} of {_cases(len(words))}", *made[1:]]) if made else ""


def _cases(number: int) -> str:
    return f"{number} cases" if number > 1 else "case"


def where_fails(entries: Sequence[Claim]) -> str:
    """Where a claim fails, tasks and teachers together as far as they go.

    >>> at = {"task": "tagging", "table": "table3", "teacher": "bad", "learner": "csoaa", "ours": "fails"}
    >>> where_fails([at, at | {"learner": "hinge", "ours": "holds"}, at | {"teacher": "optimal", "ours": "holds"}])
    'tagging (bad teacher, csoaa)'
    """
    made = []
    for task in dict.fromkeys(_task(entry) for entry in entries):
        here = [entry for entry in entries if _task(entry) == task]
        failed = [entry for entry in here if entry["ours"] == "fails"]
        if len(failed) == len(here):
            made.append(task)
            continue
        groups: dict[tuple[str, ...], list[str]] = {}
        for teacher in dict.fromkeys(str(entry["teacher"]) for entry in failed):
            of = [entry for entry in here if entry["teacher"] == teacher]
            learners = tuple(str(entry["learner"]) for entry in of if entry["ours"] == "fails")
            groups.setdefault(() if len(learners) == len(of) else learners, []).append(teacher)
        words = [", ".join([f"{' and '.join(t)} teacher{'s' * (len(t) > 1)}", *of]) for of, t in groups.items()]
        made += [f"{task} ({'; '.join(words)})"] if words else []
    return ", ".join(made)


def _task(claim: Claim) -> str:
    table, task = str(claim.get("table", "")), str(claim["task"])
    data = table.partition("-")[2]
    return f"{task}, {data}" if data else task


def place(claim: Claim) -> str:
    """Where a judgement was made."""
    return f"{_task(claim)}: {claim['teacher']} teacher"


# --- in a few words ---------------------------------------------------------------------------------------------------


def summary_section(result: Mapping[str, Any]) -> Section:
    """What holds and what does not, a line for each claim."""
    claims = list(result.get("claims") or [])
    theory = list((result.get("theory") or {}).get("claims") or [])
    parts = []
    for ours, words in ((False, "What the paper says"), (True, "What this library adds")):
        chosen = [claim for claim in claims if bool(claim.get("ours_only")) is ours]
        lines = [_line(name, entries) for name, entries in by_id(chosen).items()]
        if lines:
            parts.append(f"<h3>{escape(words)}</h3><ul class='summary'>{''.join(lines)}</ul>")
    if theory:
        lines = [_item(verdict("holds" if c["holds"] else "fails"), c["where"], c["paper"]) for c in theory]
        parts.append(f"<h3>Its theory, computed on small spaces</h3><ul class='summary'>{''.join(lines)}</ul>")
    lines = _of_bandit(result.get("bandit") or {})
    if lines:
        parts.append(f"<h3>The structured bandit</h3><ul class='summary'>{''.join(lines)}</ul>")
    body = "".join(parts)
    if claims:
        body += f"<p>{escape(RULES)}</p>"
    return "What holds and what does not", body


def _line(name: str, entries: Sequence[Claim]) -> str:
    words = [str(entry["ours"]) for entry in entries]
    told = [f"{count(words)}."]
    if 0 < words.count("fails") < len(words):
        told.append(f"It fails in {where_fails(entries)}.")
    printed = {place(entry): str(entry["paper"]) for entry in entries}
    measured = [word for word in printed.values() if word in WORDS]
    if measured:
        told.append(f"In the paper's own tables it {_shows(count(measured))}.")
    link = f'<a href="#claim-{escape(_slug(name))}">{escape(str(entries[0]["claim"]))}</a>'
    first, *rest = (escape(text) for text in told)
    more = f' <span class="where">{" ".join(rest)}</span>' if rest else ""
    return f"<li>{_overall(overall(words))}<span><b>{link}</b>: {first}{more}</span></li>"


def _item(sign: str, name: str, words: str) -> str:
    return f"<li>{sign}<span><b>{escape(name)}</b>: {escape(words)}</span></li>"


def _shows(counted: str) -> str:
    return f"shows {counted}" if counted.startswith("no difference") else counted


def _overall(word: str) -> str:
    signs = {"holds in part": "◐", "mixed": "◑", "fails in part": "◔"}
    if word in signs:
        return f'<span class="verdict {word.replace(" ", "-")}">{signs[word]}&nbsp;{word}</span>'
    return verdict(word)


def _of_bandit(bandit: Mapping[str, Any]) -> list[str]:
    """Whether rules are beaten, and regret falls as promised; a difference within the intervals is none."""
    made = []
    for name, world in (bandit.get("worlds") or {}).items():
        rules, policy = world.get("held_out_reference_loss"), world.get("policy_loss")
        if rules is None or policy is None:
            continue
        spreads, closed = world.get("intervals") or {}, world.get("gap_closed")
        own, other = (spreads.get(key) or 0.0 for key in ("policy_loss", "held_out_reference_loss"))
        level = abs(policy - rules) <= math.hypot(own, other)
        word = "no difference" if level else "holds" if policy < rules else "fails"
        spread = f" ± {own:.3f}" if own else ""
        told = f"the bandit beats its rules: a held-out loss of {policy:.3f}{spread} after learning, {rules:.3f} before"
        told += f"; {100 * closed:.0f} % of the way to full information" if closed is not None and closed > 0 else ""
        made.append(_item(verdict(word), str(name), told))
    regret = bandit.get("regret") or {}
    slope, bound = regret.get("slope") or {}, regret.get("bound")
    value = slope.get("value")
    if value is not None and bound is not None and math.isfinite(value):
        word = "holds" if value <= bound else "no difference" if slope["low"] <= bound else "fails"
        told = f"regret falls at least as N to the power of {bound:.2f}: here {value:.2f}"
        told += f" (95 %: {slope['low']:.2f} to {slope['high']:.2f})"
        made.append(_item(verdict(word), "Corollary 2", told))
    return made


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


# --- claim by claim ---------------------------------------------------------------------------------------------------


def claims_section(result: Mapping[str, Any]) -> Section:
    """Every claim: the paper's text, its own table, and ours for each learner; the figures are folded away."""
    command = str(result.get("command", ""))
    body = "".join(_claim(name, entries, command) for name, entries in by_id(result.get("claims") or []).items())
    return "Claim by claim", body


def _claim(name: str, entries: Sequence[Claim], command: str) -> str:
    learners = list(dict.fromkeys(str(entry["learner"]) for entry in entries))
    places = dict.fromkeys(place(entry) for entry in entries)
    rows, details = [], []
    for where in places:
        here = {str(entry["learner"]): entry for entry in entries if place(entry) == where}
        first = next(iter(here.values()))
        ours = [verdict(here[learner]["ours"]) if learner in here else "" for learner in learners]
        rows.append([escape(where), verdict(first["text"]), verdict(first["paper"]), *ours])
        if first.get("paper_detail"):
            details.append(_detail(where, "the paper's table", first["paper"], first["paper_detail"]))
        details += [
            _detail(where, f"ours, {learner}", entry["ours"], entry["detail"])
            for learner, entry in here.items()
            if entry.get("detail")
        ]
    heads = ["where", "the paper's text", "the paper's table", *(f"ours, {learner}" for learner in learners)]
    table = plain_table(heads, rows, words=len(heads))
    folded = ""
    if details:
        behind = plain_table(["whose", "", "figures"], details, words=3)
        folded = f"<details><summary>The figures behind it</summary>{behind}</details>"
    title = str(entries[0]["claim"])
    title = f"{title[:1].upper()}{title[1:]}" if title.partition(" ")[0].isalpha() else title
    title += " (our claim)" if entries[0].get("ours_only") else ""
    return f'<div id="claim-{escape(_slug(name))}">{figure(title, table + folded, command)}</div>'


def _detail(where: str, whose: str, word: str, figures: str) -> list[str]:
    return [f'{escape(where)}<span class="paper">{escape(whose)}</span>', verdict(word), escape(str(figures))]
