"""Mistakes easily made with a task, program or policy of one's own: what is said, and that nothing goes on wrongly."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest

import lols
from lols.errors import ConfigurationError, LolsError, ModelFileError, SpaceError
from tests.cli.command_line import run

TAGS = lols.Labels("noun", "verb")


class Tagging(lols.Task):
    columns = lols.Columns(x="words", y={"tags": TAGS})
    sizes = lols.Sizes(state=lambda x: 1 + len(x.words), actions=2, features=1, steps=lambda x: len(x.words))

    def actions(x, s, legal):
        legal[:] = s[0] < len(x.words)

    def step(x, s, a):
        s[0] += 1
        s[s[0]] = a + 1

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.words[s[0]]))

    def loss(x, y, s):
        wrong = 0.0
        for i in range(len(x.words)):
            wrong += s[1 + i] != y.tags[i] + 1
        return wrong

    def output(x, s):
        return TAGS.names(s[1:] - 1)

    def reference(x, y, s):
        return y.tags[s[0]]


DATA = [{"words": ["cats", "eat"], "tags": ["noun", "verb"]}, {"words": ["run"], "tags": ["verb"]}] * 3
OPTIONS = {"passes": 2, "compiled": False}


def decide(search, x):
    tags = []
    for i, word in enumerate(x["words"]):
        truth = x["tags"][i] if search.truth else None
        tags.append(search.predict([word], reference=truth))
        search.loss(tags[-1] != truth)
    return tags


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pandas.Series, polars.Series, np.array, tuple], ids=lambda kind: kind.__module__)
def test_entries_may_be_columns_of_a_frame(kind):
    given = [{name: kind(value) for name, value in one.items()} for one in DATA]
    assert lols.train(Tagging, given, **OPTIONS).predict(given) == [one["tags"] for one in DATA]


@pytest.mark.parametrize(
    ("data", "said"), [(None, "NoneType is given"), (3, "int is given"), ("cats", "a string is given")]
)
@pytest.mark.parametrize("task", [Tagging, lols.Program(decide, labels=["noun", "verb"])], ids=["task", "program"])
def test_data_are_a_list(task, data, said):
    with pytest.raises(SpaceError, match=said):
        lols.train(task, data, **OPTIONS)
    with pytest.raises(SpaceError, match=said):
        lols.train(task, DATA, **OPTIONS).predict(data)


def test_labels_have_one_order_and_no_gaps():
    shown = subprocess.run(
        [sys.executable, "-c", "import lols; print(lols.Labels({'noun', 'verb', 'other', 'name'}))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == "Labels('name', 'noun', 'other', 'verb')"
    assert lols.Labels(name for name in ("b", "a")) == lols.Labels({"b": 1, "a": 2}.keys()) == lols.Labels("b", "a")
    assert lols.Labels.of([{"tags": ["a", None, float("nan")]}, {"tags": ["b"]}], "tags") == lols.Labels("a", "b")
    for number in (-1, 2):
        with pytest.raises(SpaceError, match=f"{number} is not the number of a label: they are numbered from 0 to 1"):
            TAGS.names([0, number])
    with pytest.raises(SpaceError, match="labels are strings, numbers or tuples"):
        lols.Labels([["a"], ["b"]])
    with pytest.raises(SpaceError, match="no order"):
        lols.Labels({1, (2,)})


# --- the class, and options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), [("setings", {}), ("need_truth", False), ("nonegative", True)])
def test_facts_with_a_wrong_letter(name, value):
    with pytest.raises(ConfigurationError, match=f"unknown `{name}`: did you mean"):
        type("Wrong", (Tagging,), {name: value})
    type("Right", (Tagging,), {"window": 3})


@pytest.mark.parametrize(
    ("name", "value"), [("actions", TAGS), ("features", len), ("features", 2.5), ("state", "3"), ("items", "n")]
)
def test_sizes_are_whole_numbers(name, value):
    with pytest.raises(ConfigurationError, match=f"Sizes.{name} is .*; it must be a whole number"):
        lols.Sizes(**{"state": 1, "actions": 2, "features": 1, "steps": 3, name: value})


@pytest.mark.parametrize(("name", "value"), [("batch_size", "3"), ("passes", 1.5), ("seed", 0.5), ("seed", None)])
def test_numbers_of_training_are_whole(name, value):
    with pytest.raises(ConfigurationError, match=f"{name} is {value!r}; it must be a whole number"):
        lols.train(Tagging, DATA, **OPTIONS | {name: value})


def test_models_say_what_they_are_in_one_line():
    assert repr(lols.train(Tagging, DATA, **OPTIONS)) == f"Model({__name__}:Tagging, 2 actions, policy: linear)"
    program = lols.Program(decide, labels=["noun", "verb"])
    assert repr(lols.train(program, DATA, **OPTIONS)) == f"ProgramModel({__name__}:decide, 2 actions)"


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_task_in_another_module_is_the_same_and_one_with_other_labels_is_not(tmp_path):
    source = "import lols\n" + "".join(Path(__file__).read_text("utf-8").partition("TAGS")[1:]).partition("DATA =")[0]
    made = {}
    for module, text in (
        ("__main__", source),
        ("elsewhere", source),
        ("turned", source.replace('"noun", "verb"', '"verb", "noun"')),
    ):
        space = {"__name__": module}
        exec(text, space)
        made[module] = space["Tagging"]
    lols.train(made["__main__"], DATA, **OPTIONS).save(tmp_path / "model")
    assert "space_changed" not in lols.load(tmp_path / "model", made["elsewhere"], compiled=False).about
    assert lols.load(tmp_path / "model", made["turned"], compiled=False).about["space_changed"]


def test_a_model_is_not_loaded_with_other_settings(tmp_path):
    class Wide(Tagging):
        settings = {"width": 2, "scale": 0.1, "steps": np.arange(3)}  # noqa: RUF012

    lols.train(Wide(width=3), DATA, **OPTIONS).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="trained with width = 3, and this space has 2: load it with the same"):
        lols.load(tmp_path / "model", Wide, compiled=False)
    with pytest.raises(ModelFileError, match="trained with another steps: load it with the same settings"):
        lols.load(tmp_path / "model", Wide(width=3, steps=np.arange(4)), compiled=False)
    assert "space_changed" not in lols.load(tmp_path / "model", Wide(width=3), compiled=False).about


def test_a_run_of_a_program_is_not_resumed_with_other_labels(tmp_path):
    options = OPTIONS | {"checkpoint": tmp_path / "run"}
    lols.train(lols.Program(decide, labels=["noun", "verb"]), DATA, checkpoint_every=0, **options)
    with pytest.raises(ModelFileError, match="made with another set of labels"):
        lols.train(lols.Program(decide, labels=["verb", "noun"]), DATA, resume=True, **options)


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"features": None}, "the features are None: give a list"),
        ({"features": {"word": "cat"}}, "feature 'word' has the value 'cat': give a finite number"),
        ({"features": {"word": float("nan")}}, "feature 'word' has the value nan"),
        ({"legal": 3}, "`legal` is 3: give a list of actions"),
        ({"costs": "ab", "reference": None}, "`costs` is 'ab': give a number for each action"),
        ({"costs": 3, "reference": None}, "`costs` is 3"),
        ({"key": ["no", "key"]}, "the key is not hashable: give a tuple"),
        ({"lost": None}, "`search.loss` is given None: give a number"),
        ({"lost": np.ones(2)}, "`search.loss` is given array"),
    ],
)
def test_what_a_program_tells_is_read_with_care(told, said):
    def program(search, x):
        given = {"features": ["a"], "reference": 0} | told
        lost = given.pop("lost", 1.0)
        action = search.predict(**given)
        search.loss(lost)
        return action

    with pytest.raises(SpaceError, match=f"example 0, step 0: {said}"):
        lols.train(lols.Program(program, 2), [0], **OPTIONS)


def test_the_users_line_is_named():
    def program(search, x):
        return search.predict(["a"], reference=7)

    line = program.__code__.co_firstlineno + 1
    with pytest.raises(SpaceError, match=rf"the reference is 7: .* \(.*{__file__[-10:]}:{line}\)$"):
        lols.train(lols.Program(program, 2), [0], **OPTIONS)


def test_programs_that_cannot_be_meant():
    with pytest.raises(ConfigurationError, match="labels is a set"):
        lols.Program(decide, labels={"noun", "verb"})
    model = lols.train(lols.Program(decide, labels=["noun", "verb"]), DATA, **OPTIONS)
    with pytest.raises(SpaceError, match="there are no examples"):
        model.evaluate([])


# --- policies ---------------------------------------------------------------------------------------------------------


class Flat:
    given = staticmethod(lambda states: np.zeros((len(states), 2)))
    kept: object = None

    def costs(self, states):
        return self.given(states)

    def update(self, states, costs, weights):
        pass

    def state(self):
        return self.kept

    def load(self, state):
        pass


@pytest.mark.parametrize(
    ("value", "said"), [("a", "<U1 values: give real"), (None, "object values"), (1j, "complex128 values")]
)
def test_costs_are_real_numbers(value, said):
    policy = Flat()
    policy.given = lambda states: np.full((len(states), 2), value)
    with pytest.raises(LolsError, match=f"`costs` of Flat gave {said}"):
        lols.train(Tagging, DATA, policy=policy, **OPTIONS)


def test_arrays_of_a_policy_have_names(tmp_path):
    model = lols.train(Tagging, DATA, policy=Flat(), **OPTIONS)
    for kept in (None, {0: np.ones(2)}):
        Flat.kept = kept
        with pytest.raises(ConfigurationError, match=r"of Flat gave [a-zA-Z]+: give a dictionary of arrays"):
            model.save(tmp_path / "model")
    Flat.kept = {"sums": np.ones(2)}
    model.save(tmp_path / "model")
    shown = run("inspect", tmp_path / "model")
    assert shown.exit_code == 0 and "2 numbers" in shown.output and "of class" in shown.output
