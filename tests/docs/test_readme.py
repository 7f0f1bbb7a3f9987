"""The Python blocks of README and documentation run, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import run_blocks
from tests.docs.test_docs import tool

ROOT = Path(__file__).parents[2]
NEURAL = ROOT / "docs" / "neural.md"  # needs PyTorch: tests/torch runs it
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if page != NEURAL)]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.parent != ROOT else []) for page in PAGES],
    ids=[page.relative_to(ROOT).as_posix() for page in PAGES],
)
def test_python_in_the_documentation_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page, alone=page.parent == ROOT)  # those of the README are copied one by one


def test_package_indexes_show_no_link_that_leads_nowhere():
    text, home = (ROOT / "README.md").read_text("utf-8"), "https://example.org/lols"
    for repository in (None, home):
        shown = tool("pypi_readme").for_index(text, repository)
        targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", shown, flags=re.MULTILINE | re.DOTALL))
        assert all(target.startswith("https://") for target in targets)
        assert (f"]({home}/raw/HEAD/docs/pictures/overtaking.svg)" in shown) == (repository is not None)
        assert run_of_code(shown) == run_of_code(text)


def run_of_code(text):
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)
