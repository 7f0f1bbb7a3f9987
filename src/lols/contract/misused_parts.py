"""Finds where a line takes a part of a state for what it is not: an array for a number, or a number for an array."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Container
from typing import Any

from lols.contract.space import SearchSpace
from lols.contract.state import State, own_function, parts_seen

# Where a number is wanted; arrays may be given to other functions.
OF_NUMBERS = {"abs", "bool", "emit", "feature", "float", "int", "max", "min", "mix", "range", "round"}
OPERATORS = (ast.AugAssign, ast.BinOp, ast.BoolOp, ast.Compare, ast.If, ast.IfExp, ast.Return, ast.UnaryOp, ast.While)
ARGUMENTS = SearchSpace.NEEDED | SearchSpace.OPTIONAL | dict.fromkeys(("action", "free", "costs"), "x, y, s, out")


def misused_part(name: str, function: Any, file: str, lines: Container[int]) -> tuple[str, int] | None:
    """What to write instead, and the line, if a line has this mistake; `function` is `name` of a space or reference."""
    state, own = parts_seen(function), own_function(function)
    if state is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    states = {"s", own.__code__.co_varnames[ARGUMENTS[name].split(", ").index("s")]}
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute | ast.Subscript) or node.lineno not in lines:
            continue
        if isinstance(node.value, ast.Name) and node.value.id in states:
            said = state.no_vector() if isinstance(node, ast.Subscript) else _said(state, node, parents)
            if said:
                return said, node.lineno
    return None


def returned_part(name: str, function: Any) -> tuple[str, int] | None:
    """The same for what a function returns."""
    code = own_function(function).__code__
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Return | ast.Lambda)}
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return misused_part(name, function, code.co_filename, lines & set(range(code.co_firstlineno, last + 1)))


def _said(state: State, node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> str | None:
    """What is said about a part that is read or written, or None if its use is right."""
    parent, name = parents[node], node.attr
    if name not in state.parts:
        return state.absent(name)
    part = state.parts[name]
    as_array = isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Subscript) and parent.value is node)
    if part.number:
        return state.a_number(name) if as_array else None
    if as_array or not (isinstance(node.ctx, ast.Store) or _takes_a_number(node, parent)):
        return None
    return state.one_cell(name) if part.one_cell else state.an_array(name)


def _takes_a_number(node: ast.AST, parent: ast.AST) -> bool:
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, ast.Attribute | ast.Subscript) for target in parent.targets)
    if isinstance(parent, ast.Call):
        called = ast.unparse(parent.func)
        return node is not parent.func and (called.startswith("math.") or called.rpartition(".")[2] in OF_NUMBERS)
    return isinstance(parent, (*OPERATORS, ast.Lambda)) or (isinstance(parent, ast.Subscript) and parent.slice is node)
