"""Label maps and cost matrices: what is read, and every mistake with its place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import LolsError
from lols.io.costs import KNOWN, bare, check_matrix, cost_matrix_of, mapped, read_cost_matrix, read_label_map


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "given.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- label maps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "smurf,dos\nnormal,normal\n",
        "smurf.,dos\r\nnormal. , normal\r\n",
        "\ufeffsmurf,dos\n\n  ,  \nnormal,normal",
        '"smurf",dos\n"normal.",normal\nsmurf,dos\n',
    ],
)
def test_a_label_map_is_a_name_and_its_class_by_line(text: str, tmp_path: Path) -> None:
    assert read_label_map(written(tmp_path, text)) == {"smurf": "dos", "normal": "normal"}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("smurf,dos\nnormal\n", 2, "not a name and its class: write name,class"),
        ("smurf,dos,3\n", 1, "not a name and its class"),
        ("smurf,dos\n\nnormal,\n", 3, "not a name and its class"),
        ("smurf,dos\nx,y\nsmurf.,probe\n", 3, "'smurf' is 'probe' here and 'dos' before"),
    ],
)
def test_a_line_of_a_label_map_that_cannot_be_is_named(text: str, line: int, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(LolsError) as caught:
        read_label_map(path)
    assert str(caught.value).startswith(f"{path}, line {line}: {what}") and "\n" not in str(caught.value)


def test_labels_become_classes() -> None:
    assert mapped(["smurf.", "normal", "what"], {"smurf": "dos", "normal": "normal"}) == ["dos", "normal", None]
    assert mapped(["smurf.", " x"], None) == ["smurf.", " x"]


@given(st.text("ab. ", max_size=8))
def test_dots_and_spaces_around_a_label_do_not_count(text: str) -> None:
    made = bare(text)
    assert not made.endswith(".") and not made.startswith(" ")
    assert made in text and set(text.replace(made, "", 1)) <= {".", " "}


# --- matrices ---------------------------------------------------------------------------------------------------------

COSTS = [[0.0, 1.0, 2.5], [3.0, 0.0, 1e-3], [0.0, 7.0, 0.0]]


@given(st.lists(st.lists(st.floats(0, 1e9), min_size=3, max_size=3), min_size=3, max_size=3), st.booleans())
def test_a_matrix_is_read_to_the_last_bit(tmp_path_factory: Any, costs: list[list[float]], named: bool) -> None:
    lines = ["a, b ,c"]
    lines += [",".join(["abc"[k]] * named + [repr(cost) for cost in row]) for k, row in enumerate(costs)]
    path = written(tmp_path_factory.mktemp("costs"), "\n".join(lines))
    classes, made = read_cost_matrix(path)
    assert classes == ["a", "b", "c"] and made.tolist() == costs


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a,a\n0,1\n1,0\n", ", line 1", "the header names a class twice, or not at all"),
        ("a,\n0,1\n1,0\n", ", line 1", "the header names a class twice, or not at all"),
        ("a,b\n0,1\n", "", "1 rows of costs for 2 classes: give a row for each class"),
        ("a,b\n0,1\n1,0\n0,0\n", "", "3 rows of costs for 2 classes"),
        ("a,b\n0,1\n\n1\n", ", line 4", "1 costs for 2 classes"),
        ("a,b\nb,0,1\n1,0\n", ", line 2", "3 costs for 2 classes"),
        ("a,b\n0,1\n-1,0\n", ", line 3, column 'a'", "'-1' is not a cost: give a number from 0 on"),
        ("a,b\n0,x\n1,0\n", ", line 2, column 'b'", "'x' is not a cost"),
        ("a,b\n0,nan\n1,0\n", ", line 2, column 'b'", "'nan' is not a cost"),
        ("a,b\n0,1\n1,inf\n", ", line 3, column 'b'", "'inf' is not a cost"),
        ("a,b\n0,\n1,0\n", ", line 2, column 'b'", "'' is not a cost"),
    ],
)
def test_a_matrix_that_cannot_be_is_refused_with_its_place(text: str, place: str, what: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(LolsError) as caught:
        read_cost_matrix(path)
    assert str(caught.value).startswith(f"{path}{place}: {what}") and "\n" not in str(caught.value)


def test_matrices_in_memory_are_checked() -> None:
    assert check_matrix(COSTS, 3).tolist() == COSTS  # type: ignore[arg-type]
    for matrix, what in (
        (np.zeros((2, 3)), r"shape \(2, 3\), but there are 3 classes: give a row and a column for each"),
        (np.zeros(3), r"shape \(3,\)"),
        (np.array([[0, 1, 1], [1, 0, -2], [1, 1, 0]]), r"row 1, column 2 of the cost matrix is -2\.0: give a number"),
        (np.full((3, 3), np.nan), "row 0, column 0 of the cost matrix is nan"),
        (np.full((3, 3), np.inf), "row 0, column 0 of the cost matrix is inf"),
        (
            np.full((3, 3), 1e20),
            r"row 0, column 0 of the cost matrix is 1e\+20: give a number from 0 on, at most 1e\+15",
        ),
        ([["a"] * 3] * 3, "the cost matrix is not made of numbers"),
        ([[0, 1, 1], [1, 0]], "the cost matrix is not made of numbers"),
    ):
        with pytest.raises(LolsError, match=what):
            check_matrix(matrix, 3)  # type: ignore[arg-type]


CLASSES = ["ask", "no", "yes"]
NAMED = pd.DataFrame([[0, 5, 2], [1, 0, 3], [4, 6, 0]], index=CLASSES, columns=CLASSES)
SHUFFLED = ["yes", "ask", "no"]


@pytest.mark.parametrize(
    "given",
    [
        NAMED.to_numpy(),
        NAMED.to_numpy().tolist(),
        pd.DataFrame(NAMED.to_numpy()),  # without names: by place
        NAMED,
        NAMED.loc[["no", "yes", "ask"], SHUFFLED],
        NAMED.loc[SHUFFLED, SHUFFLED].reset_index(drop=True),  # the rows in the order of the columns, as in files
        pa.table({name: NAMED.loc[SHUFFLED, name].to_list() for name in SHUFFLED}),
        NAMED.T.to_dict(),
        {(true, predicted): NAMED.loc[true, predicted] for true in CLASSES for predicted in SHUFFLED},
    ],
)
def test_costs_are_found_by_name(given: Any) -> None:
    assert cost_matrix_of(given, CLASSES).tolist() == NAMED.to_numpy().tolist()


def test_what_a_dictionary_leaves_out_costs_one() -> None:
    assert cost_matrix_of({(1, 0): 5}, [0, 1]).tolist() == [[0, 1], [5, 0]]
    assert cost_matrix_of({1: {0: 5}}, ["0", "1", "2"]).tolist() == [[0, 1, 1], [5, 0, 1], [1, 1, 0]]  # as in files
    assert cost_matrix_of({}, CLASSES).tolist() == (1 - np.eye(3)).tolist()


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (NAMED.rename(index={"no": "NO"}), "the rows of the cost matrix name 'NO', which is not one of the classes"),
        (NAMED.rename(columns={"no": "yes"}), "the columns of the cost matrix do not name the class 'no': name"),
        ({("no", "perhaps"): 1}, "the keys of the cost matrix name 'perhaps', which is not one of the classes ask, no"),
        ({"no": 1}, r"the cost matrix has the key 'no': give \{\(true, predicted\): cost\}, or"),
        ({("no", "yes"): -1}, "the cost of predicting 'yes' for 'no' is -1: give a number from 0 on"),
        ({("no", "yes"): 1e20}, r"the cost of predicting 'yes' for 'no' is 1e\+20: give a number from 0 on, at most"),
        ({("no", "yes"): "1"}, "the cost of predicting 'yes' for 'no' is '1': give a number"),
    ],
)
def test_names_that_do_not_fit_are_refused(given: Any, what: str) -> None:
    with pytest.raises(LolsError, match=what):
        cost_matrix_of(given, CLASSES)


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_label_map, read_cost_matrix])
def test_files_that_cannot_be_read_are_named(read: Any, tmp_path: Path) -> None:
    for content, what in (
        (b"", "empty"),
        (b"\n , \n", "empty"),
        (b"\xff\xfea,b\n", "line 1: this is UTF-16"),
        (b"a,b\n" + b"x" * 200_000, "line 2"),
    ):
        path = written(tmp_path, content)
        with pytest.raises(LolsError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}") and what in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(LolsError, match=r"there is no such file; name a CSV file, or kdd99"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(LolsError, match=r"is a folder; give a file in it"):
        read(tmp_path)


def test_the_contest_comes_with_the_library() -> None:
    assert KNOWN == ("kdd99",)
    label_map, (classes, costs) = read_label_map("kdd99"), read_cost_matrix("kdd99")
    assert set(label_map.values()) == set(classes) == {"normal", "probe", "dos", "u2r", "r2l"}
    assert Counter(label_map.values())["normal"] == 1 and label_map["normal"] == "normal"
    assert costs.shape == (5, 5) and (np.diag(costs) == 0).all() and (costs + np.eye(5) > 0).all()
