"""Write a matplotlib figure as an SVG file for pages: its colours follow the scheme of the reader, light or dark.

The background is transparent and text stays text. The colours are those of the library's own pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lols.plots.look import VARIABLES, inline_svg

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
SHEETS = ("reproduction/templates/report.css", "tasks/tokens/templates/page.css")


def style() -> str:
    """The colours of drawings as variables, and those for dark pages."""
    sheets = "".join((ROOT / "src" / "lols" / sheet).read_text("utf-8").partition("@media")[2] for sheet in SHEETS)
    light = "".join(f"--{name}:{colour};" for colour, name in VARIABLES.items())
    dark = "".join(f"--{name}:{re.findall(rf'--{name}: (#[0-9a-f]+)', sheets)[0]};" for name in VARIABLES.values())
    return f"<style>:root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"


def write(figure: Any, path: Path) -> None:
    """Write the figure; the same figure gives the same file."""
    start, end, rest = inline_svg(figure, path.stem).partition(">")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{start}{end}{style()}{rest}\n", "utf-8")
