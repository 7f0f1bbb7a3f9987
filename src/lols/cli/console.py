"""Where the commands say things in words."""

from __future__ import annotations

from rich.console import Console

__all__ = ["say"]

say = Console(highlight=False, soft_wrap=True)
