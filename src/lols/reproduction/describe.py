"""A result of `lols reproduce` as sections of tables and charts: summary, claim by claim, bandit, certificates."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from lols.plots.bandit import bandit_figure
from lols.plots.certificates import regret_figure
from lols.reproduction import charts
from lols.reproduction.claims import by_id, case_count, overall, place_of, seen, where_fails
from lols.reproduction.describe_tables import strategies, table_section
from lols.reproduction.describe_theory import theory_section
from lols.reproduction.document import FIGURES, Chart, FigureText, Section, TextCell, TextTable, verdict
from lols.reproduction.story import story_section

Values = Mapping[str, Any]
STORED = Path(__file__).with_name("public_results.json")  # written by scripts/store_results.py
RULES = (
    "A difference below two standard errors counts as none. A case is a task, a teacher and a learner. A claim holds "
    "in part if it holds in some cases and fails in none, and is mixed if it fails in others."
)
HELD_OUT = (
    ("reference", "held_out_reference_loss"),
    ("the bandit's last policy", "policy_loss"),
    ("full information", "full_information_loss"),
    ("optimum", "optimum_loss"),
    ("random", "held_out_random_loss"),
)
CERTIFIED = (
    ("loss", "loss"),
    ("the teacher's loss", "teacher_loss"),
    ("regret to the teacher", "regret_to_teacher"),
    ("regret to one-step deviations, with hindsight", "deviation_regret_hindsight"),
    ("the same within the class of policies", "deviation_regret_in_class"),
)


def describe(result: Values) -> list[Section]:
    """Sections for all parts that a result has."""
    tables = [(name, table) for name, table in (result.get("tables") or {}).items() if table.get("cells")]
    small = result.get("generated") and result.get("claims")
    sections = [story_section(result["story"])] if result.get("story") else []
    sections += [_summary(result), *(table_section(name, table) for name, table in tables), _claims(result)]
    for part, section in (("theory", theory_section), ("bandit", _bandit), ("certificates", _certificates)):
        if result.get(part):
            sections.append(section(result[part], _command(result, part)))
    sections += [_stored([name for name, _ in tables])] if small else []
    return [section for section in sections if section.figures]


def _command(result: Values, part: str) -> str:
    """The command that computes one part."""
    command = str(result.get("command") or "")
    if part == "certificates" or (command and "reproduce all" not in command):
        return command
    return (command or "lols reproduce all").replace("reproduce all", f"reproduce {part}", 1)


# --- in a few words ---------------------------------------------------------------------------------------------------


def _summary(result: Values) -> Section:
    """A row for each claim: what holds and what does not, or, on generated data, what was seen there."""
    claims, command = list(result.get("claims") or []), str(result.get("command") or "")
    judged, stored = not result.get("generated"), public_results()
    known = {name: [str(entry["ours"]) for entry in group] for name, group in by_id(stored["claims"]).items()}
    paper, ours = (
        [
            _summary_row(name, group, [] if judged else known[name])
            for name, group in by_id(claims).items()
            if _is_ours(group) is who
        ]
        for who in (False, True)
    )
    theory = [
        [verdict("holds" if claim["holds"] else "fails"), claim["where"], claim["paper"]]
        for claim in (result.get("theory") or {}).get("claims") or []
    ]
    bandit = _bandit_judgements(result.get("bandit") or {}, judged)
    columns = ("", "claim", "here")
    compared = columns if judged else ("claim", "points", "2 se", "above 0", "below 0", "on the public data")
    groups = (
        ("What the paper says", paper, compared, command),
        ("What this library adds", ours, compared, command),
        ("The theory, computed on small spaces", theory, columns, _command(result, "theory")),
        ("The structured bandit", bandit, columns, _command(result, "bandit")),
    )
    figures = [
        FigureText(title, [TextTable(names, rows, words=len(names), wraps=names is compared)], command=by)
        for title, rows, names, by in groups
        if rows
    ]
    lines, words = [], [claim["ours"] for claim in claims]
    if claims and not judged:
        lines = [
            "These data are generated and small: they show that everything runs, and which way it goes. Below are the "
            "least and the greatest difference in points over all cases, two standard errors (2 se), and how many are "
            "above and below 0 by more than these. Whether the paper's claims hold is judged on the public data "
            f"sets only: stored results of lols {stored['version']} ({stored['command']}, {_seeds(stored['seeds'])})."
        ]
    elif claims:
        level = f", {words.count('no difference')} show no difference" if "no difference" in words else ""
        lines = [f"{words.count('holds')} of {len(words)} judgements hold here{level}.", RULES]
    title = "What holds and what does not" if judged else "What was seen on small data"
    return Section(title, lines, figures, in_brief=True)


def _is_ours(entries: Sequence[Values]) -> bool:
    return bool(entries[0].get("ours_only"))


def _summary_row(name: str, entries: Sequence[Values], known: Sequence[str]) -> list[TextCell | str]:
    claim, words = TextCell(str(entries[0]["claim"]), link=_claim_id(name)), [str(entry["ours"]) for entry in entries]
    if known:
        return [claim._replace(note=str(entries[0]["compared"])), *seen(entries), case_count(known)]
    here = f"{case_count(words)}."
    if 0 < words.count("fails") < len(words):
        here += f" It fails in {where_fails(entries)}."
    printed = {place_of(entry): str(entry["paper"]) for entry in entries}
    counted = case_count(list(printed.values()))
    if counted:
        shows = "shows " if counted.startswith("no difference") else ""
        here += f" In the paper's own tables it {shows}{counted}."
    return [verdict(overall(words)), claim, here]


@cache
def public_results() -> Values:
    """Results on the public data sets, stored with the package: tables without curves, and the words of the claims."""
    found: Values = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def _stored(names: Sequence[str]) -> Section:
    """The same tables on the public data sets, not computed now."""
    stored = public_results()
    figures = [
        strategies(name, table)._replace(title=f"{table['title']}: {table['data']}", charts=(), folded=True)
        for name, table in stored["tables"].items()
        if name in names
    ]
    lines = (f"Stored results of lols {stored['version']}, {_seeds(stored['seeds'])}; not computed here.",)
    by = str(stored["command"])
    return Section("The same on the public data sets", lines, [figure._replace(command=by) for figure in figures])


def _seeds(seeds: Sequence[Any]) -> str:
    return f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed"


def _claim_id(name: str) -> str:
    return "claim-" + "".join(letter if letter.isalnum() else "-" for letter in name)


def _bandit_judgements(bandit: Values, judged: bool) -> list[list[TextCell | str]]:
    """Whether the reference is beaten, and whether regret falls as promised, up to the intervals."""
    rows: list[list[TextCell | str]] = []
    for name, world in (bandit.get("worlds") or {}).items():
        reference, policy = world.get("held_out_reference_loss"), world.get("policy_loss")
        if reference is None or policy is None:
            continue
        spreads, closed = world.get("intervals") or {}, world.get("gap_closed")
        own, other = (spreads.get(key) or 0.0 for key in ("policy_loss", "held_out_reference_loss"))
        level = abs(policy - reference) <= math.hypot(own, other)
        word = "no difference" if level else "holds" if policy < reference else "fails"
        here = f"a held-out loss of {policy:.3f}{f' ± {own:.3f}' if own else ''} after learning, {reference:.3f} before"
        here += f"; {100 * closed:.0f} % of the way to full information" if closed is not None and closed > 0 else ""
        rows.append([verdict(word) if judged else "", f"{name}: the bandit beats its reference", here])
    regret = bandit.get("regret") or {}
    slope, bound = regret.get("slope") or {}, regret.get("bound")
    value = slope.get("value")
    if value is not None and bound is not None and math.isfinite(value):
        word = "holds" if value <= bound else "no difference" if slope["low"] <= bound else "fails"
        here = f"{value:.2f} (95 %: {slope['low']:.2f} to {slope['high']:.2f})"
        rows.append([verdict(word), f"Corollary 2: regret falls at least as N to the power of {bound:.2f}", here])
    return rows


# --- claim by claim ---------------------------------------------------------------------------------------------------


def _claims(result: Values) -> Section:
    """Every claim by the paper's text, by its own table, and by ours for each learner."""
    command, claims = str(result.get("command") or ""), by_id(result.get("claims") or [])
    judged = not result.get("generated")
    return Section("Claim by claim", (), [_claim(name, entries, command, judged) for name, entries in claims.items()])


