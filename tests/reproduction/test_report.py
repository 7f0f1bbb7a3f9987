"""The report of `lols reproduce` and its drawings: complete, escaped, alone, and the same each time."""

from __future__ import annotations

import copy
import io
import os
import re
import sys
from html import unescape
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from lols.errors import ConfigurationError, LolsError
from lols.plots import look
from lols.reproduction import report
from lols.reproduction.console import print_sections
from lols.reproduction.describe import describe
from lols.reproduction.report import LINK, report_page, write_plots, write_report
from tests.cli.command_line import error_line
from tests.reproduction.report_result import made_result, made_table

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

VOID = {"meta", "br", "hr", "img", "input", "link"}
PARTS = ("tables", "claims", "theory", "bandit", "certificates")
HOSTILE = '<script>alert("&")</script>\'"><b x=1>'


class Page(HTMLParser):
    """Reads a page, and notices what is not closed, not there or not in its place."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)
            if "tr" in self.open:
                self.rows[-1].append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return made_result()


@pytest.fixture(scope="module")
def whole(result) -> str:
    """The page with its charts, drawn once."""
    return report_page(result)


@pytest.fixture(scope="module")
def page(whole) -> Page:
    return Page(whole)


@pytest.fixture
def no_charts(monkeypatch) -> None:
    """Without their charts pages are made quickly."""
    monkeypatch.setattr(report, "_chart_svg", lambda chart: "<svg></svg>")


def shown(table: dict[str, Any], value: float) -> str:
    return f"{value:.4f}" if table["unit"] == "cost" else f"{value:.2f}"


# --- what is on it ----------------------------------------------------------------------------------------------------


def test_every_figure_of_the_tables_is_there(result, page):
    for table in result["tables"].values():
        for cell in table["cells"]:
            assert f"{shown(table, cell['mean'])}±{shown(table, cell['sd'])}" in page.text
            if cell["paper"] is not None:
                assert f"paper {cell['paper']:g}" in page.text
        for cell in table["coins"] or ():
            assert f"{shown(table, cell['mean'])}±{shown(table, cell['sd'])}" in page.text


def test_every_point_of_the_curves_and_of_beta_is_in_a_table(result, page):
    """Charts show them, tables have the figures."""
    rows = [" ".join(" ".join(row).split()) for row in page.rows]
    for table in result["tables"].values():
        for curve in table["curves"]:
            name = {"searn": "Searn", "auto": "LOLS, β = auto"}.get(curve["row"], curve["row"].replace("/", " / "))
            values = " ".join(shown(table, value) for value in curve["values"])
            assert f"{curve['teacher']} {curve['learner']} {name} {values}" in rows
        for teacher in table["teachers"]:
            cells = [c for c in table["beta"]["cells"] if (c["teacher"], c["learner"]) == (teacher, "hinge")]
            assert f"{teacher} hinge {' '.join(shown(table, cell['mean']) for cell in cells)}" in rows


def test_every_judgement_stands_in_three_columns_in_words(result, page):
    for claim in result["claims"]:
        assert claim["detail"] in page.text
        assert claim["claim"] in page.text
    words = {claim[column] for claim in result["claims"] for column in ("text", "paper", "ours")}
    assert words <= {"holds", "fails", "no difference", "not said", "not measured"}
    for column in ("paper's text", "paper's table", "ours, csoaa", "ours, hinge"):
        assert column in page.text
    count = sum(tag == "tr" for tag, _ in page.tags)
    assert count > len(result["claims"])


def test_theory_bandit_and_certificates_are_there(result, page):
    theory, bandit = result["theory"], result["bandit"]
    for row in theory["snakes"]["rows"]:
        assert f" {row['updates']} " in page.text
    assert "on 8 random spaces" in page.text and "in 0 of 24 runs" in page.text
    assert "0.0375 after 100 rounds" in page.text
    assert "3 of 6 cells" not in page.text and "4 of 6 cells come out" in page.text
    assert "0.5932 ± 0.0041" in page.text and "0.5711" in page.text and "80 % of the way" in page.text
    assert "Slope -0.40 (95 %: -0.45 to -0.35)" in page.text and "slope -0.33" in page.text
    means = [sum(runs) / len(runs) for runs in bandit["regret"]["values"]]
    assert all(f"{mean:.5f}" in page.text for mean in means)
    assert "more passes would help" in page.text and "-0.4444" in page.text and "NOUN → VERB" in page.text


def test_every_figure_has_the_command_that_made_it(result, whole):
    text = whole
    figures = re.findall(r"<figure[ >].*?</figure>", text, re.S)
    assert len(figures) > 20
    assert all(re.search(r'<code class="command">lols [^<]+</code>\s*</figure>$', made) for made in figures)
    commands = {unescape(c) for c in re.findall(r'<code class="command">([^<]+)</code>', text)}
    assert {t["command"] for t in result["tables"].values()} | {result["command"]} <= commands
    assert {"lols reproduce theory --quick", "lols bandit simulate layout --rounds 4000"} <= commands
    assert "lols certify model.lols test.conllu" in commands


def test_the_headline_says_what_was_run(result, page):
    for words in ("lols reproduce all --quick", "3 (0, 1, 2)", "2 min 3 s", "lols 0.1.0", *result["data"].values()):
        assert words in page.text


def test_lols_is_marked_and_the_best_are_bold(result, no_charts):
    text = report_page({"tables": {"table4": result["tables"]["table4"]}})
    rows = re.findall(r'<tr class="lols">(.*?)</tr>', text, re.S)
    assert len(rows) == 2 and all("learned / mixture" in row for row in rows)
    assert len(re.findall('class="[^"]*best', text)) >= 6
    closeness = [float(value) for value in re.findall(r"--s:([\d.]+)", text)]
    assert len(closeness) == len(result["tables"]["table4"]["cells"])
    assert min(closeness) == 0.0 and max(closeness) == 1.0


# --- what it is made of -----------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else(whole, page):
    text = whole
    names = {name for tag, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on") or name == "src"}
    links = [attributes[name] for _, attributes in page.tags for name in ("href", "xlink:href") if name in attributes]
    assert {link for link in links if not link.startswith("#")} == {LINK}
    assert not {"script", "link", "img", "iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    rest = text.replace(LINK, "").replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xlink", "")
    assert "http:" not in rest and "https:" not in rest and "@import" not in rest
    assert set(re.findall(r"url\((.)", rest)) <= {"#"}


def test_links_inside_lead_somewhere_and_names_are_unique(page):
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [attributes.get("href") or attributes.get("xlink:href") for _, attributes in page.tags]
    links = {link for link in named if link} - {LINK}
    links |= {part for _, attributes in page.tags for part in re.findall(r"#[^)]+", attributes.get("clip-path") or "")}
    assert len(links) > 20
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_hostile_text_stays_text(result):
    """All strings of the result, and the keys that are names."""

    def hostile(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            names = key in ("worlds", "certificates", "data")
            return {(HOSTILE if names else k): hostile(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [hostile(v) for v in value]
        return HOSTILE if isinstance(value, str) else value

    made = copy.deepcopy(result)
    for table in made["tables"].values():
        table |= {name: HOSTILE for name in ("title", "metric", "data", "command")}
        for row in (*table["cells"], *table["curves"], *table["beta"]["cells"], *(table["coins"] or ())):
            row |= {"teacher": HOSTILE, "learner": HOSTILE} | ({"row": HOSTILE} if "row" in row else {})
        table |= {"rows": [HOSTILE], "teachers": [HOSTILE], "learners": [HOSTILE]}
    for part in ("claims", "version", "command", "seeds", "data", "certificates"):
        made[part] = hostile(made[part], part)
    made["bandit"] = hostile(made["bandit"], "bandit")
    theory = hostile(made["theory"], "theory")
    for kind in ("table1", "figure3"):  # roll-outs are known by their names
        for row, was in zip(theory[kind], made["theory"][kind], strict=True):
            row["roll_out"] = was["roll_out"]
    made["theory"] = theory
    page = Page(report_page(made))
    assert not [tag for tag, attributes in page.tags if tag == "script" or (tag == "b" and "x" in attributes)]
    assert page.text.count("<script>") > 50


def test_numbers_that_are_none_of_the_expected_ones(result):
    made = copy.deepcopy(result)
    made["bandit"]["regret"]["slope"] = dict.fromkeys(("value", "height", "low", "high"), float("nan"))
    made["bandit"]["regret"]["values"][2] = [-0.01, -0.02, 0.001]
    made["bandit"]["worlds"]["layout"] |= {"gap_closed": None, "full_information_loss": None}
    for table in made["tables"].values():
        for cell in table["cells"]:
            cell["mean"] = 50.0
    text = report_page(made)
    assert "nan" not in Page(text).text and "NaN" not in text
    assert "-0.00967" in text


@pytest.mark.parametrize("part", PARTS)
def test_parts_that_are_missing_leave_no_trace(result, part, no_charts):
    without = {name: value for name, value in result.items() if name != part}
    alone = {part: result[part]}
    for made in (without, without | {part: None}, without | {part: type(result[part])()}, alone):
        page = Page(report_page(made))
        for heading in re.findall(r"<h2>.*?</h2>\s*</section>", report_page(made)):
            raise AssertionError(heading)
        assert "None" not in page.text and "nan" not in page.text
    assert report_page(without) == report_page(without | {part: None})
    heading = {"theory": "The theory, computed", "bandit": "The structured bandit", "claims": "Claim by claim"}
    assert (
        heading.get(part, "Certificates" if part == "certificates" else "Table 2")
        not in Page(report_page(without)).text
    )


def test_pieces_of_tables_that_are_missing_leave_no_trace(no_charts):
    table = made_table("table3", 1, 1)
    page = Page(report_page({"tables": {"table3": table | {"beta": None, "coins": None}}}))
    assert "Learning curves" not in page.text and "LOLS by β" not in page.text and "coin" not in page.text
    assert "±" not in page.text and "one seed" in page.text
    few = table | {"cells": table["cells"][:3], "curves": [], "beta": {"cells": []}}
    text = Page(report_page({"tables": {"table3": few, "table4": few | {"cells": []}}})).text
    assert text.count("Every strategy") == 1 and "hinge, our default" not in text
    assert "What holds" not in Page(report_page({})).text


def test_lines_that_coincide_are_mentioned(no_charts):
    table = made_table("table3", 2, 3)
    assert "All teachers give the same" not in report_page({"tables": {"table3": table}})
    for cell in table["beta"]["cells"]:
        cell["mean"] = 94.0 + cell["beta"]
    assert "All teachers give the same" in report_page({"tables": {"table3": table}})


def test_commands_of_parts_follow_from_that_of_the_whole(result, no_charts):
    parts = {name: result[name] for name in ("theory", "certificates")}
    text = report_page(parts | {"command": "lols reproduce all --data DIR --seeds 2"})
    assert "lols reproduce theory --data DIR --seeds 2" in text
    assert "lols reproduce theory<" in report_page(parts)
    made = {**next(iter(result["certificates"].values())), "command": None}
    text = report_page({"certificates": {"mine": made | {"model": "a.lols", "file": "b.conllu"}}})
    assert "lols certify a.lols b.conllu" in text


@pytest.mark.parametrize(
    ("policy", "spread", "word"), [(0.60, 0.01, "holds"), (0.67, 0.02, "no difference"), (0.72, 0.01, "fails")]
)
def test_a_bandit_beats_its_reference_only_beyond_its_interval(result, policy, spread, word, no_charts):
    world = result["bandit"]["worlds"]["layout"] | {"policy_loss": policy, "intervals": {"policy_loss": spread}}
    text = Page(report_page({"bandit": {"worlds": {"layout": world}}})).text
    assert f"{word} layout: the bandit beats its reference a held-out loss of {policy:.3f}" in text


@pytest.mark.parametrize(
    ("value", "low", "word"), [(-0.45, -0.6, "holds"), (-0.3, -0.4, "no difference"), (-0.2, -0.3, "fails")]
)
def test_regret_falls_as_promised_up_to_its_interval(result, value, low, word, no_charts):
    regret = result["bandit"]["regret"] | {"slope": {"value": value, "height": 1.0, "low": low, "high": -0.1}}
    text = Page(report_page({"bandit": {"regret": regret}})).text
    assert f"{word} Corollary 2: regret" in text and f"{value:.2f} (95 %: {low:.2f} to -0.10)" in text


def test_the_same_result_gives_the_same_page(whole):
    assert report_page(made_result()) == whole


def test_writing_replaces_the_file_or_says_why_not(result, tmp_path, no_charts):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(result, path)
    assert path.read_text(encoding="utf-8") == report_page(result)
    assert os.listdir(tmp_path) == ["report.html"] and path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(LolsError, match=r"nowhere/x\.html: cannot be written: No such file"):
        write_report(result, tmp_path / "nowhere" / "x.html")
    with pytest.raises(LolsError, match="cannot be written"):
        write_report(result, tmp_path)
    assert os.listdir(tmp_path) == ["report.html"]


# --- drawings ---------------------------------------------------------------------------------------------------------


def test_charts_have_the_colours_of_the_page_by_day_and_by_night(whole):
    style, body = whole.split("</style>", 1)
    for variable in look.VARIABLES.values():
        assert len(re.findall(rf"--{variable}: #[0-9a-f]{{6}}", style)) == 2
        assert f"var(--{variable})" in body
    drawn = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", body))
    assert not drawn  # any other colour would be the same by night
    assert style.count("{") == style.count("}")


def test_all_drawings_are_written_the_same_each_time(result, tmp_path):
    tables = {"table2": result["tables"]["table2"], "table3": result["tables"]["table3"] | {"curves": [], "beta": None}}
    paths = write_plots(result | {"tables": tables}, tmp_path, ".svg")
    assert [path.stem for path in paths] == [
        *("story", "table2", "table2-curves", "table2-beta", "table3"),
        *(f"theory-{part}" for part in ("theorem3", "gap", "snakes")),
        "bandit-layout",
        "bandit-regret",
        "certificate-1",
    ]
    for path in paths:
        ElementTree.parse(path)
    before = [path.read_bytes() for path in paths]
    assert before == [path.read_bytes() for path in write_plots(result | {"tables": tables}, tmp_path, ".svg")]


def test_drawings_are_png_too_and_refuse_other_endings(result, tmp_path):
    (path,) = write_plots({"bandit": {"regret": result["bandit"]["regret"]}}, tmp_path)
    assert path.name == "bandit-regret.png" and path.read_bytes()[:4] == b"\x89PNG"
    assert write_plots({}, tmp_path) == []
    with pytest.raises(ConfigurationError, match=r"ending is 'png': take one of \.png"):
        write_plots(result, tmp_path, "png")
    with pytest.raises(ConfigurationError, match="a drawing is"):
        look.save(None, tmp_path / "picture.txt")


def test_without_matplotlib_one_line_says_how_to_install_it(result, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for option in ("--html", "--plots"):
        line = error_line(monkeypatch, capsys, "reproduce", "table2", option, str(tmp_path / "out"))
        assert "pip install 'lols[plots]'" in line


# --- the console ------------------------------------------------------------------------------------------------------


def test_the_console_has_the_tables_of_the_page_and_the_summary_last(result):
    out = io.StringIO()
    print_sections(describe(result), Console(file=out, width=200))
    text = " ".join(out.getvalue().split())
    for table in result["tables"].values():
        for cell in table["cells"]:
            assert f"{shown(table, cell['mean'])}±{shown(table, cell['sd'])}" in text
            assert cell["paper"] is None or f"({cell['paper']:g}" in text
    for claim in result["claims"]:
        assert text.lower().count(claim["claim"].lower()) == 2
    assert text.index("Certificates") < text.index("What holds and what does not") < text.index("judgements hold here")
    assert "The figures behind it" not in text
