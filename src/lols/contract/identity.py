"""What a user's functions are, as their source says it: the same with any version of Python and of this library.

Checkpoints, model files and logs of bandits note the identity of the functions that they belong to. It covers the
source of the user's functions, of the helpers that they call, and the globals, closure cells and defaults they read.
Comments, docstrings, annotations, names of local variables and of modules do not count. Functions of this library count
by their names: what they mean is told by `LEARNING`.

A function without a source, such as one that `exec` has made, is told by its byte code, which depends on the version of
Python. The object files of kernels are named by `lols.kernels.digest` instead, which is never too lenient. Model files
of 0.2 and before have a `source_digest`, which is of byte code, too.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import linecache
import re
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from lols.kernels.digest import Description, codes_of, plain, reached_helpers

# What learning means: raise it when the same data, options and seed give other weights (tests/training/test_golden.py).
# A checkpoint or a log of another version is not gone on from.
LEARNING = 3

DROPPED = ("annotation", "ctx", "decorator_list", "kind", "returns", "type_comment", "type_params")  # of syntax trees

FORMER = {"lols.kernels.hashing": "lols.contract.hashing"}  # modules that have moved, and where they were
LENGTH = re.compile(rb"tuple of \d+")


def identity_of(functions: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change when what a function says, or a helper or a value that it reads, changes.

    >>> __name__ = "mine"  # so that these functions are a user's
    >>> def grow(s):
    ...     return 2 * s[0]
    >>> before = identity_of({"step": grow})
    >>> before  # with every version of Python
    '98a3012308deda3a'
    >>> def grow(state):
    ...     '''Double it.'''
    ...     return 2 * state[0]  # the first cell
    >>> identity_of({"step": grow}) == before
    True
    >>> def grow(s):
    ...     return 3 * s[0]
    >>> identity_of({"step": grow}) == before
    False
    """
    digest, source = hashlib.sha256(), _Source()
    for name in sorted(functions):
        digest.update(f"\0{name}=".encode())
        for part in source.parts(functions[name]):
            digest.update(part)
    return digest.hexdigest()[:16]


