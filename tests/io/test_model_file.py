"""Model files: the same predictions after a round trip, one clear line for any other file, and nothing is executed."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import lols
from lols.datasets.small_worlds import WORLDS, TwoSteps
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ModelFileError
from lols.io import model_file
from lols.io.model_file import read_tensors, write_tensors

SPACE = tagging_space(labels=4)
TEACHER = tagging_references()["optimal"]
DATA = tagging_data(60, labels=4, words=40)
UNSEEN = [{"words": d["words"]} for d in tagging_data(50, labels=4, words=40, seed=1)]


def trained(**options: Any) -> lols.Model:
    return lols.train(SPACE, DATA, TEACHER, **({"passes": 2} | options))


@pytest.fixture(scope="module")
def model() -> lols.Model:
    return trained()


@pytest.fixture
def saved(model: lols.Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "model.lols")
    return tmp_path / "model.lols"


def refused(path: Path, *words: str, space: lols.SearchSpace = SPACE) -> str:
    """The file is refused in one line that names it."""
    with pytest.raises(ModelFileError) as caught:
        lols.load(path, space)
    line = str(caught.value)
    assert str(path) in line and "\n" not in line
    for word in words:
        assert word in line
    return line


# --- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner",
    ["hinge", "csoaa", "secoc", lols.LearnerSettings(bits=12), lols.LearnerSettings("secoc", "adagrad", bits=12)],
    ids=["hinge", "csoaa", "secoc", "bits", "secoc-bits"],
)
@pytest.mark.parametrize("returned", ["average", "last"])
def test_a_loaded_model_predicts_as_the_saved_one(learner: Any, returned: str, tmp_path: Path) -> None:
    model = trained(learner=learner, returned=returned)
    model.save(tmp_path / "model.lols")
    loaded = lols.load(tmp_path / "model.lols", SPACE)
    assert loaded.predict(UNSEEN) == model.predict(UNSEEN)
    assert loaded.losses(DATA).tolist() == model.losses(DATA).tolist()
    assert loaded.about == model.about
    loaded.save(tmp_path / "again.lols")
    assert (tmp_path / "again.lols").read_bytes() == (tmp_path / "model.lols").read_bytes()


def test_weights_of_action_features_and_random_ties_survive_too(tmp_path: Path) -> None:
    space, how = TwoSteps.space, {"roll_in": "reference", "roll_out": "reference", "ties": "random"}
    for seed in range(5):
        model = lols.train(space, WORLDS, TwoSteps.teacher, **how, seed=seed, compiled=False)
        model.save(tmp_path / "model.lols")
        assert lols.load(tmp_path / "model.lols", space, compiled=False).predict(WORLDS) == model.predict(WORLDS)


def test_an_untrained_policy_can_be_saved(tmp_path: Path) -> None:
    # All costs are equal, so nothing is learned and no row has any weight.
    model = lols.train(SPACE, [{"words": [1], "tags": [0]}], TEACHER, passes=1, roll_out="none", learner="csoaa")
    model.policy.stack[:] = 0.0
    model.save(tmp_path / "model.lols")
    assert lols.load(tmp_path / "model.lols", SPACE).predict(UNSEEN) == model.predict(UNSEEN)


def test_loading_takes_threads_and_plain_python(saved: Path, model: lols.Model) -> None:
    expected = model.predict(UNSEEN)
    assert lols.load(saved, SPACE, threads=2).predict(UNSEEN) == expected
    assert lols.load(saved, SPACE, compiled=False).predict(UNSEEN[:10]) == expected[:10]


def test_a_path_may_be_text_and_its_folder_may_be_missing(model: lols.Model, tmp_path: Path) -> None:
    path = str(tmp_path / "some" / "where" / "model.lols")
    model.save(path)
    assert lols.load(path, SPACE).about["examples"] == len(DATA)


def test_a_space_that_changed_since_is_noted(saved: Path) -> None:
    assert "space_changed" not in lols.load(saved, SPACE).about
    other = replace(SPACE, features=lambda x, s, out: None)
    assert lols.load(saved, other).about["space_changed"] is True


# --- files that are damaged -------------------------------------------------------------------------------------------


def test_a_file_truncated_anywhere_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    broken = tmp_path / "broken.lols"
    for size in range(0, len(whole), 100):
        broken.write_bytes(whole[:size])
        refused(broken)


def test_a_file_with_more_behind_it_is_refused(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"more")
    refused(saved)


@pytest.mark.parametrize("flip", [0x01, 0x20, 0xFF])
def test_a_flipped_byte_in_the_header_is_found(saved: Path, tmp_path: Path, flip: int) -> None:
    whole = saved.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    broken = tmp_path / "broken.lols"
    for at in range(0, 8 + length, 3):
        changed = bytearray(whole)
        changed[at] ^= flip
        broken.write_bytes(changed)
        refused(broken)


def test_a_flipped_byte_in_the_weights_is_found(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    for at in np.linspace(8 + length, len(whole) - 1, 50).astype(int):
        changed = bytearray(whole)
        changed[at] ^= 0x01
        (tmp_path / "broken.lols").write_bytes(changed)
        refused(tmp_path / "broken.lols")


# --- files of another kind --------------------------------------------------------------------------------------------


class Bomb:
    """A pickle of this writes a file when it is read."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return open, (str(self.path), "w")


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    path, traces = tmp_path / "model.lols", tmp_path / "executed"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Bomb(traces), protocol))
        refused(path)
    assert not traces.exists()


