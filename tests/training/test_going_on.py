"""Models of one's own tasks go on: exactly with the learner's state, from the weights alone without."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols


class Copying(lols.Task):
    """Copy numbers below 4."""

    sizes = lols.Sizes(state=lambda x: 1 + len(x.words), actions=4, features=2, steps=lambda x: len(x.words))
    columns = lols.Columns(x="words", y="tags")

    def actions(x, s, legal):  # type: ignore[no-untyped-def]
        if s[0] < len(x.words):
            legal[:] = True

    def step(x, s, a):  # type: ignore[no-untyped-def]
        s[1 + s[0]] = a
        s[0] += 1

    def features(x, s, out):  # type: ignore[no-untyped-def]
        lols.emit(out, lols.feature(0, x.words[s[0]]))
        lols.emit(out, lols.feature(1, s[0]))

    def loss(x, y, s):  # type: ignore[no-untyped-def]
        wrong = 0.0
        for i in range(len(x.words)):
            wrong += s[1 + i] != y.tags[i]
        return wrong

    def output(x, s):  # type: ignore[no-untyped-def]
        return s[1:].tolist()

    def reference(x, y, s):  # type: ignore[no-untyped-def]
        return y.tags[s[0]]


def objects(count: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"words": words, "tags": words % 4} for words in rng.integers(0, 20, (count, 3))]


def weights(model: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.contents()[1].items()}


SKETCH = {"learner": lols.LearnerSettings("csoaa", "sketch", directions=2)}


@pytest.mark.parametrize("options", [{}, {"learner": "csoaa"}, {"beta": "auto"}, {"learner": "secoc"}, SKETCH])
def test_passes_add_up_bit_for_bit(tmp_path: Path, options: dict[str, Any]) -> None:
    options |= {"compiled": False, "seed": 3}
    whole = lols.train(Copying, objects(30), passes=3, **options)
    first = lols.train(Copying, objects(30), passes=2, **options)
    first.save(tmp_path / "m.lols", keep_state=True)
    loaded = lols.load(tmp_path / "m.lols", Copying, compiled=False)
    before = weights(loaded)
    assert weights(lols.train(Copying, objects(30), passes=1, start=loaded, **options)) == weights(whole)
    assert weights(lols.train(Copying, objects(30), passes=1, start=first, **options)) == weights(whole)
    assert weights(loaded) == before  # the model that was gone on from stays as it is


@pytest.mark.parametrize("keep", [True, False])
def test_one_object_at_a_time(tmp_path: Path, keep: bool) -> None:
    made = lols.train(Copying, objects(5), compiled=False, batch_size=1)
    made.save(tmp_path / "m.lols", keep_state=keep)
    loaded = lols.load(tmp_path / "m.lols", Copying, compiled=False)
    before = loaded.evaluate(objects(40, 1))
    with warnings.catch_warnings(record=True) as said:
        for obj in objects(40, 1):
            loaded.learn_one(obj)
    wanted = [] if keep else ["this model has no learner's state: learning starts from its weights alone"]
    assert [str(each.message).partition(",")[0] for each in said] == wanted  # and only once
    assert loaded.evaluate(objects(40, 1)) < before and loaded.partial_fit([]) is loaded
    if keep:
        assert weights(loaded) == weights(made.partial_fit(objects(40, 1)))
    loaded.save(tmp_path / "n.lols")
    assert lols.load(tmp_path / "n.lols", Copying).predict(objects(3, 1)) == loaded.predict(objects(3, 1))
    assert loaded.stop_learning().learning is None and loaded.evaluate(objects(40, 1)) < before


def test_searn_cannot_go_on() -> None:
    made = lols.train(Copying, objects(9), passes=2, algorithm="searn", compiled=False)
    with pytest.raises(lols.LolsError, match="searn trains a new learner in every pass"):
        made.learn_one(objects(1)[0])
