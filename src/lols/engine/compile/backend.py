"""From Python to machine code with Numba: types of values behind pointers, compiled versions of dual functions.

Imported only when something has to be compiled.
"""

from __future__ import annotations

import gc
import hashlib
import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, lower_getattr_generic, models, overload, register_model
from numba.np import arrayobj, numpy_support

from lols.contract import features as feature_functions
from lols.contract import hashing
from lols.contract.state import CELLS, Reals
from lols.engine.compile import bits, dual
from lols.engine.compile.layout import ArrayLayout, Fields, FunctionsLayout, NumberLayout
from lols.errors import SpaceError

__all__ = ["compile_kernel", "compile_plainly"]

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
    collecting = gc.isenabled()
    gc.disable()  # the collector would take a fifth of the time and find nothing
    try:
        register_twins()
        entry = _entry(function, layout)
        if PIPELINE is None:
            made: bytes | int
            (made, result), needs = compile_plainly(entry), "p"
        else:
            checked = bool(config.BOUNDSCHECK)
            made, result, needs = PIPELINE.object_code(entry, types.int64, name, boundscheck=checked)
    finally:
        if collecting:
            gc.enable()
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


# --- values behind pointers -------------------------------------------------------------------------------------------

POINTER = ir.IntType(8).as_pointer()
I64 = ir.IntType(64)


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
    """The functions of a space or reference, identified by their digest, so that code is never stale."""

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
        kind = column.kind.__name__
        if kind == "Shared":
            return numba_type(column.layouts[0])
        values = numba_type(column.layouts[0])
        return values.dtype if kind == "Scalar" else values


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
    kind, first = column.kind.__name__, column.layouts[0]
    if kind == "Shared":
        return _value(context, builder, pair.columns, at, first, False)
    element = context.get_data_type(numba_type(first).dtype)
    data = _load(builder, pair.columns, at, element.as_pointer())
    if kind == "Scalar":
        dtype = numba_type(first).dtype
        return context.data_model_manager[dtype].from_data(
            builder, _unchanging(builder, builder.gep(data, [pair.index]))
        )
    bounds = _load(builder, pair.columns, at + first.size, I64.as_pointer())
    begin = _unchanging(builder, builder.gep(bounds, [pair.index]))
    end = _unchanging(builder, builder.gep(bounds, [builder.add(pair.index, ir.Constant(I64, 1))]))
    return _array(
        context,
        builder,
        numba_type(first),
        builder.bitcast(builder.gep(data, [begin]), POINTER),
        [builder.sub(end, begin)],
    )


@intrinsic
def _row(typing_context, columns, index):
    row_type = RowType(columns)

    def generate(context, builder, signature, arguments):
        made = context.make_helper(builder, row_type)
        made.columns = arguments[0]
        made.index = context.cast(builder, arguments[1], signature.args[1], types.int64)
        return made._getvalue()

    return row_type(columns, index), generate


@overload(dual.row, jit_options=OPTIONS)
def _row_of(columns, index):
    return lambda columns, index: _row(columns, index)


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


# --- states of named parts --------------------------------------------------------------------------------------------


class PartsType(types.Type):  # type: ignore[misc]
    """A state of named parts: the address of its vector, and where each part begins."""

    def __init__(self, names: tuple[str, ...], real: tuple[bool, ...]):
        self.names, self.real = names, real
        self.bounds = types.UniTuple(types.int64, len(names) + 1)
        kinds = (f"{name}: {'real' if is_real else 'int'}" for name, is_real in zip(names, real, strict=True))
        super().__init__(name=f"Parts({', '.join(kinds)})")

    def part(self, name: str) -> Any:
        """The type of a part."""
        return types.Array(types.float64 if self.real[self.names.index(name)] else types.int32, 1, "C")


@register_model(PartsType)
class _PartsModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, parts: Any):
        super().__init__(manager, parts, [("cells", types.voidptr), ("bounds", parts.bounds)])


@infer_getattr
class _PartsAttributes(AttributeTemplate):  # type: ignore[misc]
    key = PartsType

    def generic_resolve(self, parts: Any, name: str) -> Any:
        return parts.part(name) if name in parts.names else None


@lower_getattr_generic(PartsType)
def _parts_attribute(context, builder, parts, value, name):
    k = parts.names.index(name)
    pair = context.make_helper(builder, parts, value=value)
    low, high = builder.extract_value(pair.bounds, k), builder.extract_value(pair.bounds, k + 1)
    count = builder.sub(high, low)
    if parts.real[k]:
        count = builder.sdiv(count, ir.Constant(I64, CELLS))
    cells = builder.bitcast(pair.cells, ir.IntType(32).as_pointer())
    return _array(context, builder, parts.part(name), builder.bitcast(builder.gep(cells, [low]), POINTER), [count])


def _register_view(view: Any) -> None:
    """Compile, in place of a function that returns the parts of a state, one that makes a `PartsType`."""
    state = view.parts_of
    parts_type = PartsType(tuple(state.parts), tuple(isinstance(part, Reals) for part in state.parts.values()))
    bounds = state.bounds

    @intrinsic
    def make(typing_context, s, at):
        def generate(context, builder, signature, arguments):
            made = context.make_helper(builder, parts_type)
            cells = context.make_array(signature.args[0])(context, builder, arguments[0])
            made.cells = builder.bitcast(cells.data, POINTER)
            made.bounds = context.cast(builder, arguments[1], signature.args[1], parts_type.bounds)
            return made._getvalue()

        return parts_type(s, at), generate

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
