"""Mistakes inside a user's functions: the message names the function, the user's file and line, and what to do."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lols
from lols.contract.user_frames import user_line
from lols.engine.diagnose import diagnose
from lols.errors import SpaceError
from lols.kernels.dual import bind
from tests.contract.test_task import DATA, Tagging

NAMES = {"cat": 1}


# Each function of a contract with a mistake on the line that says HERE.


def prints(x, s, a):
    s[0] += 1
    print("at", f"{a}")  # HERE


def formats(x, s, a):
    s[0] = len(f"{a}")  # HERE


def lists(x, s, out):
    for word in [x.words[i] for i in range(s[0])]:  # HERE
        lols.emit(out, word)


def arrays(x, s, out):
    seen = np.zeros(3)  # HERE
    lols.emit(out, 1, seen[0])


def reads_a_dictionary(x, s, out):
    lols.emit(out, NAMES["cat"])  # HERE


def strings(x, s, out):
    lols.emit(
        out,
        lols.feature(0, "word"),  # HERE
    )


def no_column(x, s, out):
    lols.emit(out, lols.feature(0, x.letters[s[0]]))  # HERE


def undefined(x, s, out):
    lols.emit(out, lols.feature(0, nowhere))  # noqa: F821 HERE


def help_out(x, i):
    return x.letters[i]  # HERE


def helped(x, s, out):
    lols.emit(out, lols.feature(0, help_out(x, s[0])))


def seven(x, s, out):
    lols.emit(out, lols.feature(0, 1, 2, 3, 4, 5, 6, 7))  # HERE


def opens(x, s, out):
    with open("words") as file:  # HERE
        lols.emit(out, len(file.read()))


def hashes(x, s, out):
    lols.emit(out, lols.text("the"))  # HERE


def assigns(x, s, a):
    x.words = 3  # HERE
    s[0] += 1


def a_class(x, s, out):
    lols.emit(out, Tagging.width)  # HERE


def nothing(x, y, s):  # HERE
    pass


def a_string(x, s):  # HERE
    return "here"


def draws(x, y, s):
    return random.choice(y.tags)  # HERE


def sometimes(x, y, s):  # HERE
    if s[0] > 1:
        return 1


def line_of(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if "HERE" in line)


@pytest.mark.parametrize(
    ("role", "function", "says"),
    [
        ("step", prints, "`print` works with compiled=False only: remove it"),
        ("step", formats, "it uses a string: compiled functions work on numbers only"),
        ("features", lists, "it makes a list: loop over numbers instead"),
        ("features", arrays, "`np.zeros` makes an array"),
        ("features", reads_a_dictionary, "it reads `NAMES`, a dict: numbers, tuples and NumPy arrays"),
        ("features", strings, "it uses a string"),
        ("features", no_column, "`x` has no column `letters`: it has words"),
        ("features", undefined, "NameError: name 'nowhere' is not defined"),
        ("features", seven, "feature() takes at most 6 values"),
        ("features", opens, "`with` has no compiled form"),
        ("features", hashes, "strings are hashed in `encode`"),
        ("features", a_class, "it reads `Tagging`, a class"),
        ("step", assigns, "it writes to `x.words`, which it may only read"),
        ("loss", nothing, "it returns nothing, and must return a number"),
        ("key", a_string, "and must return a whole number"),
        ("action", draws, r"random numbers come from lols.uniform(rng) only"),
        ("action", sometimes, "it returns nothing in some cases, and must return the number of an action"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_what_cannot_be_compiled_is_told_with_its_line(role: str, function: Callable[..., Any], says: str) -> None:
    bind("Test", {role: function})
    space, teacher = ({}, {role: function}) if role == "action" else ({role: function}, {})
    line = diagnose(space, teacher, lols.Examples(Tagging, DATA), 3)
    assert line is not None and line.startswith(f"`{role}` cannot be compiled: ") and says in line, line
    assert line.endswith(f"{__file__}:{line_of(function)}). compiled=False runs it as plain Python"), line


def test_a_mistake_in_a_helper_is_told_with_the_helpers_line() -> None:
    bind("Test", {"features": helped})
    line = diagnose({"features": helped}, {}, lols.Examples(Tagging, DATA), 3)
    assert line is not None and f"`x` has no column `letters`: it has words ({__file__}:{line_of(help_out)})" in line


def test_functions_that_can_be_compiled_are_not_blamed() -> None:
    space = Tagging.space
    bound = bind("Test", space.functions())
    assert diagnose(bound.functions, Tagging.teacher.functions(), lols.Examples(Tagging, DATA), 3) is None


@pytest.mark.slow
def test_training_says_it() -> None:
    task = type("Wrong", (Tagging,), {"features": no_column})
    with pytest.raises(SpaceError, match="`features` cannot be compiled: `x` has no column `letters`: it has words"):
        lols.train(task, DATA, passes=1)


# --- as plain Python --------------------------------------------------------------------------------------------------


def out_of_range(x, s, out):
    lols.emit(out, x.words[s[0] + 99])  # HERE


def inside_numpy(x, s, out):
    np.concatenate([1, 2])  # HERE


def inside_the_library(x, s, out):
    lols.emit(out, lols.text(3))  # HERE


@pytest.mark.parametrize("function", [out_of_range, inside_numpy, inside_the_library], ids=lambda f: f.__name__)
def test_a_function_that_fails_is_told_with_the_users_line(function: Callable[..., Any]) -> None:
    task = type("Wrong", (Tagging,), {"features": function})
    with pytest.raises(SpaceError) as caught:
        lols.train(task, DATA, passes=1, compiled=False, checks=False)
    assert "step 0: `features` failed with " in str(caught.value)
    assert str(caught.value).endswith(f"({__file__}:{line_of(function)})"), caught.value


def test_a_function_that_fails_runs_once_without_compilation() -> None:
    calls = []

    def features(x, s, out):
        calls.append(1)
        raise ValueError("stop")

    with pytest.raises(SpaceError, match="`features` failed with ValueError: stop"):
        lols.train(type("Wrong", (Tagging,), {"features": features}), DATA, passes=1, compiled=False, checks=False)
    assert len(calls) == 1  # a breakpoint in it would be met once


def fails(*_: Any) -> Any:
    return {}["ends"]  # HERE


def test_encode_output_and_sizes_that_fail_are_told_with_the_users_line() -> None:
    here = rf"KeyError: 'ends' \(.*test_diagnose.py:{line_of(fails)}\)$"
    encode = type("Wrong", (Tagging,), {"encode": lambda obj: fails(obj)})
    with pytest.raises(SpaceError, match=f"`encode` failed on example 0: {here}"):
        lols.Examples(encode, DATA)
    output = type("Wrong", (Tagging,), {"output": lambda x, s: fails()})
    model = lols.train(output, DATA, passes=1, compiled=False)
    with pytest.raises(SpaceError, match=f"`output` failed on example 0: {here}"):
        model.predict(DATA)
    for name in ("state", "steps"):
        given: Any = {"state": 9, "steps": 9, name: fails}
        sizes = type("Wrong", (Tagging,), {"sizes": lols.Sizes(actions=3, features=2, **given)})
        with pytest.raises(SpaceError, match=rf"example 0: Sizes.{name} failed with {here}"):
            lols.Examples(sizes, DATA)
    halves = type("Wrong", (Tagging,), {"sizes": lols.Sizes(state=lambda x: 2.5, actions=3, features=2, steps=9)})
    with pytest.raises(SpaceError, match=r"example 0: Sizes.state gave 2.5; it must be a whole number"):
        lols.Examples(halves, DATA)


def test_a_place_in_no_users_file_is_left_out() -> None:
    try:
        lols.Labels("noun").number("verb")
    except SpaceError as error:
        assert user_line(error).endswith(f"test_diagnose.py:{inspect.currentframe().f_lineno - 2})")
        assert user_line(error.with_traceback(None)) == ""