def _ours(entry: Values, judged: bool) -> TextCell | str:
    """A judgement, or the differences behind it."""
    differences = (f"{gain:+.2f} ± {twice:.2f}" for gain, twice in entry.get("gains") or ())
    return verdict(entry["ours"]) if judged else ", ".join(differences)


def _claim(name: str, entries: Sequence[Values], command: str, judged: bool) -> FigureText:
    learners = list(dict.fromkeys(str(entry["learner"]) for entry in entries))
    places: dict[str, dict[str, Values]] = {}
    for entry in entries:
        places.setdefault(place_of(entry), {})[str(entry["learner"])] = entry
    rows: list[list[TextCell | str]] = []
    details: list[list[TextCell | str]] = []
    for place, here in places.items():
        first = next(iter(here.values()))
        ours = [_ours(here[learner], judged) if learner in here else "" for learner in learners]
        rows.append([place, verdict(first["text"]), verdict(first["paper"]), *ours])
        whose = [("the paper's table", first["paper"], first.get("paper_detail"))]
        whose += [(f"ours, {of}", entry["ours"] if judged else "", entry.get("detail")) for of, entry in here.items()]
        details += [[place, who, verdict(word) if word else "", str(text)] for who, word, text in whose if text]
    columns = ("where", "paper's text", "paper's table", *(f"ours, {learner}" for learner in learners))
    tables = [TextTable(columns, rows, words=len(columns))]
    if details:
        tables.append(TextTable(("where", "whose", "", "figures"), details, words=4, folded=FIGURES))
    title = str(entries[0]["claim"])
    title = title[:1].upper() + title[1:] if title.partition(" ")[0].isalpha() else title
    title += " (our claim)" if _is_ours(entries) else ""
    note = "" if judged else f"Ours: {entries[0].get('compared')}, in points ± two standard errors."
    return FigureText(title, tables, note=note, command=command, id=_claim_id(name))


