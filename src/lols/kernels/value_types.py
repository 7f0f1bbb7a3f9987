"""What values are to Numba: records and arrays behind pointers, rows of columns, functions, states of named parts.

A record is a pointer to words, whose layout is known when a kernel is compiled; nothing is copied but what is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from llvmlite import ir
from numba import types
from numba.core import ir as numba_ir
from numba.core.errors import TypingError
from numba.core.imputils import lower_setattr_generic
from numba.core.rewrites import Rewrite, register_rewrite
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, register_model
from numba.np import arrayobj, numpy_support

from lols.kernels.layout import ArrayLayout, Fields, FunctionsLayout, NumberLayout, Scalar, Shared

POINTER = ir.IntType(8).as_pointer()
I32, I64 = ir.IntType(32), ir.IntType(64)


def short_name(kind: str, layout: Fields) -> str:
    """A short name for the type of a layout, because names of types are part of the names of compiled functions."""
    return f"{kind}({layout.kind.__name__[:12]} {hashlib.sha256(layout.name.encode()).hexdigest()[:12]})"


class BlockType(types.Type):  # type: ignore[misc]
    """Named values behind a pointer."""

    def __init__(self, layout: Fields):
        self.layout = layout
        super().__init__(name=short_name("Block", layout))


class RowType(types.Type):  # type: ignore[misc]
    """One example of a record of columns: the columns and a number."""

    def __init__(self, columns: BlockType):
        self.columns = columns
        super().__init__(name=short_name("Row", columns.layout))


class FunctionsType(types.Type):  # type: ignore[misc]
    """Functions that a kernel is given, identified by their digest, so that code is never stale."""

    def __init__(self, layout: FunctionsLayout):
        self.digest = layout.digest
        super().__init__(name=f"Functions({layout.name})")


@register_model(BlockType)
class _BlockModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, block: Any):
        super().__init__(manager, block, POINTER)


@register_model(RowType)
class _RowModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, row: Any):
        super().__init__(manager, row, [("columns", row.columns), ("index", types.int64)])


register_model(FunctionsType)(models.OpaqueModel)


def numba_type(layout: Any) -> Any:
    """The Numba type of a value of this layout."""
    if isinstance(layout, NumberLayout):
        return {"int": types.int64, "float": types.float64, "bool": types.boolean}[layout.kind]
    if isinstance(layout, ArrayLayout):
        return types.Array(numpy_support.from_dtype(layout.dtype), layout.ndim, "C", readonly=not layout.writeable)
    return FunctionsType(layout) if isinstance(layout, FunctionsLayout) else BlockType(layout)


@infer_getattr
class _BlockAttributes(AttributeTemplate):  # type: ignore[misc]
    key = BlockType

    def generic_resolve(self, block: Any, name: str) -> Any:
        if name in block.layout.offsets:
            return numba_type(block.layout.layouts[block.layout.names.index(name)])
        return None


@infer_getattr
class _RowAttributes(AttributeTemplate):  # type: ignore[misc]
    key = RowType

    def generic_resolve(self, row: Any, name: str) -> Any:
        layout = row.columns.layout
        if name not in layout.offsets:
            return None
        column = layout.layouts[layout.names.index(name)]
        values = numba_type(column.layouts[0])
        return values.dtype if column.kind is Scalar else values


def _load(builder: Any, pointer: Any, at: int, kind: Any = I64) -> Any:
    """A word that does not change while the kernel runs, so that LLVM may keep it in a register."""
    place = builder.gep(builder.bitcast(pointer, I64.as_pointer()), [ir.Constant(I64, at)])
    return _unchanging(builder, builder.bitcast(place, kind.as_pointer()))


def _unchanging(builder: Any, place: Any) -> Any:
    loaded = builder.load(place)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _value(context: Any, builder: Any, pointer: Any, at: int, layout: Any, by_address: bool) -> Any:
    """The value of a layout, `at` words behind a pointer."""
    if isinstance(layout, NumberLayout):
        if layout.kind == "float":
            return _load(builder, pointer, at, ir.DoubleType())
        word = _load(builder, pointer, at)
        return builder.icmp_signed("!=", word, ir.Constant(I64, 0)) if layout.kind == "bool" else word
    if isinstance(layout, ArrayLayout):
        data = _load(builder, pointer, at, POINTER)
        shape = [_load(builder, pointer, at + 1 + axis) for axis in range(layout.ndim)]
        return _array(context, builder, numba_type(layout), data, shape)
    if isinstance(layout, FunctionsLayout):
        return context.get_dummy_value()
    if by_address:
        # "dereferenceable" lets LLVM load ahead of the branch that needs the value.
        inner = _load(builder, pointer, at, POINTER)
        inner.set_metadata("dereferenceable", builder.module.add_metadata([ir.Constant(I64, 8 * max(layout.size, 1))]))
        return inner
    place = builder.gep(builder.bitcast(pointer, I64.as_pointer()), [ir.Constant(I64, at)])
    return builder.bitcast(place, POINTER)


def _array(context: Any, builder: Any, array_type: Any, data: Any, shape: list[Any]) -> Any:
    """A C-contiguous array that does not own its memory."""
    made = context.make_array(array_type)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    strides: list[Any] = []
    stride = ir.Constant(I64, size)
    for extent in reversed(shape):
        strides.insert(0, stride)
        stride = builder.mul(stride, extent)
    kind = context.get_data_type(array_type.dtype).as_pointer()
    arrayobj.populate_array(
        made,
        data=builder.bitcast(data, kind),
        shape=shape,
        strides=strides,
        itemsize=ir.Constant(I64, size),
        meminfo=None,
    )
    return made._getvalue()


@lower_getattr_generic(BlockType)
def _block_attribute(context, builder, block, pointer, name):
    layout = block.layout
    number = layout.names.index(name)
    return _value(context, builder, pointer, layout.offsets[name], layout.layouts[number], layout.by_address[number])


@lower_getattr_generic(RowType)
def _row_attribute(context, builder, row, value, name):
    layout = row.columns.layout
    column, at = layout.layouts[layout.names.index(name)], layout.offsets[name]
    pair = context.make_helper(builder, row, value=value)
    first = column.layouts[0]
    if column.kind is Shared:
        return _value(context, builder, pair.columns, at, first, False)
    dtype = numba_type(first).dtype
    data = _load(builder, pair.columns, at, context.get_data_type(dtype).as_pointer())
    if column.kind is Scalar:
        number = _unchanging(builder, builder.gep(data, [pair.index]))
        return context.data_model_manager[dtype].from_data(builder, number)
    bounds = _load(builder, pair.columns, at + first.size, I64.as_pointer())
    begin = _unchanging(builder, builder.gep(bounds, [pair.index]))
    end = _unchanging(builder, builder.gep(bounds, [builder.add(pair.index, ir.Constant(I64, 1))]))
    values = builder.bitcast(builder.gep(data, [begin]), POINTER)
    return _array(context, builder, numba_type(first), values, [builder.sub(end, begin)])


@intrinsic
def make_row(typing_context, columns, index):
    """One example of a record of columns."""
    row_type = RowType(columns)

    def generate(context, builder, signature, arguments):
        made = context.make_helper(builder, row_type)
        made.columns = arguments[0]
        made.index = context.cast(builder, arguments[1], signature.args[1], types.int64)
        return made._getvalue()

    return row_type(columns, index), generate


# --- states of named parts --------------------------------------------------------------------------------------------


class NamedParts(Protocol):
    """What knows the named parts of a vector: how each is kept, and what is said of values that it cannot keep."""

    @property
    def parts(self) -> Mapping[str, Any]: ...  # each with `real`, `number`, `cells` and `one_cell`

    def not_kept(self, name: str, given: str) -> str: ...

    def too_large(self, name: str) -> str: ...


class PartsType(types.Type):  # type: ignore[misc]
    """A state of named parts: the address of its vector, and where each part begins."""

    def __init__(self, state: NamedParts):
        self.state, self.names = state, tuple(state.parts)
        self.bounds = types.UniTuple(types.int64, len(self.names) + 1)
        kinds = (
            f"{name}: {'real' if part.real else 'int'}{'' if part.number else '[1]' if part.one_cell else '[]'}"
            for name, part in state.parts.items()
        )
        super().__init__(name=f"Parts({', '.join(kinds)})")

    def part(self, name: str) -> Any:
        """The type of a part."""
        part = self.state.parts[name]
        if part.number:
            return types.float64 if part.real else types.int64
        return types.Array(types.float64 if part.real else types.int32, 1, "C")


@register_model(PartsType)
class _PartsModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, parts: Any):
        super().__init__(manager, parts, [("cells", types.voidptr), ("bounds", parts.bounds)])


@infer_getattr
class _PartsAttributes(AttributeTemplate):  # type: ignore[misc]
    key = PartsType

    def generic_resolve(self, parts: Any, name: str) -> Any:
        return parts.part(name) if name in parts.names else None


def _place(context: Any, builder: Any, parts: Any, value: Any, name: str) -> tuple[Any, Any]:
    """The address of the first cell of a part, and how many entries it has."""
    k, part = parts.names.index(name), parts.state.parts[name]
    pair = context.make_helper(builder, parts, value=value)
    low, high = builder.extract_value(pair.bounds, k), builder.extract_value(pair.bounds, k + 1)
    place = builder.gep(builder.bitcast(pair.cells, I32.as_pointer()), [low])
    place = builder.bitcast(place, (ir.DoubleType() if part.real else I32).as_pointer())
    return place, builder.sdiv(builder.sub(high, low), ir.Constant(I64, part.cells))


@lower_getattr_generic(PartsType)
def _parts_attribute(context, builder, parts, value, name):
    place, count = _place(context, builder, parts, value, name)
    part = parts.state.parts[name]
    if part.number:
        number = builder.load(place)
        return number if part.real else builder.sext(number, I64)
    return _array(context, builder, parts.part(name), builder.bitcast(place, POINTER), [count])


@lower_setattr_generic(PartsType)
def _write_part(context, builder, signature, arguments, name):
    parts = signature.args[0]
    place, _ = _place(context, builder, parts, arguments[0], name)
    if parts.state.parts[name].real:
        builder.store(arguments[1], place)
        return
    cell = builder.trunc(arguments[1], I32)
    lost = builder.icmp_signed("!=", builder.sext(cell, I64), arguments[1])
    with builder.if_then(lost, likely=False):
        context.call_conv.return_user_exc(builder, OverflowError, (parts.state.too_large(name),))
    builder.store(cell, place)


@register_rewrite("after-inference")
class _CheckParts(Rewrite):  # type: ignore[misc]
    """Refuse what a part cannot keep. Numba itself would cast a half to a whole number in silence."""

    def match(self, func_ir: Any, block: Any, typemap: Any, calltypes: Any) -> bool:
        """Look at what is written to parts; nothing is ever rewritten."""
        for written in block.find_insts(numba_ir.SetAttr):
            parts, value = typemap[written.target.name], typemap[written.value.name]
            if isinstance(parts, PartsType) and not _is_kept(parts, written.attr, value):
                raise TypingError(parts.state.not_kept(written.attr, f"a value of type {value}"), loc=written.loc)
        return False


def _is_kept(parts: PartsType, name: str, value: Any) -> bool:
    part = parts.state.parts[name]
    whole = isinstance(value, types.Integer | types.Boolean)
    return part.number and (whole or (part.real and isinstance(value, types.Float)))


def parts_maker(state: NamedParts) -> Any:
    """What makes, in a kernel, the parts of a state from its vector and where each of them begins."""
    parts_type = PartsType(state)

    @intrinsic
    def make(typing_context, s, at):
        def generate(context, builder, signature, arguments):
            made = context.make_helper(builder, parts_type)
            cells = context.make_array(signature.args[0])(context, builder, arguments[0])
            made.cells = builder.bitcast(cells.data, POINTER)
            made.bounds = context.cast(builder, arguments[1], signature.args[1], parts_type.bounds)
            return made._getvalue()

        return parts_type(s, at), generate

    return make
