"""Models that threads share: how each kind is made, learns and predicts, and how threads are run."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lols
from tests.tasks.fourth_task import Spacer, Spacing

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]] * 2
TAGGED = [[{"word": word, "upos": tag} for word, tag in zip(s, ("DET", "NOUN", "VERB"), strict=True)] for s in WORDS]
TAGS, TREES = [["DET", "NOUN", "VERB"]] * 6, [[(2, "det"), (3, "nsubj"), (0, "root")]] * 6
ROWS = [[age, colour] for age in range(20, 60, 4) for colour in ("red", "blue")]
LABELS = ["no" if age < 40 else "yes" if colour == "red" else "ask" for age, colour in ROWS]
LETTERS = Spacer().read("a dog\nthe cat\nno dog\n", None) * 2

PATIENCE = 60.0  # seconds until threads are taken to hang


class Kind(NamedTuple):
    """A kind of model: how it is made, learns, and predicts."""

    make: Callable[[], Any]
    learn: Callable[[Any], Any]
    predict: Callable[[Any], Any]


KINDS = {
    "tagger": Kind(
        lambda: lols.Tagger(batch_size=4).partial_fit(WORDS, TAGS, classes=["DET", "NOUN", "VERB"]),
        lambda model: model.partial_fit(WORDS, TAGS),
        lambda model: [costs.tolist() for costs in model.predict_costs(WORDS[:3])],
    ),
    "parser": Kind(
        lambda: lols.Parser(passes=1, batch_size=4).fit(TAGGED, TREES),
        lambda model: model.partial_fit(TAGGED, TREES),
        lambda model: [each.costs.tolist() for each in model.scores(TAGGED[:3])],
    ),
    "pipeline": Kind(
        lambda: lols.Pipeline(folds=2, parser=lols.Parser(passes=1)).fit(TAGGED, TREES),
        lambda model: model.partial_fit(TAGGED, TREES),
        lambda model: model.predict(WORDS[:3]),
    ),
    "classifier": Kind(
        lambda: lols.CostSensitiveClassifier(batch_size=4).partial_fit(ROWS, LABELS, classes=["ask", "no", "yes"]),
        lambda model: model.partial_fit(ROWS, LABELS),
        lambda model: model.predict_costs(ROWS).tolist(),
    ),
    "task": Kind(
        lambda: lols.train(Spacing, LETTERS, passes=1, batch_size=4),
        lambda model: model.partial_fit(LETTERS),
        lambda model: [each.costs.tolist() for each in model.scores(LETTERS[:3])],
    ),
}


def together(*works: Callable[[], Any]) -> None:
    """Run each in a thread of its own; an error of one of them, or a hang, is an error here."""
    errors: list[BaseException] = []

    def run(work: Callable[[], Any]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"


def one_by_one(kind: Kind, calls: int) -> list[Any]:
    """What a model predicts at first, and after each of these calls in which it learns."""
    model = kind.make()
    predicted = [kind.predict(model)]
    for _ in range(calls):
        kind.learn(model)
        predicted.append(kind.predict(model))
    return predicted


def in_threads(kind: Kind, calls: int, file: Path) -> list[Any]:
    """What is predicted while two threads learn, in as many calls each, and two others read and save; then the last."""
    model, learned = kind.make(), threading.Barrier(3)
    predicted: list[Any] = []

    def learn() -> None:
        try:
            for _ in range(calls):
                kind.learn(model)
        finally:
            learned.wait(PATIENCE)

    def read() -> None:
        while not over.is_set():
            predicted.append(kind.predict(model))

    def save() -> None:
        while not over.is_set():
            model.save(file)
            predicted.append(kind.predict(pickle.loads(pickle.dumps(model))))
            predicted.append(kind.predict(copy.deepcopy(model)))

    over = threading.Event()

    def end() -> None:
        try:
            learned.wait(PATIENCE)
        finally:
            over.set()

    together(learn, learn, end, read, save)
    return [*predicted, kind.predict(model)]
