"""Checkpoints: a run that is killed and resumed, again and again, ends with the very weights of one that was not."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.datasets.small_worlds import WORLDS, TwoSteps
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import read_tensors
from lols.training import trainer

SPACE = tagging_space(labels=4)
TEACHER = tagging_references()["optimal"]
DATA = tagging_data(60, labels=4, words=40)
OPTIONS: dict[str, Any] = {"passes": 4, "batch_size": 4, "seed": 3}

ALGORITHMS: dict[str, dict[str, Any]] = {
    "lols": {},
    "searn": {"algorithm": "searn"},
    "auto": {"beta": "auto"},
    "drawn": {"returned": "drawn"},
}

PROGRAM = """
import json, sys
import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space

options, checkpoint, model = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
lols.train(
    tagging_space(labels=4), tagging_data(60, labels=4, words=40), tagging_references()["optimal"],
    checkpoint=checkpoint, checkpoint_every=0, resume=True, **options,
).save(model)
"""


def train(**options: Any) -> lols.Model:
    return lols.train(SPACE, DATA, TEACHER, **(OPTIONS | options))


def weights(path: Path) -> dict[str, Any]:
    """Features in order with their weights, exactly, and all else that a model file says."""
    header, tensors = read_tensors(path, "model")
    return {"about": header["about"]} | {name: array.tobytes() for name, array in tensors.items()}


def weights_of(model: lols.Model, folder: Path) -> dict[str, Any]:
    model.save(folder / "of.lols")
    return weights(folder / "of.lols")


# --- killed for real --------------------------------------------------------------------------------------------------


def killed_soon_after_a_checkpoint(command: list[str], checkpoint: Path, patience: float) -> bool:
    """Start a run, wait until it has written another checkpoint, and kill it a moment later; whether it was in time."""
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    run = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 120
        while run.poll() is None and time.monotonic() < deadline:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                time.sleep(patience)
                break
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
    finally:
        code = run.wait()
    return code == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_killed_several_times_ends_with_the_weights_of_one_that_was_not(name: str, tmp_path: Path) -> None:
    long = {"passes": 30}  # about a second, so that a kill is in time on a busy machine, too
    expected = weights_of(train(**ALGORITHMS[name] | long), tmp_path)  # compiles, too, so that the runs below need not
    (tmp_path / "program.py").write_text(PROGRAM)
    checkpoint, model = tmp_path / "run.checkpoint", tmp_path / "model.lols"
    moment = random.Random(name)

    def command(threads: int) -> list[str]:
        options = OPTIONS | ALGORITHMS[name] | long | {"threads": threads}
        return [sys.executable, str(tmp_path / "program.py"), json.dumps(options), str(checkpoint), str(model)]

    kills = 0
    for attempt in range(3):
        # The number of threads is not part of the result, so it may change from run to run.
        kills += killed_soon_after_a_checkpoint(command(1 + attempt % 2), checkpoint, moment.uniform(0.0, 0.05))
    assert kills >= 2
    subprocess.run(command(2 if name in ("searn", "drawn") else 1), check=True, timeout=120)
    assert weights(model) == expected
    left = {"program.py", "of.lols", "run.checkpoint", "model.lols"}
    assert {f for f in os.listdir(tmp_path) if not f.endswith(".tmp")} == left


# --- interrupted at every kind of moment ------------------------------------------------------------------------------


class Interrupted(Exception):
    """Stands for a kill."""


def interrupted_after(batches: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Train, but stop after some batches, the checkpoint of the last of which was written."""
    save, done = trainer.write_checkpoint, 0

    def counted(*arguments: Any) -> None:
        nonlocal done
        save(*arguments)
        done += 1
        if done == batches:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "write_checkpoint", counted)
        with pytest.raises(Interrupted):
            train(**options)


LEARNERS: dict[str, Any] = {
    "hinge": "hinge",
    "csoaa": "csoaa",
    "secoc": "secoc",
    "bits": lols.LearnerSettings(bits=10),
    "few rows": lols.LearnerSettings(max_features=64),
    "perceptron": lols.LearnerSettings("hinge", "perceptron"),
    "ridge": lols.LearnerSettings("csoaa", "ridge", max_features=64),
    "sketch": lols.LearnerSettings("csoaa", "sketch", directions=3),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_any_learner_resumes_bit_for_bit(
    name: str, learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = ALGORITHMS[name] | {"learner": LEARNERS[learner], "passes": 3}
    expected = train(**options)
    files: dict[str, Any] = {"checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 0, "resume": True}
    # A pass has 15 batches: within the first, at its very end, and within the next.
    for batches in (7, 8, 5):
        interrupted_after(batches, monkeypatch, **options, **files)
    resumed = train(**options, **files, threads=2)
    assert weights_of(resumed, tmp_path) == weights_of(expected, tmp_path)
    assert resumed.report["progressive_loss"] == expected.report["progressive_loss"]
    assert resumed.report["beta"] == expected.report["beta"]


def test_weights_of_action_features_resume_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(**more: Any) -> lols.Model:
        how: dict[str, Any] = {"passes": 8, "batch_size": 1, "learner": "csoaa", "compiled": False}
        return lols.train(TwoSteps.space, WORLDS, TwoSteps.teacher, **how, **more)

    expected = weights_of(run(), tmp_path)
    files: dict[str, Any] = {"checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 0, "resume": True}
    monkeypatch.setattr(f"{__name__}.train", run)
    interrupted_after(13, monkeypatch, **files)
    assert weights_of(run(**files), tmp_path) == expected


# --- when to resume, and when not -------------------------------------------------------------------------------------


@pytest.fixture
def half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "run.checkpoint"
    interrupted_after(20, monkeypatch, checkpoint=path, checkpoint_every=0)
    return path


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"seed": 4}, "seed"),
        ({"passes": 5}, "passes"),
        ({"batch_size": 8}, "batch_size"),
        ({"shuffle": False}, "shuffle"),
        ({"beta": 0.25}, "algorithm"),
        ({"algorithm": "searn"}, "algorithm"),
        ({"returned": "last"}, "algorithm"),
        ({"learner": "csoaa"}, "learner"),
        ({"learner": lols.LearnerSettings(rate=0.2)}, "learner"),
    ],
)
def test_resuming_with_other_options_is_refused(half_done: Path, options: dict[str, Any], what: str) -> None:
    before = half_done.read_bytes()
    with pytest.raises(ModelFileError) as caught:
        train(checkpoint=half_done, resume=True, **options)
    line = str(caught.value)
    assert str(half_done) in line and f"made with another {what}" in line and "\n" not in line
    assert half_done.read_bytes() == before


