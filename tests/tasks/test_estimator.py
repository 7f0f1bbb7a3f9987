"""The one estimator: few classes above each, and what every task has of it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.tasks.own import OwnTask
from lols.tasks.verbs import FromWeights
from tests.tasks.fourth_task import LINES, Spacer

MOST_CLASSES = 4  # of ours, that one looks through to understand an estimator


def weights(made: Any) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for _, array in sorted(made.contents()[1].items()))


@pytest.mark.parametrize("kind", [lols.Tagger, Spacer, OwnTask, lols.Tagger.PROBLEM])
def test_few_classes_are_above_an_estimator(kind: type) -> None:
    assert len([each for each in kind.__mro__ if each.__module__.startswith(("lols", "tests"))]) <= MOST_CLASSES


@pytest.mark.parametrize("cuts", [(20,), (1, 7, 12), (5, 5, 5, 5)])
def test_objects_in_a_stream_are_one_pass_in_order(cuts: tuple[int, ...]) -> None:
    whole = Spacer(passes=1, shuffle=False, batch_size=4, progress=False).fit(LINES)
    made, first = Spacer(batch_size=4), 0
    for count in cuts:
        made.partial_fit(LINES[first : first + count])
        first += count
    assert weights(made.stop_learning()) == weights(whole) and made.predict(["adog"]) == whole.predict(["adog"])


def test_objects_go_on_where_they_were(tmp_path: Path) -> None:
    Spacer(passes=1, keep_state=True, progress=False).fit(LINES).save(tmp_path / "state.lols")
    Spacer(passes=1, progress=False).fit(LINES).save(tmp_path / "bare.lols")
    state, bare = Spacer.load(tmp_path / "state.lols"), Spacer.load(tmp_path / "bare.lols")
    before = weights(state)
    assert weights(state.learn_one("a dog sings")) != before
    with pytest.warns(FromWeights, match="has no learner's state"):
        bare.learn_one("a dog sings")
    again = Spacer(warm_start=True, passes=1, progress=False).fit(LINES)
    assert again.fit(["a bird barks"]).score(LINES) <= 0.0


def test_objects_in_files_are_read_and_written_by_the_same_verbs(tmp_path: Path) -> None:
    path, out = tmp_path / "lines.txt", io.BytesIO()
    path.write_text("\n".join(LINES) + "\n")
    made = Spacer(passes=2, progress=False).fit_files(str(path), dev=str(path))
    assert made.predict_file(str(path), out)["examples"] == len(LINES)
    assert made.evaluate_file(str(path)).as_dict() == made.evaluate(LINES).as_dict()
    assert out.getvalue().decode().splitlines() == made.predict(LINES)
