"""How Python becomes a kernel: values behind pointers, and dual functions."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import lols
from lols.contract.examples import Ragged, Scalar, Shared
from lols.contract.records import record_class
from lols.errors import SpaceError
from lols.kernels import layout
from lols.kernels.dual import bind, by_kind, dual, has, needs, shortened_call_of, take
from lols.kernels.kernel import Kernel, kernel
from lols.kernels.layout import Struct, block_of, row

# --- values behind pointers -------------------------------------------------------------------------------------------


class Inner(Struct):
    numbers: np.ndarray
    factor: float


class Pair(NamedTuple):
    left: np.ndarray
    right: int


class Outer(Struct):
    inner: Inner
    pair: Pair
    table: np.ndarray
    flag: bool


def total(outer, extra, small):
    made = outer.inner.factor * extra
    for k in range(outer.inner.numbers.size):
        made += outer.inner.numbers[k]
    for i in range(outer.table.shape[0]):
        for j in range(outer.table.shape[1]):
            outer.table[i, j] += outer.pair.left[j] * outer.pair.right
    if outer.flag:
        made += small[0]
    return made


def outer() -> Outer:
    inner = Inner(np.arange(4), 0.5)
    return Outer(inner, Pair(np.array([1, 2, 3], np.int32), 10), np.zeros((2, 3)), True)


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
def test_records_tuples_arrays_and_numbers_reach_a_kernel(compiled: bool) -> None:
    given = outer()
    assert Kernel(total)(compiled, given, 3, np.array([100], np.int8)) == 107.5
    assert given.table.tolist() == [[10.0, 20.0, 30.0]] * 2


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32", "float64", "bool"])
def test_results_come_back_in_their_own_kind(compiled: bool, dtype: str) -> None:
    value = np.array([1], dtype)
    made = Kernel(lambda values: values[0])(compiled, value)
    assert made == value[0] and type(made) in (bool, int, float, type(value[0]))


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
def test_a_kernel_may_give_nothing_or_a_large_number(compiled: bool) -> None:
    assert Kernel(lambda values: None)(compiled, np.zeros(1)) is None
    assert Kernel(lambda values: -(1 << 62))(compiled, np.zeros(1)) == -(1 << 62)


def test_what_has_no_layout_is_refused() -> None:
    for wrong in ("text", np.zeros((4, 4))[:, 1], {}, None):
        with pytest.raises(TypeError, match="kernel"):
            block_of((wrong,))


def test_the_quick_way_to_an_address_is_the_one_that_numpy_says() -> None:
    for array in (np.zeros(0), np.arange(6).reshape(2, 3), np.arange(9)[4:], np.zeros(3, np.bool_)):
        assert layout._read_address(array) == layout._official_address(array)


def test_a_record_is_laid_out_once_and_a_changed_copy_anew() -> None:
    one = outer()
    assert one.block is one.block and one._replace(flag=False).block is not one.block
    assert one._replace(flag=False).block.layout is one.block.layout


def test_equal_layouts_are_one_object_and_other_kinds_another() -> None:
    layouts = [block_of((np.zeros(n), 1)).layout for n in (1, 5)]
    assert layouts[0] is layouts[1]
    readonly = np.zeros(1)
    readonly.flags.writeable = False
    others = [
        (np.zeros(1, np.float32), 1),
        (np.zeros((1, 1)), 1),
        (np.zeros(1), 1.0),
        (np.zeros(1), True),
        (readonly, 1),
    ]
    assert len({block_of(other).layout for other in others} | {layouts[0]}) == 6


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
def test_a_row_of_columns_is_one_example(compiled: bool) -> None:
    columns: Any = record_class(("words", "weight", "shape"))(
        Ragged(np.array([5, 6, 7]), np.array([0, 1, 3])), Scalar(np.array([0.5, 2.0])), Shared(np.array([[1, 2]]))
    )

    def look(columns, index):
        x = row(columns, index)
        made = 0.0
        for k in range(x.words.size):
            made += x.words[k]
        return made * x.weight + x.shape[0, 1]

    assert [Kernel(look)(compiled, columns, k) for k in (0, 1)] == [4.5, 28.0]


# --- functions with two lives -----------------------------------------------------------------------------------------


class Teller(NamedTuple):
    who: Any
    what: Any


class Red(Struct):
    a: int


class Blue(Struct):
    b: int


@dual
def red(teller, more):
    return teller.what.a + more


@dual
def blue(teller, more):
    return teller.what.b - more


told = by_kind("told", "what", {Red: red, Blue: blue})


@needs("who", "speak", -1)
def speech(teller):
    return teller.what.a * 100  # a Blue has no `a`: it must not be compiled for one


def tell(who, what):
    teller = Teller(who, what)
    return told(teller, 3) + (speech(teller) if has(who, "speak") else 0)


def speak(x):
    return x


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
def test_functions_are_chosen_by_what_they_are_given(compiled: bool) -> None:
    mute, loud = bind("Space", {}), bind("Space", {"speak": speak})
    assert Kernel(tell)(compiled, loud, Red(5)) == 508
    assert Kernel(tell)(compiled, mute, Blue(5)) == 2


area = shortened_call_of("area", -1)


def area_of(shape, a, b):
    return area(shape, a, b)


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
def test_a_function_that_takes_less_is_not_given_the_last_argument(compiled: bool) -> None:
    none, square = bind("Shape", {}), bind("Shape", {"area": lambda a: a * a})
    rectangle = bind("Shape", {"area": lambda a, b: a * b})
    assert [Kernel(area_of)(compiled, shape, 2, 3) for shape in (none, square, rectangle)] == [-1, 4, 6]


def test_more_values_than_a_feature_takes_are_told_where_kernels_are_compiled() -> None:
    hashed = Kernel(lambda a: lols.feature(a, 1, 2, 3, 4, 5, 6, 7))
    with pytest.raises(SpaceError, match="at most six values: hash some of them together"):
        hashed(True, 0)


@kernel
def doubled(values):
    for k in range(values.size):
        values[k] *= 2
    return values.size


@kernel
def doubled_twice(values):
    doubled(values)
    return doubled(values)


def test_a_kernel_may_be_part_of_another() -> None:
    values = np.arange(3)
    assert doubled_twice(values) == 3 and values.tolist() == [0, 4, 8]


@pytest.mark.uncompiled
@pytest.mark.parametrize("compiled", [False, True])
def test_an_exception_comes_out_with_its_class_and_words(compiled: bool) -> None:
    def broken(n):
        if n > 2:
            raise ValueError("more than two")
        return n

    assert Kernel(broken)(compiled, 2) == 2
    with pytest.raises(ValueError, match="more than two"):
        Kernel(broken)(compiled, 3)


def test_threads_run_a_kernel_at_the_same_time() -> None:
    def count(counter, many):
        for _ in range(many):
            take(counter)

    counter, ready = np.zeros(1, np.int64), Kernel(count)
    threads = [threading.Thread(target=ready, args=(True, counter, 100_000)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 400_000
