"""A result of `lols reproduce` as sections of tables and charts: summary, claim by claim, bandit, certificates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from lols.reproduction.claims import by_id, case_count, overall, place_of, seen, where_fails
from lols.reproduction.document import FIGURES, TEXTS, FigureText, Row, Section, TextCell, TextTable, Values, verdict
from lols.reproduction.parts import bandit_rows, bandit_section, certificates_section
from lols.reproduction.story import story_section
from lols.reproduction.tables import strategies, table_section
from lols.reproduction.theory_part import theory_section

STORED = Path(__file__).with_name("public_results.json")  # written by scripts/store_results.py
NOTHING: Values = {
    "command": "", "generated": False, "story": None, "tables": {}, "claims": [], "theory": None, "bandit": None,
    "certificates": None,
}  # fmt: skip


def describe(result: Values) -> list[Section]:
    """Sections for all parts that a result has."""
    result = {**NOTHING, **{name: value for name, value in result.items() if value is not None}}
    tables = {name: table for name, table in result["tables"].items() if table["cells"]}
    sections = [story_section(result["story"])] if result["story"] else []
    sections += [_summary(result), *(table_section(name, table) for name, table in tables.items()), _claims(result)]
    for part, section in (
        ("theory", theory_section),
        ("bandit", bandit_section),
        ("certificates", certificates_section),
    ):
        if result[part]:
            sections.append(section(result[part], _command(result, part)))
    sections += [_stored(tables)] if result["generated"] and result["claims"] else []
    return [section for section in sections if section.figures]


def _command(result: Values, part: str) -> str:
    """The command that computes one part."""
    command = str(result["command"])
    if part == "certificates" or (command and "reproduce all" not in command):
        return command
    return (command or "lols reproduce all").replace("reproduce all", f"reproduce {part}", 1)


# --- in a few words ---------------------------------------------------------------------------------------------------


def _summary(result: Values) -> Section:
    """A row for each claim: what holds and what does not, or, on generated data, what was seen there."""
    judged, stored, command = not result["generated"], public_results(), str(result["command"])
    known = by_id(stored["claims"])
    rows: dict[bool, list[Row]] = {False: [], True: []}  # the paper's claims, and ours
    for name, entries in by_id(result["claims"]).items():
        row = _judged_row(name, entries) if judged else _seen_row(name, entries, known[name])
        rows[entries[0]["ours_only"]].append(row)
    theory: list[Row] = [
        [verdict("holds" if claim["holds"] else "fails"), claim["where"], claim["paper"]]
        for claim in (result["theory"] or {}).get("claims", ())
    ]
    columns = ("", "claim", "here")
    compared = columns if judged else ("claim", "points", "2 se", "above 0", "below 0", "on the public data")
    groups = (
        ("What the paper says", rows[False], compared, command),
        ("What this library adds", rows[True], compared, command),
        ("The theory, computed on small spaces", theory, columns, _command(result, "theory")),
        ("The structured bandit", bandit_rows(result["bandit"] or {}, judged), columns, _command(result, "bandit")),
    )
    figures = [
        FigureText(title, [TextTable(names, rows, words=len(names), wraps=names is compared)], command=by)
        for title, rows, names, by in groups
        if rows
    ]
    words, lines = [claim["ours"] for claim in result["claims"]], []
    if words and judged:
        level = f", {words.count('no difference')} show no difference" if "no difference" in words else ""
        lines = [f"{words.count('holds')} of {len(words)} judgements hold here{level}.", TEXTS["judged"]["rules"]]
    elif words:
        lines = [TEXTS["small"]["about"].format(how_many=_seeds(stored["seeds"]), **stored)]
    return Section(TEXTS["judged" if judged else "small"]["title"], lines, figures, in_brief=True)


def _judged_row(name: str, entries: Sequence[Values]) -> Row:
    """Whether a claim holds, in how many cases, and where it fails."""
    words = [str(entry["ours"]) for entry in entries]
    here = f"{case_count(words)}."
    if 0 < words.count("fails") < len(words):
        here += f" It fails in {where_fails(entries)}."
    printed = {place_of(entry): str(entry["paper"]) for entry in entries}
    if counted := case_count(list(printed.values())):
        shows = "shows " if counted.startswith("no difference") else ""
        here += f" In the paper's own tables it {shows}{counted}."
    return [verdict(overall(words)), TextCell(entries[0]["claim"], link=f"claim-{name}"), here]


def _seen_row(name: str, entries: Sequence[Values], known: Sequence[Values]) -> Row:
    """The differences behind a claim, and what is known of it on the public data."""
    claim = TextCell(entries[0]["claim"], entries[0]["compared"], link=f"claim-{name}")
    return [claim, *seen(entries), case_count([entry["ours"] for entry in known])]


@cache
def public_results() -> Values:
    """Results on the public data sets, stored with the package: tables without curves, and the words of the claims."""
    found: Values = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def _stored(names: Mapping[str, Values]) -> Section:
    """The same tables on the public data sets, not computed now."""
    stored = public_results()
    figures = [
        strategies(name, table)._replace(
            title=f"{table['title']}: {table['data']}", charts=(), folded=True, command=stored["command"]
        )
        for name, table in stored["tables"].items()
        if name in names
    ]
    lines = (f"Stored results of lols {stored['version']}, {_seeds(stored['seeds'])}; not computed here.",)
    return Section("The same on the public data sets", lines, figures)


def _seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed"


# --- claim by claim ---------------------------------------------------------------------------------------------------


def _claims(result: Values) -> Section:
    """Every claim by the paper's text, by its own table, and by ours for each learner."""
    judged, claims = not result["generated"], by_id(result["claims"])
    figures = [_claim(name, entries, str(result["command"]), judged) for name, entries in claims.items()]
    return Section("Claim by claim", (), figures)


def _ours(entry: Values, judged: bool) -> TextCell | str:
    """A judgement, or the differences behind it."""
    return (
        verdict(entry["ours"]) if judged else ", ".join(f"{gain:+.2f} ± {twice:.2f}" for gain, twice in entry["gains"])
    )


def _claim(name: str, entries: Sequence[Values], command: str, judged: bool) -> FigureText:
    learners = list(dict.fromkeys(str(entry["learner"]) for entry in entries))
    places: dict[str, dict[str, Values]] = {}
    for entry in entries:
        places.setdefault(place_of(entry), {})[str(entry["learner"])] = entry
    rows: list[Row] = []
    details: list[Row] = []
    for place, here in places.items():
        first = next(iter(here.values()))
        ours = [_ours(here[learner], judged) if learner in here else "" for learner in learners]
        rows.append([place, verdict(first["text"]), verdict(first["paper"]), *ours])
        whose = [("the paper's table", first["paper"], first["paper_detail"])]
        whose += [(f"ours, {of}", entry["ours"] if judged else "", entry["detail"]) for of, entry in here.items()]
        details += [[place, who, verdict(word) if word else "", text] for who, word, text in whose if text]
    columns = ("where", "paper's text", "paper's table", *(f"ours, {learner}" for learner in learners))
    tables = [
        TextTable(columns, rows, words=len(columns)),
        TextTable(("where", "whose", "", "figures"), details, words=4, folded=FIGURES),
    ]
    title = str(entries[0]["claim"])
    title = title[:1].upper() + title[1:] if title.partition(" ")[0].isalpha() else title
    title += " (our claim)" if entries[0]["ours_only"] else ""
    note = "" if judged else f"Ours: {entries[0]['compared']}, in points ± two standard errors."
    return FigureText(title, tables, note=note, command=command, id=f"claim-{name}")
