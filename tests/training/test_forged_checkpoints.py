"""Checkpoints with the right checksum and wrong numbers: what kernels would index is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import LolsError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.learners.learner import Learner

SPACE = tagging_space(labels=3)
TEACHER = tagging_references()["optimal"]
DATA = tagging_data(8, labels=3, words=20)
KINDS: dict[str, dict[str, Any]] = {
    "searn": {"algorithm": "searn"},
    "searn with bits": {"algorithm": "searn", "learner": lols.LearnerSettings(bits=6)},
    "drawn": {"returned": "drawn"},
    "auto": {"beta": "auto"},
    "plain": {},
}


def train(kind: str, path: Path, **options: Any) -> lols.Model:
    how: dict[str, Any] = {"passes": 2, "compiled": False, "checkpoint": path, "checkpoint_every": 0}
    return lols.train(SPACE, DATA, TEACHER, **how | KINDS[kind] | options)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    for kind in KINDS:
        train(kind, folder / kind)
    return {kind: folder / kind for kind in KINDS}


Tensors = dict[str, np.ndarray]
ARRAYS: dict[str, tuple[str, Callable[[Tensors], dict[str, Any]]]] = {
    "fewer rows": ("searn", lambda t: {"mixture.stack": t["mixture.stack"][:, :-1]}),
    "one row": ("searn", lambda t: {"mixture.stack": t["mixture.stack"][:, :1]}),
    "fewer columns": ("searn", lambda t: {"mixture.stack": t["mixture.stack"][:, :, :-1]}),
    "fewer components": ("searn", lambda t: {"mixture.stack": t["mixture.stack"][:1]}),
    "a component and no weights": ("searn", lambda t: {"mixture.weights": t["mixture.weights"][:0]}),
    "more weights": ("searn", lambda t: {"mixture.weights": np.full(3, 0.1)}),
    "negative weights": ("searn", lambda t: {"mixture.weights": -t["mixture.weights"]}),
    "large weights": ("searn", lambda t: {"mixture.weights": 9 * t["mixture.weights"]}),
    "weights of nothing": ("searn", lambda t: {"mixture.weights": 0 * t["mixture.weights"]}),
    "rows of doubles": ("searn", lambda t: {"mixture.stack": t["mixture.stack"].astype(np.float64)}),
    "no rows": ("searn", lambda t: {"mixture.rows": t["mixture.rows"][:0]}),
    "negative rows": ("searn", lambda t: {"mixture.rows": -t["mixture.rows"] - 1}),
    "rows beyond": ("searn", lambda t: {"mixture.rows": t["mixture.rows"] + 10**9}),
    "single rows beyond": ("searn", lambda t: {"mixture.rows": t["mixture.rows"] + [0, 1]}),
    "fewer rows of a fixed table": ("searn with bits", lambda t: {"mixture.stack": t["mixture.stack"][:, :-1]}),
    "fewer single rows": ("searn with bits", lambda t: {"mixture.single": t["mixture.single"][:, :-1]}),
    "features twice": ("plain", lambda t: {"learner.shared.features": 0 * t["learner.shared.features"]}),
    "features as fractions": ("plain", lambda t: {"learner.shared.features": t["learner.shared.features"] / 3}),
    "an error at a round": ("plain", lambda t: {"learner.counters": t["learner.counters"] + 10.0**6}),
    "negative counters": ("plain", lambda t: {"learner.counters": -t["learner.counters"]}),
    "sums of whole numbers": ("plain", lambda t: {"sums": t["sums"].astype(np.int64)}),
    "a flat policy": ("drawn", lambda t: {"snapshot.stack": t["snapshot.stack"].ravel()}),
    "a policy of fewer actions": ("drawn", lambda t: {"snapshot.stack": t["snapshot.stack"][:, :, :1]}),
}
HEADERS: dict[str, dict[str, Any]] = {
    "a pass before the first": {"pass": -1},
    "a pass after the last": {"pass": 3},
    "a pass in words": {"pass": "one"},
    "an infinite pass": {"pass": float("inf")},
    "an example before the first": {"offset": -4},
    "an example after the last": {"offset": 8},
    "a rivalry in words": {"rivalry": {"teacher": "good", "learner": "bad", "count": 1}},
    "a rivalry without end": {"rivalry": {"teacher": float("nan"), "learner": 1.0, "count": 1}},
    "a rivalry of other names": {"rivalry": {"first": 1.0}},
    "no rivalry": {"rivalry": None},
    "no identity": {"identity": ["seed"]},
}


def refused(kind: str, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ModelFileError) as caught:
        train(kind, path, resume=True)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert path.read_bytes() == before


def rewritten(path: Path, to: Path, header: dict[str, Any], tensors: Callable[[Tensors], dict[str, Any]]) -> None:
    old, arrays = read_tensors(path, "checkpoint")
    write_tensors(to, "checkpoint", old | header, arrays | tensors(arrays))


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_that_was_only_rewritten_is_taken(kind: str, written: dict[str, Path], tmp_path: Path) -> None:
    rewritten(written[kind], tmp_path / "run", {}, lambda t: {})
    resumed, other = train(kind, tmp_path / "run", resume=True), train(kind, tmp_path / "other")
    assert resumed.predict(DATA) == other.predict(DATA)


@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_that_do_not_fit_are_refused(what: str, written: dict[str, Path], tmp_path: Path) -> None:
    kind, change = ARRAYS[what]
    rewritten(written[kind], tmp_path / "run", {}, change)
    refused(kind, tmp_path / "run")


@pytest.mark.parametrize("what", HEADERS)
def test_headers_that_do_not_fit_are_refused(what: str, written: dict[str, Path], tmp_path: Path) -> None:
    rewritten(written["plain"], tmp_path / "run", HEADERS[what], lambda t: {})
    refused("plain", tmp_path / "run")


@pytest.mark.parametrize("settings", [{"max_features": 20}, {"reduction": "csoaa", "update": "ridge"}])
def test_more_features_than_a_learner_has_room_for_are_refused(settings: dict[str, Any]) -> None:
    learner = Learner(lols.LearnerSettings(**settings), 2, compiled=False)
    rows = 2000
    state = learner.state() | {"shared.features": np.arange(rows)}
    for part in ("weights", "squares", "sums"):
        state[f"shared.{part}"] = np.zeros((rows, 2), np.float32)
    with pytest.raises(LolsError, match="is not a list of at most"):
        learner.load(state)


def test_a_checkpoint_of_another_way_to_adapt_beta_is_refused(written: dict[str, Path], tmp_path: Path) -> None:
    before = {"rivalry": {"teacher": 1.0, "learner": 1.0, "count": 8}}  # as version 0.2 wrote it
    rewritten(written["auto"], tmp_path / "run", before, lambda t: {})
    with pytest.raises(ModelFileError, match="made by a version with another beta='auto'; delete it and train anew"):
        train("auto", tmp_path / "run", resume=True)
    rewritten(written["plain"], tmp_path / "plain", before, lambda t: {})
    train("plain", tmp_path / "plain", resume=True)  # which does not adapt it
    forged = {"rivalry": {"teacher": 1.0, "learner": 1.0, "squares": 1.0, "weights": 1.0, "count": 8}}
    rewritten(written["auto"], tmp_path / "forged", forged, lambda t: {})
    assert train("auto", tmp_path / "forged", resume=True).report["beta"] == 1.0
