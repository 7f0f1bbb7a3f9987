"""Estimators and models go to other processes: by pickle, to pools that are spawned, and with joblib."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import lols
from lols.contract.space import SearchSpace
from lols.errors import ModelFileError
from tests.tasks.fourth_task import Spacer, Spacing

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]] * 3
TAGGED = [[{"word": word, "upos": tag} for word, tag in zip(s, ("DET", "NOUN", "VERB"), strict=True)] for s in WORDS]
TAGS, TREES = [["DET", "NOUN", "VERB"]] * 9, [[(2, "det"), (3, "nsubj"), (0, "root")]] * 9
ROWS = [[age, colour] for age in range(20, 60) for colour in ("red", "blue")]
LABELS = ["no" if age < 40 else "yes" if colour == "red" else "ask" for age, colour in ROWS]
LETTERS = Spacer().read("a dog\nthe cat\nno dog\n", None) * 4


def spell(search: Any, line: str) -> list[int]:
    """A program: does a word end after this letter?"""
    ends: list[int] = []
    for letter, after in zip(line, line[1:] + " ", strict=True):
        if letter != " ":
            truth = int(after == " ") if search.truth else None
            ends.append(search.predict([("letter", ord(letter)), ("before", *ends[-1:])], reference=truth))
            search.loss(ends[-1] != truth)
    return ends


def small_tagger() -> lols.Tagger:
    return lols.Tagger(passes=2, templates=["word", "tag[-1]"], clusters={"dog": "01", "cat": "01"})


MAKERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "tagger": (lambda: small_tagger().fit(WORDS, TAGS), WORDS),
    "parser": (lambda: lols.Parser(passes=2, beam=2).fit(TAGGED, TREES), TAGGED),
    "pipeline": (lambda: lols.Pipeline(folds=2, seed=3, parser=lols.Parser(passes=1)).fit(TAGGED, TREES), WORDS),
    "classifier": (lambda: lols.CostSensitiveClassifier(passes=2, interactions=[("x0", "x1")]).fit(ROWS, LABELS), ROWS),
    "estimator of one's own": (lambda: Spacer(passes=2).fit(LETTERS), LETTERS),
    "task": (lambda: lols.train(Spacing, LETTERS, passes=2, compiled=False), LETTERS),
    "program": (lambda: lols.train(lols.Program(spell, 2), LETTERS, passes=2, compiled=False), LETTERS),
}


@pytest.fixture(scope="module")
def trained() -> dict[str, Any]:
    return {name: make() for name, (make, _) in MAKERS.items()}


def plain(found: Any) -> Any:
    return found.tolist() if isinstance(found, np.ndarray) else found


def parameters(model: Any) -> str:
    return repr(model.get_params()) if hasattr(model, "get_params") else ""


@pytest.mark.parametrize("name", MAKERS)
def test_a_pickled_model_predicts_the_same(trained: dict[str, Any], name: str) -> None:
    model, data = trained[name], MAKERS[name][1]
    again = pickle.loads(pickle.dumps(model))
    assert plain(again.predict(data)) == plain(model.predict(data))
    assert type(again) is type(model) and parameters(again) == parameters(model)
    learned, kept = (getattr(each, "model_", each) for each in (model, again))
    assert kept.report == learned.report and kept.about == learned.about


def test_pickles_hold_no_functions_but_classes_and_plain_values(trained: dict[str, Any]) -> None:
    """What is learned is the content of a model file: of this library only the classes are named."""

    class Named(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            names.append(f"{module}.{name}")
            return super().find_class(module, name)

    names: list[str] = []
    for name in ("tagger", "parser", "pipeline", "classifier", "estimator of one's own"):
        Named(io.BytesIO(pickle.dumps(trained[name]))).load()
    classes = {"Tagger", "Parser", "Pipeline", "CostSensitiveClassifier", "Spacer"}
    assert {each.rpartition(".")[2] for each in names if each.startswith(("lols.", "tests."))} == classes


def test_a_damaged_pickle_is_refused(trained: dict[str, Any]) -> None:
    state = trained["tagger"].__getstate__()
    state["file"] = state["file"][:-8] + bytes(8)
    with pytest.raises(ModelFileError, match=r"^the pickled model: the checksum does not fit"):
        lols.Tagger().__setstate__(state)


def predicted(job: tuple[Any, Any]) -> Any:
    model, data = job
    return plain(model.predict(data))


def test_models_go_to_processes_that_are_spawned(trained: dict[str, Any]) -> None:
    jobs = [(trained[name], data[:4]) for name, (_, data) in MAKERS.items()]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(predicted, jobs) == [predicted(job) for job in jobs]


def test_joblib_keeps_models_in_files_and_sends_them_to_workers(trained: dict[str, Any], tmp_path: Any) -> None:
    for name, (_, data) in MAKERS.items():
        joblib.dump(trained[name], tmp_path / "model")
        assert predicted((joblib.load(tmp_path / "model"), data)) == predicted((trained[name], data))
    jobs = [(trained["classifier"], ROWS[:3]), (trained["classifier"], ROWS[3:9])]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(predicted)(job) for job in jobs)
    assert found == [predicted(job) for job in jobs]


@pytest.mark.parametrize("made", [small_tagger(), lols.Pipeline(tagger=small_tagger()), Spacer(passes=3)], ids=repr)
def test_estimators_without_training_pickle_and_clone(made: Any) -> None:
    for again in (pickle.loads(pickle.dumps(made)), clone(made), copy.deepcopy(made)):
        assert parameters(again) == parameters(made) and not again.__sklearn_is_fitted__()


def test_a_copy_goes_on_learning_and_so_does_a_pickle_that_keeps_the_state() -> None:
    tagger = small_tagger().set_params(batch_size=1).partial_fit(WORDS, TAGS, classes=["DET", "NOUN", "VERB"])
    same = copy.deepcopy(tagger).partial_fit(WORDS, TAGS)
    kept = pickle.loads(pickle.dumps(copy.deepcopy(tagger).set_params(keep_state=True))).partial_fit(WORDS, TAGS)
    with pytest.warns(UserWarning, match="has no learner's state: learning starts from its weights alone"):
        pickle.loads(pickle.dumps(tagger)).partial_fit(WORDS, TAGS)
    tagger.partial_fit(WORDS, TAGS)
    for other in (same, kept):
        assert other.predict_costs(WORDS)[0].tolist() == tagger.predict_costs(WORDS)[0].tolist()


def test_the_space_of_a_task_is_pickled_with_its_settings() -> None:
    class_space, own = pickle.loads(pickle.dumps((Spacing.space, Spacing(width=3).space)))
    assert isinstance(class_space, SearchSpace) and class_space.functions() == Spacing.space.functions()
    assert own.settings == {"width": 3}
