"""Hooks of mkdocs: links to files of the repository become links to copies in the site, or the text of the file.

CONTRIBUTING.md, CHANGELOG.md, SECURITY.md and examples/README.md are pages of the site, too.

Notebooks load nothing from other hosts. On the API pages, names of the library are links.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "api"
KEPT = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<h\d\b.*?</h\d>)", re.DOTALL)  # has no links, or its own
PAGES = {f"{name.lower()}.md": f"{name}.md" for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY")}
GALLERY = "examples/gallery.md"
PAGES[GALLERY] = "examples/README.md"


def on_files(files: Files, *, config: Any) -> Files:
    """Copy the pages of the repository's root and the programs of examples/ into the site."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    for program in sorted((ROOT / "examples").rglob("*.py")):
        files.append(File.generated(config, program.relative_to(ROOT).as_posix(), abs_src_path=str(program)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Change links to `../examples/NAME.py`, which are right in the repository, to `examples/NAME.py`.

    The search puts guides before results.

    A link followed by `<!-- source: FILE -->` is replaced by the text of the file. Links between pages of the root and
    pages of docs/ become links between pages of the site.
    """
    if page.file.src_uri.startswith("results/"):
        page.meta.setdefault("search", {"boost": 0.5})
    if page.file.src_uri == GALLERY:
        return markdown.replace("](../docs/examples/", "](").replace("](../docs/", "](../")
    if page.file.src_uri in PAGES:
        markdown = markdown.replace("](docs/", "](")
    markdown = re.sub(
        r"\[[^\]]*\]\([^)]*\):\n\n<!-- source: (\S+) -->",
        lambda match: f"```python\n{(ROOT / match[1]).read_text()}```",
        markdown,
    )
    up = "../" * page.file.src_uri.count("/")
    for name, source in PAGES.items():
        markdown = re.sub(rf"\]\((?:\.\./)+{source}", f"]({up}{name}", markdown)
    return re.sub(r"\]\((?:\.\./)+examples/(\w+\.py)\)", rf"]({up}examples/\1)", markdown)


def on_page_content(html: str, *, page: Any, config: Any, files: Files) -> str:
    """Leave out of notebooks what would load MathJax and Mermaid from other hosts."""
    if page.file.src_uri.endswith(".ipynb"):
        scripts = r'<script (?:src=""|type="(?:text/x-mathjax-config|module)")>.*?</script>'
        html = re.sub(scripts, "", html, flags=re.DOTALL)
    if page.file.src_uri.startswith("api/"):
        html = linked(html)
    return html


def linked(html: str) -> str:
    """Make links of names that are on the API pages, such as `Algorithm` and `lols.train`, and of docs/NAME.md."""
    places = public_names()

    def link(code: re.Match[str]) -> str:
        place = places.get(code[2]) if code[1] or code[2][0].isupper() or "_" in code[2] else None
        return code[0] if place is None else f'<a href="{place}">{code[0]}</a>'

    parts = KEPT.split(html)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"<code>(lols\.(?:\w+\.)*)?(\w+)</code>", link, parts[k])
        parts[k] = re.sub(r"\bdocs/(\w+)\.md\b", r'<a href="../\1.html">\1.md</a>', parts[k])
    return "".join(parts)


@cache
def public_names() -> dict[str, str]:
    """Where each name is on the API pages."""
    return {
        path.rpartition(".")[2]: f"{page.stem}.html#{path}"
        for page in sorted(API.glob("*.md"))
        for path in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    }
