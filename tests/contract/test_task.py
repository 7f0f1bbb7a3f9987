"""A task as a class: the same results as the space it makes, mistakes in words, settings, inheritance, its teacher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.contract.task import as_space, as_teacher
from lols.datasets.worlds import tagging_data, tagging_space
from lols.errors import ConfigurationError, SpaceError
from lols.kernels.digest import digest_functions


class Tagging(lols.Task):
    """The same as `worlds.tagging_space(3)`, with fewer features."""

    sizes = lols.Sizes(state=lambda x: 2 + len(x.words), actions=3, features=3, steps=lambda x: len(x.words), live=2)
    columns = lols.Columns(x="words", y="tags")

    def actions(x, s, legal):
        legal[:] = s[0] < len(x.words)

    def step(x, s, a):
        s[2 + s[0]] = s[1] = a
        s[0] += 1

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.words[s[0]]))
        lols.emit(out, lols.feature(1, s[1]))

    def loss(x, y, s):
        wrong = 0.0
        for i in range(len(x.words)):
            wrong += s[2 + i] != y.tags[i]
        return wrong

    def cost(x, y, s, a):
        return 1.0 if a != y.tags[s[0]] else 0.0

    def output(x, s):
        return s[2 : 2 + len(x.words)].tolist()

    def reference(x, y, s):
        return y.tags[s[0]]


class WithMore(Tagging):
    """Another look at the words; everything else is inherited."""

    settings = {"back": 1}  # noqa: RUF012

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.words[s[0]]))
        lols.emit(out, lols.feature(1, s[1]))
        lols.emit(out, lols.feature(2, x.words[max(s[0] - x.back, 0)]))


DATA = tagging_data(12, labels=3)


def policy_of(*arguments: Any, **options: Any) -> bytes:
    return bytes(lols.train(*arguments, passes=2, seed=3, compiled=False, **options).policy.stack.tobytes())


# --- the class is the space -------------------------------------------------------------------------------------------


def test_a_task_gives_what_its_space_gives() -> None:
    made = lols.SearchSpace(
        start=lambda x, s: None,
        encode=lambda obj: lols.Example({"words": obj["words"]}, {"tags": obj["tags"]}),
        **{n: getattr(Tagging, n) for n in ("actions", "step", "features", "loss", "cost", "output", "sizes")},
    )
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    assert policy_of(made, DATA, teacher) == policy_of(Tagging, DATA) == policy_of(Tagging(), DATA)


def test_a_task_runs_compiled_and_plain_alike() -> None:
    plain, compiled = (lols.train(Tagging, DATA, passes=2, compiled=c) for c in (False, True))
    assert plain.predict(DATA) == compiled.predict(DATA)
    assert plain.policy.stack.tobytes() == compiled.policy.stack.tobytes()


def test_a_class_that_inherits_and_its_settings() -> None:
    one, far = (lols.train(task, DATA, passes=2, compiled=False) for task in (WithMore, WithMore(back=2)))
    assert one.space.settings == {"back": 1} and far.space.settings == {"back": 2}
    assert one.policy.stack.tobytes() != far.policy.stack.tobytes()
    assert WithMore.space.name.endswith(":WithMore") and repr(WithMore(back=2)) == "WithMore(back=2)"
    assert WithMore.space is WithMore.space and WithMore(back=2).space is not WithMore.space
    assert WithMore.space.step is Tagging.space.step and WithMore.space.features is not Tagging.space.features


def test_sizes_may_depend_on_the_settings() -> None:
    class Sized(Tagging):
        settings = {"labels": 3}  # noqa: RUF012

        def sizes(settings):
            return lols.Sizes(
                state=lambda x: 2 + len(x.words), actions=settings.labels, features=2, steps=lambda x: len(x.words)
            )

    assert Sized.space.sizes.actions == 3 and Sized(labels=5).space.sizes.actions == 5


def test_everything_that_takes_a_space_takes_a_task(tmp_path: Path) -> None:
    examples = lols.Examples(Tagging, DATA)
    assert examples.space is Tagging.space and lols.Examples(Tagging(), DATA).space.step is Tagging.space.step
    assert lols.checks.check_space(Tagging, DATA[:3]) == []
    lols.checks.assert_space(Tagging(), lols.Examples(Tagging, DATA[:3]))
    model = lols.Trainer(Tagging, compiled=False, passes=2).fit(examples)
    assert model.reference_losses(DATA).sum() == 0.0
    model.save(tmp_path / "m.lols")
    for task in (Tagging, Tagging()):
        again = lols.load(tmp_path / "m.lols", task, compiled=False)
        assert again.predict(DATA) == model.predict(DATA) and "space_changed" not in again.about
    assert lols.load(tmp_path / "m.lols", WithMore, compiled=False).about["space_changed"]
    assert lols.Model(Tagging, model.policy, model.plan, compiled=False).predict(DATA) == model.predict(DATA)  # type: ignore[arg-type]
    assert lols.certify(model, DATA * 2, resamples=20).verdict
    assert as_space(Tagging) is Tagging.space and as_teacher(Tagging, tagging_space(3)) is Tagging.teacher


def test_a_bandit_takes_a_task_whose_teacher_is_a_rule() -> None:
    class Rule(Tagging):
        needs_truth = False

        def reference(x, y, s):
            return 0

    bandit = lols.StructuredBandit(Rule, compiled=False)
    assert len(bandit.decide({"words": [3, 4]}).output) == 2
    with pytest.raises(ConfigurationError, match="the reference needs the truth"):
        lols.StructuredBandit(Tagging, compiled=False)


def test_a_wrong_teacher_is_found_by_the_check_without_being_named() -> None:
    class Wrong(Tagging):
        def reference(x, y, s):
            return y.tags[s[0]] + 1

    found = lols.checks.check_space(Wrong, DATA)
    assert found and found[0].function == "Reference.action"
    assert lols.checks.check_space(Wrong, [{"words": [1, 2]}]) == []  # no truth, nothing to ask the teacher about


@pytest.mark.parametrize("kind", ["an example without y", "a dictionary", "an empty y"])
def test_a_task_whose_functions_read_no_truth_is_given_none(kind: str) -> None:
    class Late(lols.Task):
        sizes = lols.Sizes(state=1 + 4, actions=2, features=1, steps=4)

        def encode(numbers):
            x = {"numbers": numbers}
            return x if kind == "a dictionary" else lols.Example(x, {}) if kind == "an empty y" else lols.Example(x)

        def actions(x, s, legal):
            legal[:] = s[0] < 4

        def step(x, s, a):
            s[0] += 1
            s[s[0]] = a

        def features(x, s, out):
            lols.emit(out, lols.feature(0, x.numbers[s[0]]))

        def loss(x, y, s):
            return sum([x.numbers[i] == s[1 + i] for i in range(4)])

        def output(x, s):
            return s[1:].tolist()

        def reference(x, y, s):
            return 0

    data = [[0, 1, 1, 0], [0, 0, 1, 0]] * 4
    assert not Late.teacher.needs_truth and lols.checks.check_space(Late, data) == []
    model = lols.train(Late, data, passes=2, compiled=False)
    assert model.evaluate(data) == 0.0 and model.predict(data[:1], best_of=2) == [[1, 0, 0, 1]]
    assert model.reference_losses(data).mean() == 2.5 and not model.report["teacher"]["labelled"]
    assert model.partial_fit(data).evaluate(data) == 0.0


# --- teachers ---------------------------------------------------------------------------------------------------------


class Untaught(Tagging):
    reference = None  # nothing to learn from


def test_another_teacher_may_be_given_and_one_there_must_be() -> None:
    zero = lols.Reference(action=lambda x, y, s: 0)
    assert policy_of(Tagging, DATA, zero, roll_in="reference") != policy_of(Tagging, DATA, roll_in="reference")
    for fails in (lambda: lols.train(Untaught, DATA), lambda: lols.train(tagging_space(3), DATA)):
        with pytest.raises(ConfigurationError, match=r"there is no teacher: give reference=lols.Reference\(...\), or "):
            fails()
    with pytest.raises(ConfigurationError, match=r"Untaught has no teacher: give it reference\(x, y, s\)"):
        _ = Untaught.teacher
    with pytest.raises(ConfigurationError, match=r"the reference is function: give a lols.Reference\(action=...\)"):
        lols.train(Tagging, DATA, lambda x, y, s: 0)  # type: ignore[arg-type]


def test_all_three_functions_of_a_teacher() -> None:
    class Taught(Untaught):
        def reference_free(x, y, s, out):
            out[y.tags[s[0]]] = True

        def reference_costs(x, y, s, out):
            for a in range(len(out)):
                out[a] = a != y.tags[s[0]]

    assert set(Taught.teacher.functions()) == {"free", "costs"} and not Taught.teacher.random
    assert lols.checks.check_space(Taught, DATA) == []

    class Draws(Tagging):
        def reference(x, y, s, rng):
            return y.tags[s[0]] if lols.uniform(rng) < 0.5 else 0

    assert Draws.teacher.random and Draws.space.teacher is not None


# --- mistakes in the class --------------------------------------------------------------------------------------------


def define(**body: Any) -> type[lols.Task]:
    return type("Wrong", (Tagging,), body)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"step": lambda self, x, s, a: None}, r"Wrong: `step` takes (self, x, s, a): leave out self"),
        ({"step": lambda x, s: None}, "Wrong: `step` takes (x, s); it is given (x, s, a)"),
        ({"feature": lambda x, s, out: None}, "Wrong: unknown function `feature`: did you mean `features`?"),
        ({"helper": lambda x: None}, "Wrong: unknown function `helper`: put helpers above the class"),
        ({"size": lols.Sizes(state=1, actions=1, features=1, steps=1)}, "unknown `size`: did you mean `sizes`?"),
        ({"space": 3}, "`space` follows from the functions: use another name"),
        ({"loss": 3}, "Wrong.loss must be a plain function, not int"),
        ({"columns": ("words",)}, "Wrong.columns is tuple: give lols.Columns(...)"),
        ({"settings": 3}, "Wrong.settings is int: give a dictionary"),
        ({"settings": {"name": "fox"}}, "Wrong: setting `name` is 'fox': give a number or one array of numbers"),
        ({"sizes": 3}, "Wrong.sizes must be a function with one argument, or lols.Sizes(...), not int"),
    ],
)
def test_a_mistake_in_the_class_is_named_with_its_fix(body: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        define(**body)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_function_that_reads_what_is_in_the_class_is_named() -> None:
    with pytest.raises(ConfigurationError, match="`key` uses `WIDTH`, which functions do not see inside the class"):

        class Wrong(Tagging):
            WIDTH = 3

            def key(x, s):
                return s[0] * WIDTH  # type: ignore[name-defined] # noqa: F821


def test_what_is_missing_is_listed_when_the_task_is_used() -> None:
    class Half(lols.Task):
        def step(x, s, a):
            s[0] += 1

    with pytest.raises(ConfigurationError) as caught:
        lols.train(Half, DATA)
    assert str(caught.value) == (
        "Half is not complete: it needs actions(x, s, legal), features(x, s, out), loss(x, y, s), output(x, s), "
        "columns or encode(obj), sizes"
    )


def test_settings_that_are_not_there_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"WithMore has no setting `bakc`: did you mean `back`?"):
        WithMore(bakc=2)
    with pytest.raises(ConfigurationError, match="setting `back` is 'two': give a number"):
        WithMore(back="two")
    assert Tagging(anything=3).space.settings == {"anything": 3}  # a class that declares none takes any


def test_columns_or_encode_whichever_comes_first() -> None:
    class Pairs(Tagging):
        def encode(obj):
            return lols.Example({"words": obj[0]}, {"tags": obj[1]})

    class Named(Pairs):
        columns = lols.Columns(x="words", y="tags")

    assert lols.Examples(Pairs, [([1, 2], [0, 1])]).example(0)[0].words.tolist() == [1, 2]
    assert lols.Examples(Named, DATA).count == len(DATA)
    with pytest.raises(ConfigurationError, match="Both has both `columns` and `encode`: leave one out"):
        type("Both", (Tagging,), {"columns": Tagging.columns, "encode": lambda obj: obj}).space  # noqa: B018


def test_helpers_with_a_decorator_and_private_ones_are_left_alone() -> None:
    class Helped(Tagging):
        @staticmethod
        def read(path):
            return path

        def _clean(word):
            return word

        def output(x, s):
            return Helped.read(s[2:].tolist())

    assert lols.train(Helped, DATA, passes=1, compiled=False).predict(DATA[:1])


def test_what_is_no_space_is_refused() -> None:
    for wrong in (int, 3, None, lols.Task):
        with pytest.raises(ConfigurationError):
            lols.train(wrong, DATA)  # type: ignore[arg-type]


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"word": [1], "tags": [0]}, "example 1: column 'words' of x is missing: did you mean 'word'?"),
        ({"words": [1, np.nan], "tags": [0, 0]}, "example 1: column 'words' of x holds NaN or infinity"),
        (
            {"words": [1], "tags": ["noun"]},
            "example 1: column 'tags' of y: strings need numbers: give their labels",
        ),
        ({"words": [1], "tags": None}, "example 1: column 'tags' of y is None: give a number"),
        ({"words": [[1], [2]], "tags": [0, 0]}, "example 1: column 'words' of x has 2 dimensions"),
        ({"words": [1 + 2j], "tags": [0]}, "example 1: column 'words' of x holds complex128 values"),
        (
            {"words": ["a", 3], "tags": [0, 0]},
            "example 1: column 'words' of x: lols.text takes strings; entry 1",
        ),
        (["the", "cat"], "example 1: `columns` is for dictionaries, and this is list: give a dictionary with 'words'"),
    ],
)
def test_a_wrong_dictionary_gets_one_line(wrong: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        lols.Examples(Tagging, [DATA[0], wrong])
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_strings_are_hashed_in_x_and_numbered_in_y() -> None:
    tags = lols.Labels("noun", "verb", "other")

    class Words(Tagging):
        columns = lols.Columns(x=("words",), y={"tags": tags})

        def output(x, s):
            return tags.names(s[2 : 2 + len(x.words)])

    data = [{"words": ["cats", "eat"], "tags": ["noun", "verb"]}, {"words": ["eat", "on"], "tags": ["verb", "other"]}]
    model = lols.train(Words, data * 4, passes=2, compiled=False)
    assert model.predict([{"words": ["eat", "cats"]}]) == [["verb", "noun"]]
    with pytest.raises(SpaceError, match=r"example 0: column 'tags' of y: 'adverb' is not one of the 3 labels"):
        lols.Examples(Words, [{"words": ["so"], "tags": ["adverb"]}])


def test_columns_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="column 'words' is in x and in y"):
        lols.Columns(x="words", y=("words", "tags"))
    with pytest.raises(ConfigurationError, match="at least one name for x"):
        lols.Columns(x=())
    with pytest.raises(ConfigurationError, match=r"give lols.Labels, or None"):
        lols.Columns(x="words", y={"tags": ["noun"]})  # type: ignore[dict-item]


# --- compiled code is never stale -------------------------------------------------------------------------------------

FILE = """
import json
import lols
from lols.kernels.kernel import compile_seconds

