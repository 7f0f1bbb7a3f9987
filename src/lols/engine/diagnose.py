"""Finds out why a user's function cannot be compiled: which one, on which line, and what to write instead.

The error of a kernel that fails to compile is pages long. Here each function is compiled alone, for the types of its
arguments, and the source of the line that fails is inspected.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numba import njit, typeof, types

from lols.contract.examples import Examples
from lols.contract.features import feature_buffer, item_buffer
from lols.contract.misused_parts import misused_part
from lols.contract.results import shown_name, wrong_result
from lols.contract.space import SearchSpace
from lols.contract.state import own_function, parts_seen
from lols.contract.user_frames import is_users
from lols.kernels.backend import register_twins
from lols.kernels.digest import plain, reached_helpers
from lols.kernels.value_types import PartsType

MOST_VALUES = 6  # of a feature
INSTEAD = "loop over numbers instead, keep what is needed in the state, or make it in `encode`"
# What functions must return; `lols.contract.results` has it in words.
RETURNS: dict[str, Any] = {
    "loss": types.Number,
    "cost": types.Number,
    "key": types.Integer,
    "action": types.Number,
}
DISPLAYS = {
    ast.ListComp: "a list",
    ast.List: "a list",
    ast.GeneratorExp: "a generator",
    ast.Dict: "a dictionary",
    ast.DictComp: "a dictionary",
    ast.Set: "a set",
    ast.SetComp: "a set",
}
PLACE = re.compile(r'File "([^"]+)", line (\d+)|\bat (\S+) \((\d+)\)')
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
REASON = re.compile(
    r"NameError|Untyped|Unknown|Unbound|Cannot|Invalid|Use of|Undecided|Casting|The '|No definition|`\w+` of the state"
)


def diagnose(
    functions: Mapping[str, Any], reference: Mapping[str, Any], examples: Examples, actions: int
) -> str | None:
    """A message about the first function that cannot be compiled; None if each of them can."""
    x, y = examples.example(0)
    flags, numbers = np.zeros(actions, bool), np.zeros(1, np.int64)
    values = {"x": x, "y": y, "s": numbers.astype(np.int32), "a": 0, "legal": flags, "rng": numbers}
    out = {"items": item_buffer(1), "free": flags, "costs": np.zeros(actions)}
    arguments = SearchSpace.NEEDED | SearchSpace.OPTIONAL | {"action": "x, y, s, rng", "named": "x, y"}
    arguments |= dict.fromkeys(("free", "costs"), "x, y, s, out")
    for name, function in [*functions.items(), *reference.items()]:
        if name in ("loss", "cost") and not examples.has_truth:
            continue
        own, state = own_function(function), parts_seen(plain(function))
        values["out"] = out.get(name, feature_buffer(1))
        kinds = arguments[name].split(", ")[: own.__code__.co_argcount]
        signature = {kind: PartsType(state) if kind == "s" and state else typeof(values[kind]) for kind in kinds}
        reason = _reason(name, plain(function), tuple(signature.values()), x, y)
        if reason is not None:
            return f"`{shown_name(name, own)}` cannot be compiled: {reason}. compiled=False runs it as plain Python"
    return None


def _reason(name: str, function: Any, signature: tuple[Any, ...], x: Any, y: Any) -> str | None:
    own = own_function(function)
    register_twins(reached_helpers(own))
    dispatcher: Any = njit(_nrt=False)(own)
    try:
        dispatcher.compile(signature)
    except Exception as error:
        file, line = _user_line(error, own)
        message, line = _advice(name, function, file, line, x, y) or (_message(error), line)
        return f"{message} ({file}:{line})"
    if name in RETURNS:
        result = dispatcher.nopython_signatures[0].return_type
        if not isinstance(result, RETURNS[name]) and not isinstance(result, types.Boolean):
            some = "nothing in some cases" if isinstance(result, types.Optional) else result
            kind = "nothing" if result == types.none else "an array" if isinstance(result, types.Array) else some
            return f"it {wrong_result(name, function, kind)}"
    return None


def _user_line(error: Exception, function: Any) -> tuple[str, int]:
    """The innermost line of the user's code that a compilation error names."""
    code = function.__code__
    for match in PLACE.finditer(COLOURS.sub("", str(error))):
        file, line = match[1] or match[3], int(match[2] or match[4])
        path = file if file.startswith("<") else os.path.abspath(file)
        if file == code.co_filename or path == os.path.abspath(code.co_filename) or (is_users(path) and path != file):
            return (code.co_filename if path == os.path.abspath(code.co_filename) else path), line
    loc = getattr(error, "loc", None)
    if loc is not None and loc.filename == code.co_filename:
        return code.co_filename, int(loc.line)
    return code.co_filename, code.co_firstlineno


