"""What mkdocs does besides: links to files of the repository lead to copies of them in the site, or to their text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]


def on_files(files: Files, *, config: Any) -> Files:
    """The programs of examples/ become files of the site."""
    for program in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{program.name}", abs_src_path=str(program)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """In the repository a page links to `../examples/NAME.py`; in the site that is `examples/NAME.py`.

    Where a page says `<!-- source: FILE -->`, the site shows the file, and the link above it is left out.
    """
    markdown = re.sub(
        r"\[[^\]]*\]\([^)]*\):\n\n<!-- source: (\S+) -->",
        lambda found: f"```python\n{(ROOT / found[1]).read_text()}```",
        markdown,
    )
    up = "../" * page.file.src_uri.count("/")
    return re.sub(r"\]\((?:\.\./)+examples/(\w+\.py)\)", rf"]({up}examples/\1)", markdown)
