"""Threads share a model: some learn, some predict, one saves, and each call sees the model between two others."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.tasks.base import BaseEstimator
from lols.tasks.registry import ESTIMATORS, estimator
from tests.tasks.fourth_task import Spacing
from tests.tasks.shared_models import (
    KINDS,
    LABELS,
    LETTERS,
    PATIENCE,
    ROWS,
    TAGS,
    WORDS,
    in_threads,
    one_by_one,
    together,
)

CALLS = 15  # of each thread

pytestmark = pytest.mark.filterwarnings("ignore:.*has no learner's state")  # weights are enough here


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    """Let threads take turns much more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", KINDS)
def test_threads_that_learn_and_predict_see_whole_calls_only(name: str, tmp_path: Path) -> None:
    expected = one_by_one(KINDS[name], 2 * CALLS)
    seen = in_threads(KINDS[name], CALLS, tmp_path / "model.lols")
    assert seen[-1] == expected[-1]
    assert all(each in expected for each in seen)


@pytest.mark.parametrize("name", ["tagger", "classifier"])
def test_labels_that_a_call_adds_come_with_its_weights(name: str) -> None:
    """Predictions that run meanwhile know either all that a call has changed, or nothing of it."""
    model, done = KINDS[name].make(), threading.Event()

    def learn() -> None:
        try:
            for k in range(CALLS):
                new = f"new {k}"
                if name == "tagger":
                    model.partial_fit([[new]], [[new]], classes=[new])
                else:
                    model.partial_fit([[k, new]], [new], classes=[new])
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            if name == "tagger":
                model.predict([*WORDS, [f"new {CALLS - 1}"]])
                model.evaluate(WORDS, TAGS)
            else:
                model.predict(ROWS)
                model.evaluate(ROWS, LABELS)

    together(learn, read, read)


def test_training_anew_and_calibrating_take_turns_with_the_rest() -> None:
    tagger = lols.Tagger(passes=1, keep_state=True).fit(WORDS * 9, TAGS * 9)

    def fit() -> None:
        for k in range(8):
            tagger.fit(WORDS * 9, [[f"{tag}{k}" for tag in tags] for tags in TAGS * 9])

    def calibrate() -> None:
        for _ in range(8):
            with contextlib.suppress(lols.LolsError):  # no tag is right: `fit` was faster
                tagger.calibrate_with(WORDS * 9, TAGS * 9).set_params(seed=0)

    def read() -> None:
        for _ in range(30):
            kinds = {tag[:3] for tags in tagger.predict(WORDS) for tag in tags}
            assert kinds <= {"DET", "NOU", "VER"}

    def let_go() -> None:
        for _ in range(8):
            tagger.stop_learning()
            pickle.dumps(tagger)

    together(fit, calibrate, read, let_go)


def test_a_program_predicts_in_several_threads() -> None:
    def spell(search: Any, line: str) -> list[int]:
        ends: list[int] = []
        for letter, after in zip(line, line[1:] + " ", strict=True):
            truth = int(after == " ") if search.truth else None
            features = [("letter", ord(letter)), ("before", *ends[-1:])]
            ends.append(search.predict(features * (1 + ord(letter) % 40), reference=truth))
            search.loss(ends[-1] != truth)
        return ends

    lines = ["a dog", "the cat", "no dog that sleeps", "zzz y"] * 3
    model = lols.train(lols.Program(spell, 2), lines, passes=2)
    expected = model.predict(lines)

    def read() -> None:
        for _ in range(60):
            assert model.predict(lines) == expected

    together(*[read] * 4)


def test_a_copy_has_a_lock_of_its_own() -> None:
    """So has an unpickled model, and one in the child of a fork, which has none of the parent's threads."""
    model = KINDS["tagger"].make()
    pickled = pickle.dumps(model)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with model._lock.here():
            held.set()
            done.wait(PATIENCE)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    held.wait(PATIENCE)
    try:
        together(lambda: KINDS["tagger"].learn(pickle.loads(pickled)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            child = os.fork()
        if child == 0:
            os._exit(0 if model.predict(WORDS[:1]) == TAGS[:1] else 1)
        limit = time.monotonic() + PATIENCE
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < limit:
            time.sleep(0.01)
        if ended[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert ended == (child, 0)
    finally:
        done.set()
        holder.join()


METHODS = ("fit", "partial_fit", "stop_learning", "calibrate", "save", "set_params", "contents", "predict", "evaluate")
CALLS_ANOTHER = {"learn_one", "predict_one", "score", "fit_read", "predict_proba", "calibrated", "settle"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_method_that_learns_or_predicts_takes_part(name: str) -> None:
    kind: type[BaseEstimator] = estimator(name)
    names = [each for each in dir(kind) if each.startswith(METHODS) and each not in CALLS_ANOTHER]
    methods = {each: getattr(kind, each) for each in names if callable(getattr(kind, each))}
    neither = [each for each, method in methods.items() if not hasattr(method, "__wrapped__")]
    assert not neither, f"mark them @exclusive or @on_snapshot: {neither}"


def test_warnings_name_the_line_of_the_user(tmp_path: Path) -> None:
    KINDS["tagger"].make().save(tmp_path / "model.lols")
    model = lols.load(tmp_path / "model.lols")
    with pytest.warns(UserWarning, match="fit begins anew") as said:
        model.fit(WORDS, TAGS)
    assert said[0].filename == __file__
    with pytest.warns(UserWarning, match="has no learner's state") as said:
        lols.load(tmp_path / "model.lols").partial_fit(WORDS, TAGS)
    assert said[0].filename == __file__
    task = lols.train(Spacing, LETTERS, passes=1, compiled=False)
    task.learning = None
    with pytest.warns(UserWarning, match="has no learner's state") as said:
        task.learn_one(LETTERS[0])
    assert said[0].filename == __file__
