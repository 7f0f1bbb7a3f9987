"""A task that the library does not know gets all verbs from one line in the registry."""

from __future__ import annotations

import json

import pytest

import lols
from lols.tasks.registry import ESTIMATORS, Entry
from tests.cli.command_line import error_line, run
from tests.tasks.fourth_task import LINES, Spacer


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """The line in the registry."""
    monkeypatch.setitem(ESTIMATORS, "spacer", Entry("tests.tasks.fourth_task:Spacer"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("spacer")
    (made / "train.txt").write_text("\n".join(LINES) + "\n")
    (made / "bare.txt").write_text("adogseesthecat\nthedogbarks\n")
    return made


@pytest.fixture
def model(folder):
    if not (folder / "m.lols").exists():
        made = run("train", "spacer", folder / "train.txt", "--dev", folder / "train.txt", "-o", folder / "m.lols")
        assert made.exit_code == 0, made.output
        assert "20 lines" in made.output and "dev cost" in made.output
    return folder / "m.lols"


def values(*arguments):
    made = run(*arguments, "--json")
    assert made.exit_code == 0, made.output
    return json.loads(made.stdout)


def test_predict(model, folder):
    assert run("predict", model, folder / "bare.txt").stdout == "a dog sees the cat\nthe dog barks\n"
    facts = values("predict", model, folder / "bare.txt", "-o", folder / "out.txt")
    assert facts["examples"] == 2 and facts["examples_per_second"] > 0
    assert (folder / "out.txt").read_text() == "a dog sees the cat\nthe dog barks\n"


def test_evaluate(model, folder):
    found = values("evaluate", model, folder / "train.txt")
    loaded = lols.load(model)
    assert isinstance(loaded, Spacer)
    objects = loaded.objects_of(folder / "train.txt", loaded.file_columns)
    assert found["examples"] == 20 and found["loss"] == -loaded.score(objects)
    assert f"loss {found['loss']:.4f} per example on 20 examples" in run("evaluate", model, folder / "train.txt").stdout


def test_explain(model, folder):
    found = values("explain", model, folder / "train.txt", "--line", 4)
    assert found["line"] == 4 and found["lines"] == 20 and found["loss"] == 0.0
    assert [decision["taken"] for decision in found["decisions"]] == [
        decision["reference"] for decision in found["decisions"]
    ]
    assert [next(a["action"] for a in step if a["taken"]) for step in found["steps"]] == [  # until 0.4
        "end", "inside", "inside", "end", "inside", "inside", "inside", "inside", "end",
    ]  # fmt: skip
    other = found["decisions"][0]["actions"][1]
    assert other["cost"] >= 1.0 and other["loss"] == found["loss"] + other["cost"]
    printed = run("explain", model, folder / "train.txt", "--line", 4).stdout
    assert "Line 4 of 20 in" in printed and "→  end" in printed and "cost: how much more" in printed


def test_inspect(model):
    found = values("inspect", model)
    assert found["kind"] == "spacer" and found["examples"] == 20 and found["actions"] == 2
    printed = run("inspect", model).stdout
    assert "a spacer" in printed and "20 lines" in printed and "Algorithm 1" in printed


def test_certify(model, folder):
    found = values("certify", model, folder / "train.txt")
    assert found["examples"] == 20 and found["reference"] == "optimal"
    assert found["loss"]["value"] == values("evaluate", model, folder / "train.txt")["loss"]
    assert run("certify", model, folder / "train.txt").stdout.startswith("20 lines, ")
    objects = lols.load(model).objects_of(folder / "train.txt", None)
    made = lols.certify(lols.load(model), objects).as_dict()
    assert {key: found[key] for key in made} == made


def test_calibrate(model, folder, tmp_path):
    found = values("calibrate", model, folder / "train.txt", "-o", tmp_path / "m.lols")["confidence"]["steps"]
    made, other = lols.load(tmp_path / "m.lols"), lols.load(model)
    objects = other.objects_of(folder / "train.txt", None)
    assert found["decisions"] == sum(len(line.replace(" ", "")) for line in LINES) and found["accuracy"] > 0.9
    sure = other.calibrate_with(objects).predict(objects, confidence=True)[1]
    assert all((one == two).all() for one, two in zip(made.predict(objects, confidence=True)[1], sure, strict=True))


def test_warmup(monkeypatch):
    for name in list(ESTIMATORS):
        if name != "spacer":
            monkeypatch.delitem(ESTIMATORS, name)
    assert [step["name"] for step in values("warmup")["steps"]][1:] == ["spacer, training and prediction"]


def test_mistakes_are_one_line(model, folder, tmp_path, monkeypatch, capsys):
    def wrong(*arguments):
        return error_line(monkeypatch, capsys, *arguments)

    data = folder / "train.txt"
    assert "--column has no effect: the model is a spacer" in wrong("predict", model, data, "--column", "x")
    assert "--top has no effect: the model is a spacer" in wrong("inspect", model, "--top", 3)
    assert "--sentence has no effect: the model is a spacer; it takes --line" in wrong(
        "explain", model, data, "--sentence", 2
    )
    assert "train.txt: there is no line 21; it has 20" in wrong("explain", model, data, "--line", 21)
    assert "unknown reference 'bad'" in wrong("certify", model, data, "--reference", "bad")
    (tmp_path / "bad.txt").write_bytes(b"caf\xe9\n")
    assert "bad.txt: byte 4 is not UTF-8" in wrong("predict", model, tmp_path / "bad.txt")
    (tmp_path / "empty.txt").write_text("")
    assert "empty.txt: there are no lines in it" in wrong("evaluate", model, tmp_path / "empty.txt")
    assert "there are no lines to learn from" in wrong(
        "train", "spacer", tmp_path / "empty.txt", "-o", tmp_path / "m.lols"
    )


def test_help_names_the_new_task():
    printed = " ".join(run("explain", "--help").stdout.replace("│", " ").split())
    assert (
        "Spacer: Text without spaces in, text with spaces out; a labelled file has the spaces." in printed
        and "--line" in printed
    )
    assert "spacer" in run("train", "--help").stdout
