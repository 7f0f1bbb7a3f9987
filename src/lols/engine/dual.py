"""Functions with two lives: plain Python when called from Python, compiled when called from a kernel.

A user's space enters a kernel as an opaque value whose *type* carries a digest (`SpaceType`); the generic functions
`step(space, ...)`, `features(space, ...)` and so on are overloaded on that type, so the user's code is inlined, the
kernel is cached on disk, and any edit of a function or of a helper it calls gives another type.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import (
    NativeValue,
    intrinsic,
    models,
    overload,
    register_jitable,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np import arrayobj

from lols import features as feature_functions
from lols import hashing
from lols.digest import digest_functions, plain, reached_helpers
from lols.errors import SpaceError
from lols.examples import Ragged, Scalar, view

__all__ = ["Bound", "Kernel", "bind", "dual"]

INLINED: Any = {"forceinline": True}


def dual(function: Any) -> Any:
    """Compile a function as it stands, into its caller, when a kernel calls it; from Python it stays what it is."""
    return register_jitable(**INLINED)(function)


class Kernel:
    """An entry point: plain Python when asked for, else compiled, cached on disk and free of the interpreter's lock.

    Kernels allocate nothing, so they are compiled without reference counting, which would take most of the time here.
    """

    def __init__(self, function: Any):
        self.plain = function
        self.compiled: Any = njit(cache=True, nogil=True, _nrt=False)(function)
        self._checked = False

    def __call__(self, compiled: bool, *arguments: Any) -> Any:
        if compiled:
            if not self._checked:
                self._check_cache()
            return self.compiled(*arguments)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.plain(*arguments)

    def _check_cache(self) -> None:
        """Throw the cache away if it cannot be read: another version may have left classes there that are gone."""
        self._checked = True
        cache: Any = getattr(self.compiled, "_cache", None)
        try:
            cache._cache_file._load_index()
        except Exception:
            with contextlib.suppress(Exception):
                cache.flush()


class SpaceType(types.Type):  # type: ignore[misc]
    """A bound set of functions as Numba sees it: identity is the digest, so the cache key is stable and never stale."""

    def __init__(self, kind: str, digest: str):
        self.digest = digest
        super().__init__(name=f"{kind}({digest})")


register_model(SpaceType)(models.OpaqueModel)
# Numba's name for the module of functions that were made by `exec`; a cached kernel asks for it when it is loaded.
sys.modules.setdefault("<dynamic>", ModuleType("<dynamic>"))
COMPILED: dict[str, dict[str, Any]] = {}


class Bound:
    """The functions of one space or reference, ready to be passed to a kernel, compiled or not."""

    def __init__(self, kind: str, functions: Mapping[str, Any]):
        self.functions = {name: plain(function) for name, function in functions.items()}
        self.numba_type = SpaceType(kind, digest_functions(functions))

    @property
    def digest(self) -> str:
        """The digest of the functions and of all they reach."""
        return self.numba_type.digest


def bind(kind: str, functions: Mapping[str, Any]) -> Bound:
    """Prepare functions for the kernels: the helpers they reach become compilable, too."""
    bound = Bound(kind, functions)
    if bound.digest not in COMPILED:
        for function in bound.functions.values():
            for helper in reached_helpers(function):
                register_jitable(helper)
        COMPILED[bound.digest] = {name: njit(**INLINED)(function) for name, function in bound.functions.items()}
    return bound


@typeof_impl.register(Bound)
def _typeof(bound: Bound, _context: Any) -> SpaceType:
    return bound.numba_type


@unbox(SpaceType)
def _unbox(_type: Any, _obj: Any, context: Any) -> NativeValue:
    return NativeValue(context.context.get_dummy_value())


# --- the user's functions ---------------------------------------------------------------------------------------------


def has(bound: Any, name: str) -> bool:
    """Whether the space or reference has an optional function; a constant in compiled code."""
    return name in bound.functions


@overload(has)
def _has(bound, name):
    if not isinstance(name, types.StringLiteral):
        return None
    present = name.literal_value in COMPILED[bound.digest]
    return lambda bound, name: present


def _generic(name: str, absent: Any = None) -> Any:
    """Make the plain and the compiled version of one function of the contract."""

    def call(bound: Any, *arguments: Any) -> Any:
        function = bound.functions.get(name)
        return function(*arguments) if function is not None else absent

    @overload(call, jit_options=INLINED)
    def _call(bound, *arguments):
        function = COMPILED[bound.digest].get(name)
        if function is None:
            return lambda bound, *arguments: absent
        return lambda bound, *arguments: function(*arguments)

    call.__name__ = call.__qualname__ = name
    return call


start = _generic("start")
actions = _generic("actions")
step = _generic("step")
features = _generic("features")
loss = _generic("loss", 0.0)
action_features = _generic("action_features")
cost = _generic("cost", 0.0)
key = _generic("key", 0)
items = _generic("items")
free = _generic("free")
reference_costs = _generic("costs")


def reference_action(bound: Any, x: Any, y: Any, s: Any, rng: Any) -> int:
    """The action of a reference, whether or not it wants a random stream."""
    function = bound.functions["action"]
    return function(x, y, s, rng) if function.__code__.co_argcount == 4 else function(x, y, s)


@overload(reference_action, jit_options=INLINED)
def _reference_action(bound, x, y, s, rng):
    function = COMPILED[bound.digest].get("action")
    if function is None:
        return lambda bound, x, y, s, rng: -1
    if function.py_func.__code__.co_argcount == 4:
        return lambda bound, x, y, s, rng: function(x, y, s, rng)
    return lambda bound, x, y, s, rng: function(x, y, s)


# --- examples ---------------------------------------------------------------------------------------------------------


@intrinsic
def _window(typing_context, values, begin, end):
    """A slice of a contiguous array that owns nothing: kernels are compiled without reference counting."""
    array_type = types.Array(values.dtype, 1, "C", readonly=not values.mutable)

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        begin, end = (
            context.cast(builder, a, t, types.intp) for a, t in zip(arguments[1:], signature.args[1:], strict=True)
        )
        made = context.make_array(signature.return_type)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(values.dtype)))
        arrayobj.populate_array(
            made,
            data=builder.gep(array.data, [begin]),
            shape=(builder.sub(end, begin),),
            strides=(size,),
            itemsize=size,
            meminfo=None,
        )
        return made._getvalue()

    return array_type(values, begin, end), generate


def row(columns: Any, index: int) -> Any:
    """One example's part of a record of columns, as a record of the same class."""
    return type(columns)(*_views(columns, index))


