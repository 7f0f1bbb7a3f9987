"""The documentation is consistent: links, anchors and names of the code exist, the site lists every page.

`make docs` also checks links, but needs mkdocs.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import unicodedata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lols

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
ROOT_PAGES = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]  # docs/tools/hooks.py
GALLERY = ROOT / "examples" / "README.md"  # the same
PAGES = [ROOT / "README.md", *ROOT_PAGES, GALLERY, *SITE]

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
FIGURE = re.compile(r"\d[\d,]*\.\d{2,}|\d[\d,]{4,}")
# the pages of the measurements
SOURCES = ("study", *(f"results/{name}" for name in ("bandit", "classification", "own-task", "parsing", "tagging")))
NAME = re.compile(r"`(lols(?:\.\w+)+)")
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
    names: set[str] = set()
    for heading in HEADING.findall(prose(page)):
        name, number = slug(heading), 0
        while (name if number == 0 else f"{name}_{number}") in names:
            number += 1
        names.add(name if number == 0 else f"{name}_{number}")
    return names


def tool(name: str) -> ModuleType:
    """A program of docs/tools/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named(path: str) -> Any:
    """The module, or attribute of a module, of a dotted name; None for one of PyTorch's, if that is not installed."""
    module, _, name = path.rpartition(".")
    if path.startswith("lols.torch") and not find_spec("torch"):
        return None
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        return getattr(named(module), name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_anchors_lead_somewhere(page):
    for target, anchor in LINK.findall(prose(page)):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}, which is not there"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name} links to {target}#{anchor}; there are {sorted(anchors(file))}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_of_the_code_exist(page):
    if page.name == "CHANGELOG.md":
        pytest.skip("it also names what is gone")
    for path in NAME.findall(prose(page)):
        if not path.endswith(".NAME"):
            named(path)


def test_names_in_the_glossary_exist():
    classes = {
        "AdaptiveBeta": "lols.training.adaptive",
        "Certificate": "lols.certificates.certificate",
        "Learner": "lols.learners.learner",
        "Lessons": "lols.engine.structures",
        "PRESETS": "lols.training.algorithms",
    }
    names = re.findall(r"`([A-Z]\w+)((?:\.\w+)*)", prose(DOCS / "glossary.md"))
    assert len(names) > 20
    for name, attributes in names:
        kind = named(f"{classes.get(name, 'lols')}.{name}")
        for attribute in attributes.split(".")[1:]:
            assert hasattr(kind, attribute) or attribute in inspect.get_annotations(kind), f"{name}.{attribute}"


@pytest.mark.parametrize("page", SITE, ids=lambda page: page.relative_to(DOCS).as_posix())
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
    listed = re.findall(r": (\S+\.(?:md|ipynb))$", navigation, re.MULTILINE)
    pages = [page.relative_to(DOCS).as_posix() for page in (*SITE, *DOCS.rglob("*.ipynb"))]
    assert sorted(listed) == sorted([*pages, *(page.name.lower() for page in ROOT_PAGES), "examples/gallery.md"])


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("probabilities", "confidence"),
        ("confidence", "confidence"),
        ("resume", "interrupt-and-resume"),
        ("cite", "citing"),
        ("PyTorch", "neural"),
        ("64 cores", "more-machines"),
        ("many machines", "more-machines"),
        ("worse than teacher", "faq"),
        ("bin packing", "problems"),
        ("future random", "random-future"),
    ],
)
def test_what_is_searched_for_is_in_a_heading_of_its_guide(words, page):
    """The search puts pages with the words in a heading first."""
    headings = HEADING.findall(prose(DOCS / f"{page}.md"))
    assert any(all(word.lower() in heading.lower() for word in words.split()) for heading in headings)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", GALLERY, *SITE], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_code_on_pages_is_seen_without_scrolling(page):
    """Ruff wraps Python so (docs/ruff.toml); what is printed may be wider."""
    for kind, code in re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        printed = re.compile(r"# [>~] ")
        wide = [line for line in code.splitlines() if len(line) > 88 and not printed.match(line)]
        assert kind == "text" or wide == []


def test_names_on_the_api_pages_are_links():
    pytest.importorskip("mkdocs")
    linked = tool("hooks").linked
    here = '<a href="training.html#lols.training.algorithms.Algorithm">'
    assert linked("see <code>Algorithm</code>") == f"see {here}<code>Algorithm</code></a>"
    assert linked("<code>lols.Algorithm</code>") == f"{here}<code>lols.Algorithm</code></a>"
    same = "<a><code>Algorithm</code></a> <code>algorithm</code> <code>Other</code>"
    assert linked(same) == same
    assert linked("docs/contract.md describes it") == '<a href="../contract.html">contract.md</a> describes it'