class Coin(lols.Task):
    sizes = lols.Sizes(state=2, actions=2, features=1, steps=1)
    columns = lols.Columns(x="n", y="m")
    def actions(x, s, legal):
        legal[:] = s[0] < 1
    def step(x, s, a):
        s[0] += 1
        s[1] = a
    def features(x, s, out):
        lols.emit(out, lols.feature(0, s[0]))
    def loss(x, y, s):
        return 1.0 + VALUE * s[1]
    def output(x, s):
        return int(s[1])
    def reference(x, y, s):
        return 1

class Twice(Coin):
    def loss(x, y, s):
        return 100.0 + VALUE * s[1]

def follow(task):
    model = lols.train(task, [{"n": 0, "m": 0}], passes=1, compiled=False)
    model.compiled = True
    return model.reference_losses([{"n": 0, "m": 0}])[0]

if __name__ == "__main__":
    print(json.dumps([follow(Coin), follow(Twice), compile_seconds()]))
"""


@pytest.mark.slow
def test_an_edit_of_a_function_in_a_class_is_seen_by_the_next_process_and_no_edit_compiles_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "coin.py"

    def run(value: str) -> list[float]:
        file.write_text(FILE.replace("VALUE", value))
        environment = os.environ | {"LOLS_CACHE": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    first = run("2.0")
    assert first[:2] == [3.0, 102.0] and first[2] > 0
    assert run("2.0") == [3.0, 102.0, 0.0]
    again = run("5.0")
    assert again[:2] == [6.0, 105.0] and again[2] > 0


def test_the_digest_of_a_class_is_that_of_its_functions() -> None:
    one = digest_functions(Tagging.space.functions())
    assert digest_functions(WithMore.space.functions()) != one == digest_functions(Tagging().space.functions())
