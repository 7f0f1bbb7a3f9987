"""The tables of parameters on the API pages, as griffe renders them from the docstrings, beside the signatures."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\*{0,2}[A-Za-z_]\w*")
LISTED = re.compile(r"^Parameters\n-+\n(.*?)(?:\n\n\S|\Z)", re.MULTILINE | re.DOTALL)
DEFAULT = re.compile(r'`"([a-z]+)"`(?: \(default\)|[^|;`]*\(default\))')
FACTORY = "<factory>"  # of dataclasses


@pytest.fixture(scope="module")
def package():
    """The package as mkdocstrings sees it."""
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(ROOT / "docs/tools/estimators.py"))
    return griffe.load("lols", search_paths=[ROOT / "src"], extensions=extensions, docstring_parser="numpy")


def paths() -> list[str]:
    """What is on the API pages."""
    lines = [line for page in sorted((ROOT / "docs/api").glob("*.md")) for line in page.read_text("utf-8").splitlines()]
    return [line.split()[1] for line in lines if line.startswith("::: ")]


def running(path: str) -> tuple[Any, Any]:
    """The object of this name at run time, and the module that it is in."""
    parts = path.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = module = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            found = getattr(found, part)
        return found, module
    raise AssertionError(path)


def tables(shown: Any) -> Any:
    """The tables of an object and of its public members, each with its owner."""
    for section in shown.docstring.parsed if shown.docstring else ():
        if section.kind.value in ("parameters", "attributes"):
            yield shown, section.kind.value, section.value
    for name, member in shown.members.items():
        if not member.is_alias and not name.startswith("_"):
            yield from tables(member)


def plain(annotation: Any) -> str:
    """A type as text, however it is quoted."""
    return str(annotation).replace('"', "'")


def differences(owner: Any, entries: Any) -> list[str]:
    """How a table of parameters differs from the signature."""
    found, module = running(owner.path)
    parameters = dict(inspect.signature(found).parameters)
    parameters.pop("self", None)
    wrong = [f"{name} is not in the table" for name in parameters if all(name != e.name.strip("*") for e in entries)]
    for entry in entries:
        parameter = parameters.get(entry.name.strip("*"))
        if parameter is None:
            wrong.append(f"{entry.name} is no parameter")
            continue
        if plain(entry.annotation) != plain(parameter.annotation):
            wrong.append(f"{entry.name} is {parameter.annotation}, not {entry.annotation}")
        given = {} if parameter.kind is inspect.Parameter.VAR_KEYWORD else inspect.Parameter.empty
        default = given if parameter.default is inspect.Parameter.empty else parameter.default
        shown = given if entry.value is None else eval(str(entry.value), vars(module))
        if repr(default) != FACTORY and shown is not default and shown != default:
            wrong.append(f"the default of {entry.name} is {default!r}, not {entry.value}")
    return wrong


@pytest.mark.parametrize("path", paths())
def test_every_table_of_parameters_is_that_of_the_signature(package, path):
    if path.startswith("lols.torch"):
        pytest.importorskip("torch")
    for owner, kind, entries in tables(package[path.removeprefix("lols.")]):
        names = [entry.name for entry in entries]
        assert all(NAME.fullmatch(name) for name in names), f"{owner.path}: one parameter an entry, in {names}"
        assert len(set(names)) == len(names)
        assert all(entry.description.strip() for entry in entries)
        if kind == "parameters":
            assert differences(owner, entries) == [], owner.path


@pytest.mark.parametrize("path", paths())
def test_every_parameter_has_its_own_entry(path):
    if path.startswith("lols.torch"):
        pytest.importorskip("torch")
    found, _ = running(path)
    members = [member for name, member in vars(found).items() if name[0] != "_"] if inspect.isclass(found) else []
    for each in [found, *(member for member in members if inspect.isfunction(member))]:
        listed = LISTED.search(inspect.getdoc(each) or "")
        if listed is None or not callable(each):
            continue
        entries = [line.strip("*") for line in listed[1].splitlines() if line[:1].strip()]
        assert all(NAME.fullmatch(entry) for entry in entries), f"{path}: one parameter an entry, in {entries}"
        assert set(entries) == set(inspect.signature(each).parameters) - {"self"}, path


def test_no_parameter_refers_to_another_place_only(package):
    for path in paths():
        for owner, _, entries in tables(package[path.removeprefix("lols.")]):
            texts = [entry.description for entry in entries]
            assert len(set(texts)) == len(texts), owner.path


def test_the_defaults_in_the_table_of_the_bandit_are_those_of_the_signature():
    from lols.bandit import StructuredBandit

    parameters = inspect.signature(StructuredBandit).parameters
    rows = re.findall(r"^\| `(\w+)` \| (.*)$", (ROOT / "docs/bandit.md").read_text("utf-8"), re.MULTILINE)
    stated = {name: DEFAULT.findall(rest) for name, rest in rows if name in parameters and DEFAULT.search(rest)}
    assert {"exploration", "randomise", "estimator", "exploit"} <= set(stated)
    assert stated == {name: [parameters[name].default] for name in stated}
