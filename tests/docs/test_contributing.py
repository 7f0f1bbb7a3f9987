"""The worked examples of CONTRIBUTING.md run, and the files that it names exist."""

from __future__ import annotations

import importlib
import pickle
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.tasks.registry import ESTIMATORS, Entry
from tests.cli.calling import fine
from tests.docs.blocks import run_blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"


def test_the_worked_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(PAGE)


def test_the_files_that_it_names_exist():
    paths = re.findall(r"`((?:src|tests|docs)/[\w/.-]+)`", PAGE.read_text("utf-8"))
    assert len(paths) > 20
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def test_every_folder_of_the_package_is_in_the_layout():
    layout = PAGE.read_text("utf-8").partition("## Layout")[2].partition("\n## ")[0]
    folders = {path.parent.name for path in (ROOT / "src" / "lols").glob("[a-z]*/*.py")}  # others have only caches
    assert folders - set(re.findall(r"`(\w+)/`", layout)) == set()


# --- the fifth task: files, reports, workers, streams and a network, as the page leads through it ---------------------

WORDS = ["hy-phen", "num-ber", "let-ter", "win-dow", "gar-den", "pen-cil", "sum-mer", "win-ter", "but-ter", "mar-ket"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the task and the line in the registry, as the page has them, and some data."""
    text = PAGE.read_text("utf-8")
    (tmp_path / "hyphens").mkdir()
    (tmp_path / "hyphens" / "__init__.py").touch()
    for name, code in re.findall(r"^`hyphens/(\w+\.py)`:\n\n```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        (tmp_path / "hyphens" / name).write_text(code, "utf-8")
    line = re.findall(r'^    "(\w+)": Entry\("(.*?)", "(.*?)"\),$', text, re.MULTILINE)
    assert len(line) == 1 and len(list((tmp_path / "hyphens").iterdir())) == 8
    monkeypatch.setitem(ESTIMATORS, line[0][0], Entry(*line[0][1:]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, words in (("a", WORDS * 4), ("b", WORDS[:6] * 4), ("dev", WORDS), ("words", ["letter", "market"])):
        (tmp_path / f"{name}.txt").write_text("\n".join(words) + "\n")
    yield tmp_path
    for name in [each for each in sys.modules if each.partition(".")[0] == "hyphens"]:
        del sys.modules[name]


def commands() -> list[list[str]]:
    section = PAGE.read_text("utf-8").partition("All commands work now")[2]
    return [shlex.split(line)[1:] for line in section.split("```")[1].splitlines()[1:]]


def test_the_commands_for_a_fifth_task(folder: Path) -> None:
    printed = {}
    for words in commands():
        if "neural" not in words:
            printed[" ".join(words[:2])] = fine(*words).out.decode()
    assert (folder / "shared.lols").exists() and len(printed) == 7
    assert [line.split("\t")[0] for line in printed["predict m.lols"].splitlines()] == ["let-ter", "mar-ket"]
    assert printed["evaluate m.lols"] == "100.0 % of 64 words without a mistake\n"
    explained = printed["explain m.lols"]
    assert "Line 2 of 40 in a.txt" in explained and "→  hyphen ✓" in explained and "numbe" in explained
    assert "a hyphener" in printed["inspect m.lols"] and "40 words" not in printed["certify m.lols"]
    assert printed["certify m.lols"].startswith("40 lines, 240 decisions")
    assert "confidence in hyphens: fitted to 144 decisions" in printed["calibrate m.lols"]
    assert lols.load("shared.lols").predict(["letter"]) == lols.load("further.lols").predict(["letter"]) == ["let-ter"]


def streams(policy: str) -> Any:
    """The fifth task learns from a stream, grows, stops and is stored."""
    kind = importlib.import_module("hyphens.estimator").Hyphener
    made = kind(policy=policy, passes=9, progress=False).fit(WORDS * 4, dev=WORDS)
    assert made.predict(["letter"]) == ["let-ter"] and made.predict_one("market") == "mar-ket"
    made.save("m.lols")
    with pytest.warns(UserWarning, match="m.lols"):
        loaded = lols.load("m.lols").partial_fit(["zig-zag"] * 9)
    assert set(loaded.task_.letters) - set(made.task_.letters) == {"z"}
    loaded.learn_one("zig-zag").stop_learning().save("n.lols")
    for other in (lols.load("n.lols"), pickle.loads(pickle.dumps(loaded))):
        assert other.predict(["zigzag", "letter"]) == loaded.predict(["zigzag", "letter"])
    return made


def test_a_fifth_task_learns_from_streams(folder: Path) -> None:
    whole = streams("linear").set_params(passes=1, shuffle=False, batch_size=4, calibrate=False).fit(WORDS * 4)
    stream = type(whole)(batch_size=4).partial_fit(WORDS)  # with all letters: what grows begins a new average
    for k in range(10, 40, 7):
        stream.partial_fit((WORDS * 4)[k : k + 7])
    ours, theirs = (made.contents()[1] for made in (stream.stop_learning(), whole))
    assert ours.keys() == theirs.keys() and all((ours[name] == theirs[name]).all() for name in ours)


def test_a_fifth_task_has_a_network(folder: Path) -> None:
    pytest.importorskip("torch")
    streams("neural")
    (command,) = (words for words in commands() if "neural" in words)
    fine(*command)
    assert fine("predict", "neural.lols", "words.txt").out == b"let-ter\nmar-ket\n"
