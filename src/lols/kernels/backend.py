"""From Python to machine code with Numba: kernels, and compiled versions of dual functions.

Imported only when something has to be compiled.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np import numpy_support

from lols.errors import SpaceError, warn
from lols.kernels import as_in_python, dual, hashing, words
from lols.kernels import layout as layouts
from lols.kernels.collector import without_collector
from lols.kernels.value_types import POINTER, BlockType, make_row, parts_maker

OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _whole_kernels() -> Any:
    """The module that compiles a kernel in one pass; None if it does not work with this version of Numba."""
    if os.environ.get("LOLS_PLAIN_COMPILER", "0") not in ("", "0"):
        return None
    try:
        from lols.kernels import pipeline

        pipeline.object_code(lambda address: address + 1, types.int64, "lols_trial", boundscheck=False)
    except Exception as error:
        warn(f"this version of Numba compiles kernels more slowly ({error!r})")
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


@overload(layouts.row, jit_options=OPTIONS)
def _row_of(columns, index):
    return lambda columns, index: make_row(columns, index)


# --- functions that a kernel is given ---------------------------------------------------------------------------------

_COMPILED: dict[str, dict[str, Any]] = {}


def _functions(digest: str) -> dict[str, Any]:
    """The functions that are bound together, ready to be compiled."""
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


def _call_of(call: Any, name: str, absent: Any) -> None:
    @overload(call, jit_options=OPTIONS)
    def _call(bound, *arguments):
        function = _functions(bound.digest).get(name)
        if function is None:
            return lambda bound, *arguments: absent
        if function.py_func.__code__.co_argcount < len(arguments):  # of `shortened_call_of`
            return lambda bound, *arguments: function(*arguments[:-1])
        return lambda bound, *arguments: function(*arguments)


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

    for function, (name, absent) in dual.CALLS.items():
        if function not in _REGISTERED:
            _REGISTERED.add(function)
            _call_of(function, name, absent)
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


# --- hashing ----------------------------------------------------------------------------------------------------------

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


@overload(hashing.chain, jit_options=OPTIONS)
def _chain(identity, values):
    if len(values) > hashing.MOST:
        raise SpaceError("feature() takes at most six values: hash some of them together with lols.mix")
    if len(values) == 0:
        return lambda identity, values: identity
    return lambda identity, values: hashing.chain(hashing.mix(identity, np.int64(values[0])), values[1:])


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


# --- many bytes at once -----------------------------------------------------------------------------------------------


def _bytes_at(context, builder, signature, arguments, kind):
    """Bytes of an array, at any alignment, as a value of another type."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    at = context.cast(builder, arguments[1], signature.args[1], types.intp)
    loaded = builder.load(builder.bitcast(builder.gep(array.data, [at]), kind.as_pointer()))
    loaded.align = 1
    return loaded


def _compare(builder, how, loaded, byte):
    """Compare 64 bytes with one; the results are the bits of a word."""
    lane = builder.insert_element(ir.Constant(loaded.type, ir.Undefined), byte, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), words.BLOCK), [0] * words.BLOCK)
    return builder.bitcast(how(loaded, builder.shuffle_vector(lane, lane, order)), ir.IntType(words.BLOCK))


@intrinsic
def _word_at(typing_context, buffer, at):
    def generate(context, builder, signature, arguments):
        return _bytes_at(context, builder, signature, arguments, ir.IntType(words.BLOCK))

    return types.uint64(buffer, at), generate


@intrinsic
def _equal_bits(typing_context, buffer, at, byte):
    def generate(context, builder, signature, arguments):
        loaded = _bytes_at(context, builder, signature, arguments, ir.VectorType(ir.IntType(8), words.BLOCK))
        byte = context.cast(builder, arguments[2], signature.args[2], types.uint8)
        return _compare(builder, lambda a, b: builder.icmp_unsigned("==", a, b), loaded, byte)

    return types.uint64(buffer, at, byte), generate


@intrinsic
def _rare_bits(typing_context, buffer, at):
    def generate(context, builder, signature, arguments):
        loaded = _bytes_at(context, builder, signature, arguments, ir.VectorType(ir.IntType(8), words.BLOCK))
        return _compare(builder, lambda a, b: builder.icmp_signed("<=", a, b), loaded, ir.IntType(8)(0))

    return types.uint64(buffer, at), generate


@intrinsic
def _lowest_bit(typing_context, bits):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(bits), generate


@intrinsic
def _copy(typing_context, out, target, source, begin, end):
    def generate(context, builder, signature, arguments):
        into, source = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 2))
        target, begin, end = (arguments[k] for k in (1, 3, 4))
        size = builder.sub(end, begin)
        cgutils.raw_memcpy(builder, builder.gep(into, [target]), builder.gep(source, [begin]), size, 1)
        return context.get_dummy_value()

    return types.void(out, types.int64, source, types.int64, types.int64), generate


_inlined = functools.partial(overload, jit_options={**OPTIONS, "forceinline": True})
_inlined(words.word_at)(lambda buffer, at: lambda buffer, at: _word_at(buffer, at))
_inlined(words.rare_bits)(lambda buffer, at: lambda buffer, at: _rare_bits(buffer, at))
_inlined(words.lowest_bit)(lambda bits: lambda bits: _lowest_bit(bits))
_inlined(words.equal_bits)(lambda buffer, at, byte: lambda buffer, at, byte: _equal_bits(buffer, at, byte))


@_inlined(words.copy)
def _overload_copy(out, target, source, begin, end):
    return lambda out, target, source, begin, end: _copy(out, target, source, begin, end)


as_in_python.register(OPTIONS)