def source_digest(functions: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits that change when a function, a helper, or a constant that one of them reads changes.

    A file that was run as a script and is imported later holds the same functions under another module name. Objects
    whose representation is only an address count as equal.

    >>> def next_one(s):
    ...     return s + 1
    >>> before = source_digest({"step": next_one})
    >>> next_one.__module__ = "somewhere.else"
    >>> source_digest({"step": next_one}) == before, source_digest({"step": lambda s: s + 2}) == before
    (True, False)
    """
    digest = hashlib.sha256()
    description = _Lasting()
    for name in sorted(functions):
        function = plain(functions[name])
        digest.update(f"\0{name}=".encode())
        helpers = reached_helpers(function) if isinstance(function, types.FunctionType) else ()
        modules = {str(getattr(each, "__module__", "")).encode() for each in (function, *helpers)}
        for part in description.parts(function):
            digest.update(b"" if part in modules or b" at 0x" in part else _as_in_first_version(part))
    return digest.hexdigest()[:16]


def _as_in_first_version(part: bytes) -> bytes:
    """A description as it was in 0.1, so that old model files still match.

    Library modules had shorter names; marks of compilation, fields of classes and lengths of tuples were not described.
    """
    if part.startswith(b"module lols "):
        return b"module lols 0.1.0"
    if LENGTH.fullmatch(part):
        return b""
    part = part.replace(b"lols.contract.", b"lols.", 1) if part.startswith(b"lols.contract.") else part
    return part.removesuffix(b"('', '')") if not part.endswith(b", [])") else part.removesuffix(b", [])") + b")"


def said_by(function: Any) -> str:
    """What the source of a function says, without that of its helpers; its byte code if there is no source.

    >>> said_by(lambda x: x + 1) == said_by(lambda y: y + 1) != said_by(lambda y: y + 2)
    True
    """
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return type(function).__qualname__
    node = _node_of(code, getattr(function, "__globals__", None))
    if node is None:
        known = [repr((each.co_code, _constants(each), each.co_names)) for each in codes_of(code)]
        return "\n".join([f"Python {sys.version_info[:2]}", *known])
    return _Syntax(code).told(node)


class _Lasting(Description):
    """Describes functions without the sources that only compiled code depends on, and by the names that they had."""

    def name(self, function: types.FunctionType) -> str:
        module = function.__module__
        return f"{FORMER.get(module, module)}.{function.__qualname__}"

    def files(self, function: types.FunctionType) -> Iterator[bytes]:
        return iter(())


class _Source(_Lasting):
    """Describes functions by their source."""

    def function(self, function: types.FunctionType) -> Iterator[bytes]:
        given = getattr(function, "identity", None)  # of a function that was written by this library for a user
        if given is not None:
            yield from self.parts(given)
            return
        ours = _of_library(function)
        named = ours and function.__name__ != "<lambda>"
        yield (function.__qualname__ if named else said_by(function)).encode()
        for name in ("__defaults__", "__kwdefaults__"):
            yield f"\0{name}=".encode()
            yield from self.parts(getattr(function, name))
        yield from self.reached(function, closure_only=ours)

    def module(self, module: types.ModuleType) -> bytes:
        return f"module {module.__name__}".encode()

    def type(self, kind: Any) -> bytes:
        fields = getattr(kind, "_fields", ""), getattr(kind, "_field_defaults", "")
        return f"{getattr(kind, '__name__', '')}{fields}".encode()


def _of_library(function: types.FunctionType) -> bool:
    return str(function.__module__).partition(".")[0] == "lols"


class _Syntax:
    """A syntax tree as text, in which names of local variables are numbers."""

    def __init__(self, code: types.CodeType):
        outside = set(code.co_freevars)
        self.local = {name for each in codes_of(code) for name in (*each.co_varnames, *each.co_cellvars)} - outside
        self.numbers: dict[str, int] = {}

    def told(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> str:
        """A function: its arguments and its body."""
        body = node.body if isinstance(node.body, list) else [node.body]
        return f"{type(node).__name__}({self._value(node.args)}, {self._statements(body)})"

    def _statements(self, body: list[Any]) -> str:
        first = body[0]
        is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return self._value(body[1:] if is_text and isinstance(first.value.value, str) else body)

    def _value(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(filter(None, map(self._value, value)))}]"
        if isinstance(value, ast.AnnAssign):  # an annotation is no part of it
            return "" if value.value is None else self._value(ast.Assign([value.target], value.value))
        if isinstance(value, ast.Constant):
            return f"{type(value.value).__name__} {value.value!r}"
        if not isinstance(value, ast.AST):
            return repr(value)
        parts = []
        for name, part in ast.iter_fields(value):
            if name in DROPPED or part is None or part == []:
                continue
            if name == "body" and isinstance(value, ast.FunctionDef | ast.AsyncFunctionDef):
                parts.append(f"body={self._statements(part)}")
            elif isinstance(part, str):
                parts.append(f"{name}={self._name(value, part)}")
            else:
                parts.append(f"{name}={self._value(part)}")
        return f"{type(value).__name__}({', '.join(parts)})"

    def _name(self, node: ast.AST, name: str) -> str:
        """A name; of a local variable its number, in the order of first use."""
        if name not in self.local or isinstance(node, ast.Attribute | ast.keyword):
            return name
        return str(self.numbers.setdefault(name, len(self.numbers)))


def _node_of(code: types.CodeType, module: dict[str, Any] | None) -> Any:
    """The syntax tree of a function's code; None if its source is not there, or is not what was compiled."""
    lines = linecache.getlines(code.co_filename, module)
    found = _functions_of("".join(lines), code.co_filename) if lines else None
    if found is None or not any(_same(code, each) for each in found.codes.get(code.co_firstlineno, ())):
        return None
    nodes = [
        node for node in found.nodes.get(code.co_firstlineno, ()) if getattr(node, "name", "<lambda>") == code.co_name
    ]
    return nodes[-1] if nodes and code.co_name != "<lambda>" else _lambda_of(code, nodes)


def _lambda_of(code: types.CodeType, nodes: list[Any]) -> Any:
    """The one of the lambdas on a line whose code it is: the innermost around all places that the code is from."""
    places = [place for place in code.co_positions() if None not in place and place[2:] != (0, 0)]
    if not places:  # of a constant, some versions of Python do not say the place
        values = [repr(value) for value in code.co_consts]
        same = (node for node in nodes if isinstance(node.body, ast.Constant) and repr(node.body.value) in values)
        return next(same, None)
    low, high = min(place[0::2] for place in places), max(place[1::2] for place in places)
    around = [node for node in nodes if _begin(node.body) <= low and high <= _end(node.body)]
    return max(around, key=lambda node: (_begin(node.body), [-place for place in _end(node.body)]), default=None)


class _Functions:
    """The functions of a source by the line on which they begin: their syntax trees and their codes."""

    def __init__(self, text: str, name: str):
        self.nodes: dict[int, list[Any]] = {}
        self.codes: dict[int, list[types.CodeType]] = {}
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                line = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
                self.nodes.setdefault(line, []).append(node)
        for code in codes_of(compile(tree, name, "exec", dont_inherit=True)):
            self.codes.setdefault(code.co_firstlineno, []).append(code)


@functools.lru_cache(maxsize=256)
def _functions_of(text: str, name: str) -> _Functions | None:
    try:
        return _Functions(text, name)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two codes do the same; a file may have changed since it was imported."""
    return (one.co_name, one.co_code, one.co_names) == (other.co_name, other.co_code, other.co_names) and (
        _constants(one) == _constants(other)
    )


def _constants(code: types.CodeType) -> list[str]:
    return [repr(value) for value in code.co_consts if not isinstance(value, types.CodeType)]


def _begin(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset
