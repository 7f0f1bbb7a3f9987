"""From Python to machine code with Numba: kernels, and compiled versions of dual functions.

Imported only when something has to be compiled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import config, njit, types
from numba.extending import intrinsic, overload
from numba.np import numpy_support

from lols.contract import features as feature_functions
from lols.contract import hashing
from lols.contract.examples import without_collector
from lols.engine.compile import as_in_python, bits, dual
from lols.engine.compile.value_types import POINTER, BlockType, make_row, parts_maker
from lols.errors import SpaceError

OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _whole_kernels() -> Any:
    """The module that compiles a kernel in one pass; None if it does not work with this version of Numba."""
    if os.environ.get("LOLS_PLAIN_COMPILER", "0") not in ("", "0"):
        return None
    try:
        from lols.engine.compile import pipeline

        pipeline.object_code(lambda address: address + 1, types.int64, "lols_trial", boundscheck=False)
    except Exception as error:
        warnings.warn(f"this version of Numba compiles kernels more slowly ({error!r})", stacklevel=2)
        return None
    return pipeline


PIPELINE = _whole_kernels()
if PIPELINE is not None:
    OPTIONS["pipeline_class"] = PIPELINE.HelperCompiler


def compile_kernel(function: Any, layout: Any, name: str) -> tuple[bytes | int, str]:
    """Object code of a kernel for arguments of this layout, and two letters: the `struct` format of its result, and
    what it needs (see `pipeline`).

    If kernels cannot be compiled in one pass, the address of the machine code in this process instead.
    """
    with without_collector():  # it would take a fifth of the time
        register_twins()
        entry = _entry(function, layout)
        if PIPELINE is None:
            made: bytes | int
            (made, result), needs = compile_plainly(entry), "p"
        else:
            checked = bool(config.BOUNDSCHECK)
            made, result, needs = PIPELINE.object_code(entry, types.int64, name, boundscheck=checked)
    letter = "x" if result is types.none else numpy_support.as_dtype(result).char
    return made, letter + needs


def compile_plainly(entry: Any) -> tuple[int, Any]:
    """Compile a function of an address with Numba's own compiler: the address of the code, the type of the result."""
    made = njit(nogil=True, _nrt=False)(entry)
    made.compile((types.int64,))
    (found,) = made.overloads.values()
    KEPT.append(made)
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name)), found.signature.return_type


KEPT: list[Any] = []


def _entry(function: Any, layout: Any) -> Any:
    """A function of an address that calls a kernel with the arguments stored there."""
    block_type = BlockType(layout)

    @intrinsic
    def behind(typing_context, address):
        def generate(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], POINTER)

        return block_type(types.int64), generate

    arguments = ", ".join(f"block.{name}" for name in layout.names)
    source = f"def entry(address):\n    block = behind(address)\n    return function({arguments})\n"
    names = {"behind": behind, "function": njit(**OPTIONS)(function)}
    exec(source, names)
    return names["entry"]


# --- rows -------------------------------------------------------------------------------------------------------------


@overload(dual.row, jit_options=OPTIONS)
def _row_of(columns, index):
    return lambda columns, index: make_row(columns, index)


# --- the user's functions ---------------------------------------------------------------------------------------------

_COMPILED: dict[str, dict[str, Any]] = {}


def _functions(digest: str) -> dict[str, Any]:
    """The functions of a space or reference, ready to be compiled."""
    if digest not in _COMPILED:
        bound = dual.BOUND[digest]
        register_twins(bound.helpers())
        _COMPILED[digest] = {name: njit(**_options(function))(function) for name, function in bound.functions.items()}
    return _COMPILED[digest]


@overload(dual.has, jit_options=OPTIONS)
def _has(bound, name):
    if not isinstance(name, types.StringLiteral):
        return None
    present = name.literal_value in dual.BOUND[bound.digest].functions
    return lambda bound, name: present


def _contract(call: Any, name: str, absent: Any) -> None:
    @overload(call, jit_options=OPTIONS)
    def _call(bound, *arguments):
        function = _functions(bound.digest).get(name)
        if function is None:
            return lambda bound, *arguments: absent
        return lambda bound, *arguments: function(*arguments)


for _function, (_name, _absent) in dual.CONTRACT.items():
    _contract(_function, _name, _absent)


@overload(dual.reference_action, jit_options=OPTIONS)
def _reference_action(bound, x, y, s, rng):
    function = _functions(bound.digest).get("action")
    if function is None:
        return lambda bound, x, y, s, rng: -1
    if function.py_func.__code__.co_argcount == 4:
        return lambda bound, x, y, s, rng: function(x, y, s, rng)
    return lambda bound, x, y, s, rng: function(x, y, s)


@overload(dual.near, jit_options=OPTIONS)
def _near(number):
    far, no_action = dual.FAR, np.int64(-dual.FAR)
    if isinstance(number, types.Float):
        return lambda number: np.int64(number) if abs(number) <= far else no_action
    return lambda number: np.int64(number)