@overload(row, jit_options=INLINED)
def _row(columns, index):
    record = columns.instance_class
    return lambda columns, index: record(*_views(columns, index))


def _views(columns: Any, index: int) -> Any:
    return tuple(view(column, index) for column in columns)


@overload(_views, jit_options=INLINED)
def _views_of(columns, index):
    if len(columns) == 0:
        return lambda columns, index: ()
    if columns[0].instance_class is Ragged:

        def ragged(columns, index):
            column = columns[0]
            part = _window(column.values, column.offsets[index], column.offsets[index + 1])
            return (part, *_views(columns[1:], index))

        return ragged
    if columns[0].instance_class is Scalar:
        return lambda columns, index: (columns[0].values[index], *_views(columns[1:], index))
    return lambda columns, index: (columns[0].value, *_views(columns[1:], index))


# --- hashing and features ---------------------------------------------------------------------------------------------

GOLDEN, SPREAD = np.uint64(hashing.GOLDEN), np.uint64(hashing.SPREAD)
MULTIPLY_1, MULTIPLY_2 = np.uint64(hashing.MULTIPLY_1), np.uint64(hashing.MULTIPLY_2)


@njit(inline="always")
def _mix(a, b):
    z = np.uint64(a) * SPREAD + np.uint64(b) * GOLDEN + GOLDEN
    z = (z ^ (z >> np.uint64(30))) * MULTIPLY_1
    z = (z ^ (z >> np.uint64(27))) * MULTIPLY_2
    return np.int64(z ^ (z >> np.uint64(31)))


@overload(hashing.mix)
def _mix_of(a, b):
    return lambda a, b: _mix(np.int64(a), np.int64(b))


@overload(hashing.add_product)
def _add_product_of(total, factor, value):
    return lambda total, factor, value: np.int64(total) + np.int64(factor) * np.int64(value)


@overload(hashing.unit)
def _unit_of(key):
    return lambda key: np.float64(np.uint64(key) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@overload(hashing.spread)
def _spread_of(key, shift):
    return lambda key, shift: np.int64((np.uint64(np.int64(key)) * GOLDEN) >> np.uint64(shift))


@overload(feature_functions.feature)
def _feature(template, *values):
    count = len(values[0] if len(values) == 1 and isinstance(values[0], types.BaseTuple) else values)
    if count > 6:
        raise SpaceError("feature() takes at most six values: hash some of them together with lols.hashing.mix")

    def chain(template, *values):
        return _chain(_mix(np.int64(template), count), values)

    return chain


def _chain(identity: int, values: Any) -> int:
    for value in values:
        identity = hashing.mix(identity, value)
    return identity


@overload(_chain)
def _chain_of(identity, values):
    if len(values) == 0:
        return lambda identity, values: identity
    return lambda identity, values: _chain(_mix(identity, np.int64(values[0])), values[1:])


for _function in (feature_functions.emit, feature_functions.look, feature_functions.uniform):
    dual(_function)


# --- threads ----------------------------------------------------------------------------------------------------------


def take(counter: Any) -> int:
    """Take the next number of a counter shared by threads; compiled, as one atomic operation."""
    counter[0] += 1
    return int(counter[0]) - 1


@intrinsic
def _fetch_add(typing_context, counter):
    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, context.get_constant(types.int64, 1), "seq_cst")

    return types.int64(counter), generate


@overload(take, jit_options=INLINED)
def _take(counter):
    return lambda counter: _fetch_add(counter)
