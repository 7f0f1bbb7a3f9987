"""Explanations of all tasks have the same keys, the same table and the same page."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

import lols
from lols.tasks.explain import ActionCosts, ExampleReport, ExplainedDecision, Explanation
from tests.tasks.fourth_task import LINES, Spacer
from tests.tasks.tokens.loaded import assert_loads_nothing

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["dogs", "bark"]] * 2
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]] * 2
TREES: Any = [[(2, "det"), (3, "nsubj"), (0, "root")]] * 2 + [[(2, "nsubj"), (0, "root")]]
ROWS = [[colour, k] for k in range(9) for colour in ("red", "green", "blue")]
KEYS = {"output", "loss", "roll_out", "beta", "reference", "notes", "decisions"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ExampleReport]:
    """A report of each task."""
    folder: Path = tmp_path_factory.mktemp("explanations")
    tokens = [
        "\n".join(
            f"{k}\t{word}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_"
            for k, (word, tag, (head, relation)) in enumerate(zip(*sentence, strict=True), 1)
        )
        for sentence in zip(WORDS, TAGS, TREES * 2, strict=True)
    ]
    (folder / "a.conllu").write_text("\n\n".join(tokens) + "\n\n")
    (folder / "a.csv").write_text("colour,number,y\n" + "".join(f"{c},{n},{c[0]}\n" for c, n in ROWS))
    (folder / "a.txt").write_text("\n".join(LINES) + "\n")
    how: dict[str, Any] = {"passes": 1, "progress": False}
    models = {
        "tagger": (lols.Tagger(**how), "a.conllu", {}),
        "parser": (lols.Parser(**how), "a.conllu", {}),
        "classifier": (lols.CostSensitiveClassifier(**how), "a.csv", {"label": "y"}),
        "spacer": (Spacer(**how), "a.txt", {}),
    }
    return {
        name: model.fit_files(str(folder / file), **layout).explain_file(str(folder / file), 2)
        for name, (model, file, layout) in models.items()
    }


@pytest.mark.parametrize("name", ["tagger", "parser", "classifier", "spacer"])
def test_all_tasks_say_the_same_of_a_decision(reports: dict[str, ExampleReport], name: str) -> None:
    report = reports[name]
    values = json.loads(json.dumps(report.as_dict()))
    assert values.keys() >= KEYS
    for decision, plain in zip(report.explanation.decisions, values["decisions"], strict=True):
        assert plain.keys() == {
            "number", "state", "taken", "reference", "wrong", "actions", "more_actions", "reasons",
        }  # fmt: skip
        assert {key for each in plain["actions"] for key in each} == set(ActionCosts.__annotations__)
        assert len(plain["actions"]) + plain["more_actions"] == len(decision.actions)
        assert plain["reference"] in {each.action for each in decision.actions}
        predicted = [each["predicted"] for each in plain["actions"]]
        assert predicted == sorted(predicted)
        assert plain["wrong"] or decision.taken.right
        assert min(each.cost for each in decision.actions) == pytest.approx(0.0)
        apart = {round(each.loss - each.cost, 6) for each in decision.actions}
        assert len(apart) == 1


@pytest.mark.parametrize("name", ["tagger", "parser", "classifier", "spacer"])
def test_the_page_has_every_decision_and_action(reports: dict[str, ExampleReport], name: str) -> None:
    report = reports[name]
    text = report.page()
    assert_loads_nothing(text)
    tree = ElementTree.fromstring(text.partition("\n")[2])
    rows = [e for e in tree.iter("div") if e.get("class", "").split()[:1] == ["row"]]
    assert tree.find(".//h1").text == report.heading and len(rows) == len(report.explanation.decisions) + 1
    for row, decision in zip(rows, report.explanation.decisions, strict=False):
        chips = [e for e in row.iter("span") if e.get("class", "").split()[:1] == ["move"]]
        names = [chip.text.strip().removesuffix(" ✓") for chip in chips]
        assert sorted(names) == sorted(each.action for each in decision.actions)
    assert "<iframe sandbox" in report._repr_html_()


def printed(report: ExampleReport) -> str:
    console = Console(file=io.StringIO(), width=120)
    report.show(console)
    return console.file.getvalue()


def test_probabilities_are_shown_if_they_are_known() -> None:
    def explained(probability: float | None) -> ExampleReport:
        actions = tuple(
            ActionCosts(name, k, probability and probability - k, None, None, k == 0, False)
            for k, name in enumerate("ab")
        )
        found = Explanation(decisions=(ExplainedDecision(1, {}, actions),), output="[a]")
        return ExampleReport("m", "f", "line", 1, None, found, top=1)

    text = printed(explained(0.75))
    assert "probability" in text and "0.75" in text and "+ 1 more" in text and "cost:" not in text
    assert "probability" not in printed(explained(None))


def test_an_example_without_decisions_is_explained() -> None:
    report = ExampleReport("m", "f", "line", 1, 1, Explanation(decisions=(), output="nothing", loss=2.0))
    assert "predicted nothing by m, loss 2" in printed(report) and "loss 2" in report.page()
    assert report.as_dict()["decisions"] == []
