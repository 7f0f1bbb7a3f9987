"""Data in pieces: the same as in memory, however they are cut; what changes while it is read is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError, LolsError
from lols.training import trainer

SPACE, DATA, TEACHER = tagging_space(labels=4), tagging_data(24, labels=4, words=30), tagging_references()["optimal"]
OPTIONS: dict[str, Any] = {"batch_size": 3, "compiled": False, "seed": 2, "algorithm": "aggrevate"}


def cut(size: int) -> Any:
    return lambda: (DATA[low : low + size] for low in range(0, len(DATA), size))


def weights(model: Any) -> bytes:
    return bytes(model.policy.stack.tobytes())


def test_one_pass_in_order_is_that_in_memory_however_it_is_cut() -> None:
    whole = weights(lols.train(SPACE, DATA, TEACHER, passes=1, shuffle=False, **OPTIONS))
    for size in (1, 7, 24):
        model = lols.train(SPACE, lols.InPieces(cut(size)), TEACHER, passes=1, shuffle=False, **OPTIONS)
        assert weights(model) == whole and model.about["examples"] == len(DATA)


def test_several_passes_do_not_depend_on_how_they_are_cut() -> None:
    passes = [
        weights(lols.train(SPACE, lols.InPieces(cut(size), 24), TEACHER, passes=3, shuffle=False, **OPTIONS))
        for size in (4, 24)
    ]
    assert passes[0] == passes[1]


def test_an_interrupted_training_resumes_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"passes": 3, **OPTIONS}
    pieces = lols.InPieces(cut(11), name="the same")
    whole = weights(lols.train(SPACE, pieces, TEACHER, **options))
    files: dict[str, Any] = {"checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 0.0}
    write, done = trainer.write_checkpoint, []

    def until(*arguments: Any) -> None:
        write(*arguments)
        done.append(1)
        if len(done) == 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer, "write_checkpoint", until)
        lols.train(SPACE, pieces, TEACHER, **options, **files)
    assert weights(lols.train(SPACE, pieces, TEACHER, **options, **files, resume=True)) == whole
    with pytest.raises(ConfigurationError, match="a checkpoint needs the name of the data"):
        lols.train(SPACE, lols.InPieces(cut(11)), TEACHER, **options, **files)


@pytest.mark.parametrize("later", [20, 30])
def test_data_that_change_are_told(later: int) -> None:
    sizes = iter([24, later])

    def read() -> Iterator[Any]:
        count = next(sizes)
        return iter([tagging_data(count, labels=4, words=30)])

    with pytest.raises(LolsError, match="the data have changed while they were learned from"):
        lols.train(SPACE, lols.InPieces(read), TEACHER, passes=2, **OPTIONS)


def test_what_pieces_cannot_do_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="there are no examples to learn from"):
        lols.train(SPACE, lols.InPieces(lambda: []), TEACHER, **OPTIONS)
    with pytest.raises(ConfigurationError, match="needs to know how much data there is: use fit"):
        lols.train(SPACE, lols.InPieces(cut(9)), TEACHER, algorithm="searn", compiled=False)
    with pytest.raises(ConfigurationError, match="a program learns from objects in memory"):
        lols.train(lols.Program(lambda search, x: None, actions=2), lols.InPieces(cut(9)), compiled=False)