def test_resuming_with_other_data_is_refused(half_done: Path) -> None:
    other = [{"words": d["words"], "tags": [0] * len(d["tags"])} for d in DATA]
    for data in (DATA[:-1], other, DATA[::-1]):
        with pytest.raises(ModelFileError, match="made with another data"):
            lols.train(SPACE, data, TEACHER, **OPTIONS, checkpoint=half_done, resume=True)


def test_resuming_with_another_teacher_is_refused(half_done: Path) -> None:
    with pytest.raises(ModelFileError, match="made with another reference"):
        lols.train(
            SPACE, DATA, tagging_references()["bad"], **OPTIONS, checkpoint=half_done, resume=True, compiled=False
        )


def test_resuming_with_another_space_is_refused(half_done: Path) -> None:
    other = dataclasses.replace(SPACE, features=lambda x, s, out: lols.emit(out, 1))
    with pytest.raises(ModelFileError, match="made with another space"):
        lols.train(other, DATA, TEACHER, **OPTIONS, checkpoint=half_done, resume=True, compiled=False)


def test_what_is_not_part_of_the_result_may_change(half_done: Path, tmp_path: Path) -> None:
    resumed = train(checkpoint=half_done, resume=True, threads=2, tricks={"merge": False}, checkpoint_every=1.0)
    assert weights_of(resumed, tmp_path) == weights_of(train(), tmp_path)


def test_a_truncated_checkpoint_is_refused(half_done: Path) -> None:
    whole = half_done.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        half_done.write_bytes(whole[:size])
        with pytest.raises(ModelFileError) as caught:
            train(checkpoint=half_done, resume=True)
        assert str(half_done) in str(caught.value) and "\n" not in str(caught.value)
        assert half_done.read_bytes() == whole[:size]


@pytest.mark.parametrize("part", ["pass", "offset", "rivalry", "identity"])
def test_a_checkpoint_without_a_part_is_refused(half_done: Path, part: str) -> None:
    from lols.io.model_file import write_tensors

    header, tensors = read_tensors(half_done, "checkpoint")
    del header[part], header["kind"], header["format"]
    write_tensors(half_done, "checkpoint", header, tensors)
    with pytest.raises(ModelFileError) as caught:
        train(checkpoint=half_done, resume=True)
    assert str(half_done) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["sums", "learner.counters", "learner.shared.weights"])
def test_a_checkpoint_without_an_array_or_with_a_strange_one_is_refused(half_done: Path, name: str) -> None:
    from lols.io.model_file import write_tensors

    header, tensors = read_tensors(half_done, "checkpoint")
    del header["kind"], header["format"]
    for broken in ({k: v for k, v in tensors.items() if k != name}, tensors | {name: tensors[name][:1].copy()}):
        write_tensors(half_done, "checkpoint", header, broken)
        with pytest.raises(ModelFileError) as caught:
            train(checkpoint=half_done, resume=True)
        assert str(half_done) in str(caught.value) and "\n" not in str(caught.value)


def test_resuming_without_a_file_starts_anew(tmp_path: Path) -> None:
    started = train(checkpoint=tmp_path / "none.checkpoint", resume=True)
    assert weights_of(started, tmp_path) == weights_of(train(), tmp_path)


def test_resuming_without_naming_a_file_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="resume has no effect: name the checkpoint file"):
        train(resume=True)


def test_a_checkpoint_is_ignored_unless_resuming(half_done: Path, tmp_path: Path) -> None:
    assert weights_of(train(checkpoint=half_done), tmp_path) == weights_of(train(), tmp_path)


def test_resuming_a_finished_run_gives_its_model_at_once(tmp_path: Path) -> None:
    for name, options in ALGORITHMS.items():
        files: dict[str, Any] = {"checkpoint": tmp_path / f"{name}.checkpoint", "checkpoint_every": 0}
        finished = weights_of(train(**options, **files), tmp_path)
        assert weights_of(train(**options, **files, resume=True), tmp_path) == finished


def test_training_the_same_way_twice_gives_the_same_weights(tmp_path: Path) -> None:
    for options in ALGORITHMS.values():
        one, other = train(**options), train(**options, threads=2)
        assert weights_of(one, tmp_path) == weights_of(other, tmp_path)


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    one, other = (weights_of(train(seed=seed), tmp_path) for seed in (1, 2))
    assert one["shared.values"] != other["shared.values"]
