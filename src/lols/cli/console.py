"""Where the commands say things in words."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def plain_console(**options: Any) -> Console:
    """A console that prints texts as they are: no brackets are markup, and no names are emoji."""
    return Console(highlight=False, markup=False, emoji=False, **options)


say = plain_console(soft_wrap=True)
