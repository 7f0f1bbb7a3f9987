"""What the tests of the examples share: lines counted, tables read, pages compared."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from tests.docs.blocks import python_blocks

ROOT = Path(__file__).parents[2]

NUMBER = r"([+-]?\d+\.\d+)"
ROW = re.compile(rf"(\S.*?)\s+{NUMBER}\s+{NUMBER}(?:\s+{NUMBER}\s+\[{NUMBER}, {NUMBER}\]\s+(-?\d+)%)?$")
MOST_LINES = 30


def source_of(name: str, task: str) -> str:
    """The source of a class in an example."""
    text = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    [found] = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == task]
    return ast.get_source_segment(text, found) or ""


def lines_of_code(source: str) -> int:
    """Lines that are neither empty, nor a comment, nor part of the docstring."""
    [made] = ast.parse(source).body
    assert isinstance(made, ast.ClassDef)
    note = made.body[0]
    skipped = range(note.lineno, (note.end_lineno or note.lineno) + 1) if ast.get_docstring(made) else range(0)
    lines = {at: line.strip() for at, line in enumerate(source.splitlines(), start=1) if at not in skipped}
    return sum(bool(line) and not line.startswith("#") for line in lines.values())


def check_length(name: str, task: str) -> None:
    """The class is the task itself: under 30 lines of code."""
    assert lines_of_code(source_of(name, task)) < MOST_LINES


def check_page(name: str, task: str) -> None:
    """The page in the documentation shows the code of the class, and names the command behind its figures."""
    path = ROOT / "docs" / "examples" / f"{name}.md"
    [shown] = [
        node
        for block in python_blocks(path)
        for node in ast.parse(block.code).body
        if isinstance(node, ast.ClassDef) and node.name == task
    ]
    assert as_one_line(shown) == as_one_line(ast.parse(source_of(name, task)).body[0])
    assert f"python examples/{name}.py" in path.read_text("utf-8")


def as_one_line(code: ast.AST) -> str:
    """The code without its documentation, however it is wrapped."""
    for node in ast.walk(code):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.unparse(code)


def read_table(printed: str) -> dict[str, list[float]]:
    """The figures of each row: mean and standard error, then difference, interval and part of the gap in percent."""
    rows: dict[str, list[float]] = {}
    for line in printed.splitlines():
        if found := ROW.match(line):
            rows[found[1]] = [float(value) for value in found.groups()[1:] if value is not None]
    return rows


def run(main: Any, capsys: Any, *options: str) -> str:
    """What an example prints."""
    main(list(options))
    return str(capsys.readouterr().out)
