"""Why a user's function cannot be compiled: which one, on which line, and what to write instead.

A kernel that fails to compile says so in pages. Here each function is compiled alone, for the types it is given, and
what stands on the line that fails is looked at in its source.
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

from lols.contract.digest import plain, reached_helpers
from lols.contract.examples import Examples
from lols.contract.features import feature_buffer, item_buffer
from lols.contract.user_frames import is_users
from lols.engine.compile.backend import register_twins

__all__ = ["diagnose"]

MOST = 6  # values of a feature
MADE = "loop over numbers instead, keep what is needed in the state, or make it in `encode`"
# What a function must return, and what is said if it does not.
RETURNS: dict[str, tuple[Any, str]] = {
    "loss": (types.Number, "a number"),
    "cost": (types.Number, "a number"),
    "key": (types.Integer, "a whole number"),
    "action": (types.Number, "the number of an action"),
}
MAKERS = {
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
REASON = re.compile(r"(NameError|Untyped|Unknown|Unbound|Cannot|Invalid|Use of|Undecided|Casting|The '|No definition)")


def diagnose(
    functions: Mapping[str, Any], reference: Mapping[str, Any], examples: Examples, actions: int
) -> str | None:
    """The first function that cannot be compiled, in words; None if each of them can."""
    x, y = examples.example(0)
    flags, numbers = np.zeros(actions, bool), np.zeros(1, np.int64)
    values = {"x": x, "y": y, "s": numbers.astype(np.int32), "a": 0, "legal": flags, "free": flags, "rng": numbers}
    values |= {"buffer": feature_buffer(1), "items": item_buffer(1), "costs": np.zeros(actions)}
    given = {
        "start": "x s",
        "actions": "x s legal",
        "step": "x s a",
        "features": "x s buffer",
        "loss": "x y s",
        "cost": "x y s a",
        "key": "x s",
        "items": "x s items",
        "action_features": "x s a buffer",
        "action": "x y s rng",
        "free": "x y s free",
        "costs": "x y s costs",
        "named": "x y",
    }
    for name, function in [*functions.items(), *reference.items()]:
        if name in ("loss", "cost") and not examples.has_truth:
            continue
        kinds = given[name].split()[: plain(function).__code__.co_argcount]
        reason = _reason(name, plain(function), tuple(typeof(values[kind]) for kind in kinds), x, y)
        if reason is not None:
            shown = function.__name__ if function.__name__.startswith("reference") else name
            return f"`{shown}` cannot be compiled: {reason}. compiled=False runs it as plain Python"
    return None


def _reason(name: str, function: Any, signature: tuple[Any, ...], x: Any, y: Any) -> str | None:
    register_twins(reached_helpers(function))
    tried: Any = njit(_nrt=False)(function)
    try:
        tried.compile(signature)
    except Exception as error:
        file, line = _where(error, function)
        said, line = _advice(function, file, line, x, y) or (_said(error), line)
        return f"{said} ({file}:{line})"
    if name in RETURNS:
        wanted, words = RETURNS[name]
        found = tried.nopython_signatures[0].return_type
        if not isinstance(found, wanted) and not isinstance(found, types.Boolean):
            code = function.__code__
            kind = "nothing" if found == types.none else "nothing on some ways" if "Option" in str(found) else found
            return f"it returns {kind}, and must return {words} ({code.co_filename}:{code.co_firstlineno})"
    return None


def _where(error: Exception, function: Any) -> tuple[str, int]:
    """The innermost line of the user's that a compilation error names."""
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


def _said(error: Exception) -> str:
    """The part of a compilation error that says something."""
    lines = [line.strip() for line in COLOURS.sub("", str(error)).splitlines() if line.strip()]
    text = " ".join(lines)
    if "NRT required" in text or "Only accept returning of array passed" in text:
        return f"it makes an array, a list, a dictionary or a string: {MADE}"
    told = [line for line in lines if REASON.match(line)]
    calls = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ") and len(line) < 120]
    if not told and calls:
        return f"no compiled form of {calls[0]}"
    return re.sub(r"\.* Raised from.*|[.:]$", "", (told or lines[-1:] or [type(error).__name__])[0])


# --- what stands on a line --------------------------------------------------------------------------------------------


def _advice(function: Any, file: str, line: int, x: Any, y: Any) -> tuple[str, int] | None:
    """What to write instead of what is on a line, if it is one of the usual mistakes; and the line itself."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    nodes = list(_at(tree, line))
    known = {**vars(builtins), **function.__globals__}
    for look in (_calls, _reads, _makes):
        for node in nodes:
            said: str | None = look(node, known, {"x": x, "y": y})
            if said is not None:
                return said, getattr(node, "lineno", line)
    return None


def _at(tree: ast.AST, line: int) -> Iterator[ast.AST]:
    """What stands on a line, or a whole function if the line is its first one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.lineno == line:
            yield from ast.walk(node)
        elif getattr(node, "lineno", -1) <= line <= getattr(node, "end_lineno", -1) and _small(node):
            yield node


def _small(node: ast.AST) -> bool:
    """Whether a node has no statements of its own, which are nodes of other lines."""
    return not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For | ast.While | ast.If)


def _calls(node: ast.AST, known: Mapping[str, Any], _records: Mapping[str, Any]) -> str | None:
    if isinstance(node, ast.With | ast.Try | ast.Yield | ast.YieldFrom | ast.Await):
        return f"`{type(node).__name__.lower()}` has no compiled form: {MADE}"
    if not isinstance(node, ast.Call):
        return None
    name = ast.unparse(node.func)
    if name == "print":
        return "`print` shows something with compiled=False only: take it out for compiled runs"
    if name in ("lols.feature", "feature") and len(node.args) > 1 + MOST:
        return f"feature() takes at most {MOST} values: hash some of them together with lols.mix"
    if name in ("lols.text", "text"):
        return "strings are hashed in `encode`: keep the number in a column of x"
    if re.match(r"(np\.|numpy\.)?random\.", name):
        return "chance comes from lols.uniform(rng) only, in a teacher `reference(x, y, s, rng)`"
    if re.match(r"(np|numpy)\.(zeros|ones|empty|array|arange|full|concatenate|stack|unique|where|sort)$", name):
        return f"`{name}` makes an array: {MADE}"
    return None


def _makes(node: ast.AST, _known: Mapping[str, Any], _records: Mapping[str, Any]) -> str | None:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return "it uses a string: compiled functions know numbers only, so hash strings in `encode` (lols.text)"
    for kind, words in MAKERS.items():
        if isinstance(node, kind) and not isinstance(getattr(node, "ctx", None), ast.Store):
            return f"it makes {words}: {MADE}"
    return None


def _reads(node: ast.AST, known: Mapping[str, Any], records: Mapping[str, Any]) -> str | None:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in records:
        side, record = node.value.id, records[node.value.id]
        if isinstance(node.ctx, ast.Store):
            return f"it writes to `{side}.{node.attr}`, which it may only read: keep results in the state"
        fields = getattr(record, "_fields", ())
        if node.attr not in fields:
            return f"`{side}` has no column `{node.attr}`: it has {', '.join(fields) or 'none'}"
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in known:
        value = known[node.id]
        if isinstance(value, dict | list | set | frozenset | str | bytes):
            kind = type(value).__name__
            return f"it reads `{node.id}`, a {kind}: numbers, tuples and NumPy arrays of the file can be read"
        if isinstance(value, type) and getattr(builtins, node.id, None) is not value and value.__module__ != "numpy":
            return f"it reads `{node.id}`, a class: numbers, tuples and NumPy arrays of the file can be read"
    return None
