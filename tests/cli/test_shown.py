"""What commands print for people: short helps, tables that fit, the headline where it can be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lols.tasks.registry import ESTIMATORS
from tests.cli.calling import fine
from tests.cli.command_line import run


@pytest.mark.parametrize("name", ESTIMATORS)
def test_help_has_what_is_common_and_help_all_everything(name: str) -> None:
    short, whole = run("train", name, "--help").stdout, run("train", name, "--help-all").stdout
    assert len(short.splitlines()) <= 60 < 100 < len(whole.splitlines())
    for option in ("--output", "--dev", "--passes", "--seed", "--algorithm", "--resume", "--help-all"):
        assert f" {option} " in short and f" {option} " in whole, option
    for option in ("--rate", "--mix", "--replay", "--shards"):
        assert f" {option} " not in short and f" {option} " in whole, option
    assert run("train", name, "--help").stdout == short, "--help-all has changed nothing"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of thirty labels, one for each word, of which the first ones are the most frequent."""
    folder = tmp_path_factory.mktemp("shown")
    lines = [f"{k}\tword{k:02d}\t_\tL{k:02d}" + "\t_" * 6 + "\n" for k in range(1, 31)]
    sentences = ["".join(lines[:count]) for count in range(1, 31)]
    (folder / "data.conllu").write_text("\n".join(sentences) + "\n")
    fine("train", "tagger", folder / "data.conllu", "-o", folder / "m.lols", "--passes", 2)
    return folder / "m.lols"


def evaluated(model: Path, *options: str) -> list[str]:
    return fine("evaluate", model, model.with_name("data.conllu"), *options).out.decode().splitlines()


def test_evaluate_prints_the_ten_most_frequent_labels(model: Path) -> None:
    lines = evaluated(model)
    assert [line.split()[0] for line in lines if line.startswith("L")] == [f"L{k:02d}" for k in range(1, 11)]
    assert "and 20 that are less frequent: --all prints all" in lines
    assert sum(line.startswith("accuracy") for line in lines) == 1


def test_evaluate_repeats_the_headline_after_a_long_table(model: Path) -> None:
    lines = evaluated(model, "--all")
    assert sum(line.startswith("L") for line in lines) == 30 and not any("--all" in line for line in lines)
    assert lines[0].startswith("accuracy") and lines[-1] == lines[0]


def test_json_has_all_labels(model: Path) -> None:
    made = fine("evaluate", model, model.with_name("data.conllu"), "--json")
    assert len(made.json["tags"]) == 30


def test_tables_in_pipes_are_as_wide_as_they_need(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 80 columns the names of features and labels would be cut into strips."""
    monkeypatch.delenv("COLUMNS", raising=False)
    asked = [sys.executable, "-c", "from lols.cli import main; main()", "inspect", str(model)]
    wide = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    narrow = subprocess.run(
        asked, capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "60"}
    ).stdout
    assert len(narrow.splitlines()) > len(wide.splitlines())
    labels = next(line for line in wide.splitlines() if "L01 L02" in line)
    assert 80 < len(labels.rstrip()) <= 120
