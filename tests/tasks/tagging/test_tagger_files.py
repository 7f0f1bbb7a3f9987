"""Model files of taggers: the same tagger after a round trip, one clear line for any other file, nothing executed."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols import Tagger
from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.tagging.files import FileColumns
from tests.tasks.tagging.span_twin import convert
from tests.tasks.tagging.tagger_data import sentences, spans, weights

WORDS, GOLD = sentences(25)
UNSEEN, UNSEEN_GOLD = sentences(25, seed=1)
CHUNK_WORDS, CHUNKS = spans(25)
Change = Callable[[dict[str, Any], dict[str, Any]], Any]


def tagger(**options: Any) -> Tagger:
    return Tagger(**({"passes": 2, "progress": False} | options))


@pytest.fixture(scope="module")
def chunker() -> Tagger:
    made = tagger(clusters={"the": "01", "dog": "10"}).fit(CHUNK_WORDS, CHUNKS, dev=spans(5, seed=1))
    made.columns_ = FileColumns("form", "last", {"pos": "2"})
    return made


@pytest.fixture
def saved(chunker: Tagger, tmp_path: Path) -> Path:
    chunker.save(tmp_path / "model.lols")
    return tmp_path / "model.lols"


def refused(path: Path, *words: str) -> str:
    """The file is refused in one line that names it, whoever opens it."""
    lines = set()
    for opened in (Tagger.load, lols.load):
        with pytest.raises(ModelFileError) as caught:
            opened(path)
        lines.add(str(caught.value))
    for line in lines:
        assert line.startswith(str(path)) and "\n" not in line
        for word in words:
            assert word in line
    return min(lines)


def rewrite(path: Path, change: Change) -> None:
    """Write a file again with another header or other arrays, and a checksum that fits."""
    header, tensors = read_tensors(path, "model")
    tensors = dict(tensors)
    change(header, tensors)
    kind = header.pop("kind")
    write_tensors(path, kind, header, tensors)


# --- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scheme", ["bio", "iob1", "bilou", "bioes"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_loaded_tagger_is_the_saved_one(scheme: str, direction: str, tmp_path: Path) -> None:
    gold = [convert(t, "bio", scheme) for t in CHUNKS]
    made = tagger(direction=direction).fit(CHUNK_WORDS, gold)
    made.save(tmp_path / "m.lols")
    words, tags = spans(20, seed=2)
    tags = [convert(t, "bio", scheme) for t in tags]
    for loaded in (Tagger.load(tmp_path / "m.lols"), lols.load(str(tmp_path / "m.lols"), threads=2)):
        assert isinstance(loaded, Tagger)
        assert loaded.predict(words) == made.predict(words)
        assert loaded.evaluate(words, tags) == made.evaluate(words, tags)
        assert loaded.predict_kbest(words[:3], k=3) == made.predict_kbest(words[:3], k=3)
        for one, other in zip(loaded.predict_confidence(words), made.predict_confidence(words), strict=True):
            assert one.tobytes() == other.tobytes()
        assert loaded.classes_.tolist() == made.classes_.tolist()
        assert loaded.vocabulary_ == made.vocabulary_ and loaded.fingerprint_ == made.fingerprint_


@pytest.mark.parametrize("learner", ["hinge", "csoaa", "secoc"])
def test_every_learner_survives(learner: str, tmp_path: Path) -> None:
    made = tagger(learner=learner).fit(WORDS, GOLD)
    made.save(tmp_path / "m.lols")
    loaded = lols.load(tmp_path / "m.lols")
    assert loaded.predict(UNSEEN) == made.predict(UNSEEN)
    assert loaded.evaluate(UNSEEN, UNSEEN_GOLD) == made.evaluate(UNSEEN, UNSEEN_GOLD)
    assert loaded.learner == learner and loaded.passes == 2


def test_saving_what_was_loaded_gives_the_same_file(saved: Path, tmp_path: Path) -> None:
    loaded = Tagger.load(saved)
    assert loaded.columns_ == FileColumns("form", "last", {"pos": "2"})
    assert loaded.clusters == {"the": "01", "dog": "10"}
    loaded.save(tmp_path / "again.lols")
    assert weights(tmp_path / "again.lols") == weights(saved)
    one, other = (read_tensors(p, "model") for p in (saved, tmp_path / "again.lols"))
    for name in ("space", "following", "shared_bits", "single_bits", "thresholds"):
        assert one[0][name] == other[0][name]
    for name in set(one[0]["task"]) - {"options"}:
        assert one[0]["task"][name] == other[0]["task"][name], name
    for name, array in one[1].items():
        assert array.tobytes() == other[1][name].tobytes(), name


def test_one_training_gives_one_file(tmp_path: Path) -> None:
    files = []
    for k in range(2):
        tagger(seed=5).fit(WORDS, GOLD).save(tmp_path / f"{k}.lols")
        files.append((tmp_path / f"{k}.lols").read_bytes())
    assert files[0] == files[1]


def test_words_of_any_script_are_in_the_vocabulary(tmp_path: Path) -> None:
    words = [["", "é", "文😀"], ["\n", "\0", "a b"]]
    made = tagger().fit(words, [["A", "B", "A"], ["B", "A", "B"]])
    made.save(tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols").vocabulary_ == made.vocabulary_ == ["", "é", "文😀", "\n", "\0", "a b"]


def test_a_tagger_without_words_has_no_vocabulary(tmp_path: Path) -> None:
    made = tagger().fit([[{"pos": "D", "n": 1}, {"pos": "N", "n": 2}]] * 3, [["A", "B"]] * 3)
    made.save(tmp_path / "m.lols")
    assert lols.load(tmp_path / "m.lols").vocabulary_ == []


# --- other files ------------------------------------------------------------------------------------------------------


def test_a_file_truncated_anywhere_is_refused(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 60).astype(int).tolist():
        (tmp_path / "broken.lols").write_bytes(whole[:size])
        refused(tmp_path / "broken.lols")


def test_an_edited_byte_anywhere_is_found(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    places = [*range(0, 8 + length, 41), *np.linspace(8 + length, len(whole) - 1, 40).astype(int).tolist()]
    for at in places:
        changed = bytearray(whole)
        changed[at] ^= 0x01
        (tmp_path / "broken.lols").write_bytes(changed)
        refused(tmp_path / "broken.lols")


def test_a_model_of_another_kind_is_told_apart(tmp_path: Path, saved: Path) -> None:
    from lols.datasets.worlds import tagging_data, tagging_references, tagging_space

    data, teacher = tagging_data(5, labels=3), tagging_references()["optimal"]
    lols.train(tagging_space(labels=3), data, teacher, passes=1, compiled=False).save(tmp_path / "own.lols")
    with pytest.raises(ModelFileError, match=r"own.lols: not a tagger; `lols inspect` says what it is"):
        Tagger.load(tmp_path / "own.lols")
    with pytest.raises(
        ModelFileError, match=r"a model of a search space of your own; load it with lols.load\(path, sp"
    ):
        lols.load(tmp_path / "own.lols")
    rewrite(saved, lambda h, t: h["task"].update(name="poet"))
    with pytest.raises(ModelFileError, match="a model of 'poet', which this version of lols does not know; install"):
        lols.load(saved)


def test_rewriting_a_file_unchanged_keeps_it_readable(saved: Path, chunker: Tagger) -> None:
    rewrite(saved, lambda header, tensors: None)
    assert lols.load(saved).predict(CHUNK_WORDS) == chunker.predict(CHUNK_WORDS)


def task(**values: Any) -> Change:
    return lambda header, tensors: header["task"].update(values)


def tensor(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    return lambda header, tensors: tensors.update({name: change(tensors[name])})


HOSTILE: dict[str, Change] = {
    "no task": lambda h, t: h.pop("task"),
    "a task in words": lambda h, t: h.update(task="tagger"),
    "a task as a list": lambda h, t: h.update(task=["tagger"]),
    "a name as a list": task(name=["tagger"]),
    "labels in words": task(labels="O"),
    "labels as numbers": task(labels=[1, 2, 3]),
    "labels that are null": task(labels=None),
    "no labels": task(labels=[]),
    "one label": task(labels=["O"]),
    "a label too many": lambda h, t: h["task"]["labels"].append("B-ZZ"),
    "a label too few": lambda h, t: h["task"].update(labels=["O", "B-NP", "I-NP"]),
    "labels of no scheme": task(labels=["A", "B", "C"]),
    "another scheme": task(scheme="bilou", inner_scheme="bilou"),
    "a scheme that does not exist": task(scheme="bobo"),
    "a scheme as a number": task(scheme=3),
    "a scheme as a list": task(scheme=["bio"]),
    "an inner scheme without automaton": task(inner_scheme="iob1"),
    "a direction that does not exist": task(direction="up"),
    "a direction as a list": task(direction=[]),
    "a loss that does not exist": task(loss="money"),
    "a loss as a dictionary": task(loss={}),
    "no templates": task(templates=[]),
    "templates in words": task(templates="word"),
    "templates as numbers": task(templates=[1]),
    "a template that is code": task(templates=["__import__('os').system('touch executed')"]),
    "columns in words": task(columns="word"),
    "columns as numbers": task(columns=[1]),
    "a column missing": task(columns=[]),
    "options in words": task(options="fast"),
    "options that are null": task(options=None),
    "no options": lambda h, t: h["task"].pop("options"),
    "no temperature": lambda h, t: h["task"].pop("temperature"),
    "a temperature in words": task(temperature="warm"),
    "a temperature that is null": task(temperature=None),
    "no fingerprint": lambda h, t: h["task"].pop("fingerprint"),
    "no word on files": lambda h, t: h["task"].pop("files"),
    "files in words": task(files="form"),
    "files as a list": task(files=[1, 2]),
    "files as a number": task(files=3),
    "files with another key": task(files={"eval": "1"}),
    "bits beyond memory": lambda h, t: h.update(shared_bits=10**9),
    "bits beyond the table": lambda h, t: h.update(shared_bits=1),
    "negative bits": lambda h, t: h.update(single_bits=-1),
    "bits in words": lambda h, t: h.update(shared_bits="many"),
    "no bits": lambda h, t: h.pop("shared_bits"),
    "huge thresholds": lambda h, t: h.update(thresholds=10**12),
    "other actions": lambda h, t: h["space"].update(actions=99),
    "actions in words": lambda h, t: h["space"].update(actions="many"),
    "no about": lambda h, t: h.pop("about"),
    "no vocabulary": lambda h, t: t.pop("task.vocabulary"),
    "no ends of words": lambda h, t: t.pop("task.vocabulary_end"),
    "ends beyond the buffer": tensor("task.vocabulary_end", lambda a: a + 10**6),
    "ends that go back": tensor("task.vocabulary_end", lambda a: a[::-1].copy()),
    "negative ends": tensor("task.vocabulary_end", lambda a: a - 10**6),
    "ends of 32 bits": tensor("task.vocabulary_end", lambda a: a.astype(np.int32)),
    "ends as fractions": tensor("task.vocabulary_end", lambda a: a.astype(np.float64)),
    "ends in a square": tensor("task.vocabulary_end", lambda a: a.reshape(1, -1)),
    "words that are not UTF-8": tensor("task.vocabulary", lambda a: np.full_like(a, 0xFF)),
    "words of 64 bits": tensor("task.vocabulary", lambda a: a.astype(np.int64)),
    "a buffer too short": tensor("task.vocabulary", lambda a: a[:-3].copy()),
    "no words for clusters": lambda h, t: t.pop("task.clustered"),
    "a cluster missing": tensor("task.clusters_end", lambda a: a[:-1].copy()),
    "no weights": lambda h, t: t.pop("shared.values"),
    "no counts": lambda h, t: t.pop("shared.counts"),
    "no places": lambda h, t: t.pop("shared.columns"),
    "no features": lambda h, t: t.pop("shared.features"),
    "no chances": lambda h, t: t.pop("chances"),
    "no action weights": lambda h, t: t.pop("single.values"),
    "a place beyond the labels": tensor("shared.columns", lambda a: np.full_like(a, 99)),
    "counts that do not fit": tensor("shared.counts", lambda a: a + 1),
    "features twice": tensor("shared.features", np.zeros_like),
    "infinite weights": tensor("shared.values", lambda a: a + np.inf),
}
OPEN: dict[str, tuple[str, Change]] = {
    "a temperature beyond floats": ("OverflowError", task(temperature=10**400)),
    "a temperature of zero": ("read", task(temperature=0)),
    "a negative temperature": ("read", task(temperature=-1.0)),
    "files with a number for a word": ("read", task(files={"word": 3, "label": "upos"})),
    "files with a list of columns": ("read", task(files={"use": [1, 2]})),
    "files with columns as numbers": ("read", task(files={"use": {"pos": 2}})),
    "files without a label": ("read", task(files={"label": None})),
    "clusters among the options": ("read", task(options={"clusters": "abc"})),
    "a list among the options": ("read", task(options={"passes": [1]})),
    "threads among the options": ("read", task(options={"batch_size": "x", "seed": None})),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_file_that_was_made_up_is_refused(
    what: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rewrite(saved, HOSTILE[what])
    refused(saved)
    assert os.listdir(tmp_path) == ["model.lols"]


@pytest.mark.parametrize("what", OPEN)
def test_a_file_that_was_made_up_is_refused_here_too(what: str, saved: Path) -> None:
    rewrite(saved, OPEN[what][1])
    refused(saved)


def test_nothing_in_a_file_looks_like_code(saved: Path) -> None:
    header, tensors = read_tensors(saved, "model")
    assert {t.dtype.kind for t in tensors.values()} <= set("iuf")
    assert json.loads(json.dumps(header)) == header
    assert b"pickle" not in saved.read_bytes() and b"__reduce__" not in saved.read_bytes()


def test_a_tagger_is_written_whole_or_not_at_all(saved: Path, chunker: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ModelFileError, match="cannot be written: No space left"):
        chunker.save(saved)
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["model.lols"]
