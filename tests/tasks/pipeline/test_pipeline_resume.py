"""The training of a pipeline is resumed in whatever part it was interrupted; and a pipeline goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import lols
from lols import Parser, Pipeline, Tagger
from lols.tasks.pipeline.progress import PipelineProgress
from lols.training import trainer
from lols.training.learning import Learning
from tests.cli.calling import fine, mistake, run
from tests.tasks.parsing.parser_files import conllu
from tests.tasks.parsing.test_parser import GOLD, WORDS, tagged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("resume")
    (made / "train.conllu").write_text(conllu(WORDS, GOLD))
    (made / "other.conllu").write_text(conllu(WORDS[:9], GOLD[:9]))
    return made


OPTIONS = ("--folds", 2, "--passes", 2, "--batch-size", 8)


@pytest.mark.parametrize("batches", [1, 6, 20, 26])  # in a fold, in the other, in the tagger, in the parser
def test_a_killed_training_resumes_to_the_same_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    fine("train", "pipeline", folder / "train.conllu", "-o", tmp_path / "whole.lols", *OPTIONS)
    take, done = Learning.take, []

    def until(*arguments: Any) -> None:
        take(*arguments)
        done.append(1)
        if len(done) == batches + 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        patch.setattr(Learning, "take", until)
        command = ("train", "pipeline", folder / "train.conllu", "-o", tmp_path / "m.lols", *OPTIONS)
        assert run(*command).code not in (0, 2)
    assert "m.lols.checkpoint" in os.listdir(tmp_path)
    other = ("train", "pipeline", folder / "other.conllu", "-o", tmp_path / "m.lols", *OPTIONS, "--resume")
    mistake(*other, says="m.lols.checkpoint: made with another data; resume with the same data and options")
    fine(*command, "--resume")
    assert sorted(os.listdir(tmp_path)) == ["m.lols", "whole.lols"]
    assert (tmp_path / "m.lols").read_bytes() == (tmp_path / "whole.lols").read_bytes()


@pytest.mark.parametrize("step", [1, 2, 3])  # after a fold, after the other, which have no dev data, after the tagger
def test_a_kill_before_the_checkpoint_of_a_step_is_deleted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    options = (*OPTIONS, "--dev", folder / "other.conllu")
    command = ("train", "pipeline", folder / "train.conllu", "-o", tmp_path / "m.lols", *options)
    fine("train", "pipeline", folder / "train.conllu", "-o", tmp_path / "whole.lols", *options)
    write = PipelineProgress._write

    def killed(self: PipelineProgress, path: Path) -> None:
        write(self, path)
        if len(self.headers) == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(trainer.Trainer.fit.__kwdefaults__, "checkpoint_every", 0.0)
        patch.setattr(PipelineProgress, "_write", killed)
        assert run(*command).code not in (0, 2)
    assert len(os.listdir(tmp_path)) > 2 and any(".part" in name for name in os.listdir(tmp_path))
    fine(*command, "--resume")
    assert sorted(os.listdir(tmp_path)) == ["m.lols", "whole.lols"]
    assert (tmp_path / "m.lols").read_bytes() == (tmp_path / "whole.lols").read_bytes()


def test_a_pipeline_goes_on_with_new_sentences_and_tags(folder: Path, tmp_path: Path) -> None:
    quiet: Any = {"tagger": Tagger(passes=2), "parser": Parser(passes=3), "folds": 2, "progress": False}
    made = Pipeline(keep_state=True, **quiet).fit(tagged(WORDS), GOLD)
    made.save(tmp_path / "m.lols")
    new = [[{"word": "oh", "upos": "INTJ"}, {"word": "dear", "upos": "ADJ2"}]] * 12
    trees = [[(2, "discourse"), (0, "root")]] * 12
    loaded = lols.load(tmp_path / "m.lols").set_params(warm_start=True, folds=1)
    loaded.fit(new, trees)
    assert [word["upos"] for word in loaded.predict([["oh", "dear"]])[0]] == ["INTJ", "ADJ2"]
    assert "discourse" in loaded.parser_.relations_
    assert loaded.score(tagged(WORDS), GOLD) > 0.9
    loaded.learn_one(tagged(WORDS)[0], GOLD[0])
    loaded.save(tmp_path / "n.lols")
    assert lols.load(tmp_path / "n.lols").predict(WORDS) == loaded.predict(WORDS)
    with pytest.warns(UserWarning, match="fit begins anew and forgets"):
        lols.load(tmp_path / "m.lols").fit(tagged(WORDS), GOLD)