def test_the_gallery_has_each_example_with_its_picture():
    gallery = GALLERY.read_text("utf-8")
    names = [program.stem for program in (ROOT / "examples").glob("*.py")]
    assert sorted(re.findall(r"^\[(\w+)\.py\]\(\1\.py\)", gallery, re.MULTILINE)) == sorted(names)
    assert sorted(re.findall(r"!\[[^\]]{20,}\]\(\S*/examples/(\w+)\.svg\)", gallery)) == sorted(names)
    assert gallery.count("**Result:**") == len(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pictures_have_texts_for_those_who_do_not_see_them(page):
    for text in re.findall(r"!\[([^\]]*)\]\(", prose(page)):
        assert len(text) >= 20, text


@pytest.mark.parametrize("picture", sorted((DOCS / "pictures").rglob("*.svg")), ids=lambda picture: picture.stem)
def test_pictures_follow_the_scheme_of_the_page(picture):
    text = picture.read_text("utf-8")
    assert "prefers-color-scheme:dark" in text.replace("prefers-color-scheme: dark", "prefers-color-scheme:dark")
    assert re.search(r"(?:fill|stroke): #[0-9a-f]{6}", text.partition("</style>")[2]) is None


@pytest.mark.parametrize("page", ["results/performance.md", "choose-a-strategy.md"])
def test_figures_that_are_repeated_are_those_of_the_page_of_the_measurement(page):
    own = (DOCS / "results" / "performance.md").read_text("utf-8")
    here = [own.partition(f"## {name}\n")[2].partition("\n## ")[0] for name in ("The engine", "Threads")]
    measured = [(DOCS / f"{name}.md").read_text("utf-8") for name in SOURCES]
    figures = set(FIGURE.findall("\n".join([*here, *measured])))
    rows = [line for line in (DOCS / page).read_text("utf-8").splitlines() if line.startswith("|")]
    assert {figure for row in rows for figure in FIGURE.findall(row)} - figures == set()


@pytest.mark.parametrize("page", [page.name for page in sorted((DOCS / "results").glob("*.md"))])
def test_guides_repeat_figures_of_their_results_in_one_table_at_most(page):
    results = set(FIGURE.findall((DOCS / "results" / page).read_text("utf-8")))
    tables = re.findall(r"(?:^\|.*\n)+", re.sub(r"`[^`\n]*`", "", prose(DOCS / page)), re.MULTILINE)
    figures = [set(FIGURE.findall(table)) for table in tables]
    repeated = [each for each in figures if len(each & results) > 1]  # one may be a setting
    assert len(repeated) <= 1
    assert all(each <= results for each in repeated)


@pytest.mark.parametrize(
    "module",
    [
        "lols",
        "lols.bandit",
        "lols.contract.checks",
        "lols.engines",
        "lols.io",
        "lols.plots",
        "lols.policies",
        "lols.torch",
    ],
)
def test_the_api_pages_show_every_public_name(module):
    if module == "lols.torch":
        pytest.importorskip("torch")
    lines = [line for page in (DOCS / "api").glob("*.md") for line in page.read_text("utf-8").splitlines()]
    shown = [named(line.removeprefix("::: ")) for line in lines if line.startswith("::: ")]
    public = named(module)
    names = [name for name in public.__all__ if not isinstance(getattr(public, name), ModuleType | str | dict)]
    assert [name for name in names if getattr(public, name) not in shown] == []


def test_estimators_document_all_their_parameters():
    for kind in (lols.Tagger, lols.Parser, lols.Pipeline, lols.CostSensitiveClassifier):
        text, _, parameters = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")
        parameters, _, examples = parameters.partition("Examples\n--------\n")
        assert ">>>" in examples and ">>>" not in text + parameters
        listed = set(re.findall(r"^(\w+)$", parameters, re.MULTILINE))
        assert set(inspect.signature(kind).parameters) - listed == set()


def test_every_picture_of_the_concepts_is_drawn():
    places = re.findall(r'id="picture-([\w-]+)"', (DOCS / "concepts.md").read_text("utf-8"))
    drawn = re.findall(
        r'\["([\w-]+)", \w+\]', (DOCS / "assets" / "worlds.js").read_text("utf-8").split("for (const [id")[1]
    )
    assert places == drawn


def test_the_figures_behind_the_pictures_are_those_of_the_theory():
    worlds = tool("worlds_data")
    assert worlds.FILE.read_text("utf-8") == worlds.text(), "run python docs/tools/worlds_data.py"
