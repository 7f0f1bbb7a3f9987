"""What is said in several places is the same in all of them: version, licence, versions of Python, extras, tools."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import lols

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
FOR_DEVELOPERS = {"bench", "dev", "dist", "docs", "test"}


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def field(name: str, file: str = "CITATION.cff") -> list[str]:
    """The values of a field of a YAML file, at any depth."""
    return [value.strip().strip('"') for value in re.findall(rf"^[ -]*{name}: *(.+)$", text(file), re.MULTILINE)]


def test_the_version_is_the_same_everywhere():
    version = PROJECT["version"]
    assert lols.__version__ == version
    assert field("version") == [version]
    assert re.findall(r"Version (\d+\.\d+\.\d+)", text("docs/citing.md")) == [version]
    assert version in re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)


def test_the_licence_is_the_same_everywhere():
    assert field("license") == [PROJECT["license"]] == ["Apache-2.0"]
    assert "Apache License\n" in text("LICENSE")[:200] and "Version 2.0," in text("LICENSE")[:200]
    assert field("copyright", "mkdocs.yml") == ["Apache License 2.0"]
    for page in ("README.md", "docs/citing.md"):
        assert "Apache License 2.0" in text(page), page
    assert [name for name in PROJECT["classifiers"] if "License" in name] == []  # package indexes take one of the two


def test_the_versions_of_python_are_the_same_everywhere():
    least, most = PYTHONS[0], PYTHONS[-1]
    after = f"3.{int(most.partition('.')[2]) + 1}"
    assert PROJECT["requires-python"] == f">={least},<{after}"
    for page in ("README.md", "CONTRIBUTING.md", "Makefile", "docs/index.md", "docs/installation.md"):
        assert set(re.findall(r"3\.\d+ to 3\.\d+", text(page))) == {f"{least} to {most}"}, page
    makefile = text("Makefile")
    assert f"for version in {' '.join(PYTHONS)};" in makefile
    assert f"({least.replace('.', ', ')}) <= sys.version_info[:2] < ({after.replace('.', ', ')})" in makefile
    assert f"is not Python {', '.join(PYTHONS[:-1])} or {most}:" in makefile
    (matrix,) = field("python", ".github/workflows/ci.yml")
    assert re.findall(r'"([^"]+)"', matrix) == PYTHONS
    assert field("python-version", ".github/workflows/ci.yml") == ["${{ matrix.python }}", most]


def test_the_workflow_runs_what_developers_run():
    workflow = text(".github/workflows/ci.yml")
    assert field("run", ".github/workflows/ci.yml") == [".ci/run", "make dist"]
    assert {action.partition("@")[0] for action in re.findall(r"uses: (\S+)", workflow)} == {
        "actions/checkout",
        "actions/setup-python",
    }


def test_the_hooks_before_a_commit_are_the_tools_of_lint():
    (lint,) = re.findall(r"^LINT := (.*)$", text("Makefile"), re.MULTILINE)
    tools = lint.replace("$(BIN)", ".venv/bin").split(" && ")
    assert field("entry", ".pre-commit-config.yaml") == tools


def test_the_installation_page_names_all_extras_and_packages():
    page = text("docs/installation.md")
    extras = set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS
    assert set(re.findall(r"^\| `lols\[(\w+)\]`", page, re.MULTILINE)) == extras
    needed = [re.split(r"[<>=~\[]", name)[0] for name in PROJECT["dependencies"]]
    assert [name for name in needed if name not in page.lower()] == []


@pytest.mark.parametrize("page", ["docs/citing.md", "README.md"])
def test_the_paper_is_cited_as_in_the_citation_file(page):
    cited = re.sub(r"\s+", " ", text(page).replace("{\\'e}", "é"))
    whole = page != "README.md"
    for name in ("title", "family-names", "volume", "start", "end", "year", "url") if whole else ("url",):
        values = field(name)[1:] if name == "title" else field(name)  # the first title is that of the software
        assert values, name
        assert [value for value in values if value not in cited] == [], name
    assert not whole or field("title")[0] in cited
