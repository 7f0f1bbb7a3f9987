"""The documentation hangs together: links and anchors lead somewhere, the site lists every page, figures are computed.

`make docs` checks links too, more slowly; here broken ones are found without mkdocs.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from pathlib import Path
from types import ModuleType

import pytest

import lols

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
FIGURE = re.compile(r"\d[\d,]*\.\d{2,}|\d[\d,]{4,}")
SOURCES = ("own-task", "tagging", "parsing", "classification", "bandit", "study")  # where figures are told in full
LOADED = re.compile(r"<(?:script|img|link)[^>]*(?:src|href)=\"([^\"]*)\"")


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


def slug(heading: str) -> str:
    """The anchor that the site gives a heading: its ASCII letters, in lower case, with hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


def anchors(page: Path) -> set[str]:
    """All anchors of a page; headings of the same text are numbered."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(page)):
        name, number = slug(heading), 0
        while (name if number == 0 else f"{name}_{number}") in found:
            number += 1
        found.add(name if number == 0 else f"{name}_{number}")
    return found


def tool(name: str) -> ModuleType:
    """A program of docs/tools/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_anchors_lead_somewhere(page):
    for target, anchor in LINK.findall(prose(page)):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name} links to {target}#{anchor}; there are {sorted(anchors(file))}"


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.relative_to(DOCS).as_posix())
def test_pages_load_only_files_of_the_site(page):
    for source in LOADED.findall(prose(page)):
        assert "//" not in source
        assert (page.parent / source).exists(), source


def test_anchors_are_those_of_the_site():
    assert slug("β = auto") == "auto"
    assert slug("States: `start(x, s)`, `actions(x, s, legal)`") == "states-startx-s-actionsx-s-legal"
    assert slug("What the [teacher](x.md) says, 2nd time") == "what-the-teacher-says-2nd-time"


def test_the_navigation_lists_every_page_once():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1]
    listed = re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES[1:])


@pytest.mark.parametrize("page", ["performance.md", "choose-a-strategy.md"])
def test_figures_that_are_gathered_are_those_of_the_pages_they_come_from(page):
    sources = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in SOURCES)]
    known = set(FIGURE.findall("\n".join(source.read_text("utf-8") for source in sources)))
    rows = [line for line in (DOCS / page).read_text("utf-8").splitlines() if line.startswith("|")]
    assert {figure for row in rows for figure in FIGURE.findall(row)} - known == set()


def test_the_reference_has_every_public_name():
    lines = [line for page in (DOCS / "api").glob("*.md") for line in page.read_text("utf-8").splitlines()]
    shown = {part for line in lines if line.startswith("::: ") for part in line.split(".")} | {"__version__"}
    assert set(lols.__all__) - shown == set()


def test_every_picture_of_the_concepts_is_drawn():
    places = re.findall(r'id="picture-([\w-]+)"', (DOCS / "concepts.md").read_text("utf-8"))
    drawn = re.findall(
        r'\["([\w-]+)", \w+\]', (DOCS / "assets" / "worlds.js").read_text("utf-8").split("for (const [id")[1]
    )
    assert places == drawn


def test_the_figures_behind_the_pictures_are_those_of_the_theory():
    worlds = tool("worlds_data")
    assert worlds.FILE.read_text("utf-8") == worlds.text(), "run python docs/tools/worlds_data.py"
