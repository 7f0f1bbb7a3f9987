"""Examples from frames and columns: the same as from dictionaries made by hand, and mistakes named with their row."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.contract.examples import Ragged
from lols.datasets.worlds import tagging_data, tagging_space
from lols.errors import SpaceError
from lols.tasks.tokens.attributes import hash_text

FRAMES = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "arrow": pyarrow.table}
SPACE = tagging_space(labels=3)
DATA = tagging_data(5, labels=3)


@pytest.fixture(params=FRAMES, ids=str)
def frame_of(request: pytest.FixtureRequest) -> Any:
    return FRAMES[request.param]


def rows_of(data: list[dict[str, list[int]]]) -> dict[str, list[Any]]:
    return {
        "sentence": [f"s{k}" for k, one in enumerate(data) for _ in one["words"]],
        "words": [word for one in data for word in one["words"]],
        "tags": [tag for one in data for tag in one["tags"]],
    }


def same(one: lols.Examples, other: lols.Examples) -> bool:
    return all(
        np.array_equal(a, b)
        for mine, its in ((one.x, other.x), (one.y, other.y))
        for column, its_column in zip(mine, its, strict=True)
        for a, b in zip(column, its_column, strict=True)
    )


# --- frames -----------------------------------------------------------------------------------------------------------


def test_a_long_frame_gives_the_examples_of_its_groups(frame_of: Any) -> None:
    frame = frame_of(rows_of(DATA))
    assert same(lols.Examples.from_frame(SPACE, frame, group="sentence"), lols.Examples(SPACE, DATA))


def test_a_wide_frame_gives_an_example_for_each_row(frame_of: Any) -> None:
    frame = frame_of({name: [one[name] for one in DATA] for name in ("words", "tags")})
    expected = lols.Examples(SPACE, DATA)
    assert same(lols.Examples.from_frame(SPACE, frame), expected) and same(lols.Examples(SPACE, frame), expected)


def test_training_and_prediction_take_frames() -> None:
    frame = polars.DataFrame({name: [one[name] for one in DATA] for name in ("words", "tags")})
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    models = [lols.train(SPACE, data, teacher, passes=2, compiled=False) for data in (frame, DATA)]
    assert models[0].predict(frame.drop("tags")) == models[1].predict(DATA)
    assert models[0].evaluate(frame) == models[1].evaluate(DATA)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=12), st.sampled_from(list(FRAMES))
)
def test_rows_of_a_group_need_not_stand_together(rows: list[tuple[int, int]], kind: str) -> None:
    frame = FRAMES[kind]({"g": [g for g, _ in rows], "v": [v for _, v in rows]})
    wanted: dict[int, list[int]] = {}
    for g, v in rows:
        wanted.setdefault(g, []).append(v)
    made = lols.objects(frame, group="g")
    assert [(one["g"], one["v"].tolist()) for one in made] == list(wanted.items())


def test_a_column_that_comes_once(frame_of: Any) -> None:
    frame = frame_of({"g": ["a", "a", "b"], "word": ["x", "y", "z"], "year": [7, 7, 8]})
    assert lols.objects(frame, group="g", once="year") == [
        {"g": "a", "word": ["x", "y"], "year": 7},
        {"g": "b", "word": ["z"], "year": 8},
    ]
    with pytest.raises(SpaceError, match=r"column 'word', row 1 \(group 'a'\): 'y', but the group began with 'x'"):
        lols.objects(frame, group="g", once=("year", "word"))


def test_missing_values(frame_of: Any) -> None:
    frame = frame_of({"g": ["a", "a", "b"], "word": ["x", None, "z"], "tag": [1, 2, None]})
    with pytest.raises(SpaceError, match=r"column 'word', row 1 \(group 'a'\): the value is missing: fill it in"):
        lols.objects(frame, group="g")
    with pytest.raises(SpaceError, match="column 'word', row 1: no group: fill it in, or drop the row"):
        lols.objects(frame, group="word")
    made = lols.objects(frame)
    assert made[1] == {"g": "a", "tag": 2} and made[2] == {"g": "b", "word": "z"}
    whole = frame_of({"g": ["a", "a", "b"], "tag": [1, 2, None]})
    assert [sorted(one) for one in lols.objects(whole, group="g")] == [["g", "tag"], ["g"]]  # truth not known


def test_kinds_of_pandas_columns() -> None:
    frame = pandas.DataFrame({"g": pandas.Categorical(["a", "b", "a"]), "n": pandas.array([1, 2, 3], dtype="Int64")})
    frame["flag"], frame["real"] = [True, False, True], np.array([0.5, 1.5, 2.5], np.float32)
    made = lols.objects(frame, group="g")
    assert [one["n"].tolist() for one in made] == [[1, 3], [2]] and made[0]["n"].dtype.kind == "i"
    assert made[0]["flag"].tolist() == [True, True] and made[0]["real"].tolist() == [0.5, 2.5]
    with pytest.raises(SpaceError, match=r"there is no column 'g', only 'n', 'flag', 'real' .*reset_index"):
        lols.objects(frame.set_index("g"), group="g")
    with pytest.raises(SpaceError, match="the frame has several columns 'n': rename one of them"):
        lols.objects(pandas.concat([frame[["n"]], frame[["n"]]], axis=1))


def test_a_lazy_frame_is_asked_for_its_rows() -> None:
    with pytest.raises(SpaceError, match=r"a polars LazyFrame has no rows yet: give frame.collect\(\)"):
        lols.objects(polars.DataFrame({"a": [1]}).lazy())


def test_options_that_do_not_fit_are_refused() -> None:
    frame = pandas.DataFrame({"g": [1], "v": [2]})
    for wrong in (
        lambda: lols.objects(frame, offsets=[0, 1]),
        lambda: lols.objects(frame, once="v"),
        lambda: lols.objects({"v": [1]}, group="v"),
        lambda: lols.objects({"v": [1]}, once="v"),
        lambda: lols.objects([1, 2]),
        lambda: lols.objects({}),
        lambda: lols.objects(frame, group="h"),
        lambda: lols.objects(frame, group="g", once="h"),
        lambda: lols.objects(pandas.DataFrame({"g": [[1], [2]], "v": [1, 2]}), group="g"),
    ):
        with pytest.raises(SpaceError) as caught:
            wrong()
        assert "\n" not in str(caught.value)


def test_frames_are_no_dependency() -> None:
    hide = "import sys; sys.modules.update(dict.fromkeys(('pandas', 'polars'), None)); import lols\n"
    run = hide + "print(lols.objects({'a': [[1, 2], [3]]}), lols.Labels.of([{'t': ['x']}], 't'))"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True)
    assert done.stdout == "[{'a': [1, 2]}, {'a': [3]}] Labels('x')\n"


# --- columns ----------------------------------------------------------------------------------------------------------


def test_columns_of_lists_ragged_arrays_and_offsets_give_the_same() -> None:
    expected = lols.Examples(SPACE, DATA)
    lists = {name: [one[name] for one in DATA] for name in ("words", "tags")}
    arrays = {name: [np.array(one) for one in column] for name, column in lists.items()}
    offsets = np.cumsum([0, *(len(one["words"]) for one in DATA)])
    flat = {name: np.concatenate(column) for name, column in arrays.items()}
    ragged = {name: Ragged(column, offsets) for name, column in flat.items()}
    assert all(same(lols.Examples(SPACE, columns), expected) for columns in (lists, arrays, ragged))
    assert same(lols.Examples(SPACE, lols.objects(flat, offsets=offsets)), expected)
    assert same(lols.Examples(SPACE, lols.objects({k: v.tolist() for k, v in flat.items()}, offsets=offsets)), expected)


def test_offsets_with_strings_and_columns_that_come_once() -> None:
    made = lols.objects({"word": ["a", "b", "c"], "year": [7, 8]}, offsets=[0, 1, 3], once="year")
    assert made == [{"word": ["a"], "year": 7}, {"word": ["b", "c"], "year": 8}]


@pytest.mark.parametrize(
    ("columns", "offsets", "says"),
    [
        ({"a": [[1], [2]], "b": [[1]]}, None, "column 'b' has 1 entries, but 'a' has 2"),
        ({"a": 3}, None, "column 'a' is int: give a list with an entry for each example"),
        ({"a": [1, 2], "b": [1]}, [0, 2], "column 'b' has 1 values, but 'a' has 2"),
        ({"a": [1, 2]}, [0, 3], "offsets begin with 0, never fall, and end with the number of values, here 2"),
        ({"a": [1, 2]}, [0, 2, 1, 2], "offsets begin with 0, never fall"),
        ({"a": [1, 2]}, [0.0, 2.0], "offsets are whole numbers, one more than there are examples"),
        ({"a": Ragged(np.arange(2), np.array([0, 5]))}, None, "column 'a': offsets begin with 0"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(columns: Any, offsets: Any, says: str) -> None:
    with pytest.raises(SpaceError) as caught:
        lols.objects(columns, offsets=offsets)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_single_dictionary_is_not_taken_for_columns() -> None:
    with pytest.raises(SpaceError, match="a single dictionary is one example: give a list of them"):
        lols.Examples(SPACE, DATA[0])


# --- strings ----------------------------------------------------------------------------------------------------------


@given(st.text(max_size=8))
def test_the_hash_of_a_string_is_that_of_the_built_in_tasks(string: str) -> None:
    assert lols.text(string) == hash_text(string)


def test_hashes_of_strings_stay_what_they_are() -> None:
    assert lols.text(["", "cat", "Ünï"]).tolist() == [hash_text(s) for s in ("", "cat", "Ünï")]
    assert lols.text("cat") == TEXT_OF_CAT  # weights of saved models depend on it
    for wrong in (3, None, b"cat", ["cat", 3]):
        with pytest.raises(SpaceError, match=r"lols.text takes"):
            lols.text(wrong)  # type: ignore[call-overload]


TEXT_OF_CAT = -3840310542024589553


def test_labels_are_found_in_all_kinds_of_data(frame_of: Any) -> None:
    expected = lols.Labels("N", "V")
    assert lols.Labels.of(frame_of({"tag": ["V", "N", None]}), "tag") == expected
    assert lols.Labels.of(frame_of({"tags": [["V", "N"], ["V"]]}), "tags") == expected
    assert lols.Labels.of({"tags": [["V"], ["N"]]}, "tags") == expected
    assert lols.Labels.of([{"tags": ["V"]}, {"tags": ["N"]}, {}], "tags") == expected
    for data in (frame_of({"a": ["V"]}), {"a": ["V"]}, [{"a": ["V"]}]):
        with pytest.raises(SpaceError, match="there is no column 'tags', only 'a'"):
            lols.Labels.of(data, "tags")


def test_labels() -> None:
    labels = lols.Labels(["b", "a", 3])
    assert list(labels) == ["b", "a", 3] and labels.name(1) == "a" and labels.number(3) == 2 and len(labels) == 3
    assert labels == lols.Labels("b", "a", 3) and hash(labels) == hash(lols.Labels("b", "a", 3))
    assert labels.names(labels.numbers(["a", "b"])) == ["a", "b"]
    assert list(lols.Labels.of({"n": [3, 1, "x"]}, "n")) == [1, 3, "x"]
    with pytest.raises(SpaceError, match=r"'c' is not one of the 3 labels \('b', 'a', 3\)"):
        labels.number("c")
    with pytest.raises(SpaceError, match="label 'a' is given twice"):
        lols.Labels("a", "a")


def test_a_row_for_each_word_without_a_group_is_told_how_to_get_lists():
    frame = {"words": [3, 4, 5], "tags": [0, 1, 0]}
    objects = [{name: column[k] for name, column in frame.items()} for k in range(3)]
    with pytest.raises(lols.SpaceError, match=r"column 'words' is one number here; lols.objects\(frame, group=...\)"):
        lols.Examples(tagging_space(labels=2), objects)
