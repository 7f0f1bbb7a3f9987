"""What a user's functions are: their source, whatever Python and this library do with it."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lols
from lols.contract.identity import identity_of, said_by, source_digest
from lols.kernels import digest

SOURCE = '''
import math

FACTOR = 10.0
TABLE = {"a": 1}


def helper(s):
    """A helper."""
    return s[1] * FACTOR


def step(x, s, a, more=2):
    """Go on."""
    total = 0.0
    for k in range(more):
        total += math.sqrt(helper(s) + k)  # as far as it goes
    parts = [value + total for value in (1, 2)]
    s[0] += a


def other(x, s):
    return 5


pair = (lambda s: s[0] + 1, lambda s: s[0] + 2)
'''
numbers = itertools.count()


def module(folder: Path, text: str) -> ModuleType:
    """A module with this source, under a name of its own."""
    name = f"identity_{next(numbers)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def identities(folder: Path, old: str = "", new: str = "") -> tuple[str, str]:
    """The identity of `step` before and after an edit."""
    assert SOURCE.count(old) >= 1
    return tuple(  # type: ignore[return-value]
        identity_of({"step": module(folder, text).step}) for text in (SOURCE, SOURCE.replace(old, new))
    )


@pytest.mark.parametrize(
    ("old", "new"),
    {
        "another module": ("", ""),
        "a comment": ("# as far as it goes", "# and no further"),
        "a docstring": ("Go on.", "Another text."),
        "a docstring of a helper": ("A helper.", "Help."),
        "a local variable": ("total", "whole"),
        "an annotation": ("def step(x, s, a, more=2)", "def step(x, s: list, a: int, more: int = 2) -> None"),
        "an annotated variable": ("total = 0.0", "total: float = 0.0"),
        "another function": ("return 5", "return 6"),
        "layout": ("s[0] += a", "s[ 0 ] += (\n        a\n    )"),
    }.values(),
    ids=str,
)
def test_what_says_the_same_is_the_same(tmp_path: Path, old: str, new: str) -> None:
    before, after = identities(tmp_path, old, new)
    assert before == after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s[0] += a", "s[0] -= a"),
        ("s[0] += a", "s[1] += a"),
        ("s[1] * FACTOR", "s[1] + FACTOR"),
        ("FACTOR = 10.0", "FACTOR = 11.0"),
        ("FACTOR = 10.0", "FACTOR = 10"),
        ("more=2", "more=3"),
        ("math.sqrt", "math.log"),
        ("(1, 2)", "(1, 2.0)"),
        ("range(more)", "range(a)"),
        ("value + total", "total + total"),
    ],
)
def test_what_says_something_else_is_not(tmp_path: Path, old: str, new: str) -> None:
    before, after = identities(tmp_path, old, new)
    assert before != after


def test_names_of_arguments_do_not_count(tmp_path: Path) -> None:
    one, other = (f"def step({x}, {s}, {a}):\n    {s}[0] += {a} * {x}.n\n" for x, s, a in ("xsa", "pqr"))
    assert identity_of({"": module(tmp_path, one).step}) == identity_of({"": module(tmp_path, other).step})


def test_lambdas_on_one_line_are_told_apart(tmp_path: Path) -> None:
    one, two = module(tmp_path, SOURCE).pair
    again = module(tmp_path, SOURCE).pair
    assert [said_by(each) for each in again] == [said_by(one), said_by(two)]
    assert said_by(one) != said_by(two) and said_by(one).startswith("Lambda(")


def test_closures_and_arrays_count(tmp_path: Path) -> None:
    def make(value: Any) -> Any:
        return lambda s: s[0] + value

    same = {identity_of({"": make(np.arange(3))}) for _ in range(2)}
    assert len(same) == 1 and identity_of({"": make(np.arange(4))}) not in same


def test_a_file_that_changed_since_it_was_imported_is_not_believed(tmp_path: Path) -> None:
    made = module(tmp_path, SOURCE)
    Path(str(made.__file__)).write_text(SOURCE.replace("s[0] += a", "s[0] += 7 * a"))
    changed = module(tmp_path, SOURCE.replace("s[0] += a", "s[0] += 7 * a"))
    assert said_by(made.step) != said_by(changed.step)


def test_without_a_source_byte_code_tells(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(
        "def one(s):\n    return s[0] + 1\ndef two(s):\n    return s[0] + 2\ndef three(s):\n    return s[0] + 1", names
    )
    one, two, three = (said_by(names[name]) for name in ("one", "two", "three"))
    assert one == three != two and one.startswith("Python ")


def test_sizes_of_parts_of_a_state_count() -> None:
    def of(**parts: Any) -> str:
        space = lols.SearchSpace(
            start=lambda x, s: None, actions=lambda x, s, legal: None, step=lambda x, s, a: None,
            features=lambda x, s, out: None, loss=lambda x, y, s: 0.0, output=lambda x, s: 0, encode=lambda obj: obj,
            sizes=lols.Sizes(state=lols.State(**parts), actions=1, features=1, steps=1),
        )  # fmt: skip
        return identity_of(space.functions())

    assert of(a=1, b="n") == of(a=1, b="n")
    assert len({of(a=1, b="n"), of(a=2, b="n"), of(a=1, b="m"), of(a=1, b=lols.reals("n")), of(a=1, c="n")}) == 5


def test_functions_that_moved_are_told_by_the_names_that_they_had(tmp_path: Path) -> None:
    """Files have such digests: they must not change when a module of this library gets another name."""
    source = "import lols\n\n\ndef features(x, s, out):\n    lols.emit(out, lols.mix(lols.feature(0, s[0]), 1))\n"
    functions = {"features": module(tmp_path, source).features}
    assert identity_of(functions) == "058219b7c0c16bcb"
    now = source_digest(functions)
    with pytest.MonkeyPatch.context() as patch:  # as if they had not moved
        patch.setattr(lols.mix, "__module__", "lols.contract.hashing")
        patch.setattr(digest, "COVERED", {"lols.contract.hashing", "lols.contract.features"})
        assert source_digest(functions) == now
