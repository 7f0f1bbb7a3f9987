"""The structured contextual bandit: improve a live system from the loss of what was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["MemoryLog", "Shown", "SqliteLog", "StructuredBandit"]

if TYPE_CHECKING:
    from lols.bandit.bandit import Shown, StructuredBandit
    from lols.bandit.log import MemoryLog, SqliteLog


def __getattr__(name: str) -> Any:
    """Import a name when it is used: a log alone needs no compiler."""
    if name not in __all__:
        raise AttributeError(f"module 'lols.bandit' has no attribute '{name}'")
    from importlib import import_module

    home = "log" if name in ("MemoryLog", "SqliteLog") else "bandit"
    return getattr(import_module(f"lols.bandit.{home}"), name)
