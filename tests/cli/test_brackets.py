"""Labels, words, cells and paths with square brackets are printed as they are, by every command."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import lols
from lols.training.progress import Progress
from tests.cli.calling import Ran, fine, mistake, run

A, B = "[/b]", ":x:[red]"  # Rich fails on the first, and takes the second for an emoji and a colour


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("brackets") / "[/i] [bold]"
    path.mkdir(parents=True)
    sentence = f"1\t{A}\t_\t{A}\t_\t_\t2\t{A}\t_\t_\n2\t{B}\t_\t{B}\t_\t_\t0\troot\t_\t_\n\n"
    (path / "[t].conllu").write_text(sentence * 16)
    rows = "".join(f"{k},{A if k % 2 else B},{A if k % 2 else B}\n" for k in range(40))
    (path / "[t].csv").write_text(f"[/n],{A} {B},[c]\n{rows}")
    return path


@pytest.fixture(scope="module")
def models(folder: Path) -> dict[str, Path]:
    made = {}
    for kind, data in (("tagger", "[t].conllu"), ("parser", "[t].conllu"), ("classifier", "[t].csv")):
        made[kind] = folder / f"[red]{kind}.lols"
        said = fine("train", kind, folder / data, "--dev", folder / data, "-o", made[kind], "--passes", 1)
        assert f"{made[kind]} written: " in text_of(said)
    return made


def text_of(said: Ran) -> str:
    return said.out.decode()


@pytest.mark.parametrize("kind", ["tagger", "parser", "classifier"])
def test_every_verb_prints_what_is_there(kind: str, folder: Path, models: dict[str, Path]) -> None:
    model, data = models[kind], folder / ("[t].csv" if kind == "classifier" else "[t].conllu")
    for verb, *more in (("evaluate", data), ("inspect",), ("explain", data), ("certify", data)):
        said = text_of(fine(verb, model, *more))
        if verb != "certify" and (kind, verb) != ("parser", "evaluate"):
            assert A in said and B in said, (verb, said)
        assert verb == "evaluate" or str(model) in said


@pytest.mark.parametrize("kind", ["tagger", "classifier"])
def test_any_console_will_do(kind: str, folder: Path, models: dict[str, Path]) -> None:
    model = lols.load(models[kind])
    data = str(folder / ("[t].csv" if kind == "classifier" else "[t].conllu"))
    for report in (model.evaluate_file(data), model.explain_file(data, 2)):
        console = Console(file=io.StringIO(), width=200)
        report.show(console)
        assert A in console.file.getvalue() and B in console.file.getvalue()


def test_other_messages(folder: Path, tmp_path: Path) -> None:
    made = tmp_path / "[/x]"
    assert f"Wrote {made / 'my_task.py'}" in text_of(fine("new-task", "my_task", "--folder", made))
    mistake("inspect", made / "[/no].lols", says=f"{made / '[/no].lols'}: there is no such file")
    assert run("evaluate", "m", "f", "--threads", "[/many]").code == run("evaluate", "[/m]").code == 2
    assert run("[/verb]").code == run("evaluate", "m", "f", "--[/option]").code == 2
    with Progress(True, 10, "[/title]") as progress:
        progress.say("[/note]")
        progress.advance(5, loss=1.0)