# --- dual functions ---------------------------------------------------------------------------------------------------

_REGISTERED: set[Any] = set()


def register_twins(helpers: Iterable[Any] = ()) -> None:
    """Register all dual functions that exist by now, and these helpers, with Numba."""
    for helper in helpers:
        if hasattr(helper, "parts_of"):
            _register_view(helper)
        else:
            _register(helper, helper)
    for function, compiled in list(dual.TWINS.items()):
        _register(function, compiled)

    for function, (field, functions) in dual.KINDS.items():
        _overload(function, lambda record, *_, f=field, of=functions: of[_field(record, f).layout.kind])
    for function, needed in dual.NEEDS.items():
        _overload(function, lambda record, *_, f=function, n=needed: _if_there(record, f, *n))


def _register(function: Any, compiled: Any) -> None:
    _overload(function, lambda *_arguments, **_named: compiled)


def _options(function: Any) -> dict[str, Any]:
    """How a function is compiled; `pipeline` itself knows which functions have bounds checks."""
    return OPTIONS | {"boundscheck": True} if PIPELINE is None and function in dual.CHECKED else OPTIONS


def _overload(function: Any, choose: Any) -> None:
    """Compile, in place of a function, what `choose` returns for the types of the arguments."""
    if function not in _REGISTERED:
        _REGISTERED.add(function)
        overload(function, jit_options=_options(function), strict=False)(lambda *arguments: choose(*arguments))


def _field(record: Any, name: str) -> Any:
    """The type of a field of a named tuple."""
    return record.types[record.fields.index(name)]


def _if_there(record: Any, function: Any, field: str, name: str, absent: Any) -> Any:
    if name in dual.BOUND[_field(record, field).digest].functions:
        return function
    return lambda *_arguments: absent


# --- hashing and features ---------------------------------------------------------------------------------------------

GOLDEN, SPREAD = np.uint64(hashing.GOLDEN), np.uint64(hashing.SPREAD)
MULTIPLY_1, MULTIPLY_2 = np.uint64(hashing.MULTIPLY_1), np.uint64(hashing.MULTIPLY_2)


@overload(hashing.mix, jit_options=OPTIONS)
def _mix(a, b):
    def mixed(a, b):
        z = np.uint64(np.int64(a)) * SPREAD + np.uint64(np.int64(b)) * GOLDEN + GOLDEN
        z = (z ^ (z >> np.uint64(30))) * MULTIPLY_1
        z = (z ^ (z >> np.uint64(27))) * MULTIPLY_2
        return np.int64(z ^ (z >> np.uint64(31)))

    return mixed


@overload(hashing.add_product, jit_options=OPTIONS)
def _add_product(total, factor, value):
    return lambda total, factor, value: np.int64(total) + np.int64(factor) * np.int64(value)


@overload(hashing.unit, jit_options=OPTIONS)
def _unit(key):
    return lambda key: np.float64(np.uint64(key) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@overload(hashing.spread, jit_options=OPTIONS)
def _spread(key, shift):
    return lambda key, shift: np.int64((np.uint64(np.int64(key)) * GOLDEN) >> np.uint64(shift))


@overload(feature_functions.feature, jit_options=OPTIONS)
def _feature(template, *values):
    count = len(values[0] if len(values) == 1 and isinstance(values[0], types.BaseTuple) else values)
    if count > 6:
        raise SpaceError("feature() takes at most six values: hash some of them together with lols.mix")

    def chain(template, *values):
        return _chain(hashing.mix(np.int64(template), count), values)

    return chain


def _chain(identity: int, values: Any) -> int:
    for value in values:
        identity = hashing.mix(identity, value)
    return identity


@overload(_chain, jit_options=OPTIONS)
def _chain_of(identity, values):
    if len(values) == 0:
        return lambda identity, values: identity
    return lambda identity, values: _chain(hashing.mix(identity, np.int64(values[0])), values[1:])


# --- what Numba has no compiled form of -------------------------------------------------------------------------------


@overload(float)
def _float_of_bool(value):
    if isinstance(value, types.Boolean):
        return lambda value: 1.0 if value else 0.0
    return None


# --- states of named parts --------------------------------------------------------------------------------------------


def _register_view(view: Any) -> None:
    """Compile, in place of a function that returns the parts of a state, one that makes a `PartsType`."""
    make, bounds = parts_maker(view.parts_of), view.parts_of.bounds
    _overload(view, lambda *_arguments: lambda x, s: make(s, bounds(x)))


# --- threads ----------------------------------------------------------------------------------------------------------


@intrinsic
def _fetch_add(typing_context, counter):
    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, context.get_constant(types.int64, 1), "seq_cst")

    return types.int64(counter), generate


@overload(dual.take, jit_options=OPTIONS)
def _take(counter):
    return lambda counter: _fetch_add(counter)


bits.register(OPTIONS)
as_in_python.register(OPTIONS)
