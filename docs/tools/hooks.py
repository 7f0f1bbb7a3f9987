"""Hooks of mkdocs: links to files of the repository become links to copies in the site, or the text of the file.

CONTRIBUTING.md, CHANGELOG.md, SECURITY.md and examples/README.md are pages of the site, too.

Notebooks load nothing from other hosts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
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
    return html
