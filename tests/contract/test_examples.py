"""Examples in columns: what `encode` gives, stored once, and read back as the functions of the space see it."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import lols
from lols.contract.arrays import check_items, items_of
from lols.contract.examples import Examples, Items, Ragged, Scalar, Shared
from lols.datasets.worlds import tagging_space
from lols.errors import SpaceError


def space_with(encode: Any, **changes: Any) -> lols.SearchSpace:
    """A space that ends at once, for looking at its examples only."""
    made: dict[str, Any] = {
        "start": lambda x, s: None,
        "actions": lambda x, s, legal: None,
        "step": lambda x, s, a: None,
        "features": lambda x, s, out: None,
        "loss": lambda x, y, s: 0.0,
        "output": lambda x, s: s.tolist(),
        "encode": encode,
        "sizes": lols.Sizes(state=2, actions=2, features=1, steps=3),
    }
    return lols.SearchSpace(**(made | changes))


def columns_of(*rows: dict[str, Any], **changes: Any) -> Examples:
    return Examples(space_with(lambda obj: lols.Example(obj), **changes), rows)


# --- columns ----------------------------------------------------------------------------------------------------------


def test_arrays_of_all_examples_lie_in_one_array_with_offsets() -> None:
    made = columns_of({"words": [3, 4, 5]}, {"words": []}, {"words": [6]})
    assert isinstance(made.x.words, Ragged)
    assert made.x.words.values.tolist() == [3, 4, 5, 6] and made.x.words.offsets.tolist() == [0, 3, 3, 4]
    assert [made.example(i)[0].words.tolist() for i in range(3)] == [[3, 4, 5], [], [6]]
    assert len(made) == 3


def test_numbers_are_a_column_of_numbers() -> None:
    made = columns_of({"size": 3, "price": 0.5}, {"size": 4, "price": 2})
    assert isinstance(made.x.size, Scalar) and made.x.size.values.tolist() == [3, 4]
    assert made.example(1)[0].price == 2.0
    assert made.x.price.values.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1, 2], np.int64), ([1.5, 2], np.float64), ([True, False], np.int64), (np.array([1, 2], np.int16), np.int64)],
)
def test_columns_are_64_bit_integers_or_floats_so_that_few_types_are_compiled(values: Any, dtype: type) -> None:
    assert columns_of({"a": values}, {"a": values}).x.a.values.dtype == dtype


def test_integers_and_floats_in_one_column_become_floats_and_an_empty_first_array_decides_nothing() -> None:
    made = columns_of({"a": []}, {"a": [1]}, {"a": [0.5]})
    assert made.x.a.values.tolist() == [1.0, 0.5]
    whole = columns_of({"a": []}, {"a": [1]})
    assert whole.x.a.values.dtype == np.int64


def test_input_and_truth_are_apart() -> None:
    made = Examples(tagging_space(labels=3), [{"words": [4, 5], "tags": [0, 2]}])
    x, y = made.example(0)
    assert x._fields == ("words",) and y._fields == ("tags",)
    assert made.has_truth and y.tags.tolist() == [0, 2]


def test_truth_is_kept_where_all_have_it_demanded_where_needed_and_dropped_where_not_wanted() -> None:
    space, both = tagging_space(labels=3), [{"words": [4], "tags": [0]}, {"words": [5]}]
    assert not Examples(space, both).has_truth
    assert not Examples(space, both[:1], truth=False).has_truth
    assert Examples(space, both[:1]).has_truth
    with pytest.raises(SpaceError, match="example 1: it has no truth `y`, which training needs"):
        Examples(space, both, truth=True)


def test_encode_may_give_a_mapping_or_a_tuple_instead_of_an_example() -> None:
    made = Examples(space_with(lambda obj: {"a": [obj]}), [1, 2])
    assert made.x.a.values.tolist() == [1, 2]
    assert Examples(space_with(lambda obj: ({"a": [obj]}, {"b": obj})), [1]).example(0)[1].b == 1


def test_equal_columns_have_one_record_class_or_compiled_code_would_not_be_found_again() -> None:
    one, other = columns_of({"a": 1}), columns_of({"a": 2})
    assert type(one.x) is type(other.x) is type(Examples(space_with(lambda obj: ({"a": 1}, {"a": 1})), [0]).y)


def test_objects_may_come_from_a_generator() -> None:
    assert len(Examples(tagging_space(labels=2), ({"words": [k]} for k in range(5)))) == 5


# --- items ------------------------------------------------------------------------------------------------------------


def with_items(*rows: list[Any]) -> Examples:
    sizes = lols.Sizes(state=2, actions=2, features=1, steps=3, items=1)
    space = space_with(lambda obj: lols.Example({"n": len(obj)}, None, obj), items=lambda x, s, out: None, sizes=sizes)
    return Examples(space, rows)


def test_each_distinct_list_of_item_features_is_stored_once() -> None:
    made = with_items([[7, 8], [9], [7, 8]], [[9], [7, 8], [7]])
    assert made.items.first.tolist() == [0, 3, 6]
    assert made.items.types.tolist() == [0, 1, 0, 1, 0, 2]
    assert made.items.start.tolist() == [0, 2, 3, 4]
    assert made.items.ids.tolist() == [7, 8, 9, 7] and made.items.values.tolist() == [1.0] * 4


def test_items_with_the_same_ids_and_other_values_are_different() -> None:
    made = with_items([([7, 8], [1.0, 0.5]), ([7, 8], [1.0, 0.25]), ([7, 8], [1.0, 0.5]), [7, 8]])
    assert made.items.types.tolist() == [0, 1, 0, 2]
    assert made.items.values.tolist() == [1.0, 0.5, 1.0, 0.25, 1.0, 1.0]


def test_the_order_of_features_in_an_item_is_kept() -> None:
    # Scores are sums of single precision: their order is part of the result.
    assert with_items([[1, 2], [2, 1]]).items.types.tolist() == [0, 1]


def test_an_item_may_have_no_features_and_an_example_no_items() -> None:
    made = with_items([], [[], [5]])
    assert made.items.first.tolist() == [0, 0, 2] and made.items.ids.tolist() == [5]


def test_arrays_and_tuples_are_items_as_lists_are() -> None:
    made = with_items([np.array([1, 2]), [1, 2], (1, 2, 3)])
    assert made.items.types.tolist() == [0, 0, 1]


def test_a_space_with_items_needs_them_from_encode() -> None:
    sizes = lols.Sizes(state=2, actions=2, features=1, steps=3, items=1)
    space = space_with(lambda obj: lols.Example({"n": 1}), items=lambda x, s, out: None, sizes=sizes)
    with pytest.raises(SpaceError, match="example 0: the space has `items`, but `encode` gave no item features"):
        Examples(space, [0])


# --- settings, sizes, outputs -----------------------------------------------------------------------------------------


def test_settings_of_the_space_are_columns_that_all_examples_share() -> None:
    made = columns_of({"a": 1}, {"a": 2}, settings={"width": 3, "table": [0.5, 1.5]})
    assert isinstance(made.x.width, Shared)
    for i in range(2):
        x = made.example(i)[0]
        assert (x.a, x.width, x.table.tolist()) == (i + 1, 3, [0.5, 1.5])


def test_a_setting_and_a_column_of_one_name_are_refused() -> None:
    with pytest.raises(SpaceError, match="column 'a' of x is also a setting of the space"):
        columns_of({"a": 1}, settings={"a": 3})


def test_sizes_are_numbers_or_functions_of_x() -> None:
    sizes = lols.Sizes(state=lambda x: 1 + len(x.words), actions=2, features=1, steps=lambda x: 2 * len(x.words))
    made = columns_of({"words": [1, 2]}, {"words": [1]}, sizes=sizes)
    assert made.states.tolist() == [3, 2] and made.steps.tolist() == [4, 2]
    assert columns_of({"a": 1}).states.tolist() == [2]


def test_a_negative_size_is_refused() -> None:
    sizes = lols.Sizes(state=lambda x: 1 - 2 * x.a, actions=2, features=1, steps=1)
    with pytest.raises(SpaceError, match=r"example 1: Sizes.state gave -1; it cannot be negative"):
        columns_of({"a": 0}, {"a": 1}, sizes=sizes)


def test_output_is_the_users_own_result() -> None:
    made = Examples(tagging_space(labels=3), [{"words": [4, 5]}])
    assert made.output(0, np.array([2, 1, 0, 2, 1])) == [2, 1]


def test_memory_is_known() -> None:
    made = columns_of({"words": [1, 2, 3]})
    assert made.nbytes() >= made.x.words.values.nbytes + made.x.words.offsets.nbytes


def test_columns_may_be_given_as_they_are() -> None:
    space = tagging_space(labels=3)
    words = Ragged(np.array([4, 5, 6]), np.array([0, 2, 3]))
    tags = Ragged(np.array([0, 1, 2]), np.array([0, 2, 3]))
    given = Examples.from_columns(space, 2, {"words": words}, {"tags": tags})
    encoded = Examples(space, [{"words": [4, 5], "tags": [0, 1]}, {"words": [6], "tags": [2]}])
    for i in range(2):
        for mine, other in zip(given.example(i), encoded.example(i), strict=True):
            assert [a.tolist() for a in mine] == [a.tolist() for a in other]
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    one, other = (lols.train(space, data, teacher, passes=2, compiled=False) for data in (given, encoded))
    assert one.policy.stack.tobytes() == other.policy.stack.tobytes()


def test_values_of_items_are_finite() -> None:
    items = items_of([[([1, 2], [1.0, 0.5])]])
    check_items(items, 1)
    items.values[1] = np.nan
    with pytest.raises(SpaceError, match=r"items.values holds NaN or infinity"):
        check_items(items, 1)


def test_sizes_given_with_the_columns_are_taken_as_they_are() -> None:
    def unknown(x: Any) -> int:
        raise AssertionError("nobody asked")

    space = tagging_space(labels=3)
    silent = dataclasses.replace(space, sizes=dataclasses.replace(space.sizes, state=unknown, steps=unknown))
    words = {"words": Ragged(np.array([4, 5, 6]), np.array([0, 2, 3]))}
    tags = {"tags": Ragged(np.array([0, 1, 2]), np.array([0, 2, 3]))}
    asked = Examples.from_columns(space, 2, words, tags)
    states, steps = asked.states.copy(), asked.steps.copy()
    assert states.tolist() == [space.sizes.state(asked.example(i)[0]) for i in range(2)]
    given = Examples.from_columns(silent, 2, words, tags, states=states, steps=steps)
    assert given.states.tolist() == states.tolist() and given.steps.tolist() == steps.tolist() == [2, 1]
    with pytest.raises(SpaceError, match=r"Sizes.* failed with AssertionError: nobody asked .*test_examples.py:"):
        Examples.from_columns(silent, 2, words, tags, states=states)
    with pytest.raises(SpaceError, match=r"Sizes.* failed with AssertionError: nobody asked .*test_examples.py:"):
        Examples.from_columns(silent, 2, words, tags, steps=steps)
    teacher = lols.Reference(action=lambda x, y, s: y.tags[s[0]])
    one, other = (
        lols.train(of, data, teacher, passes=2, compiled=False) for of, data in ((space, asked), (silent, given))
    )
    assert one.policy.stack.tobytes() == other.policy.stack.tobytes()
    short = Examples.from_columns(silent, 2, words, tags, states=states, steps=np.array([1, 1]))
    with pytest.raises(SpaceError, match="example 0, step 1: the search goes on after 1 steps"):
        lols.train(silent, short, teacher, compiled=False, shuffle=False)


def test_the_widest_item_has_the_features_of_all_its_parts() -> None:
    start = np.array([0, 1, 1, 4])  # types of one feature, of none and of three
    ids = np.arange(4)
    for parts, types, widest in (
        (1, [0, 1, 0, 1], 1),
        (2, [0, 0, 2, 1], 3),
        (2, [0, 2, 2, 2], 6),
        (2, [0, 0, 0, 1], 2),
    ):
        made = Items(np.array([0, 1]), np.array(types), start, ids, np.ones(4, np.float32), parts)
        assert made.widest() == widest
    assert Items(np.array([0, 0]), np.zeros(0, int), np.array([0]), ids[:0], np.ones(0, np.float32), 2).widest() == 0


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_the_widest_item_is_found_in_pieces(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("lols.contract.arrays.AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    for items in (0, 1, 2, 30):
        bounds = np.concatenate([[0], np.cumsum(rng.integers(4, size=items))])  # some have no type
        start = np.concatenate([[0], np.cumsum(rng.integers(5, size=6))])
        types = rng.integers(6, size=bounds[-1])
        ids = np.zeros(start[-1], int)
        made = Items(np.array([0, items]), types, start, ids, np.ones(ids.size, np.float32), bounds=bounds)
        widths = [np.diff(start)[types[low:high]].sum() for low, high in itertools.pairwise(bounds)]
        assert made.widest() == max(widths, default=0)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "there are no examples: give at least one"),
        ([{"a": 1}, {"b": 1}], "example 1: x has columns ['b'], but example 0 has ['a']"),
        ([{"a": 1}, {"a": [1]}], "example 1: column 'a' of x is a number in some examples and an array in others"),
        ([{"a": [1]}, {"a": ["dog"]}], "example 1: column 'a' of x holds <U3 values; a column must be numbers"),
        ([{"a": [1.0]}, {"a": [float("nan")]}], "example 1: column 'a' of x holds NaN or infinity"),
        ([{"a": 1.0}, {"a": float("inf")}], "example 1: column 'a' of x holds NaN or infinity"),
        ([{"a": [[1, 2], [3, 4]]}], "example 0: column 'a' of x has 2 dimensions; a column is a number or one array"),
        ([{"a": None}], "example 0: column 'a' of x holds object values"),
        ([{"a": [1j]}], "example 0: column 'a' of x holds complex128 values"),
        ([{"a": [1]}, {"a": [[1], [2, 3]]}], "example 1: column 'a' of x"),
        ([{"a": [2**63]}], "example 0: column 'a' of x"),
        ([{"a": [2**70]}], "example 0: column 'a' of x"),
        ([{"not a name": 1}], "'not a name' cannot name a column"),
        ([{"class": 1}], "'class' cannot name a column"),
        ([{"count": 1, "index": 2}], None),
    ],
)
def test_columns_that_do_not_fit_are_named_in_one_line(rows: list[dict[str, Any]], says: str | None) -> None:
    if says is None:
        assert len(columns_of(*rows)) == len(rows)
        return
    with pytest.raises(lols.LolsError) as caught:
        columns_of(*rows)
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [None, 3, "words", [], (), ({"a": 1}, None, None, 4), lols.Example({"a": 1}, 5)])
def test_encode_must_give_an_example(given: Any) -> None:
    with pytest.raises(SpaceError, match=r"example 1: `encode` gave \w+; it must give a lols.Example"):
        Examples(space_with(lambda obj: given if obj else lols.Example({"a": 1})), [0, 1])


@pytest.mark.parametrize(
    "item", [3, None, ["dog"], ([7, 8], [1.0]), ([7], [float("nan")]), ([7], ["dog"]), [0.5], [[1, 2], [3, 4]]]
)
def test_item_features_must_be_ids_with_as_many_finite_values(item: Any) -> None:
    with pytest.raises(SpaceError) as caught:
        with_items([[7]], [[7], item])
    assert "example 1" in str(caught.value) and "item 1" in str(caught.value) and "\n" not in str(caught.value)


def test_errors_of_encode_and_output_name_the_example() -> None:
    space = space_with(lambda obj: lols.Example({"a": obj["a"]}), output=lambda x, s: [][x.a])
    with pytest.raises(SpaceError, match="`encode` failed on example 1: KeyError: 'a'"):
        Examples(space, [{"a": 1}, {}])
    with pytest.raises(SpaceError, match="`output` failed on example 0: IndexError: list index out of range"):
        Examples(space, [{"a": 1}]).output(0, np.zeros(2))


def test_a_space_can_be_changed_and_its_examples_made_again() -> None:
    space = dataclasses.replace(tagging_space(labels=3), settings={"width": 2})
    assert Examples(space, [{"words": [1]}]).example(0)[0].width == 2


# --- columns as they are ----------------------------------------------------------------------------------------------


def given_columns(**changes: Any) -> Examples:
    """Two examples of three and one letters, in columns; changes are made to what is given."""
    letters = Ragged(np.array([1, 2, 3, 4]), changes.pop("offsets", np.array([0, 3, 4])))
    parts = {"first": np.array([0, 3, 4]), "types": np.array([0, 1, 0, 1]), "start": np.array([0, 2, 3])}
    parts |= {"ids": np.array([7, 8, 9]), "values": np.ones(3, np.float32)}
    items = Items(**(parts | {name: changes.pop(name) for name in list(changes) if name in Items._fields}))
    x = {"letters": letters, "width": changes.pop("width", Scalar(np.array([3, 1])))}
    space = space_with(lambda obj: lols.Example(obj))
    return Examples.from_columns(space, 2, x, items=items, **changes)


def test_columns_are_taken_as_they_are() -> None:
    assert given_columns().example(0)[0].letters.tolist() == [1, 2, 3]
    assert len(given_columns(bounds=np.array([0, 1, 1, 2, 4]))) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"offsets": np.array([0, 3, 5])}, "offsets of column 'letters' must grow from 0 to 4 at most"),
        ({"offsets": np.array([-3, 3, 4])}, "offsets of column 'letters' must grow from 0"),
        ({"offsets": np.array([0, 4, 3])}, "offsets of column 'letters' must grow from 0"),
        ({"offsets": np.array([0, 3])}, "offsets of column 'letters' must be 3 numbers of type int64"),
        ({"offsets": np.array([0, 3, 4], np.int32)}, "offsets of column 'letters' must be 3 numbers of type int64"),
        ({"width": Scalar(np.array([3]))}, r"column 'width' has values of shape \(1,\) for 2 examples"),
        ({"width": np.array([3, 1])}, "column 'width' is ndarray: give a Ragged or a Scalar"),
        ({"states": np.array([3])}, r"column 'states' has values of shape \(1,\) for 2 examples"),
        ({"steps": np.array([3, -1])}, "example 1: steps is -1; it cannot be negative"),
        ({"first": np.array([0, 3, 5])}, "offsets of items.first must grow from 0 to 4 at most"),
        ({"types": np.array([0, 1, 0, 2])}, "items.types must be numbers from 0 to 1"),
        ({"types": np.array([0, -1, 0, 1])}, "items.types must be numbers from 0 to 1"),
        ({"start": np.array([0, 2, 4])}, "offsets of items.start must grow from 0 to 3 at most"),
        ({"values": np.ones(2, np.float32)}, "items has 3 ids and 2 values"),
        ({"bounds": np.array([0, 1, 2, 3, 9])}, "offsets of items.bounds must grow from 0 to 4 at most"),
        ({"parts": 2}, "offsets of items.first must grow from 0 to 2 at most"),
    ],
)
def test_columns_that_point_outside_are_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SpaceError, match=says):
        given_columns(**changes)
