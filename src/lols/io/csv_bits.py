"""What a processor can do with many bytes at once, for kernels; called from Python, the same in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

__all__ = ["BLOCK", "WORD", "equal_bits", "lowest_bit", "rare_bits", "word_at"]

BLOCK, WORD = 64, 8
INLINED: Any = {"forceinline": True}


def word_at(buffer: Any, at: Any) -> Any:
    """Eight bytes as one word, the first one lowest."""
    return np.uint64(int.from_bytes(buffer[at : at + WORD].tobytes(), "little"))


def equal_bits(buffer: Any, at: Any, byte: Any) -> Any:
    """Which of 64 bytes equal a byte."""
    return word_at(np.packbits(buffer[at : at + BLOCK] == byte, bitorder="little"), 0)


def rare_bits(buffer: Any, at: Any) -> Any:
    """Which of 64 bytes are zero or not ASCII."""
    return word_at(np.packbits(buffer[at : at + BLOCK].view(np.int8) <= 0, bitorder="little"), 0)


def lowest_bit(bits: Any) -> int:
    """The place of the lowest bit that is set."""
    return (int(bits) & -int(bits)).bit_length() - 1


def _load(context, builder, signature, arguments, kind):
    """Bytes of an array, wherever they are, as a value of another type."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    at = context.cast(builder, arguments[1], signature.args[1], types.intp)
    loaded = builder.load(builder.bitcast(builder.gep(array.data, [at]), kind.as_pointer()))
    loaded.align = 1
    return loaded


def _compare(builder, how, loaded, byte):
    """Compare 64 bytes with one, the results as the bits of a word."""
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


overload(word_at, jit_options=INLINED)(lambda buffer, at: lambda buffer, at: _word_at(buffer, at))
overload(rare_bits, jit_options=INLINED)(lambda buffer, at: lambda buffer, at: _rare_bits(buffer, at))
overload(lowest_bit, jit_options=INLINED)(lambda bits: lambda bits: _lowest_bit(bits))
overload(equal_bits, jit_options=INLINED)(
    lambda buffer, at, byte: lambda buffer, at, byte: _equal_bits(buffer, at, byte)
)
