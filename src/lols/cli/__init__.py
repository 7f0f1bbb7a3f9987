"""The command line. The file of a command is imported when it is called, and what its work needs when that begins."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lols.cli.base import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    from lols.cli import base

    _load(next((word for word in sys.argv[1:] if not word.startswith("-")), ""))
    base.main()


def _load(command: str) -> None:
    """Import the file of a command, or of all if there is none of that name."""
    from lols.cli.base import COMMANDS

    for name in [command] if command in COMMANDS else COMMANDS:
        importlib.import_module(f"lols.cli.{name.replace('-', '_')}")


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'lols.cli' has no attribute '{name}'")
    from lols.cli import base

    _load("")
    return base.app
