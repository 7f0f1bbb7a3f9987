"""Compiled versions of the functions in `words`: operations on many bytes at once.

Imported only when something has to be compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from lols.engine.compile.words import BLOCK, copy, equal_bits, lowest_bit, rare_bits, word_at


def _load(context, builder, signature, arguments, kind):
    """Bytes of an array, at any alignment, as a value of another type."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    at = context.cast(builder, arguments[1], signature.args[1], types.intp)
    loaded = builder.load(builder.bitcast(builder.gep(array.data, [at]), kind.as_pointer()))
    loaded.align = 1
    return loaded


def _compare(builder, how, loaded, byte):
    """Compare 64 bytes with one; the results are the bits of a word."""
    lane = builder.insert_element(ir.Constant(loaded.type, ir.Undefined), byte, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
    return builder.bitcast(how(loaded, builder.shuffle_vector(lane, lane, order)), ir.IntType(BLOCK))


@intrinsic
def _word_at(typing_context, buffer, at):
    def generate(context, builder, signature, arguments):
        return _load(context, builder, signature, arguments, ir.IntType(BLOCK))

    return types.uint64(buffer, at), generate


@intrinsic
def _equal_bits(typing_context, buffer, at, byte):
    def generate(context, builder, signature, arguments):
        loaded = _load(context, builder, signature, arguments, ir.VectorType(ir.IntType(8), BLOCK))
        byte = context.cast(builder, arguments[2], signature.args[2], types.uint8)
        return _compare(builder, lambda a, b: builder.icmp_unsigned("==", a, b), loaded, byte)

    return types.uint64(buffer, at, byte), generate


@intrinsic
def _rare_bits(typing_context, buffer, at):
    def generate(context, builder, signature, arguments):
        loaded = _load(context, builder, signature, arguments, ir.VectorType(ir.IntType(8), BLOCK))
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


def register(options: Mapping[str, Any]) -> None:
    """Register these functions with Numba."""
    inlined = functools.partial(overload, jit_options={**options, "forceinline": True})
    inlined(word_at)(lambda buffer, at: lambda buffer, at: _word_at(buffer, at))
    inlined(rare_bits)(lambda buffer, at: lambda buffer, at: _rare_bits(buffer, at))
    inlined(lowest_bit)(lambda bits: lambda bits: _lowest_bit(bits))
    inlined(equal_bits)(lambda buffer, at, byte: lambda buffer, at, byte: _equal_bits(buffer, at, byte))

    @inlined(copy)
    def _overload_copy(out, target, source, begin, end):
        return lambda out, target, source, begin, end: _copy(out, target, source, begin, end)
