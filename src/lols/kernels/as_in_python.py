"""Functions that raise in Python where compiled code gives NaN or a wrong number: in kernels they raise, too.

Numba's `math.log(-1.0)` is NaN, and a comparison with it is quietly false. In the functions of users, calls of such
functions are replaced before their types are inferred. Where one raises, the driver runs the example again as plain
Python, whose error names the line. Imported only when something has to be compiled.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import find_callname, guard
from numba.extending import overload

# Of one argument, with a finite result wherever Python gives one.
REAL = (
    *("acos", "acosh", "asin", "atan", "atanh", "cos", "cosh", "exp", "expm1", "gamma", "lgamma"),
    *("log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan"),
)
WHOLE = (("floor", "math"), ("ceil", "math"), ("trunc", "math"), ("int", "builtins"), ("round", "builtins"))
MOST = float(1 << 63)

INSTEAD: dict[tuple[str, str], Any] = {}  # by name and module


def _real(name: str) -> Any:
    own = getattr(math, name)

    def call(x):
        result = own(x)
        if not math.isfinite(result) and (result != result if math.isinf(x) else x == x):
            raise ValueError("math domain error")
        return result

    return call


def _power(x, y):
    result = math.pow(x, y)
    if not math.isfinite(result) and math.isfinite(x) and math.isfinite(y):
        raise ValueError("math domain error")
    return result


def _whole(own: Any) -> Any:
    def call(x):
        if not -MOST <= x < MOST:
            raise ValueError("cannot convert float to integer")
        return own(x)

    return call


def _stand_in(name: str, module: str, own: Any, call: Any, options: Any) -> None:
    """A function for users' code in place of `own`: `call`, except that what is whole already is left to `own`."""

    def stand_in(*arguments):
        return own(*arguments)

    def choose(*arguments):
        whole = (name, module) in WHOLE and not isinstance(arguments[0], types.Float)
        return (lambda x: own(x)) if whole else call

    overload(stand_in, jit_options=options, strict=False)(choose)
    INSTEAD[name, module] = stand_in


def register(options: Any) -> None:
    """Register the stand-ins with Numba."""
    for name in REAL:
        _stand_in(name, "math", getattr(math, name), _real(name), options)
    _stand_in("pow", "math", math.pow, _power, options)
    for (name, module), own in zip(WHOLE, (math.floor, math.ceil, math.trunc, int, round), strict=True):
        _stand_in(name, module, own, _whole(own), options)


@register_pass(mutates_CFG=False, analysis_only=False)
class AsInPython(FunctionPass):  # type: ignore[misc]
    """Call the stand-ins in functions of users."""

    _name = "lols_as_in_python"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        changed = False
        for block in state.func_ir.blocks.values():
            for place, statement in reversed(list(enumerate(block.body))):
                if not (isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr)):
                    continue
                expression = statement.value
                if expression.op != "call" or expression.kws or expression.vararg is not None:
                    continue
                name = guard(find_callname, state.func_ir, expression)
                if name not in INSTEAD or len(expression.args) != (2 if name[0] == "pow" else 1):
                    continue
                variable = ir.Var(block.scope, f"$lols.{name[0]}.{place}.{statement.loc.line}", statement.loc)
                value = ir.Global(name[0], INSTEAD[name], statement.loc)
                state.func_ir._definitions[variable.name] = [value]
                block.body.insert(place, ir.Assign(value, variable, statement.loc))
                expression.func, changed = variable, True
        return changed