def test_a_pickled_array_is_refused_and_not_run(tmp_path: Path) -> None:
    path, traces = tmp_path / "model.lols", tmp_path / "executed"
    with open(path, "wb") as file:
        np.save(file, np.array([Bomb(traces)], dtype=object))
    refused(path)
    assert not traces.exists()


@pytest.mark.parametrize(
    "content", [b"", b"a", b"\0" * 8, b"\xff" * 64, b"accuracy 0.9\n" * 100, b'{"format": 1, "kind": "model"}']
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.lols").write_bytes(content)
    refused(tmp_path / "model.lols")


def test_a_file_or_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    refused(tmp_path / "nothing.lols", "there is no such file")
    refused(tmp_path)


@pytest.mark.parametrize("metadata", [None, {"author": "someone"}])
def test_a_safetensors_file_of_someone_else_is_refused(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    safetensors.numpy.save_file({"weights": np.ones(3)}, tmp_path / "model.lols", metadata=metadata)
    refused(tmp_path / "model.lols", "not one of lols")


def test_a_checkpoint_is_not_a_model_and_a_model_not_a_checkpoint(saved: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.checkpoint"
    trained(checkpoint=checkpoint, checkpoint_every=0)
    refused(checkpoint, "holds a checkpoint, not a model")
    with pytest.raises(ModelFileError, match="holds a model, not a checkpoint"):
        trained(checkpoint=saved, resume=True)


def test_a_model_for_another_number_of_actions_is_refused(saved: Path) -> None:
    refused(saved, "trained for 4 actions; this space has 5", space=tagging_space(labels=5))


# --- files that were made up ------------------------------------------------------------------------------------------


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write a model file again with another header or other arrays."""
    header, tensors = read_tensors(path, "model")
    tensors = dict(tensors)
    change(header, tensors)
    kind = header.pop("kind")
    write_tensors(path, kind, header, tensors)


def test_rewriting_a_file_unchanged_keeps_it_readable(saved: Path, model: lols.Model) -> None:
    rewrite(saved, lambda header, tensors: None)
    assert lols.load(saved, SPACE).predict(UNSEEN) == model.predict(UNSEEN)


@pytest.mark.parametrize("number", [0, 1, 999, "2", None])
def test_another_format_is_refused_by_number(number: Any, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header, tensors = read_tensors(saved, "model")
    del header["kind"], header["format"]
    with monkeypatch.context() as patch:
        patch.setattr(model_file, "FORMAT", number)
        write_tensors(saved, "model", header, tensors)
    refused(saved, f"format {number}; this version of lols reads formats 2 and 3")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_numbers_are_refused(value: float, saved: Path) -> None:
    def change(header: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors["shared.values"] = tensors["shared.values"].copy()
        tensors["shared.values"][3] = value

    rewrite(saved, change)
    refused(saved, "shared.values", "NaN or infinity")


TENSORS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "fewer rows": lambda t: t.update({"shared.counts": t["shared.counts"][:, :-1].copy()}),
    "fewer rows and weights": lambda t: t.update(
        {
            "shared.counts": t["shared.counts"][:, :-1].copy(),
            "shared.columns": t["shared.columns"][: -t["shared.counts"][0, -1]].copy(),
            "shared.values": t["shared.values"][: -t["shared.counts"][0, -1]].copy(),
        }
    ),
    "fewer weights": lambda t: t.update({"shared.values": t["shared.values"][:-1].copy()}),
    "columns beyond the actions": lambda t: t.update({"shared.columns": np.full_like(t["shared.columns"], 4)}),
    "a flat array": lambda t: t.update({"shared.counts": t["shared.counts"].ravel()}),
    "more features": lambda t: t.update({"shared.features": np.arange(t["shared.features"].size + 1)}),
    "features twice": lambda t: t.update({"shared.features": np.zeros_like(t["shared.features"])}),
    "features in a square": lambda t: t.update({"shared.features": t["shared.features"].reshape(-1, 1)}),
    "features as fractions": lambda t: t.update({"shared.features": t["shared.features"] / 3.0}),
    "two policies": lambda t: t.update({"chances": np.array([0.5, 1.0])}),
    "no chances": lambda t: t.update({"chances": np.zeros(0)}),
    "chances in a square": lambda t: t.update({"chances": np.ones((1, 1))}),
    "small chances": lambda t: t.update({"chances": np.array([0.5])}),
    "no weights": lambda t: t.pop("shared.values"),
    "no counts": lambda t: t.pop("shared.counts"),
    "no columns": lambda t: t.pop("shared.columns"),
    "no features": lambda t: t.pop("shared.features"),
    "no chance array": lambda t: t.pop("chances"),
    "action weights missing": lambda t: t.pop("single.values"),
}


@pytest.mark.parametrize("what", TENSORS)
def test_arrays_that_do_not_fit_are_refused(what: str, saved: Path) -> None:
    rewrite(saved, lambda header, tensors: TENSORS[what](tensors))
    refused(saved)


HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no about": lambda h: h.pop("about"),
    "about is a number": lambda h: h.update(about=3),
    "nothing on how to follow": lambda h: h.pop("following"),
    "no seed": lambda h: h["following"].pop("seed"),
    "a seed in words": lambda h: h["following"].update(seed="one"),
    "a seed of many bits": lambda h: h["following"].update(seed=1 << 70),
    "no word on ties": lambda h: h["following"].pop("random_ties"),
    "a list on how to follow": lambda h: h.update(following=[]),
    "no space": lambda h: h.pop("space"),
    "space is a list": lambda h: h.update(space=[]),
    "no source": lambda h: h["space"].pop("source"),
    "actions in words": lambda h: h["space"].update(actions="many"),
    "no actions": lambda h: h["space"].update(actions=0),
    "negative actions": lambda h: h["space"].update(actions=-4),
    "no thresholds": lambda h: h.pop("thresholds"),
    "negative thresholds": lambda h: h.update(thresholds=-1),
    "huge thresholds": lambda h: h.update(thresholds=1 << 40),
    "negative bits": lambda h: h.update(shared_bits=-1),
    "huge bits": lambda h: h.update(shared_bits=1 << 20),
    "bits in words": lambda h: h.update(shared_bits="twelve"),
}


@pytest.mark.parametrize("what", HEADERS)
def test_headers_that_do_not_fit_are_refused(what: str, saved: Path) -> None:
    rewrite(saved, lambda header, tensors: HEADERS[what](header))
    refused(saved)


@pytest.mark.parametrize("text", ["", "{", "3", "null", "[]", '"model"', "{}", "[" * 100_000, '{"kind": ["model"]}'])
def test_a_header_that_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    safetensors.numpy.save_file({"weights": np.ones(3)}, tmp_path / "model.lols", metadata={"lols": text})
    refused(tmp_path / "model.lols")


def test_the_header_is_json_that_other_programs_can_read(saved: Path) -> None:
    with safetensors.safe_open(saved, framework="numpy") as opened:
        header = json.loads(opened.metadata()["lols"])
    assert (header["kind"], header["format"], header["space"]["actions"]) == ("model", 2, 4)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    saved: Path, model: lols.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_file.os, "fsync", full)
    with pytest.raises(ModelFileError) as caught:
        model.save(saved)
    assert str(saved) in str(caught.value) and "No space left" in str(caught.value) and "\n" not in str(caught.value)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    saved: Path, model: lols.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(model_file.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_a_place_that_cannot_be_written_is_named(model: lols.Model, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for path in (tmp_path / "file" / "model.lols", tmp_path):
        with pytest.raises(ModelFileError) as caught:
            model.save(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["file"]


def test_others_may_read_a_model_as_they_may_read_any_new_file(saved: Path) -> None:
    (saved.parent / "plain").write_text("")
    assert saved.stat().st_mode == (saved.parent / "plain").stat().st_mode
