"""The house is in order: Algorithm 1 fits on a page, functions of the engine take few arguments, Numba stays inside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lols

PACKAGE = Path(lols.__file__).parent
ENGINE = sorted([*(PACKAGE / "engine").rglob("*.py"), *(PACKAGE / "learners").glob("*.py")])
MOST_ARGUMENTS, MOST_LINES = 8, 80
SYMBOLS = (
    "π^ref",
    "π̂_i",
    "π^out",
    "Γ",
    "Φ(x_i, s_t)",
    "c_{i,t}(a)",
    "A(s_t)",
    "s_{t+1}",
    "Train(π̂_i, Γ)",
    "(x_i, y_i)",
)


def functions(file: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            yield node


def test_algorithm_1_is_one_page_with_the_papers_lines_and_symbols() -> None:
    text = (PACKAGE / "engine" / "algorithm1.py").read_text("utf-8")
    assert text.count("\n") <= MOST_LINES
    for line in (2, 3, 4, 5, 6, 11, 12):
        assert f"# line {line}" in text
    assert "lines 7 to 10" in text and [symbol for symbol in SYMBOLS if symbol not in text] == []


@pytest.mark.parametrize("file", ENGINE, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_function_of_the_engine_takes_more_than_eight_arguments(file: Path) -> None:
    for function in functions(file):
        given = function.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs) if a.arg not in ("self", "cls")]
        assert len(names) <= MOST_ARGUMENTS, f"{file.name}: {function.name}({', '.join(names)})"


def importers(*packages: str) -> set[str]:
    """The files that import one of some packages, at any place."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] in packages for name in names):
                found.add(file.relative_to(PACKAGE).as_posix())
    return found


def test_only_what_compiles_knows_the_compiler() -> None:
    names = ("as_in_python", "backend", "pipeline", "store", "value_types")
    allowed = {f"kernels/{name}.py" for name in names}
    assert importers("numba", "llvmlite") == allowed | {"engine/diagnose.py"}


def test_kernels_know_no_search_problem() -> None:
    """Nor do they name a module above them, as a file to be read, say."""
    for file in (PACKAGE / "kernels").glob("*.py"):
        text = file.read_text("utf-8")
        named = set(re.findall(r"\blols[.](\w+)", text)) & {path.stem for path in PACKAGE.iterdir()}
        assert named <= {"kernels", "errors"}, file.name
        assert not re.search(r"SearchSpace|[Ss]earch space|[Tt]eacher|contract/|engine/", text), file.name


def test_only_neural_policies_know_pytorch() -> None:
    assert {name.partition("/")[0] for name in importers("torch")} == {"torch"}


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(file.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_test_files_are_short() -> None:
    lengths = {str(file): file.read_text("utf-8").count("\n") for file in Path(__file__).parent.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 600} == {}


def test_nobody_asks_which_estimator_a_model_is() -> None:
    """Outside the folders of the tasks, estimators are called through their verbs."""
    kinds = {"Tagger", "Parser", "Pipeline", "CostSensitiveClassifier"}
    for file in PACKAGE.rglob("*.py"):
        if "tasks" in file.relative_to(PACKAGE).parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not asked & kinds, f"{file.name}: {ast.unparse(node)}"


def test_kernels_are_given_examples_by_the_door_only() -> None:
    makers = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Data":
                makers.add(str(file.relative_to(PACKAGE)))
    assert makers == {"engine/door.py", "policies/in_lock_step.py"}  # the latter is given states by a driver


def test_nothing_printed_is_markup() -> None:
    """Labels and paths may look like Rich's markup: all that is printed goes through `lols.tasks.show`."""
    for file in PACKAGE.rglob("*.py"):
        text, name = file.read_text("utf-8"), file.relative_to(PACKAGE).as_posix()
        assert "rich.markup" not in text, name
        assert "from rich.table" not in text or name == "tasks/show.py", name
        assert "console.print(" not in text or name == "tasks/show.py", name
