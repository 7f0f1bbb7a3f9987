"""The tables of parameters on the API pages say what the signatures do.

mkdocstrings takes type and default of an entry from the parameter of its name, unless the entry states others. So the
tables are right if every entry is one name and nothing else, and every parameter has an entry. That is tested at run
time; where griffe is installed, what it renders is compared with the signatures as well.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\*{0,2}[A-Za-z_]\w*")
SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n(.*?)(?=\n\n\S|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(\S.*)\n((?:(?: .*)?\n?)*)", re.MULTILINE)
ELSEWHERE = re.compile(r"(?:as (?:for|in)|see|described (?:at|in))\b[^.;:]*\.?", re.IGNORECASE)
DEFAULT = re.compile(r'`"([a-z]+)"`(?: \(default\)|[^|;`]*\(default\))')
FACTORY = "<factory>"  # of dataclasses


@pytest.fixture(scope="module")
def package():
    """The package as mkdocstrings sees it."""
    griffe = pytest.importorskip("griffe")
    extensions = griffe.load_extensions(str(ROOT / "docs/tools/estimators.py"))
    return griffe.load("lols", search_paths=[ROOT / "src"], extensions=extensions, docstring_parser="numpy")


def shown() -> dict[str, list[str] | None]:
    """What is on the API pages, with the members that are shown of it; None if it is all."""
    pages = "".join(page.read_text("utf-8") for page in sorted((ROOT / "docs/api").glob("*.md")))
    found = re.findall(r"^::: (\S+)\n((?:    .*\n)*)", pages, re.MULTILINE)
    members = {path: re.search(r"members: \[(.*)\]", options) for path, options in found}
    return {path: None if some is None else re.findall(r"\w+", some[1]) for path, some in members.items()}


def paths() -> list[str]:
    """The names on the API pages."""
    return list(shown())


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


def public(path: str) -> Iterator[tuple[str, Any]]:
    """An object and those of its members that are shown, inherited or not, each with its name."""
    found, _ = running(path)
    yield path, found
    names = shown()[path]
    for name, member in inspect.getmembers_static(found) if inspect.isclass(found) else ():
        if name[0] != "_" and inspect.isroutine(member) and (names is None or name in names):
            yield f"{path}.{name}", getattr(member, "__func__", member)


def written(shown: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """The sections of parameters and attributes in a docstring: what each entry says."""
    for kind, text in SECTION.findall(inspect.getdoc(shown) or ""):
        yield kind, {name: " ".join(says.split()) for name, says in ENTRY.findall(text)}


def taken(shown: Any) -> set[str]:
    """The parameters of an object that is the library's own; none of a class that has those of its base."""
    if not str(getattr(shown, "__module__", "")).startswith("lols"):
        return set()
    if inspect.isclass(shown) and (
        getattr(shown, "_is_protocol", False) or not {"__init__", "__new__"} & set(vars(shown))
    ):
        return set()
    return set(inspect.signature(shown).parameters) - {"self", "cls"} if callable(shown) else set()


def described(path: str, shown: Any) -> bool:
    """Whether each parameter of a class is an attribute with a sentence of its own."""
    if not inspect.isclass(shown):
        return False
    lines = inspect.getsource(shown)
    return all(re.search(rf'^    {name}: .*\n    """', lines, re.MULTILINE) for name in taken(shown))


def tables(shown: Any) -> Any:
    """The tables of an object and of its public members, as griffe renders them, each with its owner."""
    for section in shown.docstring.parsed if shown.docstring else ():
        if section.kind.value in ("parameters", "attributes"):
            yield shown, section.kind.value, section.value
    for name, member in shown.all_members.items() if shown.is_class else ():
        if not name.startswith("_") and member.is_function:
            yield from tables(member.final_target if member.is_alias else member)


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
        given = {inspect.Parameter.VAR_KEYWORD: {}, inspect.Parameter.VAR_POSITIONAL: ()}.get(
            parameter.kind, inspect.Parameter.empty
        )
        default = given if parameter.default is inspect.Parameter.empty else parameter.default
        shown = given if entry.value is None else eval(str(entry.value), vars(module))
        if repr(default) != FACTORY and shown is not default and repr(shown) != repr(default):
            wrong.append(f"the default of {entry.name} is {default!r}, not {entry.value}")
    return wrong


@pytest.mark.parametrize("path", paths())
def test_every_parameter_has_an_entry_of_its_own_that_says_what_it_is(path):
    if path.startswith("lols.torch"):
        pytest.importorskip("torch")
    for name, shown in public(path):
        assert not taken(shown) or dict(written(shown)) or described(path, shown), (
            f"{name}: say what its parameters are"
        )
        for kind, entries in written(shown):
            assert all(NAME.fullmatch(entry) for entry in entries), f"{name}: one name an entry, in {list(entries)}"
            assert all(entries.values()), name
            assert len(set(entries.values())) == len(entries), f"{name}: two entries say the same"
            assert [e for e, says in entries.items() if ELSEWHERE.fullmatch(says)] == [], f"{name}: say what it is"
            if kind == "Parameters":
                parameters = set(inspect.signature(shown).parameters) - {"self", "cls"}
                assert {entry.strip("*") for entry in entries} == parameters, name


def test_the_sections_are_read_as_they_are_written():
    found = dict(written(importlib.import_module("lols").train))["Parameters"]
    assert list(found)[:2] == ["space", "data"] and len(found) > 30
    assert found["passes"] == "Passes over the data."
    assert ELSEWHERE.fullmatch("See `Algorithm`.") and ELSEWHERE.fullmatch("Described at `Algorithm`.")


@pytest.mark.parametrize("path", paths())
def test_what_griffe_renders_is_what_the_signatures_say(package, path):
    if path.startswith("lols.torch"):
        pytest.importorskip("torch")
    for owner, kind, entries in tables(package[path.removeprefix("lols.")]):
        if kind == "parameters":
            assert differences(owner, entries) == [], owner.path


def test_the_defaults_in_the_table_of_the_bandit_are_those_of_the_signature():
    from lols.bandit import StructuredBandit
    from lols.bandit.settings import DEVIATIONS

    parameters = inspect.signature(StructuredBandit).parameters
    rows = re.findall(r"^\| `(\w+)` \| (.*)$", (ROOT / "docs/bandit.md").read_text("utf-8"), re.MULTILINE)
    stated = {name: DEFAULT.findall(rest) for name, rest in rows if name in parameters and DEFAULT.search(rest)}
    assert {"exploration", "randomise", "estimator", "exploit"} <= set(stated)
    assert stated == {name: [DEVIATIONS.get(name, "auto")] for name in stated}
