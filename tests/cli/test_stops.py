"""Trainings that stop at any moment: resumed, each gives the file of one that was never stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lols.io import model_file
from lols.tasks import choice
from lols.tasks.registry import ESTIMATORS, Entry
from lols.training import trainer
from lols.training.learning import Learning
from tests.cli.calling import fine, mistake, run
from tests.tasks.parsing.parser_files import conllu as treebank
from tests.tasks.parsing.test_parser import grammar
from tests.tasks.tables.classifier_tables import rows, write
from tests.tasks.tagging.tagger_data import conllu, sentences


class Stopped(BaseException):
    """Stands for a kill: nothing catches it."""


class Stops:
    """Counts the moments at which a training may stop, and stops it at one of them."""

    def __init__(self, at: int | None):
        self.at = at
        self.passed: list[str] = []  # what happened before or after each of them

    def may_stop(self, name: str) -> None:
        if len(self.passed) == self.at:
            raise Stopped
        self.passed.append(name)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function before and after which the training may stop."""

        def stopping(*arguments: Any, **options: Any) -> Any:
            self.may_stop(function.__name__)
            made = function(*arguments, **options)
            self.may_stop(function.__name__)
            return made

        return stopping


def train(stop: int | None, *arguments: Any) -> Stops:
    """Train, with a checkpoint after every batch, until the training has passed so many moments."""
    stops = Stops(stop)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        for owner, name in (
            (Learning, "take"),  # a batch
            (choice.Choice, "__call__"),  # the dev score
            (model_file, "write_whole"),  # a checkpoint, the best model so far, the model
            (os, "unlink"),  # what is no longer needed
        ):
            patch.setattr(owner, name, stops.around(getattr(owner, name)))
        try:
            assert run("train", *arguments).code == 0
        except Stopped:
            assert stop is not None
    return stops


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ESTIMATORS, "spacer", Entry("tests.tasks.fourth_task:Spacer"))


def tagger_files(folder: Path) -> Iterator[Path]:
    for name, data in (("train", sentences(12, seed=6, noise=0.5)), ("dev", sentences(8, seed=7, noise=0.3))):
        yield folder / f"{name}.conllu"
        (folder / f"{name}.conllu").write_text(conllu(*data))


def parser_files(folder: Path) -> Iterator[Path]:
    for name, data in (("train", grammar(12, seed=6, noise=0.5)), ("dev", grammar(8, seed=7, noise=0.3))):
        yield folder / f"{name}.conllu"
        (folder / f"{name}.conllu").write_text(treebank(*data))


def classifier_files(folder: Path) -> Iterator[Path]:
    for name, table in (("train", rows(40, 1)), ("dev", rows(20, 2))):
        yield write(folder / f"{name}.csv", table)


def spacer_files(folder: Path) -> Iterator[Path]:
    for name, lines in (("train", "the dog\na cat\nthe cat sees\na dog\n"), ("dev", "a dog sees\nthe cat\n")):
        yield folder / f"{name}.txt"
        (folder / f"{name}.txt").write_text(lines)


FILES = {"tagger": tagger_files, "parser": parser_files, "classifier": classifier_files, "spacer": spacer_files}
BATCH = {"tagger": 6, "parser": 6, "classifier": 20, "spacer": 2}  # two batches in a pass


def given(kind: str, folder: Path) -> tuple[Any, ...]:
    """The arguments of a small training, but for its output, and its dev file."""
    data, held = FILES[kind](folder)
    settled = ("--tree", "order", "--numeric", "bins") if kind == "classifier" else ()  # nothing to choose by trials
    return (kind, data, "--passes", 3, "--batch-size", BATCH[kind], *settled, "--json"), held


def every(passed: list[str]) -> Sequence[int]:
    """All moments of a training."""
    return range(len(passed))


def some(passed: list[str]) -> Sequence[int]:
    """Of each thing that happens, the moment before one in the middle: batch, dev score, file written, file deleted."""
    places = {name: [k for k, each in enumerate(passed) if each == name] for name in passed}
    return [found[len(found) // 4 * 2] for found in places.values()]


WHEN = pytest.mark.parametrize("moments", [some, pytest.param(every, marks=pytest.mark.slow)])


@WHEN
@pytest.mark.parametrize(
    ("kind", "dev"),
    [("tagger", False), ("tagger", True), ("parser", True), ("classifier", True), ("spacer", True)],
)
def test_a_training_that_stops_anywhere_gives_the_same_file(
    moments: Callable[[list[str]], Sequence[int]], kind: str, dev: bool, tmp_path: Path
) -> None:
    arguments, held = given(kind, tmp_path)
    resumes_from(moments, tmp_path, *arguments, *(("--dev", held) if dev else ()))


@WHEN
def test_a_training_that_lost_its_patience_does_not_go_on(
    moments: Callable[[list[str]], Sequence[int]], tmp_path: Path
) -> None:
    arguments, held = given("tagger", tmp_path)
    arguments = (*arguments, "--dev", held, "--patience", 1, "--passes", 9)
    assert fine("train", *arguments, "-o", tmp_path / "m.lols").json["passes"] < 9
    resumes_from(moments, tmp_path, *arguments)


def resumes_from(moments: Callable[[list[str]], Sequence[int]], folder: Path, *arguments: Any) -> None:
    whole, model = folder / "whole.lols", folder / "model.lols"
    passed = train(None, *arguments, "-o", whole).passed
    assert len(passed) >= 20
    wanted, files = whole.read_bytes(), sorted(os.listdir(folder))
    for stop in moments(passed):
        train(stop, *arguments, "-o", model)
        fine("train", *arguments, "-o", model, "--resume")
        assert model.read_bytes() == wanted, stop
        model.unlink()
        assert sorted(os.listdir(folder)) == files, stop


# --- dev data are part of a run ---------------------------------------------------------------------------------------


def stopped_late(*arguments: Any) -> None:
    """Train until the second of three passes, in the middle of all moments."""
    output = Path(arguments[arguments.index("-o") + 1])
    moments = len(train(None, *arguments).passed)
    output.unlink()
    train(moments // 2, *arguments)


def test_a_run_goes_on_with_its_own_dev_data_only(tmp_path: Path) -> None:
    arguments, held = given("tagger", tmp_path)
    model, best = tmp_path / "m.lols", tmp_path / "m.lols.checkpoint.best"
    again = ("train", *arguments, "-o", model, "--resume")
    other = "m.lols.checkpoint: made with other dev data; resume with the same data and options, or delete it"
    stopped_late(*arguments, "--dev", held, "-o", model)
    mistake(*again, says=other)
    mistake(*again, "--dev", arguments[1], says=other)
    whole = best.read_bytes()
    stopped_late(*arguments, "--dev", held, "-o", tmp_path / "other.lols", "--seed", 5)
    best.write_bytes((tmp_path / "other.lols.checkpoint.best").read_bytes())
    mistake(*again, "--dev", held, says="m.lols.checkpoint.best: not of the run of")
    best.unlink()
    mistake(*again, "--dev", held, says="m.lols.checkpoint.best: there is no such file")
    best.write_bytes(whole)
    fine(*again, "--dev", held)


def test_a_run_without_dev_data_does_not_go_on_with_some(tmp_path: Path) -> None:
    arguments, held = given("tagger", tmp_path)
    stopped_late(*arguments, "-o", tmp_path / "m.lols")
    mistake("train", *arguments, "--dev", held, "-o", tmp_path / "m.lols", "--resume", says="made with other dev data")