def _message(error: Exception) -> str:
    """The informative part of a compilation error."""
    lines = [line.strip() for line in COLOURS.sub("", str(error)).splitlines() if line.strip()]
    text = " ".join(lines)
    if "NRT required" in text or "Only accept returning of array passed" in text:
        return f"it makes an array, a list, a dictionary or a string: {INSTEAD}"
    reasons = [line for line in lines if REASON.match(line)]
    calls = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ") and len(line) < 120]
    if not reasons and calls:
        return f"no compiled form of {calls[0]}"
    return re.sub(r"\.* Raised from.*|[.:]$", "", (reasons or lines[-1:] or [type(error).__name__])[0])


# --- the source of a line ---------------------------------------------------------------------------------------------


def _advice(name: str, function: Any, file: str, line: int, x: Any, y: Any) -> tuple[str, int] | None:
    """What to write instead if a line has one of the usual mistakes; and the line of the mistake."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    nodes = list(_nodes_at(tree, line))
    part = misused_part(name, function, file, {getattr(node, "lineno", line) for node in nodes})
    if part is not None:
        return part
    names = {**vars(builtins), **own_function(function).__globals__}
    for check in (_check_call, _check_read, _check_display):
        for node in nodes:
            message: str | None = check(node, names, {"x": x, "y": y})
            if message is not None:
                return message, getattr(node, "lineno", line)
    return None


def _nodes_at(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """The nodes of a line, or of a whole function if the line is its first one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.lineno == line:
            yield from ast.walk(node)
        elif getattr(node, "lineno", -1) <= line <= getattr(node, "end_lineno", -1) and _is_simple(node):
            yield node


def _is_simple(node: ast.AST) -> bool:
    """Whether a node contains no statements, which belong to other lines."""
    return not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.If)


def _check_call(node: ast.AST, _names: Mapping[str, Any], _records: Mapping[str, Any]) -> str | None:
    if isinstance(node, ast.With | ast.Try | ast.Yield | ast.YieldFrom | ast.Await):
        return f"`{type(node).__name__.lower()}` has no compiled form: {INSTEAD}"
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func)
    if name in ("min", "max", "sorted") and any(given.arg == "key" for given in node.keywords):
        return f"`{name}` with `key` has no compiled form: write a loop"
    if name == "print":
        return "`print` works with compiled=False only: remove it for compiled runs"
    if name in ("lols.feature", "feature") and len(node.args) > 1 + MOST_VALUES:
        return f"feature() takes at most {MOST_VALUES} values: hash some of them together with lols.mix"
    if name in ("lols.text", "text"):
        return "strings are hashed in `encode`: keep the number in a column of x"
    if re.match(r"(np\.|numpy\.)?random\.", name):
        return "random numbers come from lols.uniform(rng) only, in a teacher `reference(x, y, s, rng)`"
    if re.match(r"(np|numpy)\.(zeros|ones|empty|array|arange|full|concatenate|stack|unique|where|sort)$", name):
        return f"`{name}` makes an array: {INSTEAD}"
    return None


def _check_display(node: ast.AST, _names: Mapping[str, Any], _records: Mapping[str, Any]) -> str | None:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return "it uses a string: compiled functions work on numbers only, so hash strings in `encode` (lols.text)"
    for kind, words in DISPLAYS.items():
        if isinstance(node, kind) and not isinstance(getattr(node, "ctx", None), ast.Store):
            return f"it makes {words}: {INSTEAD}"
    return None


def _check_read(node: ast.AST, names: Mapping[str, Any], records: Mapping[str, Any]) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in records:
        side, record = node.value.id, records[node.value.id]
        if isinstance(node.ctx, ast.Store):
            return f"it writes to `{side}.{node.attr}`, which it may only read: keep results in the state"
        fields = getattr(record, "_fields", ())
        if node.attr not in fields:
            return f"`{side}` has no column `{node.attr}`: it has {', '.join(fields) or 'none'}"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
        value = names[node.id]
        if isinstance(value, dict | list | set | frozenset | str | bytes):
            kind = type(value).__name__
            return f"it reads `{node.id}`, a {kind}: numbers, tuples and NumPy arrays of the file can be read"
        if isinstance(value, type) and getattr(builtins, node.id, None) is not value and value.__module__ != "numpy":
            return f"it reads `{node.id}`, a class: numbers, tuples and NumPy arrays of the file can be read"
    return None
