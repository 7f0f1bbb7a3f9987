"""Where the commands say things in words."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console

WIDTH = 120  # of tables in files and pipes, which have no width of their own


def plain_console(**options: Any) -> Console:
    """A console that prints texts as they are: no brackets are markup, and no names are emoji."""
    console = Console(highlight=False, markup=False, emoji=False, **options)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = WIDTH
    return console


say = plain_console(soft_wrap=True)