# --- the bandit, and certificates -------------------------------------------------------------------------------------


def _bandit(bandit: Values, command: str) -> Section:
    worlds = [
        _world(name, world, command) for name, world in (bandit.get("worlds") or {}).items() if world.get("curve")
    ]
    regret = [_regret(bandit["regret"], command)] if bandit.get("regret") else []
    return Section("The structured bandit", ("Only the loss of what was shown is seen.",), [*worlds, *regret])


def _world(name: str, world: Values, command: str) -> FigureText:
    spreads, seeds = world.get("intervals") or {}, len(world.get("seeds") or [0])
    rows = []
    for words, key in HELD_OUT:
        if world.get(key) is not None:
            spread = f" ± {spreads[key]:.4f}" if spreads.get(key) is not None else ""
            rows.append([words, f"{world[key]:.4f}{spread}"])
    note = f"The loss of what was shown over {world['rounds']:,} rounds, mean of a window. "
    note += f"Band and ±: 95 % intervals of the mean over {seeds} seeds." if seeds > 1 else "One seed."
    if world.get("gap_closed") is not None:
        share = f"{100 * world['gap_closed']:.0f} %"
        note += f" The last policy is {share} of the way from the reference to a learner with full information."
    chart = Chart(f"bandit-{name}", f"Loss by round: {name}", partial(bandit_figure, world))
    held_out = [TextTable(("loss on held-out objects", "mean"), rows)] if rows else []
    return FigureText(
        f"Learning from one loss a round: {name}", held_out, [chart], note, world.get("command") or command
    )


def _regret(regret: Values, command: str) -> FigureText:
    means = [statistics.fmean(runs) for runs in regret["values"]]
    rows = [[f"{n:,}", f"{mean:.5f}"] for n, mean in zip(regret["rounds"], means)]
    note = (
        "The left side of Theorem 3 at the averaged policy of Algorithm 2, computed exactly; only the runs are random."
    )
    slope, bound = regret.get("slope") or {}, regret.get("bound")
    if math.isfinite(slope.get("value", math.nan)):
        note += f" Slope {slope['value']:.2f} (95 %: {slope['low']:.2f} to {slope['high']:.2f})"
        note += f"; Corollary 2 promises slope {bound:.2f}." if bound is not None else "."
    chart = Chart("bandit-regret", "Regret by rounds, on logarithmic scales", partial(charts.regret_slope, regret))
    table = TextTable(("rounds N", "mean regret"), rows, words=0)
    return FigureText("How the bandit's regret falls", [table], [chart], note, regret.get("command") or command)


def _certificates(certificates: Mapping[str, Values], command: str) -> Section:
    """What `lols certify` says of policies, a figure for each."""
    made = [_certificate(k, name, of, command) for k, (name, of) in enumerate(certificates.items(), 1)]
    return Section("Certificates", ("Losses and regrets per example, with 95 % intervals (lols certify).",), made)


def _certificate(number: int, name: str, certificate: Values, command: str) -> FigureText:
    rows = []
    for words, key in CERTIFIED:
        if certificate.get(key) is not None:
            value = certificate[key]
            rows.append([words, f"{value['value']:.4f}", f"{value['low']:.4f} to {value['high']:.4f}"])
    tables = [TextTable(("per example", "mean", "95 % interval"), rows)] if rows else []
    chart = Chart(f"certificate-{number}", "Regret by step and by decision", partial(regret_figure, certificate))
    drawn = [chart] if certificate.get("by_step") else []
    if certificate.get("model") and certificate.get("file"):
        command = f"lols certify {certificate['model']} {certificate['file']}"
    command = str(certificate.get("command") or command)
    advice = str(certificate.get("advice", ""))
    return FigureText(f"{name}: {certificate['verdict']}", tables, drawn, advice, command)
