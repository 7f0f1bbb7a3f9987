"""Results on small data: what was seen and with what error, beside stored results of the public data; no verdicts."""

from __future__ import annotations

import copy
import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from lols.reproduction.claims import CLAIMS, seen
from lols.reproduction.console import print_sections
from lols.reproduction.describe import describe, public_results
from lols.reproduction.document import SIGNS, TextCell
from tests.reproduction.report_result import made_result

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from store_results import brief


@pytest.fixture(scope="module")
def small():
    return made_result() | {"generated": True}


def test_small_data_are_not_judged(small):
    sections = {section.title: section for section in describe(small)}
    summary = sections["What was seen on small data"]
    claimed = [table for figure in summary.figures[:2] for table in figure.tables]
    assert sum(len(table.rows) for table in claimed) == len(CLAIMS)
    for figure in sections["Claim by claim"].figures:
        for row in figure.tables[0].rows:
            assert not any(isinstance(cell, TextCell) for cell in row[3:]), "ours are figures, not words"
    out = io.StringIO()
    print_sections([summary], Console(file=out, width=200))
    words = out.getvalue().split("The theory")[0]
    assert not any(sign in words for sign, _ in SIGNS.values()) and "mixed" not in words
    judged = next(section for section in describe(small | {"generated": False}) if section.in_brief)
    assert judged.title == "What holds and what does not"


def test_what_was_seen_is_what_was_compared(small):
    searn = [claim for claim in small["claims"] if claim["id"] == "lols-beats-searn"]
    gains = {}
    for claim in searn:
        cells = {
            cell["row"]: cell
            for cell in small["tables"][claim["table"]]["cells"]
            if (cell["teacher"], cell["learner"]) == (claim["teacher"], claim["learner"])
        }
        table = small["tables"][claim["table"]]
        sign = 1.0 if table["higher_is_better"] else -1.0
        difference = sign * (cells["learned/mixture"]["mean"] - cells["searn"]["mean"]) / table["points"]
        error = 2.0 * (cells["learned/mixture"]["se"] ** 2 + cells["searn"]["se"] ** 2) ** 0.5 / table["points"]
        assert claim["gains"] == [pytest.approx([difference, error])]
        gains[difference] = error
    above = sum(gain > error for gain, error in gains.items())
    assert seen(searn)[0] == f"{min(gains):+.2f} to {max(gains):+.2f}"
    assert seen(searn)[2] == f"{above} of {len(searn)}"


def test_stored_results_are_those_of_the_documentation():
    stored = public_results()
    assert {claim["id"] for claim in stored["claims"]} == {claim.id for claim in CLAIMS}
    cells = {
        (c["row"], c["teacher"]): c["mean"] for c in stored["tables"]["table4"]["cells"] if c["learner"] == "hinge"
    }
    assert round(cells["learned/mixture", "bad"], 1) == 87.7 and round(cells["auto", "bad"], 1) == 88.7
    assert round(cells["reference/reference", "bad"], 1) == 61.8
    last = next(s for s in describe(made_result() | {"generated": True}) if "public data sets" in s.title)
    assert [figure.title.split(":")[0] for figure in last.figures] == [
        "Cost-sensitive classification", "Part-of-speech tagging", "Dependency parsing",
    ]  # fmt: skip


def test_what_is_stored_of_a_result_is_plain_and_small():
    made = made_result()
    before = copy.deepcopy(made)
    kept = json.loads(json.dumps(brief(made)))
    assert made == before
    assert len(json.dumps(kept)) < 0.5 * len(json.dumps(made)) and set(kept["tables"]) == set(made["tables"])
    shown = describe(made | {"tables": kept["tables"], "claims": []})
    assert any(section.title.startswith("Table 4") for section in shown)
